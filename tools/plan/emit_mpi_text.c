/* SPDX-License-Identifier: BSD-2-Clause */
/* The fixed text of the routines that emit_mpi.c writes. It is C99. */
#include "tools/plan/emit_mpi.h"

const char emit_mpi_comment[] =
	" *\n"
	" * The first call on a communicator duplicates it (all its ranks must take part, as in any\n"
	" * collective operation) and keeps the duplicate as an attribute, so that no message of the\n"
	" * caller's is mistaken for one of the schedule's. Where the schedule does not fit, MPI's own\n"
	" * routine is called: another number of ranks, another root, an intercommunicator, and\n"
	" * MPI_IN_PLACE in MPI_Alltoall and MPI_Allgather. Any datatype; a count may be 0. The return\n"
	" * value is MPI's; after an error the communicator should not be used again.\n"
	" */\n";

const char emit_mpi_kinds[] =
	"enum { TAG_DATA = 1, TAG_SYNC = 2, TAG_COPY = 3 };\n"
	"\n"
	"/*\n"
	" * What a rank does, one after another. A unit is a piece of a block, `n` of them a message.\n"
	" *   SEND     to `peer`, from the send buffer     FORWARD  from the receive buffer\n"
	" *   RECV     from `peer`                         COPY     to unit `peer` of the receive buffer\n"
	" *   NOTE     an empty message, a synchronisation AWAIT    receives one\n"
	" *   WAIT     until receive number `unit` of this rank (RECV and AWAIT) is complete\n"
	" */\n"
	"enum { SEND, FORWARD, RECV, NOTE, AWAIT, WAIT, COPY };\n\n";

