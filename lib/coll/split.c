/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/split.h"

#include <stdlib.h>
#include <string.h>

#include "coll/control.h"
#include "coll/engine_state.h"
#include "coll/op.h"
#include "proto/wire.h"
#include "util/byteorder.h"
#include "util/ascending.h"

#define DEFERRED_MAX 64u /* deferred frames per team; others are dropped and retransmitted */

/* A rank's claim: 16 bytes on the wire: color 4, key 4, id 4, port 2, 0 2. */
struct claim {
	int32_t color, key;
	uint32_t id; /* of its node's team; 0: none */
	uint16_t port;
};
#define CLAIM 16u

/* A rank's call: from there on until the allgather is done. */
struct cn_split {
	struct cn_done done;	 /* of the allgather; the first member */
	struct cn_done *caller;	 /* of a rank without a new team; NULL: see the member */
	struct cn_member *child; /* NULL: none, or it has left */
	uint8_t own[CLAIM];
	uint8_t all[]; /* [ranks of the parent][CLAIM] */
};

struct deferred_frame {
	struct deferred_frame *next;
	enum cn_encapsulation encapsulation;
	uint32_t len;	  /* behind the Ethernet header */
	uint8_t header[]; /* Ethernet, then the frame */
};

struct cn_division {
	int32_t color;
	struct cn_split *result; /* all claims; NULL: not complete yet */
	uint64_t *members;	 /* [ranks of the parent / 64] for the wire-up */
	struct deferred_frame *first, **last;
	uint32_t nearly;
};

static void put_claim(uint8_t *out, const struct claim *c)
{
	cn_put_be32(out, (uint32_t)c->color);
	cn_put_be32(out + 4, (uint32_t)c->key);
	cn_put_be32(out + 8, c->id);
	cn_put_be16(out + 12, c->port);
	cn_put_be16(out + 14, 0);
}

static struct claim claim_of(const struct cn_division *d, uint32_t rank)
{
	const uint8_t *in = d->result->all + (size_t)rank * CLAIM;

	return (struct claim){ (int32_t)cn_get_be32(in), (int32_t)cn_get_be32(in + 4),
			       cn_get_be32(in + 8), cn_get_be16(in + 12) };
}

/* ---- the call --------------------------------------------------------------------------- */

void cn_division_free(struct cn_engine *e, struct cn_division *d)
{
	if (d == NULL) {
		return;
	}
	while (d->first != NULL) {
		struct deferred_frame *f = d->first;

		d->first = f->next;
		free(f);
	}
	e->deferred_frames -= d->nearly;
	free(d->result);
	free(d->members);
	free(d);
}

void cn_split_leave(const struct cn_member *m, bool waited, bool dead)
{
	struct cn_team *t = m->team;

	if (m->split != NULL) {
		m->split->child = NULL;
	}
	if (t->members == NULL && t->division != NULL && waited) {
		cn_team_fail(t, true, COLLNET_ERANK, "rank %u on node %s %s", m->rank,
			     t->engine->config.node.name,
			     dead ? "died" : "left the team before it was ready");
	}
}

/* The allgather is done. What follows must wait: this is inside the parent's operation. */
static void on_claims(struct cn_done *done, int status, const char *text)
{
	struct cn_split *s = (struct cn_split *)done;
	struct cn_team *t = NULL;

	if (s->caller != NULL) {
		s->caller->fn(s->caller, status, text);
	}
	if (s->child != NULL) {
		t = s->child->team;
		s->child->split = NULL;
	}
	if (t != NULL && status != COLLNET_OK) {
		cn_team_fail(t, true, status, "%s", text);
	} else if (t != NULL && t->division != NULL && t->division->result == NULL) {
		t->division->result = s;
		cn_wireup_wake(t, 1);
		return;
	}
	free(s);
}

