/* SPDX-License-Identifier: BSD-2-Clause */
/* Teams: created, joined by local ranks, failed, left. Wire-up is in wireup.c. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/control.h"
#include "coll/engine_state.h"
#include "coll/op.h"
#include "coll/split.h"

#define ORPHAN_GRACE (2000 * CN_MS) /* of a forming team whose parent failed */

/* ---- life ----------------------------------------------------------------------------- */

struct cn_team *cn_team_new(struct cn_engine *e, uint64_t owner, const char *job, uint32_t ranks,
			    struct cn_err *err)
{
	struct cn_team *t;
	uint32_t i = 0;

	while (i < e->config.max_teams && e->teams[i] != NULL) {
		i++;
	}
	if (i == e->config.max_teams) {
		cn_fail(err, COLLNET_ELIMIT, "too many teams on node %s (%u)", e->config.node.name,
			e->config.max_teams);
		return NULL;
	}
	t = calloc(1, sizeof(*t));
	if (t == NULL) {
		cn_fail(err, COLLNET_ENOMEM, "no memory for a team of %u ranks", ranks);
		return NULL;
	}
	t->engine = e;
	t->owner = owner;
	snprintf(t->job, sizeof(t->job), "%s", job);
	t->ranks = ranks;
	t->topo = e->config.topo;
	t->topology = e->topology;
	t->link_mbit = e->link_mbit;
	t->id = ++e->last_team_id != 0 ? e->last_team_id : ++e->last_team_id;
	t->place = i;
	if (cn_wireup_init(&t->wireup, ranks)) {
		t->transport = cn_transport_open(e, t);
	}
	if (t->transport == NULL) {
		cn_wireup_fini(&t->wireup);
		free(t);
		cn_fail(err, COLLNET_ENOMEM, "no memory for a team of %u ranks", ranks);
		return NULL;
	}
	e->teams[i] = t;
	cn_team_jobs_enter(t);
	e->places = i < e->places ? e->places : i + 1;
	e->nteams++;
	e->nforming++;
	return t;
}

void cn_team_formed(struct cn_team *t, enum cn_team_state state)
{
	t->engine->nforming -= t->state == CN_TEAM_FORMING;
	t->state = state;
}

void cn_team_drop_unexpected(struct cn_team *t, struct cn_unexpected_queue *q)
{
	bool any = q->first != NULL;

	while (q->first != NULL) {
		cn_node_buffer_put(t->transport->node, cn_unexpected_queue_pop(q));
	}
	if (any) {
		cn_node_ready(t->transport->node);
	}
}

void cn_team_free(struct cn_team *t, cn_time now)
{
	struct cn_engine *e = t->engine;

	cn_tasks_forget_team(t);
	cn_team_drop_unexpected(t, &t->unexpected);
	cn_division_free(e, t->division);
	for (int i = 0; i < CN_OPS; i++) {
		cn_op_free_storage(t->ops[i]);
	}
	cn_op_free_idle(t, 0);
	/* What a split made may be over at the peer before there is a record that its END removes.
	 */
	cn_wireup_remove(t, t->divided);
	cn_transport_close(t->transport, now);
	e->teams[t->place] = NULL;
	cn_team_jobs_leave(t);
	while (e->places > 0 && e->teams[e->places - 1] == NULL) {
		e->places--;
	}
	e->nteams--;
	e->nforming -= t->state == CN_TEAM_FORMING;
	cn_wireup_fini(&t->wireup);
	free(t->nodes);
	free(t->names);
	free(t->dead);
	free(t->storage);
	free(t->local);
	free(t->node_by_peer);
	cn_tree_free(t->tree);
	free(t);
	cn_engine_touch(e);
}

void cn_team_touch(struct cn_team *t)
{
	cn_transport_activate(t->transport);
	cn_engine_touch(t->engine);
}

struct cn_team *cn_team_by_id(struct cn_engine *e, uint32_t id)
{
	for (uint32_t i = 0; i < e->places; i++) {
		if (e->teams[i] != NULL && e->teams[i]->id == id) {
			return e->teams[i];
		}
	}
	return NULL;
}

