/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A schedule as a C file with a routine of MPI point-to-point calls.
 *
 * Every rank has a table of steps, its part of the common order (emit.h): receives are posted in
 * that order, at the latest when their step is reached; a send waits for the send before it and for
 * what it depends on. So of all messages that are not done the first one in the common order has
 * its receive posted and its send begun: no deadlock, whatever MPI does about buffers. Receives
 * further on are posted as long as WINDOW requests allow.
 *
 * Bytes of the plan become units at run time: a block is cut into as many pieces as the schedule
 * has places within a block where a message begins or ends (one, but for pipelines), and a piece
 * is that share of the elements that the caller has in a block.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/plan/emit.h"
#include "tools/plan/emit_mpi.h"
#include "util/vector.h"
#include "util/ascending.h"

/* What a rank does; the names are those of the written file. */
enum what { W_SEND, W_FORWARD, W_RECV, W_NOTE, W_AWAIT, W_WAIT, W_COPY };

static const char *const names[] = { "SEND", "FORWARD", "RECV", "NOTE", "AWAIT", "WAIT", "COPY" };

struct step {
	enum what what;
	uint32_t peer, unit, n;
};

struct part {
	struct step *steps;
	uint32_t n, cap, receives;
};

struct mpi {
	const struct emit *e;
	struct emit_order order;
	struct part *parts;    /* [nnodes] */
	uint32_t *received;    /* by item: the number of its first receive at the receiver */
	uint32_t *receives;    /* by item: how many it is */
	uint64_t *cuts, ncuts; /* places within a block, ascending, from 0 */
	uint64_t total, messages, syncs;
	uint32_t largest;
};

static int too_long(struct cn_err *err)
{
	return cn_fail(err, COLLNET_ELIMIT,
		       "a routine of more than %u steps is too long for "
		       "a compiler: use fewer hosts, or larger segments",
		       EMIT_MPI_STEPS_MAX);
}

/* Of an all-to-all, each block is sent and received at least once. */
int emit_mpi_check(const struct cn_layout *l, const struct cn_plan *plan, struct cn_err *err)
{
	const uint64_t n = l->nnodes;

	return plan->op == CN_OP_ALLTOALL && 2 * n * (n - 1) > EMIT_MPI_STEPS_MAX ? too_long(err)
										  : COLLNET_OK;
}

static int add(struct mpi *m, uint32_t node, struct step s, struct cn_err *err)
{
	struct part *p = &m->parts[node];
	uint32_t most = s.unit > s.n ? s.unit : s.n;

	struct step *steps = cn_vector_grow(p->steps, p->n, &p->cap, sizeof(*steps));

	if (steps == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the steps of a rank");
	}
	p->steps = steps;
	if (++m->total > EMIT_MPI_STEPS_MAX) {
		return too_long(err);
	}
	most = s.peer > most ? s.peer : most;
	m->largest = most > m->largest ? most : m->largest;
	p->steps[p->n++] = s;
	return COLLNET_OK;
}

/* ---- places ------------------------------------------------------------------------------- */

static uint64_t unique(uint64_t *v, uint64_t n)
{
	uint64_t kept = 0;

	qsort(v, n, sizeof(*v), cn_ascending_u64);
	for (uint64_t i = 0; i < n; i++) {
		if (kept == 0 || v[kept - 1] != v[i]) {
			v[kept++] = v[i];
		}
	}
	return kept;
}

static int no_fragments(struct cn_err *err)
{
	return cn_fail(err, COLLNET_ENOMEM, "no memory for the pieces of a block");
}