/* The first rank of a color on this node has called. */
static struct cn_team *begin(const struct cn_team *parent, const struct cn_split_call *call,
			     cn_time now, struct cn_err *err)
{
	struct cn_team *t = cn_team_new(parent->engine, parent->owner, call->job, parent->ranks,
					err);
	struct cn_division *d;

	if (t == NULL) {
		return NULL;
	}
	cn_team_inherit(t, parent);
	t->wireup.derived = t->divided = true;
	t->wireup.version = 1;
	t->division = d = calloc(1, sizeof(*d));
	if (d != NULL) {
		d->color = call->color;
		d->last = &d->first;
		d->members = calloc(CN_BIT_WORDS(parent->ranks), sizeof(*d->members));
	}
	if (d == NULL || d->members == NULL) {
		cn_team_free(t, now);
		cn_fail(err, COLLNET_ENOMEM, "no memory for a team");
		return NULL;
	}
	return t;
}

/* The rank becomes a member of the team of its color here, under its rank in the parent. */
static int enter(const struct cn_member *m, cn_time now, const struct cn_split_call *call,
		 cn_time deadline, struct cn_done *done, struct cn_member **out, struct cn_err *err)
{
	const struct cn_team *parent = m->team;
	struct cn_team *t;
	int r = cn_team_check_new(parent->engine, call->job, err);

	if (r != COLLNET_OK) {
		return r;
	}
	t = cn_team_forming(parent->engine, parent->owner, call->job);
	if (t != NULL && (t->division == NULL || t->parent != parent->id ||
			  t->division->color != call->color || t->division->result != NULL)) {
		return cn_fail(err, COLLNET_EMISMATCH, "job %s is another team already", call->job);
	}
	if (t == NULL) {
		t = begin(parent, call, now, err);
	}
	if (t == NULL) {
		return err->code;
	}
	return cn_team_add_member(t, now, m->rank, deadline, done, out, err);
}

int cn_team_split(struct cn_member *parent, cn_time now, const struct cn_split_call *call,
		  cn_time deadline, struct cn_done *done, struct cn_member **out,
		  struct cn_err *err)
{
	struct claim own = { call->color, call->key, 0, 0 };
	struct cn_coll_args a = {
		.op = CN_OP_ALLGATHER,
		.making = call->making,
		.window = COLLNET_WINDOW_AUTO,
		.bytes = CLAIM,
		.deadline = deadline,
	};
	struct cn_member *m = NULL;
	struct cn_split *s;
	int r;

	*out = NULL;
	if (cn_coll_check(parent, now, &a, err) == COLLNET_INPROGRESS) {
		return COLLNET_INPROGRESS;
	}
	s = calloc(1, sizeof(*s) + (size_t)parent->team->ranks * CLAIM);
	if (s == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a team");
	}
	s->done.fn = on_claims;
	if (call->color >= 0) {
		r = enter(parent, now, call, deadline, done, &m, err);
		if (r != COLLNET_OK) {
			free(s);
			return r;
		}
		own.id = m->team->id;
		own.port = m->team->transport->port;
		m->split = s;
		s->child = *out = m;
	} else {
		s->caller = done;
	}
	put_claim(s->own, &own);
	a.send = s->own;
	a.recv = s->all;
	r = cn_coll_post(parent, now, &a, &s->done, err);
	if (r != COLLNET_OK && m != NULL && m->joining == NULL) {
		m->split = NULL; /* the parent failed, and the new team with it: done was called */
		free(s);
		return COLLNET_OK;
	}
	if (r != COLLNET_OK) {
		*out = NULL;
		if (m != NULL) {
			m->joining = NULL; /* the error is returned */
			cn_team_leave(m, now, false);
		}
		free(s);
	}
	return r;
}

/* ---- all claims are known ----------------------------------------------------------------- */

struct place {
	int32_t key;
	uint32_t rank;
};

static int by_key(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->key != y->key) {
		return x->key < y->key ? -1 : 1;
	}
	return x->rank < y->rank ? -1 : 1;
}

/*
 * The ranks of this color, *ranks of them: new[r] is the new rank of r, and the set of them becomes
 * the wire-up's.
 */