uint32_t cn_team_node_of(const struct cn_team *t, const struct cn_peer *p)
{
	const struct cn_engine_peer *m = cn_engine_peer_of(p);
	uint32_t i = m != NULL ? cn_peer_index(m->peer) : UINT32_MAX;

	return t->nodes != NULL && t->node_by_peer != NULL && i < t->npeers &&
			       t->node_by_peer[i] != UINT16_MAX
		       ? t->node_by_peer[i]
		       : UINT32_MAX;
}

/* ---- teams whose parent failed ---------------------------------------------------------- */

#define NO_RANK UINT32_MAX

/*
 * A team that is being made of one that failed, or of which a rank died that it needs, may wait for
 * a rank that is dead. It fails, too, unless it is complete soon: its ranks may all live, and only
 * some have left the old team, or the rank may have died after it had called.
 */
static void orphan(struct cn_team *t, const struct cn_team *parent, uint32_t dead)
{
	if (t->status != COLLNET_OK || (dead != NO_RANK && !cn_bit(t->wireup.members, dead))) {
		return;
	}
	if (dead == NO_RANK) {
		t->status = parent->status;
		memcpy(t->text, parent->text, sizeof(t->text));
	} else {
		t->status = COLLNET_ERANK;
		snprintf(t->text, sizeof(t->text), "rank %u on node %s died", dead,
			 parent->nodes[parent->layout.node_of[dead]].name);
	}
}

/* Those of this parent: it failed, or this rank of it died. */
static void orphans(const struct cn_team *parent, uint32_t dead)
{
	const struct cn_engine *e = parent->engine;

	for (uint32_t i = 0; i < e->places && e->nforming > 0; i++) {
		struct cn_team *t = e->teams[i];

		if (t != NULL && t->state == CN_TEAM_FORMING && t->wireup.derived &&
		    t->parent == parent->id && t->division == NULL) {
			orphan(t, parent, dead);
			cn_team_touch(t);
		}
	}
}

/* ---- members -------------------------------------------------------------------------- */

void cn_team_inherit(struct cn_team *t, const struct cn_team *parent)
{
	t->parent = parent->id;
	t->topo = parent->topo;
	t->topology = parent->topology;
	t->link_mbit = parent->link_mbit;
}

/* What a team is derived from; no parent: it is not. */
struct origin {
	const struct cn_team *parent;
	const uint64_t *members;
};

/* False: no memory. */
static bool derive(struct cn_team *t, const struct origin *from)
{
	const struct cn_team *parent = from->parent;

	cn_team_inherit(t, parent);
	if (!cn_wireup_derive(t, parent, from->members)) {
		return false;
	}
	for (uint32_t r = 0; parent->dead != NULL && r < parent->ranks; r++) {
		if (cn_bit(parent->dead, r)) {
			orphan(t, parent, r);
		}
	}
	return true;
}

int cn_team_check_new(const struct cn_engine *e, const char *job, struct cn_err *err)
{
	if (e->closing) {
		return cn_engine_refuse(e, err);
	}
	return cn_valid_name(job) ? COLLNET_OK
				  : cn_fail(err, COLLNET_EINVAL,
					    "not a name for a job (1 .. %d of letters, digits "
					    "and ._:@/-)",
					    COLLNET_NAME_MAX);
}

struct cn_team *cn_team_forming(const struct cn_engine *e, uint64_t owner, const char *job)
{
	struct cn_team *t = cn_team_of_job(e, NULL, owner, job);

	while (t != NULL && t->state != CN_TEAM_FORMING) {
		t = cn_team_of_job(e, t, owner, job);
	}
	return t;
}

int cn_team_add_member(struct cn_team *t, cn_time now, uint32_t rank, cn_time deadline,
		       struct cn_done *done, struct cn_member **out, struct cn_err *err)
{
	struct cn_member *m, **at = &t->members;