static int find_cuts(struct mpi *m, struct cn_err *err)
{
	uint64_t size = m->e->plan->bytes, cap = 1024;

	m->cuts = calloc(cap, sizeof(*m->cuts));
	if (m->cuts == NULL) {
		return no_fragments(err);
	}
	m->ncuts = 1;
	for (uint32_t i = 0; i < m->order.n; i++) {
		const struct emit_item *it = &m->order.items[i];
		const struct cn_action *a = &m->e->parts[it->node].actions[it->action];

		if (a->len == 0) {
			continue;
		}
		if (m->ncuts + 4 > cap) {
			uint64_t *more;

			m->ncuts = unique(m->cuts, m->ncuts);
			cap = m->ncuts * 2 + 1024;
			more = realloc(m->cuts, cap * sizeof(*more));
			if (more == NULL) {
				return no_fragments(err);
			}
			m->cuts = more;
		}
		m->cuts[m->ncuts++] = a->src.offset % size;
		m->cuts[m->ncuts++] = (a->src.offset + a->len) % size;
		m->cuts[m->ncuts++] = a->dst.offset % size;
		m->cuts[m->ncuts++] = (a->dst.offset + a->len) % size;
	}
	m->ncuts = unique(m->cuts, m->ncuts);
	if (m->ncuts * m->e->layout->nranks > UINT32_MAX / 2) {
		return cn_fail(err, COLLNET_ELIMIT,
			       "blocks of %" PRIu64 " fragments are too many: use "
			       "larger segments",
			       m->ncuts);
	}
	return COLLNET_OK;
}

static uint32_t unit_of(const struct mpi *m, uint64_t offset)
{
	uint64_t size = m->e->plan->bytes, at = offset % size;
	const uint64_t *cut = bsearch(&at, m->cuts, m->ncuts, sizeof(*m->cuts), cn_ascending_u64);

	return (uint32_t)(offset / size * m->ncuts + (uint64_t)(cut - m->cuts));
}

static uint64_t at_most(uint64_t n, uint64_t limit)
{
	return n < limit ? n : limit;
}

/* ---- steps -------------------------------------------------------------------------------- */

/* What the action waits for, if that is a receive. */
static int wait_for(struct mpi *m, uint32_t node, uint32_t on, struct cn_err *err)
{
	uint32_t item = m->order.item_of[m->order.start[node] + on];
	int rc = COLLNET_OK;

	if (item == EMIT_NONE || m->e->parts[node].actions[on].kind != CN_ACT_RECV) {
		return COLLNET_OK; /* sends and copies are done in their turn */
	}
	for (uint32_t k = 0; rc == COLLNET_OK && k < m->receives[item]; k++) {
		rc = add(m, node, (struct step){ W_WAIT, 0, m->received[item] + k, 0 }, err);
	}
	return rc;
}

static int all_waits(struct mpi *m, const struct emit_item *it, struct cn_err *err)
{
	const struct cn_action *list = m->e->parts[it->node].actions;
	const struct cn_action *a = &list[it->action];
	uint32_t first = it->action;
	int rc = COLLNET_OK;

	if (a->kind == CN_ACT_SEND) {
		while (first > 0 && list[first - 1].kind != CN_ACT_SEND) {
			first--;
		}
		for (; rc == COLLNET_OK && first < it->action; first++) {
			if (list[first].kind == CN_ACT_WAIT && list[first].dep != CN_DEP_NONE) {
				rc = wait_for(m, it->node, list[first].dep_on, err);
			}
		}
	}
	return rc == COLLNET_OK && a->dep != CN_DEP_NONE ? wait_for(m, it->node, a->dep_on, err)
							 : rc;
}

/* Both sides of a message (or a copy), block by block: no count is larger than the caller's. */
static int data_steps(struct mpi *m, uint32_t item, struct cn_err *err)
{
	const struct emit_item *it = &m->order.items[item];
	const struct cn_action *a = &m->e->parts[it->node].actions[it->action];
	uint64_t size = m->e->plan->bytes, src = a->src.offset, dst = a->dst.offset, left = a->len;
	bool forward = a->src.buffer == CN_BUF_RECV;
	int rc = COLLNET_OK;

	if (left == 0 || (forward && (a->kind == CN_ACT_COPY || m->e->plan->op == CN_OP_SCATTER ||
				      m->e->plan->op == CN_OP_GATHER))) {
		return cn_fail(err, COLLNET_EINVAL, "%s cannot be written as an MPI routine: it %s",
			       m->e->algorithm,
			       left == 0
				       ? "sends no data"
				       : "forwards from buffers that MPI's routine does not have");
	}
	while (rc == COLLNET_OK && left > 0) {
		uint64_t len = at_most(left, at_most(size - src % size, size - dst % size));
		uint32_t from = unit_of(m, src), to = unit_of(m, dst);
		uint32_t n = unit_of(m, src + len) - from;

		if (a->kind == CN_ACT_COPY) {
			rc = add(m, it->node, (struct step){ W_COPY, to, from, n }, err);
		} else {
			rc = add(m, it->node,
				 (struct step){ forward ? W_FORWARD : W_SEND, a->peer, from, n },
				 err);
			rc = rc == COLLNET_OK ? add(m, a->peer,
						    (struct step){ W_RECV, it->node, to, n }, err)
					      : rc;
			m->receives[item]++;
			m->messages++;
		}
		src += len;
		dst += len;
		left -= len;
	}
	return rc;
}