static int number_ranks(struct cn_team *t, const struct cn_team *parent, uint32_t *new,
			uint32_t *ranks, struct cn_err *err)
{
	struct cn_division *d = t->division;
	struct place *places = calloc(parent->ranks, sizeof(*places));
	uint32_t n = 0;

	if (places == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a team");
	}
	for (uint32_t r = 0; r < parent->ranks; r++) {
		const struct claim c = claim_of(d, r);

		if (c.color == d->color) {
			places[n++] = (struct place){ c.key, r };
			cn_bit_set(d->members, r);
		}
	}
	qsort(places, n, sizeof(*places), by_key);
	for (uint32_t i = 0; i < n; i++) {
		new[places[i].rank] = i;
	}
	free(places);
	*ranks = n;
	t->wireup.members = d->members;
	d->members = NULL;
	return COLLNET_OK;
}

/* The members here get their new ranks, and the team its size: both, or neither of them. */
static int number_members(struct cn_team *t, const struct cn_team *parent, const uint32_t *new,
			  uint32_t ranks, struct cn_err *err)
{
	const struct cn_layout *l = &parent->layout;
	struct cn_member *left = t->members;
	uint32_t n = 0;
	bool same = true;

	for (uint32_t i = l->first[parent->me]; i < l->first[parent->me + 1]; i++) {
		const struct claim c = claim_of(t->division, l->ranks[i]);

		if (c.color == t->division->color) {
			n++;
			/* a team that is gone: the rank that created it has left */
			same = same && (c.id == t->id || cn_team_by_id(t->engine, c.id) == NULL);
		}
	}
	if (!same) {
		return cn_fail(err, COLLNET_EMISMATCH, "node %s contradicts itself about job %s",
			       t->engine->config.node.name, t->job);
	}
	if (n != t->nlocal) {
		return cn_fail(err, COLLNET_ERANK, "a rank left the team before it was ready");
	}
	t->ranks = ranks;
	t->members = NULL;
	while (left != NULL) {
		struct cn_member *m = left, **at = &t->members;

		left = m->next;
		m->rank = new[m->rank];
		while (*at != NULL && (*at)->rank < m->rank) {
			at = &(*at)->next;
		}
		m->next = *at;
		*at = m;
	}
	return COLLNET_OK;
}

/* The n ranks, ascending, as the ranges of a record. False: no memory. */
static bool make_ranges(struct cn_join *j, const uint32_t *ranks, uint32_t n)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < n; i++) {
		j->nranges += i == 0 || ranks[i] != ranks[i - 1] + 1;
	}
	j->ranges = j->nranges == 1 ? &j->one : calloc(j->nranges, sizeof(*j->ranges));
	for (uint32_t i = 0; j->ranges != NULL && i < n; i++) {
		if (i == 0 || ranks[i] != ranks[i - 1] + 1) {
			j->ranges[k++] = (struct cn_range){ .first = ranks[i] };
		}
		j->ranges[k - 1].n++;
	}
	return j->ranges != NULL;
}

/* What node k said of a new team that its ranks claim to be in; NULL: nothing. It may be another
 * one than that of those that called later, if the first have left it. */
static const struct cn_join_failure *failure_of(const struct cn_team *t,
						const struct cn_team *parent, uint32_t k,
						const struct cn_engine_peer *m)
{
	const struct cn_layout *l = &parent->layout;
	const struct cn_join_failure *failure = NULL;

	for (uint32_t i = l->first[k]; m != NULL && failure == NULL && i < l->first[k + 1]; i++) {
		const struct claim c = claim_of(t->division, l->ranks[i]);

		if (c.color == t->division->color && c.id != 0) {
			failure = cn_join_failure(&m->joins, c.id);
		}
	}
	return failure;
}

