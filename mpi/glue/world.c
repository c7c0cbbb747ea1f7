/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Communicators of few short calls.
 *
 * Where each rank has a node to itself, MPI performs short calls while they are few (select.c). The
 * ranks of a communicator must know alike that this applies to it, before they agree on a team. The
 * first decision of MPI_COMM_WORLD tells all its ranks, and thus those of each communicator of a
 * part of them, whose first EARLY short calls then decide nothing and create no team.
 *
 * With threads, a call of a communicator and the first one of the world could come in another order
 * on each rank.
 */
#include "mpi/glue/glue.h"

#define EARLY 256

static struct {
	bool known;
	int size;
	int64_t short_bytes; /* limit of short calls on the slowest link */
} world;

void glue_learn_of_world(const struct glue_comm *c)
{
	world.size = c->size;
	world.short_bytes = c->short_bytes < GLUE_UNTRIED_BYTES ? c->short_bytes
								: GLUE_UNTRIED_BYTES - 1;
	world.known = true;
}

void glue_forget_world(void)
{
	world.known = false;
}

bool glue_is_part_of(MPI_Group group, MPI_Comm comm, int size)
{
	MPI_Group members, common;
	int n = 0;

	if (PMPI_Comm_group(comm, &members) != MPI_SUCCESS) {
		return false;
	}
	if (PMPI_Group_intersection(members, group, &common) == MPI_SUCCESS) {
		PMPI_Group_size(common, &n);
		PMPI_Group_free(&common);
	}
	PMPI_Group_free(&members);
	return n == size;
}

/* Other processes, which were spawned or connected, know another world. */
static bool is_in_world(MPI_Comm comm, int size)
{
	MPI_Group all;
	bool is;

	PMPI_Comm_group(MPI_COMM_WORLD, &all);
	is = glue_is_part_of(all, comm, size);
	PMPI_Group_free(&all);
	return is;
}

bool glue_decides_later(struct glue_call *k, size_t bytes)
{
	struct glue_comm *c = k->c;

	if (!world.known || c->state != GLUE_UNDECIDED || c->wants_team || c->asking ||
	    k->nonblocking || k->persistent || bytes > (uint64_t)world.short_bytes ||
	    c->early == EARLY) {
		return false;
	}
	if (c->early == 0) {
		/* A duplicate of the world has the world's team and choices. */
		if (c->size == world.size || !is_in_world(k->comm, c->size)) {
			c->early = EARLY;
			return false;
		}
		if (c->rank == 0) {
			glue_explain(c, k->comm, 1, "few short calls: by MPI");
		}
	}
	c->early++;
	return true;
}
