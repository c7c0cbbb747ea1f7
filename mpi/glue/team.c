/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which communicators are served, and by which team.
 *
 * The first collective call of a communicator decides, on all its ranks alike: the ranks exchange
 * whether each can take part (one reduction by MPI's own means), rank 0 names the team, the ranks
 * create it, and a second reduction finds whether all of them succeeded. Congruent communicators
 * share a team, because libraries duplicate communicators freely (FFTW: one per plan) and teams are
 * bounded. Teams are kept until MPI is finalized: a rank may free a communicator before another one
 * makes its first call on a duplicate of it.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "mpi/glue/glue.h"

/* All ranks are running: a reduction among them has just completed. */
#define CREATE_TIMEOUT_MS 10000u

static collnet_t *context;
static struct glue_team *teams;
static int verbose;

void glue_set_verbose(int level)
{
	verbose = level;
}

void glue_comm_init(struct glue_comm *c, const struct glue_mpi *mpi, void *self, int rank, int size)
{
	*c = (struct glue_comm){ .mpi = mpi, .self = self, .rank = rank, .size = size };
}

void glue_comm_free(struct glue_comm *c)
{
	c->state = GLUE_NOT_SERVED;
	c->team = NULL;
}

const char *glue_error(void)
{
	return collnet_error(context);
}

void glue_finalize(void)
{
	while (teams != NULL) {
		struct glue_team *t = teams;

		teams = t->next;
		collnet_team_destroy(t->team);
		free(t);
	}
	collnet_close(context);
	context = NULL;
}

/* FNV-1a; positive. */
static int64_t hash(const char *s)
{
	uint64_t h = 14695981039346656037u;

	while (*s != '\0') {
		h = (h ^ (unsigned char)*s++) * 1099511628211u;
	}
	return (int64_t)(h >> 1) | 1;
}

static void explain(const struct glue_comm *c, MPI_Comm comm, const char *text)
{
	char name[MPI_MAX_OBJECT_NAME] = "";
	int length;

	if (verbose > 0) {
		PMPI_Comm_get_name(comm, name, &length);
		fprintf(stderr, "collnet: communicator %s of %d ranks: %s\n",
			name[0] != '\0' ? name : "without a name", c->size, text);
	}
}

static struct glue_team *find_congruent(MPI_Group group)
{
	for (struct glue_team *t = teams; t != NULL; t = t->next) {
		int result;

		if (PMPI_Group_compare(group, t->group, &result) == MPI_SUCCESS &&
		    result == MPI_IDENT) {
			return t;
		}
	}
	return NULL;
}

/*
 * The name of a new team, for `collnet status`: the MPI job and the world rank of the
 * communicator's rank 0, and a random number, so that no other job can have it.
 */
static bool name_team(const struct glue_comm *c, char name[COLLNET_NAME_MAX + 1])
{
	uint64_t random;
	int rank;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random)) {
		return false;
	}
	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	int n = snprintf(name, COLLNET_NAME_MAX + 1, "mpi-%.24s.%d.%016" PRIx64,
			 c->mpi->job != NULL ? c->mpi->job : "", rank, random);
	for (char *p = name; *p != '\0'; p++) {
		if (!isalnum((unsigned char)*p) && strchr("._-", *p) == NULL) {
			*p = '_';
		}
	}
	return n > 0 && n <= COLLNET_NAME_MAX;
}

static struct glue_team *create(const struct glue_comm *c, const char *name, MPI_Group group)
{
	struct glue_team *t = calloc(1, sizeof(*t));
	struct collnet_team_options o;

	if (t == NULL) {
		return NULL;
	}
	collnet_team_options_init(&o);
	o.job = name;
	o.rank = (uint32_t)c->rank;
	o.ranks = (uint32_t)c->size;
	o.timeout_ms = CREATE_TIMEOUT_MS;
	t->id = hash(name);
	t->group = group;
	if (collnet_team_create(context, &o, &t->team) != COLLNET_OK) {
		free(t);
		return NULL;
	}
	return t;
}

/* What the ranks compare: the minimum of a value and of its negative tells whether all are equal.
 */
enum { CAN, HOST, HOST_NEGATIVE, TEAM, TEAM_NEGATIVE, NVALUES };

static bool join(struct glue_comm *c, MPI_Comm comm, MPI_Group group, bool *group_kept)
{
	char name[COLLNET_NAME_MAX + 1] = "";
	struct glue_team *t;

	if (c->rank == 0) {
		/* An empty name tells the others that there is none. */
		if (!name_team(c, name)) {
			name[0] = '\0';
		}
	}
	if (c->mpi->bcast(c->self, name, sizeof(name), comm) != MPI_SUCCESS || name[0] == '\0') {
		explain(c, comm, "not served: the team has no name");
		return false;
	}
	name[COLLNET_NAME_MAX] = '\0';
	t = create(c, name, group);
	int64_t created = t != NULL;
	if (t == NULL) {
		explain(c, comm, collnet_error(context));
	}
	if (c->mpi->min(c->self, &created, 1, comm) != MPI_SUCCESS || created == 0) {
		if (t != NULL) {
			collnet_team_destroy(t->team);
			free(t);
		}
		if (c->rank == 0) {
			explain(c, comm, "not served: a rank cannot create the team");
		}
		return false;
	}
	t->next = teams;
	teams = t;
	c->team = t;
	*group_kept = true;
	return true;
}

static bool decide(struct glue_comm *c, MPI_Comm comm, MPI_Group group, bool *group_kept)
{
	int64_t v[NVALUES];
	char why[256] = "";

	if (context == NULL && collnet_open(NULL, &context) != COLLNET_OK) {
		snprintf(why, sizeof(why), "not served: %s", collnet_error(NULL));
		explain(c, comm, why);
		context = NULL;
	}
	struct glue_team *shared = find_congruent(group);
	v[CAN] = context != NULL;
	v[HOST] = context != NULL ? hash(collnet_node_name(context)) : 0;
	v[HOST_NEGATIVE] = -v[HOST];
	v[TEAM] = shared != NULL ? shared->id : 0;
	v[TEAM_NEGATIVE] = -v[TEAM];
	if (c->mpi->min(c->self, v, NVALUES, comm) != MPI_SUCCESS) {
		return false;
	}
	if (v[CAN] == 0) {
		if (c->rank == 0 && why[0] == '\0') {
			explain(c, comm, "not served: a rank has no access to collnetd");
		}
		return false;
	}
	if (v[HOST] == -v[HOST_NEGATIVE]) {
		if (c->rank == 0) {
			explain(c, comm, "not served: all ranks run on one node");
		}
		return false;
	}
	if (v[TEAM] == -v[TEAM_NEGATIVE] && v[TEAM] != 0) {
		c->team = shared;
	} else if (!join(c, comm, group, group_kept)) {
		return false;
	}
	if (c->rank == 0) {
		snprintf(why, sizeof(why), "served by collnet on %u nodes",
			 collnet_team_nodes(c->team->team));
		explain(c, comm, why);
	}
	return true;
}

bool glue_decide(struct glue_comm *c, MPI_Comm comm)
{
	bool group_kept = false;
	MPI_Group group;

	if (c->state != GLUE_UNDECIDED) {
		return c->state == GLUE_SERVED;
	}
	c->state = GLUE_NOT_SERVED; /* the exchange below must not come here again */
	PMPI_Comm_group(comm, &group);
	if (decide(c, comm, group, &group_kept)) {
		c->state = GLUE_SERVED;
	}
	if (!group_kept) {
		PMPI_Group_free(&group);
	}
	return c->state == GLUE_SERVED;
}