const char emit_mpi_machine[] =
	"struct run {\n"
	"\tconst char *in;\n"
	"\tchar *out;\n"
	"\tint in_count, out_count, in_place, rank;\n"
	"\tMPI_Datatype in_type, out_type;\n"
	"\tMPI_Aint in_extent, out_extent;\n"
	"\tMPI_Comm comm;\n"
	"\tconst struct step *at, *next, *end; /* next: no receive from there on is posted */\n"
	"\tunsigned int posted, sent;\n"
	"\tMPI_Request recvs[WINDOW], sends[SENDS];\n"
	"};\n"
	"\n"
	"/* The element that a unit begins with. */\n"
	"static MPI_Aint place(int count, unsigned int unit)\n"
	"{\n"
	"\treturn (MPI_Aint)(unit / PIECES) * count + (MPI_Aint)(unit % PIECES) * count / PIECES;\n"
	"}\n"
	"\n"
	"static int length(int count, const struct step *s)\n"
	"{\n"
	"\treturn (int)(place(count, (unsigned int)s->unit + s->n) - place(count, s->unit));\n"
	"}\n"
	"\n"
	"/* Posts the receives up to the present step, and later ones while requests are free. */\n"
	"static int post(struct run *r)\n"
	"{\n"
	"\tfor (; r->next < r->end; r->next++) {\n"
	"\t\tconst struct step *s = r->next;\n"
	"\t\tMPI_Request *q = &r->recvs[r->posted % WINDOW];\n"
	"\t\tint rc, done = 1;\n"
	"\n"
	"\t\tif (s->what != RECV && s->what != AWAIT) {\n"
	"\t\t\tcontinue;\n"
	"\t\t}\n"
	"\t\tif (*q != MPI_REQUEST_NULL) {\n"
	"\t\t\trc = s <= r->at ? MPI_Wait(q, MPI_STATUS_IGNORE)\n"
	"\t\t\t\t\t: MPI_Test(q, &done, MPI_STATUS_IGNORE);\n"
	"\t\t\tif (rc != MPI_SUCCESS || !done) {\n"
	"\t\t\t\treturn rc;\n"
	"\t\t\t}\n"
	"\t\t}\n"
	"\t\tif (s->what == RECV) {\n"
	"\t\t\trc = MPI_Irecv(r->out + place(r->out_count, s->unit) * r->out_extent,\n"
	"\t\t\t\t       length(r->out_count, s), r->out_type, s->peer, TAG_DATA,\n"
	"\t\t\t\t       r->comm, q);\n"
	"\t\t} else {\n"
	"\t\t\trc = MPI_Irecv(NULL, 0, MPI_BYTE, s->peer, TAG_SYNC, r->comm, q);\n"
	"\t\t}\n"
	"\t\tif (rc != MPI_SUCCESS) {\n"
	"\t\t\treturn rc;\n"
	"\t\t}\n"
	"\t\tr->posted++;\n"
	"\t}\n"
	"\treturn MPI_SUCCESS;\n"
	"}\n"
	"\n"
	"static int send_one(struct run *r, const struct step *s)\n"
	"{\n"
	"\tMPI_Request *q = &r->sends[r->sent++ % SENDS];\n"
	"\tint rc = MPI_Wait(q, MPI_STATUS_IGNORE);\n"
	"\n"
	"\tif (rc != MPI_SUCCESS) {\n"
	"\t\treturn rc;\n"
	"\t}\n"
	"\tif (s->what == SEND) {\n"
	"\t\treturn MPI_Isend(r->in + place(r->in_count, s->unit) * r->in_extent,\n"
	"\t\t\t\t length(r->in_count, s), r->in_type, s->peer, TAG_DATA, r->comm, q);\n"
	"\t}\n"
	"\tif (s->what == FORWARD) {\n"
	"\t\treturn MPI_Isend(r->out + place(r->out_count, s->unit) * r->out_extent,\n"
	"\t\t\t\t length(r->out_count, s), r->out_type, s->peer, TAG_DATA, r->comm,\n"
	"\t\t\t\t q);\n"
	"\t}\n"
	"\treturn MPI_Isend(NULL, 0, MPI_BYTE, s->peer, TAG_SYNC, r->comm, q);\n"
	"}\n"
	"\n"
	"static int act(struct run *r)\n"
	"{\n"
	"\tconst struct step *s = r->at;\n"
	"\n"
	"\tswitch (s->what) {\n"
	"\tcase SEND:\n"
	"\tcase FORWARD:\n"
	"\tcase NOTE:\n"
	"\t\treturn send_one(r, s);\n"
	"\tcase WAIT: /* its place in recvs[] has another one when it is long complete */\n"
	"\t\treturn (unsigned int)s->unit + WINDOW < r->posted\n"
	"\t\t\t\t? MPI_SUCCESS\n"
	"\t\t\t\t: MPI_Wait(&r->recvs[s->unit % WINDOW], MPI_STATUS_IGNORE);\n"
	"\tcase COPY:\n"
	"\t\treturn r->in_place ? MPI_SUCCESS : MPI_Sendrecv(\n"
	"\t\t\tr->in + place(r->in_count, s->unit) * r->in_extent,\n"
	"\t\t\tlength(r->in_count, s), r->in_type, r->rank, TAG_COPY,\n"
	"\t\t\tr->out + place(r->out_count, s->peer) * r->out_extent,\n"
	"\t\t\t(int)(place(r->out_count, (unsigned int)s->peer + s->n) -\n"
	"\t\t\t      place(r->out_count, s->peer)), r->out_type, r->rank, TAG_COPY, r->comm,\n"
	"\t\t\tMPI_STATUS_IGNORE);\n"
	"\tdefault: /* receives are posted already */\n"
	"\t\treturn MPI_SUCCESS;\n"
	"\t}\n"
	"}\n"
	"\n"
	"static int run_steps(struct run *r)\n"
	"{\n"
	"\tint rc = MPI_SUCCESS, i;\n"
	"\n"
	"\tfor (i = 0; i < WINDOW; i++) {\n"
	"\t\tr->recvs[i] = MPI_REQUEST_NULL;\n"
	"\t}\n"
	"\tfor (i = 0; i < SENDS; i++) {\n"
	"\t\tr->sends[i] = MPI_REQUEST_NULL;\n"
	"\t}\n"
	"\tr->posted = r->sent = 0;\n"
	"\tr->next = steps + first[r->rank];\n"
	"\tr->end = steps + first[r->rank + 1];\n"
	"\tfor (r->at = r->next; r->at < r->end; r->at++) {\n"
	"\t\trc = post(r);\n"
	"\t\tif (rc == MPI_SUCCESS) {\n"
	"\t\t\trc = act(r);\n"
	"\t\t}\n"
	"\t\tif (rc != MPI_SUCCESS) {\n"
	"\t\t\treturn rc;\n"
	"\t\t}\n"
	"\t}\n"
	"\trc = MPI_Waitall(WINDOW, r->recvs, MPI_STATUSES_IGNORE);\n"
	"\treturn rc == MPI_SUCCESS ? MPI_Waitall(SENDS, r->sends, MPI_STATUSES_IGNORE) : rc;\n"
	"}\n"
	"\n"
	"/* ---- the communicator ---- */\n"
	"\n"
	"static int forget(MPI_Comm comm, int key, void *value, void *extra)\n"
	"{\n"
	"\tMPI_Comm *own = (MPI_Comm *)value;\n"
	"\tint rc = MPI_Comm_free(own);\n"
	"\n"
	"\t(void)comm;\n"
	"\t(void)key;\n"
	"\t(void)extra;\n"
	"\tfree(own);\n"
	"\treturn rc;\n"
	"}\n"
	"\n"
	"/* The duplicate of the caller's communicator, made at the first call. */\n"
	"static int own_comm(MPI_Comm comm, MPI_Comm *out)\n"
	"{\n"
	"\tstatic int key = MPI_KEYVAL_INVALID;\n"
	"\tMPI_Comm *own;\n"
	"\tvoid *value;\n"
	"\tint rc = MPI_SUCCESS, found = 0;\n"
	"\n"
	"\tif (key == MPI_KEYVAL_INVALID) {\n"
	"\t\trc = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);\n"
	"\t}\n"
	"\tif (rc == MPI_SUCCESS) {\n"
	"\t\trc = MPI_Comm_get_attr(comm, key, &value, &found);\n"
	"\t}\n"
	"\tif (rc != MPI_SUCCESS) {\n"
	"\t\treturn rc;\n"
	"\t}\n"
	"\tif (found) {\n"
	"\t\t*out = *(MPI_Comm *)value;\n"
	"\t\treturn MPI_SUCCESS;\n"
	"\t}\n"
	"\town = (MPI_Comm *)malloc(sizeof(*own));\n"
	"\tif (own == NULL) {\n"
	"\t\treturn MPI_ERR_NO_MEM;\n"
	"\t}\n"
	"\trc = MPI_Comm_dup(comm, own);\n"
	"\tif (rc != MPI_SUCCESS) {\n"
	"\t\tfree(own);\n"
	"\t\treturn rc;\n"
	"\t}\n"
	"\t*out = *own;\n"
	"\treturn MPI_Comm_set_attr(comm, key, own);\n"
	"}\n"
	"\n"
	"/* Whether the schedule is for a communicator like this. */\n"
	"static int begin(struct run *r, MPI_Comm comm, int usable, int *fits)\n"
	"{\n"
	"\tint rc, size = 0, inter = 0;\n"
	"\n"
	"\tr->in_place = r->in_count = r->out_count = 0;\n"
	"\tr->in = NULL;\n"
	"\tr->out = NULL;\n"
	"\tr->in_type = r->out_type = MPI_BYTE;\n"
	"\tr->in_extent = r->out_extent = 1;\n"
	"\trc = MPI_Comm_test_inter(comm, &inter);\n"
	"\tif (rc == MPI_SUCCESS) {\n"
	"\t\trc = MPI_Comm_size(comm, &size);\n"
	"\t}\n"
	"\t*fits = rc == MPI_SUCCESS && usable && !inter && size == RANKS;\n"
	"\tif (!*fits) {\n"
	"\t\treturn rc;\n"
	"\t}\n"
	"\trc = MPI_Comm_rank(comm, &r->rank);\n"
	"\treturn rc == MPI_SUCCESS ? own_comm(comm, &r->comm) : rc;\n"
	"}\n"
	"\n";

