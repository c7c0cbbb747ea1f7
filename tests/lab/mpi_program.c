/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plain MPI program that knows nothing of collnet. It calls each collective with counts, types,
 * roots, communicators and MPI_IN_PLACE drawn from a seed, and compares every byte with what point
 * to point messages bring (collectives of another component would be served by collnet, too).
 *
 * Arguments: seed, calls, and 1 to check that holes are not written, which not every collective of
 * Open MPI observes. Rank 0 prints "right: N calls".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

static unsigned long long state;
static int strict;

static unsigned draw(unsigned n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state >> 33) % n;
}

static void wrong(const char *what, int count)
{
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	printf("wrong: rank %d, %s, count %d\n", rank, what, count);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* What rank `from` sends to rank `to` as element i of call `call`. */
static int value(int call, int from, int to, int i)
{
	return call * 1000003 + from * 7919 + to * 104729 + i * 31;
}

static void fill(int *a, int n, int call, int from, int to)
{
	for (int i = 0; i < n; i++) {
		a[i] = value(call, from, to, i);
	}
}

static void check(const int *a, int n, int call, int from, int to, const char *what)
{
	for (int i = 0; i < n; i++) {
		if (a[i] != value(call, from, to, i)) {
			wrong(what, n);
		}
	}
}

/*
 * Elements that are not adjacent: a vector type of one int in two. The data of a call is kept as
 * adjacent ints; with `holes` it is spread for the call and collected afterwards.
 */
static MPI_Datatype sparse;

static int *spread(const int *a, int n)
{
	int *s = malloc(((size_t)n * 2 + 1) * sizeof(*s));

	for (int i = 0; i < n; i++) {
		s[2 * i] = a[i];
		s[2 * i + 1] = -1;
	}
	return s;
}

static void collect(int *a, const int *s, int n)
{
	for (int i = 0; i < n; i++) {
		a[i] = s[2 * i];
		if (strict && s[2 * i + 1] != -1) {
			wrong("a hole was written", n);
		}
	}
}

/* Composition of affine maps x -> p x + q: associative, not commutative. */
static void compose(void *in, void *inout, int *n, MPI_Datatype *type)
{
	unsigned *a = in, *b = inout;

	(void)type;
	for (int i = 0; i < *n; i++, a += 2, b += 2) {
		unsigned p = a[0] * b[0], q = a[0] * b[1] + a[1];
		b[0] = p;
		b[1] = q;
	}
}

/* The sum of value(call, r, block, i) over the ranks below `end`. */
static int sum_of(int call, int end, int block, int i)
{
	unsigned sum = 0;

	for (int r = 0; r < end; r++) {
		sum += (unsigned)value(call, r, block, i);
	}
	return (int)sum;
}

static void check_sums(const int *a, int count, int call, int end, int block, const char *what)
{
	for (int i = 0; i < count; i++) {
		if (a[i] != sum_of(call, end, block, i)) {
			wrong(what, count);
		}
	}
}

/* Reduce, reduce-scatter and scans: sums of integers. */
static void others(MPI_Comm comm, int call, int count, int in_place)
{
	int rank, size;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	int root = call % size, all = count * size;
	int *send = malloc(((size_t)all + 1) * sizeof(*send));
	int *recv = malloc(((size_t)all + 1) * sizeof(*recv));
	fill(send, count, call, rank, 0);
	memcpy(recv, send, (size_t)count * sizeof(*recv));
	MPI_Reduce(in_place && rank == root ? MPI_IN_PLACE : send, recv, count, MPI_INT, MPI_SUM,
		   root, comm);
	if (rank == root) {
		check_sums(recv, count, call, size, 0, "reduce");
	}
	memcpy(recv, send, (size_t)count * sizeof(*recv));
	MPI_Scan(in_place ? MPI_IN_PLACE : send, recv, count, MPI_INT, MPI_SUM, comm);
	check_sums(recv, count, call, rank + 1, 0, "scan");
	memcpy(recv, send, (size_t)count * sizeof(*recv));
	MPI_Exscan(in_place ? MPI_IN_PLACE : send, recv, count, MPI_INT, MPI_SUM, comm);
	if (rank > 0) {
		check_sums(recv, count, call, rank, 0, "exscan");
	}
	for (int j = 0; j < size; j++) {
		fill(send + j * count, count, call, rank, j);
	}
	memcpy(recv, send, (size_t)all * sizeof(*recv));
	MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : send, recv, count, MPI_INT, MPI_SUM,
				 comm);
	check_sums(recv, count, call, size, rank, "reduce_scatter_block");
	/* The same sums with a count for each rank: nearly equal ones, or most for one. */
	int *counts = malloc((size_t)size * sizeof(*counts)), at = 0;
	for (int j = 0; j < size; j++) {
		counts[j] = count == 0 || j == call % size ? count : call % 2 ? 1 : count - 1;
		fill(send + at, counts[j], call, rank, j);
		at += counts[j];
	}
	memcpy(recv, send, (size_t)at * sizeof(*recv));
	MPI_Reduce_scatter(in_place ? MPI_IN_PLACE : send, recv, counts, MPI_INT, MPI_SUM, comm);
	check_sums(recv, counts[rank], call, size, rank, "reduce_scatter");
	free(counts);
	free(send);
	free(recv);
}