/* What node k's ranks claim becomes the record that its JOIN would have made. */
static int learn_node(struct cn_team *t, const struct cn_team *parent, uint32_t k,
		      const uint32_t *new, cn_time now, struct cn_err *err)
{
	const struct cn_layout *l = &parent->layout;
	const struct cn_team_node *node = &parent->nodes[k];
	struct cn_engine_peer *m = node->peer != NULL ? cn_engine_peer_of(node->peer) : NULL;
	struct cn_join in = { .ranks = t->ranks,
			      .topology = t->topology,
			      .owner = t->owner,
			      .link_mbit = t->link_mbit },
		       *j;
	uint32_t *ranks = calloc(l->first[k + 1] - l->first[k], sizeof(*ranks)), n = 0, more;
	const struct cn_join_failure *failure = failure_of(t, parent, k, m);
	bool same = true;

	for (uint32_t i = l->first[k]; ranks != NULL && i < l->first[k + 1]; i++) {
		const struct claim c = claim_of(t->division, l->ranks[i]);

		if (c.color == t->division->color) {
			same = same && c.id != 0 && c.port != 0 && (n == 0 || c.id == in.id) &&
			       (n == 0 || c.port == in.port);
			in.id = c.id;
			in.port = c.port;
			ranks[n++] = new[l->ranks[i]];
		}
	}
	if (ranks == NULL || n == 0) {
		free(ranks);
		return n == 0 && ranks != NULL
			       ? COLLNET_OK
			       : cn_fail(err, COLLNET_ENOMEM, "no memory for a team");
	}
	if (failure != NULL) {
		free(ranks);
		cn_team_fail(t, false, failure->code, "%s", failure->text);
		return cn_fail(err, t->status, "%s", t->text);
	}
	qsort(ranks, n, sizeof(*ranks), cn_ascending_u32);
	if (!same || m == NULL || !cn_peer_alive(m->peer)) {
		free(ranks);
		return !same ? cn_fail(err, COLLNET_EMISMATCH,
				       "node %s contradicts itself about job %s", node->name,
				       t->job)
			     : cn_fail(err, COLLNET_EPEER, "node %s stopped answering node %s",
				       node->name, t->engine->config.node.name);
	}
	j = make_ranges(&in, ranks, n) ? cn_control_record_join(t->engine, m, &in, t->job, &more)
				       : NULL;
	free(ranks);
	if (j == NULL) {
		cn_join_forget(&in);
	}
	if (j != NULL && cn_wireup_learn(t, now, m->peer, j)) {
		return COLLNET_OK;
	}
	return m->joins.n < CN_TEAMS_MAX
		       ? cn_fail(err, COLLNET_ENOMEM, "no memory for another team with node %s",
				 node->name)
		       : cn_fail(err, COLLNET_ELIMIT, "no room for another team with node %s",
				 node->name);
}

static int learn(struct cn_team *t, cn_time now, struct cn_err *err)
{
	const struct cn_team *parent = cn_team_by_id(t->engine, t->parent);
	uint32_t *new, ranks = 0;
	int r;

	if (parent == NULL) {
		return cn_fail(err, COLLNET_ERANK,
			       "the rank left the parent team during the split");
	}
	new = calloc(parent->ranks, sizeof(*new));
	r = new != NULL ? number_ranks(t, parent, new, &ranks, err)
			: cn_fail(err, COLLNET_ENOMEM, "no memory for a team");
	if (r == COLLNET_OK) {
		r = number_members(t, parent, new, ranks, err);
	}
	for (uint32_t k = 0; r == COLLNET_OK && k < parent->layout.nnodes; k++) {
		if (k != parent->me) {
			r = learn_node(t, parent, k, new, now, err);
		}
	}
	free(new);
	return r;
}