	while (*at != NULL && (*at)->rank < rank) {
		at = &(*at)->next;
	}
	if (*at != NULL && (*at)->rank == rank) {
		return cn_fail(err, COLLNET_EMISMATCH,
			       "rank %u of job %s is on node %s already: give every "
			       "process its own rank, every run its own job name",
			       rank, t->job, t->engine->config.node.name);
	}
	m = calloc(1, sizeof(*m));
	if (m == NULL) {
		if (t->members == NULL) {
			cn_team_free(t, now);
		}
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a rank");
	}
	m->team = t;
	m->rank = rank;
	m->payer = t->engine->payer;
	m->joining = done;
	m->join_deadline = deadline;
	m->next = *at;
	*at = m;
	cn_payers_add(m);
	t->nlocal++;
	cn_team_touch(t);
	*out = m;
	return COLLNET_OK;
}

static int join(struct cn_engine *e, cn_time now, uint64_t owner, const char *job, uint32_t rank,
		uint32_t ranks, const struct origin *from, cn_time deadline, struct cn_done *done,
		struct cn_member **out, struct cn_err *err)
{
	struct cn_team *t;
	int r = cn_team_check_new(e, job, err);

	if (r != COLLNET_OK) {
		return r;
	}
	if (ranks < 1 || ranks > COLLNET_RANKS_MAX || rank >= ranks) {
		return cn_fail(err, COLLNET_EINVAL,
			       "rank %u of %u: must be 0 .. size - 1, size 1 .. %d", rank, ranks,
			       COLLNET_RANKS_MAX);
	}
	t = cn_team_forming(e, owner, job);
	if (t != NULL && (t->ranks != ranks || t->division != NULL)) {
		cn_fail(err, COLLNET_EMISMATCH,
			"job %s has %u ranks for rank %u and %u for others of node %s: "
			"start all with the same size",
			job, ranks, rank, t->ranks, e->config.node.name);
		cn_wireup_refused(t, now, err->text);
		return COLLNET_EMISMATCH;
	}
	if (t == NULL) {
		t = cn_team_new(e, owner, job, ranks, err);
		if (t == NULL) {
			return err->code;
		}
		if (from->parent != NULL && !derive(t, from)) {
			cn_team_free(t, now);
			return cn_fail(err, COLLNET_ENOMEM, "no memory for a team");
		}
		cn_wireup_begin(t, now);
	}
	r = cn_team_add_member(t, now, rank, deadline, done, out, err);
	if (r == COLLNET_OK) {
		cn_wireup_ranks_changed(t, now);
		cn_wireup_check(t, now);
	} else if (r == COLLNET_EMISMATCH) {
		cn_wireup_refused(t, now, err->text);
	}
	return r;
}

int cn_team_join(struct cn_engine *e, cn_time now, uint64_t owner, const char *job, uint32_t rank,
		 uint32_t ranks, cn_time deadline, struct cn_done *done, struct cn_member **out,
		 struct cn_err *err)
{
	const struct origin none = { NULL, NULL };

	return join(e, now, owner, job, rank, ranks, &none, deadline, done, out, err);
}

int cn_team_derive(struct cn_member *parent, cn_time now, const char *job, uint32_t rank,
		   uint32_t ranks, const uint64_t *members, cn_time deadline, struct cn_done *done,
		   struct cn_member **out, struct cn_err *err)
{
	const struct cn_team *t = parent->team;
	const struct origin from = { t, members };
	uint32_t n = 0;
	int r = cn_member_check(parent, err);

	if (r != COLLNET_OK) {
		return r;
	}
	for (uint32_t i = 0; i < t->ranks; i++) {
		n += cn_bit(members, i);
	}
	if (n != ranks || !cn_bit(members, parent->rank)) {
		return cn_fail(err, COLLNET_EINVAL, "a team of %u ranks with %u members", ranks, n);
	}
	return join(t->engine, now, t->owner, job, rank, ranks, &from, deadline, done, out, err);
}

uint64_t cn_member_run(const struct cn_member *m)
{
	return m->team->run;
}