/* The sizes of call `call`: rank `from` has as many elements for rank `to`. */
static int many(int call, int from, int to)
{
	unsigned x = (unsigned)value(call, from, to, 5) * 2654435761u;

	return x >> 29 == 0 ? 0 : (int)(x >> 8) % ((x >> 6) % 4 == 0 ? 3000 : 40);
}

/* Places of blocks, the last rank's first, so that displacements are of any order and, from the end
 * of the buffer, negative. Returns how many elements they take. */
static int places(const int *counts, int n, int gap, int *displs)
{
	int at = 0;

	for (int i = n; i-- > 0;) {
		displs[i] = at;
		at += counts[i] + gap;
	}
	return at;
}

/* Types of the side that receives: adjacent or with holes. */
static int *received(int *a, int n, int holes)
{
	return holes ? spread(a, n) : a;
}

static void take(int *a, int *s, int n)
{
	if (s != a) {
		collect(a, s, n);
		free(s);
	}
}

/* Alltoallw with the same blocks: displacements in bytes, and a type for each rank. */
static void alltoallw(const int *s, const int *send_counts, const int *send_displs, int *r,
		      const int *counts, const int *displs, MPI_Datatype type, MPI_Comm comm)
{
	int size, step = type == MPI_INT ? 1 : 2, in_place = s == MPI_IN_PLACE;

	MPI_Comm_size(comm, &size);
	int *send_bytes = malloc(2 * (size_t)size * sizeof(int)), *bytes = send_bytes + size;
	MPI_Datatype *send_types = malloc(2 * (size_t)size * sizeof(*send_types));
	MPI_Datatype *types = send_types + size;
	for (int i = 0; i < size; i++) {
		send_bytes[i] = send_displs[i] * (int)sizeof(int);
		bytes[i] = displs[i] * step * (int)sizeof(int);
		send_types[i] = MPI_INT;
		types[i] = type;
	}
	MPI_Alltoallw(s, in_place ? NULL : send_counts, in_place ? NULL : send_bytes,
		      in_place ? NULL : send_types, r, counts, bytes, types, comm);
	free(send_bytes);
	free(send_types);
}