void cn_division_expire(struct cn_team *t, cn_time now)
{
	struct cn_division *d = t->division;
	struct cn_err err;
	int r;

	t->wireup.wake_at = CN_NEVER;
	if (d->result == NULL) {
		return;
	}
	r = learn(t, now, &err);
	if (r != COLLNET_OK) {
		cn_team_fail(t, true, r, "%s", err.text); /* still a division: notifies all */
	}
	t->division = NULL;
	if (r == COLLNET_OK) {
		cn_wireup_announce_begin(t, now);
		cn_wireup_check(t, now);
	}
	for (const struct deferred_frame *f = d->first; f != NULL; f = f->next) {
		const struct cn_rx_frame frame = { f->header, f->header + CN_ETH_HEADER, f->len,
						   f->encapsulation, NULL };

		cn_node_input(t->transport->node, now, &frame);
	}
	cn_division_free(t->engine, d);
}

void cn_division_parent_ends(struct cn_team *parent, cn_time now)
{
	const struct cn_engine *e = parent->engine;

	for (uint32_t i = 0; i < e->places && e->nforming > 0; i++) {
		struct cn_team *t = e->teams[i];

		if (t != NULL && t->division != NULL && t->parent == parent->id &&
		    t->state == CN_TEAM_FORMING) {
			cn_division_expire(t, now);
		}
	}
}

void cn_division_joined(struct cn_team *t, const struct cn_peer *p)
{
	const struct cn_team *parent = cn_team_by_id(t->engine, t->parent);

	if (parent != NULL && cn_team_node_of(parent, p) != UINT32_MAX) {
		cn_team_fail(t, false, COLLNET_EMISMATCH,
			     "node %s makes teams as another version of collnet does",
			     cn_peer_name(p));
	}
}

/* ---- deferred frames --------------------------------------------------------------------- */

/* True if the sender has the address of a node of the team being split. Its session, which
 * identifies the incarnation, is checked when the frame is processed. */
static bool of_parent(const struct cn_team *t, const uint8_t *mac)
{
	const struct cn_team *parent = cn_team_by_id(t->engine, t->parent);

	for (uint32_t k = 0; parent != NULL && k < parent->layout.nnodes; k++) {
		if (k != parent->me && memcmp(parent->nodes[k].mac, mac, 6) == 0) {
			return true;
		}
	}
	return false;
}

bool cn_division_defer(struct cn_team *t, const struct cn_rx_frame *f)
{
	struct cn_division *d = t->division;
	struct deferred_frame *e;
	struct cn_wire w;
	uint32_t header;

	if (d->nearly >= DEFERRED_MAX || t->engine->deferred_frames >= CN_DEFERRED_FRAMES ||
	    cn_wire_get(f->data, f->len, &w) != CN_WIRE_OK ||
	    w.length > cn_node_payload(t->transport->node) ||
	    (w.type != CN_TYPE_COLL && w.type != CN_TYPE_CONTROL) || !of_parent(t, f->ether + 6)) {
		return false;
	}
	header = cn_wire_header(w.authenticated);
	e = malloc(sizeof(*e) + CN_ETH_HEADER + header + w.length);
	if (e == NULL) {
		return false;
	}
	e->next = NULL;
	e->encapsulation = f->encapsulation;
	e->len = header + w.length;
	memcpy(e->header, f->ether, CN_ETH_HEADER);
	memcpy(e->header + CN_ETH_HEADER, f->data, header);
	memcpy(e->header + CN_ETH_HEADER + header, cn_wire_body(f, &w), w.length);
	*d->last = e;
	d->last = &e->next;
	d->nearly++;
	t->engine->deferred_frames++;
	return true;
}

bool cn_member_in_parent(const struct cn_member *m, const struct cn_member *parent, uint16_t *out)
{
	const struct cn_team *t = m->team, *p = parent->team;

	if (t->parent != p->id || t->state != CN_TEAM_READY || p->state != CN_TEAM_READY) {
		return false;
	}
	for (uint32_t r = 0; r < t->ranks; r++) {
		const struct cn_peer *peer = t->nodes[t->layout.node_of[r]].peer;
		const uint32_t k = peer == NULL ? p->me : cn_team_node_of(p, peer);

		if (k == UINT32_MAX) {
			return false;
		}
		out[r] = (uint16_t)p->layout.ranks[p->layout.first[k]];
	}
	return true;
}
