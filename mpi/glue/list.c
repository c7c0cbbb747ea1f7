/* SPDX-License-Identifier: BSD-2-Clause */
/* The teams of this process, and which of them are free. The lock protects the list. */
#include <pthread.h>
#include <stdlib.h>

#include "mpi/glue/glue.h"

static struct glue_team *teams;
static struct glue_alike *alikes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* What is known of teams like this one; NULL without memory. */
static struct glue_alike *find_alike(const struct glue_team *t)
{
	const uint32_t ranks = collnet_team_size(t->team), nodes = collnet_team_nodes(t->team);
	struct glue_alike *a;

	for (a = alikes; a != NULL && (a->ranks != ranks || a->nodes != nodes); a = a->next) {
	}
	if (a == NULL) {
		a = calloc(1, sizeof(*a));
		if (a != NULL) {
			a->ranks = ranks;
			a->nodes = nodes;
			a->next = alikes;
			alikes = a;
		}
	}
	return a;
}

void glue_add_team(struct glue_team *t)
{
	pthread_mutex_lock(&lock);
	t->alike = find_alike(t);
	t->nodes = collnet_team_nodes(t->team);
	t->next = teams;
	teams = t;
	pthread_mutex_unlock(&lock);
}

void glue_remove_team(struct glue_team *t)
{
	pthread_mutex_lock(&lock);
	for (struct glue_team **at = &teams; *at != NULL; at = &(*at)->next) {
		if (*at == t) {
			*at = t->next;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}

static void free_buffers(struct glue_team *t)
{
	for (int i = 0; i < GLUE_BUFFERS; i++) {
		glue_free_shared(t->context, t->buffers[i].p);
		t->buffers[i].p = NULL;
		t->buffers[i].bytes = 0;
	}
	t->no_buffers = false;
}

void glue_use_team(struct glue_team *t)
{
	pthread_mutex_lock(&lock);
	t->communicators++;
	pthread_mutex_unlock(&lock);
}

void glue_unuse_team(const struct glue_team *team)
{
	pthread_mutex_lock(&lock);
	for (struct glue_team *t = teams; t != NULL; t = t->next) {
		if (t == team && --t->communicators == 0) {
			free_buffers(t);
		}
	}
	pthread_mutex_unlock(&lock);
}

void glue_destroy_team(struct glue_team *t)
{
	if (t->leaves) {
		pthread_join(t->leaving, NULL);
	}
	collnet_team_destroy(t->team);
	pthread_mutex_destroy(&t->starting);
	free_buffers(t);
	if (t->owns_context) {
		collnet_close(t->context);
	}
	free(t);
}

void glue_destroy_teams(void)
{
	while (teams != NULL) {
		struct glue_team *t = teams;

		teams = t->next;
		glue_destroy_team(t);
	}
	while (alikes != NULL) {
		struct glue_alike *a = alikes;

		alikes = a->next;
		free(a);
	}
}

unsigned glue_count_contexts(void)
{
	unsigned n = 0;

	pthread_mutex_lock(&lock);
	for (const struct glue_team *t = teams; t != NULL; t = t->next) {
		n += t->owns_context;
	}
	pthread_mutex_unlock(&lock);
	return n;
}

void glue_retire_context(collnet_t *context)
{
	struct glue_team *last = NULL;

	pthread_mutex_lock(&lock);
	for (struct glue_team *t = teams; t != NULL; t = t->next) {
		t->failed = true;
		last = t->context == context ? t : last;
	}
	if (last != NULL) {
		last->owns_context = true;
	}
	pthread_mutex_unlock(&lock);
	if (last == NULL) {
		collnet_close(context);
	}
}

int64_t glue_offer_of(const struct glue_team *t)
{
	return t->sharers > 0 ? t->id : t->id | GLUE_UNUSED;
}

static bool is_of(const struct glue_team *t, MPI_Group group)
{
	int result;

	return PMPI_Group_compare(group, t->group, &result) == MPI_SUCCESS && result == MPI_IDENT;
}

/* One that communicators share comes before one that nobody uses, which the next communicator with
 * non-blocking calls needs. */
struct glue_team *glue_find_free(MPI_Comm comm, const void *user, bool unshared, int64_t least)
{
	struct glue_team *found = NULL;
	MPI_Group group;

	PMPI_Comm_group(comm, &group);
	pthread_mutex_lock(&lock);
	for (struct glue_team *t = teams; t != NULL; t = t->next) {
		if (t->team != NULL && !t->failed && t->user == NULL &&
		    !(unshared && t->sharers > 0) && glue_offer_of(t) >= least &&
		    (found == NULL || glue_offer_of(t) < glue_offer_of(found)) && is_of(t, group)) {
			found = t;
		}
	}
	if (found != NULL) {
		found->user = user;
	}
	pthread_mutex_unlock(&lock);
	PMPI_Group_free(&group);
	return found;
}

void glue_return_team(struct glue_team *t, const void *user)
{
	pthread_mutex_lock(&lock);
	if (t != NULL && user != NULL && t->user == user) {
		t->user = NULL;
	}
	pthread_mutex_unlock(&lock);
}

bool glue_acquire_team(struct glue_team *t, const void *user)
{
	bool taken;

	pthread_mutex_lock(&lock);
	taken = t->user == NULL && t->sharers == 1;
	t->user = taken ? user : t->user;
	pthread_mutex_unlock(&lock);
	return taken;
}

void glue_free_team_of(const void *user)
{
	pthread_mutex_lock(&lock);
	for (struct glue_team *t = teams; user != NULL && t != NULL; t = t->next) {
		if (t->user == user) {
			t->user = NULL;
			t->sharers = 0;
		}
	}
	pthread_mutex_unlock(&lock);
}