static void vectors(MPI_Comm comm, int call, int op, int holes, int in_place)
{
	MPI_Datatype type = holes ? sparse : MPI_INT;
	int rank, size, step = holes ? 2 : 1, root, sum, n, *s, *r, *rtype;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	root = call % size;
	int *counts = malloc(4 * (size_t)size * sizeof(*counts)), *displs = counts + size;
	int *send_counts = displs + size, *send_displs = send_counts + size;
	for (int i = 0; i < size; i++) {
		send_counts[i] = many(call, op == 3 ? root : rank, i);
		counts[i] = op == 0 ? many(call, i, rank) : many(call, i, op == 1 ? 0 : root);
		if (op == 0 && in_place) { /* both ways alike */
			counts[i] = many(call, rank < i ? rank : i, rank < i ? i : rank);
		}
	}
	sum = places(send_counts, size, 3, send_displs);
	n = places(counts, size, 2, displs);
	s = malloc(((size_t)sum + 3001) * sizeof(*s));
	r = malloc(((size_t)n + 3001) * sizeof(*r));
	memset(r, 0x5a, ((size_t)n + 3001) * sizeof(*r));
	switch (op) {
	case 0:
		for (int i = 0; i < size; i++) {
			fill(s + send_displs[i], send_counts[i], call, rank, i);
			if (in_place) {
				fill(r + displs[i], counts[i], call, rank, i);
			}
		}
		rtype = received(r, n, holes);
		if (call % 4 == 1) {
			alltoallw(in_place ? MPI_IN_PLACE : s, send_counts, send_displs, rtype,
				  counts, displs, type, comm);
		} else if (in_place || call % 2) {
			MPI_Alltoallv(in_place ? MPI_IN_PLACE : s, send_counts, send_displs,
				      MPI_INT, rtype, counts, displs, type, comm);
		} else { /* from the end of the buffers */
			for (int i = 0; i < size; i++) {
				send_displs[i] -= sum;
				displs[i] -= n;
			}
			MPI_Alltoallv(s + sum, send_counts, send_displs, MPI_INT, rtype + step * n,
				      counts, displs, type, comm);
			places(counts, size, 2, displs);
		}
		take(r, rtype, n);
		for (int i = 0; i < size; i++) {
			check(r + displs[i], counts[i], call, i, rank, "alltoallv");
		}
		break;
	case 1:
		fill(s, counts[rank], call, rank, 0);
		fill(r + displs[rank], counts[rank], call, rank, 0);
		rtype = received(r, n, holes);
		MPI_Allgatherv(in_place ? MPI_IN_PLACE : s, in_place ? -5 : counts[rank],
			       in_place ? MPI_DATATYPE_NULL : MPI_INT, rtype, counts, displs, type,
			       comm);
		take(r, rtype, n);
		for (int i = 0; i < size; i++) {
			check(r + displs[i], counts[i], call, i, 0, "allgatherv");
		}
		break;
	case 2:
		fill(s, counts[rank], call, rank, 0);
		fill(r + displs[rank], counts[rank], call, rank, 0);
		in_place = in_place && rank == root;
		rtype = received(r, n, holes);
		MPI_Gatherv(in_place ? MPI_IN_PLACE : s, in_place ? -5 : counts[rank],
			    in_place ? MPI_DATATYPE_NULL : MPI_INT, rtype, counts, displs, type,
			    root, comm);
		take(r, rtype, n);
		for (int i = 0; rank == root && i < size; i++) {
			check(r + displs[i], counts[i], call, i, 0, "gatherv");
		}
		break;
	default:
		for (int i = 0; i < size; i++) {
			fill(s + send_displs[i], send_counts[i], call, root, i);
		}
		in_place = in_place && rank == root;
		rtype = received(r, send_counts[rank], holes);
		MPI_Scatterv(s, send_counts, send_displs, MPI_INT, in_place ? MPI_IN_PLACE : rtype,
			     in_place ? -5 : send_counts[rank], in_place ? MPI_DATATYPE_NULL : type,
			     root, comm);
		take(r, rtype, send_counts[rank]);
		if (!in_place) {
			check(r, send_counts[rank], call, root, rank, "scatterv");
		}
		break;
	}
	free(counts);
	free(s);
	free(r);
}

