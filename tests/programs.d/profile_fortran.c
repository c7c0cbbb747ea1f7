/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The profile's functions for Fortran: those of Open MPI call PMPI_*, so that a program's calls do
 * not reach MPI_*. A program in C has no library of Fortran functions, so references to it are
 * weak.
 */
#include "profile.h"

#define COMM PMPI_Comm_f2c(*c)
#define TYPE PMPI_Type_f2c

#define DEFINE(name, parameters, arguments, counted)                                               \
	__attribute__((weak)) void pmpi_##name##_ parameters;                                      \
	void mpi_##name##_ parameters;                                                             \
	void mpi_##name##_ parameters                                                              \
	{                                                                                          \
		counted;                                                                           \
		pmpi_##name##_ arguments;                                                          \
	}

typedef MPI_Fint f;

DEFINE(finalize, (f * e), (e), profile_print())
DEFINE(barrier, (f * c, f *e), (c, e), profile_call(Barrier, COMM))
DEFINE(bcast, (void *b, f *n, f *t, f *root, f *c, f *e), (b, n, t, root, c, e),
       profile_from_root(Bcast, *n, TYPE(*t), *root, COMM))
DEFINE(gather, (void *s, f *ns, f *ts, void *r, f *nr, f *tr, f *root, f *c, f *e),
       (s, ns, ts, r, nr, tr, root, c, e), profile_at_root(Gather, *ns, TYPE(*ts), *root, COMM))
DEFINE(gatherv, (void *s, f *ns, f *ts, void *r, f *nr, f *d, f *tr, f *root, f *c, f *e),
       (s, ns, ts, r, nr, d, tr, root, c, e), profile_at_root(Gatherv, *ns, TYPE(*ts), *root, COMM))
DEFINE(scatter, (void *s, f *ns, f *ts, void *r, f *nr, f *tr, f *root, f *c, f *e),
       (s, ns, ts, r, nr, tr, root, c, e), profile_at_root(Scatter, *nr, TYPE(*tr), *root, COMM))
DEFINE(scatterv, (void *s, f *ns, f *d, f *ts, void *r, f *nr, f *tr, f *root, f *c, f *e),
       (s, ns, d, ts, r, nr, tr, root, c, e),
       profile_at_root(Scatterv, *nr, TYPE(*tr), *root, COMM))
DEFINE(allgather, (void *s, f *ns, f *ts, void *r, f *nr, f *tr, f *c, f *e),
       (s, ns, ts, r, nr, tr, c, e), profile_each(Allgather, *nr, TYPE(*tr), COMM))
DEFINE(allgatherv, (void *s, f *ns, f *ts, void *r, f *nr, f *d, f *tr, f *c, f *e),
       (s, ns, ts, r, nr, d, tr, c, e), profile_own(Allgatherv, nr, TYPE(*tr), COMM))
DEFINE(alltoall, (void *s, f *ns, f *ts, void *r, f *nr, f *tr, f *c, f *e),
       (s, ns, ts, r, nr, tr, c, e), profile_each(Alltoall, *nr, TYPE(*tr), COMM))
DEFINE(alltoallv, (void *s, f *ns, f *ds, f *ts, void *r, f *nr, f *dr, f *tr, f *c, f *e),
       (s, ns, ds, ts, r, nr, dr, tr, c, e), profile_counts(Alltoallv, nr, TYPE(*tr), COMM))
DEFINE(reduce, (void *s, void *r, f *n, f *t, f *op, f *root, f *c, f *e),
       (s, r, n, t, op, root, c, e), profile_at_root(Reduce, *n, TYPE(*t), *root, COMM))
DEFINE(allreduce, (void *s, void *r, f *n, f *t, f *op, f *c, f *e), (s, r, n, t, op, c, e),
       profile_allreduce(*n, TYPE(*t), COMM))
DEFINE(reduce_scatter, (void *s, void *r, f *n, f *t, f *op, f *c, f *e), (s, r, n, t, op, c, e),
       profile_counts(Reduce_scatter, n, TYPE(*t), COMM))
DEFINE(reduce_scatter_block, (void *s, void *r, f *n, f *t, f *op, f *c, f *e),
       (s, r, n, t, op, c, e), profile_each(Reduce_scatter_block, *n, TYPE(*t), COMM))
DEFINE(scan, (void *s, void *r, f *n, f *t, f *op, f *c, f *e), (s, r, n, t, op, c, e),
       profile_scan(Scan, *n, TYPE(*t), COMM))
DEFINE(exscan, (void *s, void *r, f *n, f *t, f *op, f *c, f *e), (s, r, n, t, op, c, e),
       profile_scan(Exscan, *n, TYPE(*t), COMM))
DEFINE(ibcast, (void *b, f *n, f *t, f *root, f *c, f *q, f *e), (b, n, t, root, c, q, e),
       profile_call(Ibcast, COMM))
DEFINE(iallgather, (void *s, f *ns, f *ts, void *r, f *nr, f *tr, f *c, f *q, f *e),
       (s, ns, ts, r, nr, tr, c, q, e), profile_call(Iallgather, COMM))
DEFINE(iallreduce, (void *s, void *r, f *n, f *t, f *op, f *c, f *q, f *e),
       (s, r, n, t, op, c, q, e), profile_call(Iallreduce, COMM))
DEFINE(ialltoall, (void *s, f *ns, f *ts, void *r, f *nr, f *tr, f *c, f *q, f *e),
       (s, ns, ts, r, nr, tr, c, q, e), profile_call(Ialltoall, COMM))
DEFINE(ialltoallv, (void *s, f *ns, f *ds, f *ts, void *r, f *nr, f *dr, f *tr, f *c, f *q, f *e),
       (s, ns, ds, ts, r, nr, dr, tr, c, q, e), profile_call(Ialltoallv, COMM))