void cn_team_leave(struct cn_member *m, cn_time now, bool dead)
{
	struct cn_team *t = m->team;
	struct cn_member **at = &t->members;
	const bool busy = m->joining == NULL && m->done_ops != m->posted,
		   waits = m->joining != NULL;
	const uint32_t rank = m->rank, posted = m->posted;

	if (t->state == CN_TEAM_READY && busy) {
		cn_team_fail(t, true, COLLNET_ERANK, "rank %u on node %s %s", m->rank,
			     t->engine->config.node.name,
			     dead ? "died" : "left the team with operations outstanding");
	}
	if (m->joining != NULL) {
		m->joining->fn(m->joining, COLLNET_ERANK,
			       "the rank left before the team was ready");
		m->joining = NULL;
	}
	/* Of a node, the others keep the rank that left first, and those that died. */
	if (t->state == CN_TEAM_READY) {
		if (dead || cn_left_is_first(&t->nodes[t->me].left, posted)) {
			cn_control_leave(t, rank, posted, dead);
		}
	} else if (t->state == CN_TEAM_FORMING && dead) {
		cn_control_died_forming(t, rank);
	}
	while (*at != m) {
		at = &(*at)->next;
	}
	*at = m->next;
	cn_payers_remove(m);
	cn_split_leave(m, waits, dead);
	t->nlocal--;
	for (uint32_t i = 0; t->local != NULL && t->layout.first != NULL &&
			     i < t->layout.first[t->me + 1] - t->layout.first[t->me];
	     i++) {
		if (t->local[i] == m) {
			t->local[i] = NULL;
		}
	}
	free(m);
	if (t->state == CN_TEAM_READY) {
		cn_team_rank_left(t, t->me, rank, posted, dead);
	}
	if (t->members == NULL) {
		cn_division_parent_ends(t, now);
		cn_control_end(t);
		cn_team_free(t, now);
	} else if (t->state == CN_TEAM_FORMING && t->division == NULL) {
		/* Its ranks are fewer now, which no one has to act on before the next join. */
		cn_wireup_ranks_changed(t, now);
	}
}

uint64_t cn_member_owner(const struct cn_member *m)
{
	return m->team->owner;
}

int cn_member_check(const struct cn_member *m, struct cn_err *err)
{
	const struct cn_team *t = m->team;

	switch (t->state) {
	case CN_TEAM_READY:
		return COLLNET_OK;
	case CN_TEAM_FAILED:
		return cn_fail(err, t->status, "%s", t->text);
	default:
		return cn_fail(err, COLLNET_EINVAL, "the team is not ready yet");
	}
}

uint32_t cn_member_rank(const struct cn_member *m)
{
	return m->rank;
}

uint32_t cn_member_ranks(const struct cn_member *m)
{
	return m->team->ranks;
}

uint32_t cn_member_nodes(const struct cn_member *m)
{
	return m->team->layout.nnodes;
}

uint32_t cn_member_local(const struct cn_member *m)
{
	return m->team->nlocal;
}

const char *cn_member_node_name(const struct cn_member *m, uint32_t rank)
{
	const struct cn_team *t = m->team;

	if (t->nodes == NULL || rank >= t->ranks) {
		return NULL;
	}
	return t->nodes[t->layout.node_of[rank]].name;
}

/* ---- failure, deadlines ----------------------------------------------------------------- */

void cn_team_rank_left(struct cn_team *t, uint32_t k, uint32_t rank, uint32_t posted, bool dead)
{
	cn_left_record(&t->nodes[k].left, rank, posted, dead);
	if (dead && rank < t->ranks) {
		if (t->dead == NULL) {
			t->dead = calloc(CN_BIT_WORDS(t->ranks), sizeof(*t->dead));
		}
		if (t->dead != NULL) {
			cn_bit_set(t->dead, rank);
		}
		orphans(t, rank);
	}
	cn_op_check_left(t, k);
}