static void reductions(MPI_Comm comm, int call, int count, int in_place)
{
	static MPI_Op op = MPI_OP_NULL;
	static MPI_Datatype pair;
	int rank, size;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	if (op == MPI_OP_NULL) {
		MPI_Op_create(compose, 0, &op);
		MPI_Type_contiguous(2, MPI_UNSIGNED, &pair);
		MPI_Type_commit(&pair);
	}
	unsigned *in = malloc(((size_t)count * 2 + 1) * sizeof(*in));
	unsigned *out = malloc(((size_t)count * 2 + 1) * sizeof(*out));
	for (int i = 0; i < 2 * count; i++) {
		in[i] = out[i] = (unsigned)value(call, rank, 0, i);
	}
	MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, count, pair, op, comm);
	for (int i = 0; i < count; i++) {
		unsigned p = 1, q = 0;

		for (int r = 0; r < size; r++) {
			unsigned bp = (unsigned)value(call, r, 0, 2 * i);
			unsigned bq = (unsigned)value(call, r, 0, 2 * i + 1);
			q = p * bq + q;
			p = p * bp;
		}
		if (out[2 * i] != p || out[2 * i + 1] != q) {
			wrong("allreduce of maps", count);
		}
	}
	free(in);
	free(out);
	others(comm, call, count, in_place);

	struct {
		double v;
		int at;
	} mine = { (double)((rank * 37 + call) % 11), rank }, best, want = { 1e9, 0 };
	MPI_Allreduce(&mine, &best, 1, MPI_DOUBLE_INT, MPI_MINLOC, comm);
	for (int r = 0; r < size; r++) {
		double v = (double)((r * 37 + call) % 11);
		if (v < want.v) {
			want.v = v;
			want.at = r;
		}
	}
	if (best.v != want.v || best.at != want.at) {
		wrong("allreduce minloc", 1);
	}
}

static void set(void *at, int i, double v)
{
	memcpy((char *)at + (size_t)i * sizeof(v), &v, sizeof(v));
}

static double get(const void *at, int i)
{
	double v;

	memcpy(&v, (const char *)at + (size_t)i * sizeof(v), sizeof(v));
	return v;
}

static double sum_of_first(int ranks, int call, int i)
{
	double sum = 0;

	for (int r = 0; r < ranks; r++) {
		sum += value(call, r, 0, i) % 1000;
	}
	return sum;
}

/* Elements at addresses that are no multiples of their size, and a result where there is none. */
static void misaligned(MPI_Comm comm, int call)
{
	enum { MOST = 300 };
	static double space[2][MOST + 1];
	void *in = (char *)space[0] + 4, *out = (char *)space[1] + 4;
	int rank, size, count = 1 + call % MOST, root;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	root = call % size;
	for (int i = 0; i < count; i++) {
		set(in, i, value(call, rank, 0, i) % 1000);
		set(out, i, rank == root ? 0 : -7);
	}
	MPI_Reduce(in, rank == root ? out : (char *)1, count, MPI_DOUBLE, MPI_SUM, root, comm);
	for (int i = 0; i < count; i++) {
		if (get(out, i) != (rank == root ? sum_of_first(size, call, i) : -7)) {
			wrong("reduce at such addresses", count);
		}
	}
	MPI_Exscan(MPI_IN_PLACE, in, count, MPI_DOUBLE, MPI_SUM, comm);
	for (int i = 0; i < count && rank > 0; i++) {
		if (get(in, i) != sum_of_first(rank, call, i)) {
			wrong("exscan at such addresses", count);
		}
	}
}