static int item_steps(struct mpi *m, uint32_t item, struct cn_err *err)
{
	const struct emit_item *it = &m->order.items[item];
	const struct cn_action *a = &m->e->parts[it->node].actions[it->action];
	int rc = all_waits(m, it, err);

	if (rc != COLLNET_OK || (a->kind == CN_ACT_COPY && m->e->plan->op == CN_OP_BCAST)) {
		return rc; /* MPI_Bcast has one buffer: nothing to copy */
	}
	m->received[item] = m->parts[a->peer].receives;
	if (emit_is_sync(a)) {
		rc = add(m, it->node, (struct step){ W_NOTE, a->peer, 0, 0 }, err);
		rc = rc == COLLNET_OK
			     ? add(m, a->peer, (struct step){ W_AWAIT, it->node, 0, 0 }, err)
			     : rc;
		m->receives[item] = 1;
		m->syncs++;
	} else {
		rc = data_steps(m, item, err);
	}
	m->parts[a->peer].receives += m->receives[item];
	return rc;
}

static int make_steps(struct mpi *m, struct cn_err *err)
{
	int rc = COLLNET_OK;

	m->parts = calloc(m->e->layout->nnodes, sizeof(*m->parts));
	m->received = calloc((size_t)m->order.n + 1, sizeof(*m->received));
	m->receives = calloc((size_t)m->order.n + 1, sizeof(*m->receives));
	if (m->parts == NULL || m->received == NULL || m->receives == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the steps of %u ranks",
			       m->e->layout->nnodes);
	}
	for (uint32_t i = 0; rc == COLLNET_OK && i < m->order.n; i++) {
		rc = item_steps(m, i, err);
	}
	return rc;
}

/* ---- writing ------------------------------------------------------------------------------ */

static void put_ranks(const struct mpi *m, FILE *f)
{
	uint32_t n = m->e->layout->nnodes;
	int column = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (column == 0) {
			column = fprintf(f, " *    ");
		}
		column += fprintf(f, " %u:%s", i, cn_tree_node_name(m->e->layout->tree, i));
		if (column > 80 || i + 1 == n) {
			putc('\n', f);
			column = 0;
		}
	}
}

static void put_comment(const struct mpi *m, const char *name, const char *mpi_name, FILE *f)
{
	const struct cn_plan *p = m->e->plan;
	uint32_t root = m->e->layout->node_of[p->root];

	fprintf(f,
		"/*\n * %s(): %s for one network, made of point-to-point messages.\n *\n"
		" * Written by collnet schedule %s --emit mpi-c; do not edit.\n * Network:    ",
		name, mpi_name, cn_op_name(p->op));
	emit_plain(m->e->source != NULL ? m->e->source : "?", f);
	fprintf(f,
		"\n * Algorithm:  %s, %u phases, %" PRIu64 " messages, %" PRIu64
		" synchronisations\n",
		m->e->algorithm, m->e->parts[0].phases, m->messages, m->syncs);
	if (p->op == CN_OP_BCAST || p->op == CN_OP_SCATTER || p->op == CN_OP_GATHER) {
		fprintf(f, " * Root:       rank %u (%s)\n", p->root,
			cn_tree_node_name(m->e->layout->tree, root));
	}
	if (m->ncuts > 1) {
		fprintf(f,
			" * Pieces:     a block goes in %" PRIu64 " pieces; so count and datatype "
			"must be the\n *             same on all ranks, not only the data they "
			"describe\n",
			m->ncuts);
	}
	fprintf(f, " *\n * Rank i must be a process on host i:\n");
	put_ranks(m, f);
	fprintf(f, "%s", emit_mpi_comment);
}