void cn_team_fail(struct cn_team *t, bool notify, int status, const char *fmt, ...)
{
	const size_t name = strlen(t->job) + 6; /* of "job JOB: ", as some texts begin */
	va_list ap;

	if (t->state == CN_TEAM_FAILED) {
		return;
	}
	cn_team_formed(t, CN_TEAM_FAILED);
	t->status = status;
	cn_transport_activate(t->transport);
	va_start(ap, fmt);
	vsnprintf(t->text, sizeof(t->text), fmt, ap);
	va_end(ap);
	cn_job_log(t, COLLNET_LOG_WARNING, "job %s failed: %s", t->job,
		   t->text + (strncmp(t->text, "job ", 4) == 0 && t->text[name - 2] == ':' ? name
											   : 0));
	if (notify) {
		cn_control_fail(t, status, t->text);
	}
	for (int i = 0; i < CN_OPS; i++) {
		if (t->ops[i] != NULL && cn_op_busy(t->ops[i])) {
			cn_op_abort(t->ops[i], status, t->text);
		}
	}
	for (struct cn_member *m = t->members; m != NULL; m = m->next) {
		struct cn_done *d = m->joining;

		m->joining = NULL;
		if (d != NULL) {
			d->fn(d, status, t->text);
		}
	}
	cn_tasks_forget_failed(t);
	cn_team_drop_unexpected(t, &t->unexpected);
	cn_wireup_remove(t, false);
	t->wireup.wake_at = CN_NEVER;
	orphans(t, NO_RANK);
	cn_team_touch(t);
}

/* The team that it is made of has failed. True: and so has it. */
static bool expire_orphan(struct cn_team *t, cn_time now)
{
	char text[CN_ERR_TEXT];

	if (t->abandon_at == 0) {
		t->abandon_at = now + ORPHAN_GRACE;
	}
	if (t->abandon_at > now) {
		return false;
	}
	memcpy(text, t->text, sizeof(text));
	cn_team_fail(t, false, t->status, "%s", text);
	return true;
}

/* Of the members whose deadlines count: those of a division are the parent's operation's. */
static const struct cn_member *first_joining(const struct cn_team *t)
{
	return t->division == NULL ? t->members : NULL;
}

cn_time cn_team_deadline(const struct cn_team *t)
{
	cn_time at = t->wireup.wake_at;

	if (t->state == CN_TEAM_FORMING) {
		for (const struct cn_member *m = first_joining(t); m != NULL; m = m->next) {
			at = cn_min_time(at, m->join_deadline);
		}
		at = t->status != COLLNET_OK ? cn_min_time(at, t->abandon_at) : at;
	}
	for (uint64_t left = t->busy; left != 0; left &= left - 1) {
		at = cn_min_time(at, cn_op_deadline(t->ops[cn_bit_first(left)]));
	}
	return at;
}

void cn_team_expire(struct cn_team *t, cn_time now)
{
	if (t->state == CN_TEAM_FORMING && t->status != COLLNET_OK && expire_orphan(t, now)) {
		return;
	}
	if (t->state == CN_TEAM_FORMING) {
		for (const struct cn_member *m = first_joining(t); m != NULL; m = m->next) {
			if (m->join_deadline <= now) {
				cn_wireup_timeout(t, now);
				return;
			}
		}
		if (t->wireup.wake_at <= now && t->division != NULL) {
			cn_division_expire(t, now);
		} else if (t->wireup.wake_at <= now) {
			cn_wireup_expire(t, now);
		}
	}
	for (uint64_t left = t->busy; left != 0; left &= left - 1) {
		struct cn_op *op = t->ops[cn_bit_first(left)]; /* NULL: one before ended it */

		if (op != NULL && cn_op_deadline(op) <= now) {
			cn_op_expire(op, now);
		}
	}
}

bool cn_engine_uses(const struct cn_engine *e, const struct cn_topo *topo)
{
	const struct cn_task *x = e->tasks.running;

	if (x != NULL && x->layout.tree != NULL && x->layout.tree->topo == topo) {
		return true;
	}
	for (uint32_t i = 0; i < e->places; i++) {
		if (e->teams[i] != NULL && e->teams[i]->topo == topo) {
			return true;
		}
	}
	return e->config.topo == topo;
}