static void one(MPI_Comm comm, int call)
{
	static const int counts[] = { 0, 1, 2, 17, 300, 2500 };
	int rank, size, count = counts[draw(6)], holes = (int)draw(3) == 0;
	int in_place = (int)draw(3) == 0, op = (int)draw(11);

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	int root = (int)draw((unsigned)size), all = count * size;
	int *send = malloc(((size_t)all + 1) * sizeof(*send));
	int *recv = calloc((size_t)all + 1, sizeof(*recv));
	int *s = send, *r = recv;
	MPI_Datatype type = holes ? sparse : MPI_INT;

	/* Only the receivers' side has holes: the signatures agree, the layouts do not. */
	switch (op) {
	case 0:
		MPI_Barrier(comm);
		break;
	case 1:
		if (rank == root) {
			fill(recv, count, call, root, 0);
		}
		r = holes && rank != root ? spread(recv, count) : recv;
		MPI_Bcast(r, count, r != recv ? sparse : MPI_INT, root, comm);
		if (r != recv) {
			collect(recv, r, count);
		}
		check(recv, count, call, root, 0, "bcast");
		break;
	case 2:
		fill(send, count, call, rank, 0);
		fill(recv + rank * count, count, call, rank, 0);
		r = holes ? spread(recv, all) : recv;
		MPI_Allgather(in_place ? MPI_IN_PLACE : s, in_place ? -5 : count,
			      in_place ? MPI_DATATYPE_NULL : MPI_INT, r, count, type, comm);
		if (holes) {
			collect(recv, r, all);
		}
		for (int j = 0; j < size; j++) {
			check(recv + j * count, count, call, j, 0, "allgather");
		}
		break;
	case 3:
		for (int j = 0; j < size; j++) {
			fill(send + j * count, count, call, rank, j);
		}
		if (in_place) {
			memcpy(recv, send, (size_t)all * sizeof(*recv));
		}
		r = holes ? spread(recv, all) : recv;
		MPI_Alltoall(in_place ? MPI_IN_PLACE : s, in_place ? -5 : count,
			     in_place ? MPI_DATATYPE_NULL : MPI_INT, r, count, type, comm);
		if (holes) {
			collect(recv, r, all);
		}
		for (int j = 0; j < size; j++) {
			check(recv + j * count, count, call, j, rank, "alltoall");
		}
		break;
	case 4:
		fill(send, count, call, rank, 0);
		fill(recv + rank * count, count, call, rank, 0);
		in_place = in_place && rank == root;
		r = holes ? spread(recv, all) : recv;
		MPI_Gather(in_place ? MPI_IN_PLACE : s, in_place ? -5 : count,
			   in_place ? MPI_DATATYPE_NULL : MPI_INT, r, count, type, root, comm);
		if (rank == root) {
			if (holes) {
				collect(recv, r, all);
			}
			for (int j = 0; j < size; j++) {
				check(recv + j * count, count, call, j, 0, "gather");
			}
		}
		break;
	case 5:
		for (int j = 0; j < size; j++) {
			fill(send + j * count, count, call, root, j);
		}
		in_place = in_place && rank == root;
		r = holes ? spread(recv, count) : recv;
		MPI_Scatter(s, count, MPI_INT, in_place ? MPI_IN_PLACE : r, in_place ? -5 : count,
			    in_place ? MPI_DATATYPE_NULL : type, root, comm);
		if (!in_place) {
			if (holes) {
				collect(recv, r, count);
			}
			check(recv, count, call, root, rank, "scatter");
		}
		break;
	case 6:
	case 7:
	case 8:
	case 9:
		vectors(comm, call, op - 6, holes, in_place);
		break;
	default:
		reductions(comm, call, count, in_place);
		misaligned(comm, call);
		break;
	}
	if (r != recv) {
		free(r);
	}
	free(send);
	free(recv);
}

int main(int argc, char **argv)
{
	MPI_Comm comms[4], odd_even, duplicate;
	int rank, calls = argc > 2 ? atoi(argv[2]) : 50, n = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	strict = argc > 3 && atoi(argv[3]) != 0;
	state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &sparse);
	MPI_Type_commit(&sparse);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &odd_even);
	MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
	comms[n++] = MPI_COMM_WORLD;
	comms[n++] = odd_even;
	comms[n++] = duplicate;
	comms[n++] = MPI_COMM_SELF;
	for (int i = 0; i < calls; i++) {
		one(comms[draw((unsigned)n)], i);
		if (i % 16 == 7) { /* as a library does for each plan */
			MPI_Comm_free(&duplicate);
			MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
			comms[2] = duplicate;
		}
	}
	MPI_Comm_free(&duplicate);
	MPI_Comm_free(&odd_even);
	MPI_Type_free(&sparse);
	if (rank == 0) {
		printf("right: %d calls\n", calls);
	}
	MPI_Finalize();
	return 0;
}