static void put_steps(const struct mpi *m, FILE *f)
{
	const char *cell = m->largest <= UINT8_MAX    ? "char"
			   : m->largest <= UINT16_MAX ? "short"
						      : "int";
	uint32_t at = 0, n = m->e->layout->nnodes;

	fprintf(f, "struct step {\n\tunsigned char what;\n\tunsigned %s peer, unit, n;\n};\n\n",
		cell);
	fprintf(f, "static const struct step steps[] = {\n");
	for (uint32_t b = 0; b < n; b++) {
		const struct part *p = &m->parts[b];

		fprintf(f, "\t/* rank %u, %s */\n", b, cn_tree_node_name(m->e->layout->tree, b));
		for (uint32_t i = 0; i < p->n; i++) {
			const struct step *s = &p->steps[i];

			fprintf(f, "%s{%s,%u,%u,%u},%s", i % 6 == 0 ? "\t" : " ", names[s->what],
				s->peer, s->unit, s->n, i % 6 == 5 || i + 1 == p->n ? "\n" : "");
		}
	}
	fprintf(f,
		"};\n\n/* Where a rank's steps begin. */\nstatic const unsigned int first[RANKS + 1] "
		"= {");
	for (uint32_t b = 0; b <= n; b++) {
		fprintf(f, "%s%u,", b % 12 == 0 ? "\n\t" : " ", at);
		at += b < n ? m->parts[b].n : 0;
	}
	fprintf(f, "\n};\n\n");
}

static const struct emit_mpi_routine *routine(enum cn_op_kind op)
{
	for (size_t i = 0; i < emit_mpi_nroutines; i++) {
		if (emit_mpi_routines[i].op == op) {
			return &emit_mpi_routines[i];
		}
	}
	return NULL;
}

/* Every '@' of the text becomes the routine's name. */
static void put_template(const char *text, const char *name, FILE *f)
{
	for (; *text != '\0'; text++) {
		if (*text == '@') {
			fputs(name, f);
		} else {
			putc(*text, f);
		}
	}
}

static void put_file(const struct mpi *m, const char *name, FILE *f)
{
	const struct emit_mpi_routine *r = routine(m->e->plan->op);
	bool in_turn = m->e->parts[0].order == CN_ORDER_IN_TURN;
	char text[96];

	if (name == NULL) {
		snprintf(text, sizeof(text), "collnet_%s", cn_op_name(m->e->plan->op));
		name = text;
	}
	put_comment(m, name, r->mpi_name, f);
	fprintf(f, "#include <stdlib.h>\n\n#include <mpi.h>\n\n");
	put_template(r->prototype, name, f);
	fprintf(f,
		";\n\nenum {\n\tRANKS = %u,\n\tROOT = %u,\n\tPIECES = %" PRIu64
		", /* of a block */\n\tWINDOW = 32, /* receives that are posted at a time */\n"
		"\tSENDS = %d, /* messages that are sent at a time */\n};\n\n",
		m->e->layout->nnodes, m->e->plan->root, m->ncuts, in_turn ? 1 : 32);
	fputs(emit_mpi_kinds, f);
	put_steps(m, f);
	fputs(emit_mpi_machine, f);
	put_template(r->prototype, name, f);
	put_template(r->body, name, f);
}

static void mpi_free(struct mpi *m)
{
	for (uint32_t b = 0; m->parts != NULL && b < m->e->layout->nnodes; b++) {
		free(m->parts[b].steps);
	}
	free(m->parts);
	free(m->received);
	free(m->receives);
	free(m->cuts);
	emit_order_free(&m->order);
}

int emit_mpi(const struct emit *e, const char *name, FILE *f, struct cn_err *err)
{
	struct mpi m = { .e = e };
	int rc;

	if (e->plan->bytes == 0 && e->plan->op != CN_OP_BARRIER) {
		return cn_fail(err, COLLNET_EINVAL,
			       "a routine is made from a schedule of blocks with "
			       "at least one byte: specify --size");
	}
	rc = emit_order_make(e, &m.order, err);
	rc = rc == COLLNET_OK ? find_cuts(&m, err) : rc;
	rc = rc == COLLNET_OK ? make_steps(&m, err) : rc;
	if (rc == COLLNET_OK) {
		put_file(&m, name, f);
		if (fflush(f) != 0 || ferror(f)) {
			rc = cn_fail(err, COLLNET_ESYSTEM, "the routine could not be written: %s",
				     strerror(errno));
		}
	}
	mpi_free(&m);
	return rc;
}
