/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which communicators are served, and by which team.
 *
 * The first collective call of a communicator decides, on all its ranks alike: the ranks exchange
 * whether each can take part (one reduction by MPI's own means), rank 0 names the team, the ranks
 * create it, and a second reduction finds whether all of them succeeded. Few short calls decide
 * nothing where MPI performs them anyway (world.c). Congruent communicators share a team, because
 * libraries duplicate communicators freely (FFTW: one per plan) and teams are bounded. Teams are
 * kept until MPI is finalized: a rank may free a communicator before another one makes its first
 * call on a duplicate of it.
 *
 * With threads, two communicators may be in collectives at once, in another order on each rank.
 * Each then has a team of its own, in a context of its own, since only one thread at a time may use
 * a context; MPI allows only one collective at a time on a communicator.
 *
 * Non-blocking calls on two communicators may start in another order on each rank, too. They need a
 * team of their own, and cannot wait for the other ranks to create it. A team that only one
 * communicator has used so far becomes its own at its first non-blocking call that is not small; a
 * communicator that shares its team is given another one at its next blocking call, and what it
 * starts before is left to MPI.
 *
 * A persistent operation has a team to itself: MPI lets the ranks start their persistent operations
 * in any order, and only the calls that prepare them are in the same order on all ranks.
 *
 * A team of a communicator or a persistent operation alone serves the next congruent one when these
 * are freed. Ranks free and create in orders of their own, so each may have other free teams. They
 * take the first one that is free on all.
 */
#include <ctype.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>

#include "mpi/glue/glue.h"

/* All ranks are running: a reduction among them has just completed. */
#define CREATE_TIMEOUT_MS 10000u

/* During the creation of a team, MPI's progress runs once in this time. */
#define PROGRESS_NS 1000000

/* A context has two descriptors. Those of communicators are at most a quarter of the process's. */
#define DESCRIPTORS_PER_CONTEXT 8

/* With threads, only for the name of the node. */
static collnet_t *context;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects it */
static int verbose;
static atomic_bool full; /* this process has as many teams as it can have */
static const char own_team[] = "a team of its own, for non-blocking operations";

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
	glue_unuse_team(c->team);
	glue_free_team_of(c);
	c->state = GLUE_NOT_SERVED;
	c->team = NULL;
}

void glue_finalize(void)
{
	glue_forget_world();
	glue_destroy_teams();
	collnet_close(context);
	context = NULL;
}

/* FNV-1a; positive, and less than GLUE_UNUSED. */
static int64_t hash(const char *s)
{
	uint64_t h = 14695981039346656037u;

	while (*s != '\0') {
		h = (h ^ (unsigned char)*s++) * 1099511628211u;
	}
	return (int64_t)(h >> 2) | 1;
}

void glue_explain(const struct glue_comm *c, MPI_Comm comm, int level, const char *text)
{
	char name[MPI_MAX_OBJECT_NAME] = "";
	int length;

	if (verbose >= level) {
		PMPI_Comm_get_name(comm, name, &length);
		fprintf(stderr, "collnet: communicator %s of %d ranks: %s\n",
			name[0] != '\0' ? name : "without a name", c->size, text);
	}
}

/* Who alone uses a team that is found or created for this communicator; NULL: any may. */
static const void *user_of(const struct glue_comm *c)
{
	return c->threads || c->wants_team ? c : NULL;
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

/* The creation of a team. It waits for all ranks, of which one may not come before MPI has sent
 * what this rank has told it to send; hence it runs in a thread of its own beside MPI's progress.
 */
struct creation {
	struct glue_team *t;
	struct collnet_team_options o;
	int status;
	char why[256]; /* of a failure; collnet_error() has it in the same thread only */
	sem_t done;
};

static void *create_in_thread(void *arg)
{
	struct creation *n = arg;

	n->status = collnet_team_create(n->t->context, &n->o, &n->t->team);
	if (n->status != COLLNET_OK) {
		snprintf(n->why, sizeof(n->why), "%s", collnet_error(n->t->context));
	}
	sem_post(&n->done);
	return NULL;
}

/* Waits for that, for PROGRESS_NS at most. */
static bool is_done(struct creation *n)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += PROGRESS_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	return sem_timedwait(&n->done, &until) == 0;
}

static int create_during_progress(const struct glue_comm *c, struct creation *n)
{
	pthread_t thread;

	sem_init(&n->done, 0, 0);
	if (!glue_start_thread(&thread, create_in_thread, n)) {
		create_in_thread(n);
	} else {
		while (!is_done(n)) {
			c->mpi->progress();
		}
		pthread_join(thread, NULL);
	}
	sem_destroy(&n->done);
	return n->status;
}