#define BUFFERS                                                                                    \
	"(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,\n"             \
	"\t\tint recvcount, MPI_Datatype recvtype, "

/* What a routine begins with; `usable` is a condition, `call` is MPI's own routine. */
#define BEGIN(declare, usable, call)                                                               \
	"\n{\n"                                                                                    \
	"\tstruct run r;\n" declare "\tint rc, fits;\n"                                            \
	"\n"                                                                                       \
	"\trc = begin(&r, comm, " usable ", &fits);\n"                                             \
	"\tif (rc != MPI_SUCCESS) {\n"                                                             \
	"\t\treturn rc;\n"                                                                         \
	"\t}\n"                                                                                    \
	"\tif (!fits) {\n"                                                                         \
	"\t\treturn " call ";\n"                                                                   \
	"\t}\n"

/* One side's buffer, and its datatype's extent. */
#define SIDE(to, cast, from, indent)                                                               \
	indent "r." to " = (" cast ")" from "buf;\n" indent "r." to "_count = " from               \
	       "count;\n" indent "r." to "_type = " from "type;\n" indent                          \
	       "rc = MPI_Type_get_extent(" from "type, &lb, &r." to "_extent);\n" indent           \
	       "if (rc != MPI_SUCCESS) {\n" indent "\treturn rc;\n" indent "}\n"