/* This rank's part of a new team, or NULL. It has the context of its parent, if there is one. */
static struct glue_team *create(const struct glue_comm *c, MPI_Comm comm, const char *name,
				const struct glue_team *parent, const void *user)
{
	struct glue_team *t = calloc(1, sizeof(*t));
	struct creation n = { .t = t };
	const char *why = "out of memory for a team";
	int status = COLLNET_OK;

	collnet_team_options_init(&n.o);
	n.o.job = name;
	n.o.rank = (uint32_t)c->rank;
	n.o.ranks = (uint32_t)c->size;
	n.o.timeout_ms = CREATE_TIMEOUT_MS;
	if (t != NULL) {
		pthread_mutex_init(&t->starting, NULL);
		t->id = hash(name);
		t->user = user;
		t->sharers = 1;
		t->context = parent != NULL ? parent->context : context;
		if (c->mpi->threads && parent == NULL) {
			status = collnet_open(NULL, &t->context);
			t->owns_context = status == COLLNET_OK;
			why = t->owns_context ? NULL : collnet_error(NULL);
		} else {
			why = NULL;
		}
	}
	if (why == NULL) {
		status = create_during_progress(c, &n);
		why = status == COLLNET_OK ? NULL : n.why;
	}
	if (why != NULL) {
		full = full || status == COLLNET_ELIMIT || status == COLLNET_ENOMEM ||
		       status == COLLNET_ESYSTEM;
		glue_explain(c, comm, 1, why);
		if (t != NULL) {
			glue_destroy_team(t);
		}
		return NULL;
	}
	PMPI_Comm_group(comm, &t->group);
	glue_add_team(t);
	return t;
}

int glue_min_by_mpi(struct glue_comm *c, int64_t *values, int n, MPI_Comm comm)
{
	int rc;

	c->asking = true;
	rc = c->mpi->min(c->self, values, n, comm);
	c->asking = false;
	return rc;
}

/* The new team if all ranks have it, or NULL. */
static struct glue_team *agree(struct glue_comm *c, MPI_Comm comm, struct glue_team *t)
{
	int64_t created = t != NULL;

	if (glue_min_by_mpi(c, &created, 1, comm) == MPI_SUCCESS && created != 0) {
		return t;
	}
	if (t != NULL) {
		glue_remove_team(t);
		PMPI_Group_free(&t->group);
		glue_destroy_team(t);
	}
	return NULL;
}

/* A new team that has no parent. */
static struct glue_team *join(struct glue_comm *c, MPI_Comm comm)
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
		glue_explain(c, comm, 1, "not served: the team has no name");
		return NULL;
	}
	name[COLLNET_NAME_MAX] = '\0';
	t = agree(c, comm, create(c, comm, name, NULL, user_of(c)));
	if (t == NULL && c->rank == 0) {
		glue_explain(c, comm, 1, "not served: a rank cannot create the team");
	}
	return t;
}

/* This rank's part of another team of the ranks of a served communicator, for this user alone. Not
 * by collnet_team_dup(): if that is refused on one rank, the first team fails. */
static struct glue_team *duplicate(struct glue_comm *c, MPI_Comm comm, const void *user)
{
	char name[64];

	if (c->team->team == NULL) {
		return NULL;
	}
	snprintf(name, sizeof(name), "mpi-%" PRIx64 "/%u", (uint64_t)c->team->id,
		 c->team->duplicates++);
	return create(c, comm, name, c->team, user);
}

/* A value and its negative: their minima over the ranks tell whether it is the same on all. */
enum { PAIR = 2 };

static void pair(int64_t v[PAIR], int64_t value)
{
	v[0] = value;
	v[1] = -value;
}

static bool are_equal(const int64_t v[PAIR])
{
	return v[0] == -v[1];
}

/* This rank's offer of a team; 0 stands for none. */
static void offer(int64_t v[PAIR], const struct glue_team *t)
{
	pair(v, t != NULL ? glue_offer_of(t) : 0);
}

/*
 * The first team that is free on all ranks, or NULL. mine: what this rank has offered; v: what came
 * of it. While the offers differ, each rank goes on to its first free team from the last of them
 * on. A persistent call k exchanges by collnet.
 */
static struct glue_team *find_common(struct glue_comm *c, MPI_Comm comm, const struct glue_call *k,
				     const void *user, bool unshared, struct glue_team *mine,
				     int64_t v[PAIR])
{
	int rc = MPI_SUCCESS;

	while (rc == MPI_SUCCESS && v[0] != 0 && !are_equal(v)) {
		const int64_t last = -v[1];

		glue_return_team(mine, user);
		mine = glue_find_free(comm, user, unshared, last);
		offer(v, mine);
		rc = k != NULL ? glue_min(k, v, PAIR) : glue_min_by_mpi(c, v, PAIR, comm);
	}
	if (rc == MPI_SUCCESS && v[0] != 0) {
		return mine;
	}
	glue_return_team(mine, user);
	return NULL;
}

/* What the ranks compare. Threads, selection and the rate of the link may be those of one rank: all
 * must come to the same decisions. */
enum {
	CAN,
	HOST,
	TEAM = HOST + PAIR,
	ROOM = TEAM + PAIR,
	NO_THREADS,
	ALWAYS,
	MEASURED,
	SHORT,
	NVALUES
};

/* Whether this process can have another team without a parent. */
static bool has_room(const struct glue_comm *c)
{
	struct rlimit l;

	return !full && (!c->mpi->threads || getrlimit(RLIMIT_NOFILE, &l) != 0 ||
			 glue_count_contexts() < l.rlim_cur / DESCRIPTORS_PER_CONTEXT);
}

static bool is_direct(void)
{
	struct collnet_options o;

	collnet_options_init(&o);
	return o.mode == COLLNET_MODE_DIRECT;
}

/* Opens the context, or another one if its daemon has ended. Sets the values that are of it, and
 * prints why there is none. */
static void open_context(const struct glue_comm *c, MPI_Comm comm, int64_t v[NVALUES])
{
	const bool possible = !c->mpi->threads || !is_direct();
	char why[256];

	v[SHORT] = 0;
	pthread_mutex_lock(&lock);
	if (context != NULL) {
		v[SHORT] = glue_short_bytes(context);
	}
	if (context != NULL && v[SHORT] == 0) {
		glue_retire_context(context);
		context = NULL;
	}
	if (possible && context == NULL && collnet_open(NULL, &context) == COLLNET_OK) {
		v[SHORT] = glue_short_bytes(context);
	}
	if (v[SHORT] == 0) {
		snprintf(why, sizeof(why), "not served: %s",
			 possible ? collnet_error(context)
				  : "with MPI_THREAD_MULTIPLE each communicator needs a context, "
				    "and in direct mode (COLLNET_MODE) an interface has one");
	}
	v[CAN] = v[SHORT] != 0;
	pair(v + HOST, v[CAN] != 0 ? hash(collnet_node_name(context)) : 0);
	pthread_mutex_unlock(&lock);
	if (v[CAN] == 0) {
		glue_explain(c, comm, 1, why);
	}
}

static bool decide(struct glue_comm *c, MPI_Comm comm)
{
	int64_t v[NVALUES];
	char text[64];
	bool can;

	open_context(c, comm, v);
	can = v[CAN] != 0;
	c->threads = c->mpi->threads;
	struct glue_team *free_one = glue_find_free(comm, user_of(c), c->wants_team, 1);
	offer(v + TEAM, free_one);
	v[ROOM] = has_room(c);
	v[NO_THREADS] = !c->threads;
	v[ALWAYS] = glue_is_always();
	v[MEASURED] = !glue_is_always();
	if (glue_min_by_mpi(c, v, NVALUES, comm) != MPI_SUCCESS) {
		return false;
	}
	c->threads = v[NO_THREADS] == 0;
	c->always = v[ALWAYS] != 0;
	c->short_bytes = v[SHORT];
	if (v[CAN] == 0) {
		if (c->rank == 0 && can) {
			glue_explain(c, comm, 1, "not served: a rank has no access to collnetd");
		}
		return false;
	}
	if (are_equal(v + HOST)) {
		if (c->rank == 0) {
			glue_explain(c, comm, 1, "not served: all ranks run on one node");
		}
		return false;
	}
	c->team = find_common(c, comm, NULL, user_of(c), c->wants_team, free_one, v + TEAM);
	if (c->team != NULL) {
		c->team->user = user_of(c);
		c->team->sharers++;
	} else {
		if (v[ROOM] == 0) {
			if (c->rank == 0) {
				glue_explain(c, comm, 1, "not served: a rank has too many teams");
			}
			return false;
		}
		c->team = join(c, comm);
		if (c->team == NULL) {
			return false;
		}
	}
	glue_use_team(c->team);
	if (comm == MPI_COMM_WORLD && !c->threads && v[MEASURED] != 0 &&
	    c->team->nodes == (uint32_t)c->size) {
		glue_learn_of_world(c);
	}
	if (c->rank == 0) {
		snprintf(text, sizeof(text), "served by collnet on %u nodes", c->team->nodes);
		glue_explain(c, comm, 1, text);
		if (c->wants_team) {
			glue_explain(c, comm, 2, own_team);
		}
	}
	return true;
}