#define END                                                                                        \
	"\treturn run_steps(&r);\n"                                                                \
	"}\n"

const struct emit_mpi_routine emit_mpi_routines[] = {
	{ CN_OP_ALLTOALL, "MPI_Alltoall", "int @" BUFFERS "MPI_Comm comm)",
	  BEGIN("\tMPI_Aint lb;\n", "sendbuf != MPI_IN_PLACE",
		"MPI_Alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,\n"
		"\t\t\t\t    comm)") SIDE("in", "const char *", "send", "\t")
		  SIDE("out", "char *", "recv", "\t") END },
	{ CN_OP_ALLGATHER, "MPI_Allgather", "int @" BUFFERS "MPI_Comm comm)",
	  BEGIN("\tMPI_Aint lb;\n", "sendbuf != MPI_IN_PLACE",
		"MPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,\n"
		"\t\t\t\t     comm)") SIDE("in", "const char *", "send", "\t")
		  SIDE("out", "char *", "recv", "\t") END },
	{ CN_OP_BARRIER, "MPI_Barrier", "int @(MPI_Comm comm)",
	  BEGIN("", "1", "MPI_Barrier(comm)") END },
	{ CN_OP_BCAST, "MPI_Bcast",
	  "int @(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm)",
	  BEGIN("\tMPI_Aint lb;\n", "root == ROOT", "MPI_Bcast(buf, count, type, root, comm)")
		  SIDE("out", "char *", "", "\t") "\tr.in = r.out;\n"
						  "\tr.in_count = count;\n"
						  "\tr.in_type = type;\n"
						  "\tr.in_extent = r.out_extent;\n" END },
	{ CN_OP_SCATTER, "MPI_Scatter", "int @" BUFFERS "int root, MPI_Comm comm)",
	  BEGIN("\tMPI_Aint lb;\n", "root == ROOT",
		"MPI_Scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,\n"
		"\t\t\t\t   root, comm)") "\tr.in_place = recvbuf == MPI_IN_PLACE;\n"
					  "\tif (r.rank == ROOT) {\n" SIDE(
						  "in", "const char *", "send",
						  "\t\t") "\t}\n"
							  "\tif (!r.in_place) {\n" SIDE(
								  "out", "char *", "recv",
								  "\t\t") "\t}\n" END },
	{ CN_OP_GATHER, "MPI_Gather", "int @" BUFFERS "int root, MPI_Comm comm)",
	  BEGIN("\tMPI_Aint lb;\n", "root == ROOT",
		"MPI_Gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,\n"
		"\t\t\t\t  root, comm)") "\tr.in_place = sendbuf == MPI_IN_PLACE;\n"
					 "\tif (r.rank == ROOT) {\n" SIDE(
						 "out", "char *", "recv",
						 "\t\t") "\t}\n"
							 "\tif (!r.in_place) {\n" SIDE(
								 "in", "const char *", "send",
								 "\t\t") "\t}\n" END },
};

const size_t emit_mpi_nroutines = sizeof(emit_mpi_routines) / sizeof(emit_mpi_routines[0]);