/*
 * Whether the communicator is the only one that uses its team, and from now on it stays so. The
 * answer is the same on all ranks: another one that came to use the team has exchanged with all
 * ranks whether it is free.
 */
static bool has_team_alone(struct glue_comm *c, MPI_Comm comm)
{
	if (glue_acquire_team(c->team, c) && c->rank == 0) {
		glue_explain(c, comm, 2, own_team);
	}
	return c->team->user == c;
}

/* Gives a communicator that shares its team one of its own, which inherits the choices: one that
 * nobody uses on all ranks, or a new one. */
static void leave_shared(struct glue_comm *c, MPI_Comm comm)
{
	struct glue_team *own = glue_find_free(comm, c, true, 1);
	int64_t v[1 + PAIR] = { !full && !c->team->failed };

	c->tried_team = true;
	offer(v + 1, own);
	if (glue_min_by_mpi(c, v, 1 + PAIR, comm) != MPI_SUCCESS) {
		glue_return_team(own, c);
		return;
	}
	own = find_common(c, comm, NULL, c, true, own, v + 1);
	if (own == NULL && v[0] != 0) {
		own = agree(c, comm, duplicate(c, comm, c));
	}
	if (own != NULL) {
		own->sharers = 1;
		if (c->rank == 0) {
			glue_explain(c, comm, 2, own_team);
		}
		memcpy(own->choices, c->team->choices, sizeof(own->choices));
		glue_use_team(own);
		glue_unuse_team(c->team);
		c->team = own;
	}
}

/* The call may wait for other ranks. */
static bool decide_together(struct glue_comm *c, MPI_Comm comm)
{
	if (c->state == GLUE_SERVED && c->wants_team && !c->tried_team) {
		leave_shared(c, comm);
	}
	if (c->state != GLUE_UNDECIDED) {
		return c->state == GLUE_SERVED;
	}
	c->state = GLUE_NOT_SERVED; /* the exchange below must not come here again */
	if (decide(c, comm)) {
		c->state = GLUE_SERVED;
		c->tried_team = c->wants_team;
	} else {
		glue_free_team_of(c);
	}
	return c->state == GLUE_SERVED;
}

static bool decide_alone(struct glue_comm *c, MPI_Comm comm, size_t bytes)
{
	if (bytes <= GLUE_SMALL) {
		return c->state == GLUE_SERVED && c->team->user == c;
	}
	c->wants_team = c->state == GLUE_UNDECIDED ||
			(c->state == GLUE_SERVED && !has_team_alone(c, comm));
	return c->state == GLUE_SERVED && !c->wants_team;
}

bool glue_decide(struct glue_call *k, size_t bytes)
{
	if (k->persistent) {
		return k->team != NULL;
	}
	if (k->c->asking) {
		return false;
	}
	if (!(k->nonblocking ? decide_alone(k->c, k->comm, bytes)
			     : decide_together(k->c, k->comm))) {
		return false;
	}
	k->team = k->c->team;
	return true;
}

int glue_prepare(struct glue_call *k)
{
	struct glue_comm *c = k->c;
	struct glue_team *found;
	int64_t v[2 + PAIR];
	bool room;

	if (!decide_together(c, k->comm) || c->persistent_by_mpi) {
		return GLUE_DECLINED;
	}
	room = glue_reserve();
	found = glue_find_free(k->comm, k, true, 1);
	v[0] = room;
	v[1] = !full;
	offer(v + 2, found);
	if (glue_min(k, v, 2 + PAIR) == MPI_SUCCESS && v[0] != 0) {
		k->team = find_common(c, k->comm, k, k, true, found, v + 2);
		if (k->team == NULL && v[1] != 0) {
			k->team = agree(c, k->comm, duplicate(c, k->comm, k));
		}
	}
	if (k->team == NULL) {
		glue_free_team_of(k);
		if (room) {
			glue_unreserve();
		}
	}
	return k->team != NULL ? MPI_SUCCESS : GLUE_DECLINED;
}

void glue_release_team(struct glue_call *k)
{
	if (k->team != NULL) {
		glue_free_team_of(k);
		glue_unreserve();
		k->team = NULL;
	}
}
