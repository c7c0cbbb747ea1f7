/* SPDX-License-Identifier: BSD-2-Clause */
#include "draw.h"
#include "script.h"
#include "tests/unit/reduction.h"

#include <stdlib.h>
#include <string.h>

#define DATA_MAX    (1u << 20) /* bytes that all ranks together receive in an operation */
#define COLORS	    3
#define FIRST_STEPS 48 /* SCRIPT_FIRST: at most */

static void draw_op(struct op_plan *p, uint32_t ranks, uint64_t *r)
{
	static const uint64_t sizes[] = { 0, 1, 7, 64, 500, 1476, 4096, 10001, 65536 };
	const uint64_t most = DATA_MAX / ranks / ranks;

	*p = (struct op_plan){ .contention_aware = true, .window = COLLNET_WINDOW_AUTO };
	p->op = (enum cn_op_kind)between(r, CN_OP_ALLTOALL, CN_OP_EXSCAN);
	p->bytes = PICK(r, sizes);
	p->bytes = p->bytes > most ? most : p->bytes;
	p->sizes = cn_random(r);
	p->ordered = cn_op_reduces(p->op) && chance(r, 40);
	p->bytes = p->op == CN_OP_BARRIER ? 0 : p->bytes & ~(uint64_t)(p->ordered ? 1 : 0);
	switch (cn_op_base(p->op)) {
	case CN_OP_BCAST:
	case CN_OP_SCATTER:
	case CN_OP_GATHER:
	case CN_OP_REDUCE:
		p->root = (uint32_t)(cn_random(r) % ranks);
		break;
	default:
		break;
	}
}

/* A row of the registry that takes such an operation; whether it has a schedule for the team's
 * network, and the permutation one for its nodes, shows when it is called. */
static const char *draw_algorithm(const struct op_plan *p, uint32_t ranks, uint64_t *r)
{
	size_t n;
	const struct cn_algorithm *all = cn_algorithms(&n), *a = &all[cn_random(r) % n];

	while (a->op != cn_op_base(p->op)) {
		a = a + 1 < all + n ? a + 1 : all;
	}
	return (cn_op_is_vector(p->op) && a->needs_tree) ||
			       (cn_op_reduces(p->op) &&
				!reduction_takes(a, p->ordered, p->bytes, ranks))
		       ? NULL
		       : a->name;
}

static void draw_options(struct op_plan *p, uint32_t ranks, uint64_t *r)
{
	if (cn_op_base(p->op) == CN_OP_REDUCE_SCATTER && chance(r, 50)) {
		p->op = CN_OP_REDUCE_SCATTERV;
	}
	p->algorithm = chance(r, 50) ? draw_algorithm(p, ranks, r) : NULL;
	p->permutation = chance(r, 85) ? CN_PERM_AUTO
				       : (enum cn_permutation)between(r, CN_PERM_AUTO,
								      CN_PERM_EDGE_COLOUR);
	p->contention_aware = chance(r, 80);
	p->window = chance(r, 60)   ? COLLNET_WINDOW_AUTO
		    : chance(r, 30) ? COLLNET_WINDOW_OFF
				    : (uint32_t)between(r, 1, 32);
}

/* A team that no rank has left. */
static uint32_t draw_team(const struct script *s, uint64_t *r)
{
	uint32_t t;

	do {
		t = (uint32_t)(cn_random(r) % s->nteams);
	} while (s->teams[t].left);
	return t;
}

int32_t script_color(const struct step *s, uint32_t rank)
{
	return s->making == CN_MAKING_DUP
		       ? 0
		       : (int32_t)(cn_mix64(s->colors + rank) % (COLORS + 1)) - 1;
}

int32_t script_key(const struct step *s, uint32_t rank)
{
	return s->making == CN_MAKING_DUP ? 0 : (int32_t)(cn_mix64(~s->colors + rank) % 4);
}

uint32_t script_rank(const struct script_team *t, uint32_t rank)
{
	for (uint32_t i = 0; i < t->n; i++) {
		if (t->ranks[i] == rank) {
			return i;
		}
	}
	return UINT32_MAX;
}

/* The ranks of a color, in the order of their keys. */
static void add_colored(struct script *s, const struct step *x, int32_t color)
{
	const struct script_team *parent = &s->teams[x->team];
	struct script_team *t = &s->teams[s->nteams];

	*t = (struct script_team){ .parent = x->team, .color = color };
	for (int32_t key = 0; key < 4; key++) {
		for (uint32_t i = 0; i < parent->n; i++) {
			if (script_color(x, i) == color && script_key(x, i) == key) {
				t->ranks[t->n++] = parent->ranks[i];
			}
		}
	}
	s->nteams += t->n > 0;
}

static void draw_split(struct script *s, struct step *x, uint64_t *r)
{
	x->making = chance(r, 25) ? CN_MAKING_DUP : CN_MAKING_SPLIT;
	x->colors = cn_random(r);
	x->child = s->nteams;
	for (int32_t c = 0; c < COLORS; c++) {
		add_colored(s, x, c);
	}
	x->children = s->nteams - x->child;
}

static void draw_derived(struct script *s, struct step *x, uint64_t *r)
{
	const struct script_team *parent = &s->teams[x->team];
	struct script_team *t = &s->teams[s->nteams];
	const uint32_t last = (uint32_t)(cn_random(r) % parent->n);

	*t = (struct script_team){ .parent = x->team };
	for (uint32_t i = 0; i < parent->n; i++) {
		if (i == last || chance(r, 50)) {
			t->ranks[t->n++] = parent->ranks[i];
		}
	}
	x->child = s->nteams++;
	x->children = 1;
}

static void draw_joined(struct script *s, struct step *x)
{
	x->team = 0;
	x->child = s->newest = s->nteams++;
	x->children = 1;
	s->teams[x->child] = s->teams[0];
	s->teams[x->child].left = false;
	s->teams[x->child].joined = true;
}

/* A handle that is there; UINT32_MAX: none was found. */
static uint32_t draw_handle(const struct script *s, uint64_t *r)
{
	const uint32_t h = s->nhandles > 0 ? (uint32_t)(cn_random(r) % s->nhandles) : UINT32_MAX;

	return h != UINT32_MAX && !s->handles[h].released ? h : UINT32_MAX;
}

static void leave(struct script *s, uint32_t team)
{
	s->teams[team].left = true;
	for (uint32_t h = 0; h < s->nhandles; h++) {
		s->handles[h].released |= s->handles[h].team == team;
	}
}

/* What a step of this kind needs; false: it cannot be made now. */
static bool draw_step(struct script *s, struct step *x, uint64_t *r)
{
	const uint32_t h = draw_handle(s, r);

	x->team = draw_team(s, r);
	switch (x->kind) {
	case STEP_JOIN:
		if (s->nteams == SCRIPT_TEAMS) {
			return false;
		}
		draw_joined(s, x);
		return true;
	case STEP_PREPARE:
		if (s->nhandles == SCRIPT_HANDLES) {
			return false;
		}
		x->handle = s->nhandles++;
		s->handles[x->handle].team = x->team;
		draw_op(&s->handles[x->handle].op, s->teams[x->team].n, r);
		return true;
	case STEP_START:
	case STEP_RELEASE:
		x->handle = h;
		x->team = h != UINT32_MAX ? s->handles[h].team : 0;
		if (h != UINT32_MAX && x->kind == STEP_RELEASE) {
			s->handles[h].released = true;
		}
		return h != UINT32_MAX;
	case STEP_SPLIT:
		if (s->nteams + COLORS > SCRIPT_TEAMS) {
			return false;
		}
		draw_split(s, x, r);
		return true;
	case STEP_DERIVE:
		if (s->nteams == SCRIPT_TEAMS) {
			return false;
		}
		draw_derived(s, x, r);
		return true;
	case STEP_LEAVE:
		if (x->team == s->newest) {
			return false;
		}
		leave(s, x->team);
		return true;
	case STEP_LATE:
	case STEP_REOPEN:
		x->team = 0;
		x->from = (uint32_t)(cn_random(r) % s->teams[0].n);
		return true;
	case STEP_MESSAGE:
		x->team = 0;
		x->from = (uint32_t)(cn_random(r) % s->teams[0].n);
		x->to = (x->from + s->shift) % s->teams[0].n;
		x->bytes = chance(r, 50) ? between(r, 0, 100) : between(r, 0, SCRIPT_MESSAGE);
		return x->from != x->to;
	default:
		draw_op(&x->op, s->teams[x->team].n, r);
		return true;
	}
}

/* ---- wide scripts --------------------------------------------------------------------- */

/* What is drawn is added, unless there is no room. */
static void add(struct script *s, struct step x, uint64_t *r)
{
	if (s->nsteps < SCRIPT_STEPS && draw_step(s, &x, r)) {
		s->steps[s->nsteps++] = x;
	}
}

/* Short operations of several teams, one after the other. */
static void add_calls(struct script *s, uint64_t *r)
{
	const uint32_t teams[] = { draw_team(s, r), draw_team(s, r), draw_team(s, r) };
	const uint64_t n = between(r, 5, 70), most = PICK(r, ((const uint64_t[]){ 0, 2, 64 }));

	for (uint64_t i = 0; i < n && s->nsteps < SCRIPT_STEPS; i++) {
		struct step *x = &s->steps[s->nsteps++];

		*x = (struct step){ .kind = STEP_CALL, .team = PICK(r, teams) };
		draw_op(&x->op, s->teams[x->team].n, r);
		x->op.bytes = x->op.bytes > most ? most : x->op.bytes;
	}
}

/* Messages to one endpoint, which may be late. */
static void add_messages(struct script *s, bool hasty, uint64_t *r)
{
	struct step x = { .kind = STEP_MESSAGE, .hasty = hasty };
	const uint64_t n = between(r, 3, 40);

	if (!draw_step(s, &x, r)) {
		return;
	}
	if (chance(r, 50) && s->nsteps < SCRIPT_STEPS) {
		s->steps[s->nsteps++] = (struct step){ .kind = STEP_LATE, .from = x.to };
	}
	for (uint64_t i = 0; i < n && s->nsteps < SCRIPT_STEPS; i++) {
		x.bytes = between(r, 0, SCRIPT_MESSAGE);
		s->steps[s->nsteps++] = x;
	}
}

static void draw_wide(struct script *s, enum script_style style, bool again, cn_time deadline,
		      uint64_t *r)
{
	static const enum step_kind kinds[] = {
		STEP_CALL,    STEP_CALL,    STEP_CALL,	  STEP_CALL,  STEP_CALL,
		STEP_PREPARE, STEP_PREPARE, STEP_START,	  STEP_START, STEP_START,
		STEP_START,   STEP_RELEASE, STEP_SPLIT,	  STEP_SPLIT, STEP_LATE,
		STEP_DERIVE,  STEP_MESSAGE, STEP_MESSAGE, STEP_LEAVE,
	};
	const uint64_t n = between(r, 8, chance(r, 50) ? 40 : SCRIPT_STEPS);
	const bool late = style == SCRIPT_LATE;

	while (s->nsteps < n) {
		if (again && chance(r, 6)) {
			add(s, (struct step){ .kind = STEP_JOIN }, r);
		} else if (again && late && chance(r, 4)) {
			add(s, (struct step){ .kind = STEP_REOPEN }, r);
		} else if (chance(r, 4)) {
			add_calls(s, r);
		} else if (chance(r, 2)) {
			add_messages(s, late && chance(r, 30), r);
		} else {
			add(s, (struct step){ .kind = PICK(r, kinds) }, r);
		}
	}
	for (uint32_t i = 1; i < s->nsteps; i++) {
		struct step *x = &s->steps[i];

		if (x->kind == STEP_CALL) {
			draw_options(&x->op, s->teams[x->team].n, r);
		} else if (x->kind == STEP_LEAVE) {
			x->hasty = late && chance(r, 50);
		} else if (x->kind == STEP_RELEASE) {
			x->hasty = chance(r, 50);
		} else if (x->kind == STEP_LATE) {
			x->late = between(r, 0, late && chance(r, 40) ? 2 * deadline : 50 * CN_MS);
		}
		if (x->kind >= STEP_START && x->kind <= STEP_DERIVE && chance(r, 30)) {
			s->strike = i;
		}
	}
	for (uint32_t h = 0; h < s->nhandles; h++) {
		draw_options(&s->handles[h].op, s->teams[s->handles[h].team].n, r);
	}
}

/* ---- scripts -------------------------------------------------------------------------- */

static void draw_first(struct script *s, uint32_t n, uint64_t *r)
{
	static const enum step_kind kinds[] = {
		STEP_CALL,  STEP_CALL,	 STEP_CALL,    STEP_CALL,    STEP_PREPARE,
		STEP_START, STEP_START,	 STEP_START,   STEP_START,   STEP_RELEASE,
		STEP_SPLIT, STEP_DERIVE, STEP_MESSAGE, STEP_MESSAGE, STEP_LEAVE,
	};

	while (s->nsteps < n) {
		add(s, (struct step){ .kind = PICK(r, kinds) }, r);
	}
}

uint32_t script_next_join(const struct script *s, uint32_t first)
{
	while (first < s->nsteps && s->steps[first].kind != STEP_JOIN) {
		first++;
	}
	return first < s->nsteps ? first : UINT32_MAX;
}

void script_draw(uint64_t seed, uint32_t ranks, enum script_style style, bool again,
		 cn_time deadline, struct script *out)
{
	uint64_t r = cn_mix64(seed ^ 0x736372697074);
	const uint32_t n = (uint32_t)between(&r, 8, FIRST_STEPS);

	memset(out, 0, sizeof(*out));
	out->nteams = 1;
	out->strike = UINT32_MAX;
	out->shift = (uint32_t)between(&r, 1, ranks);
	out->teams[0].n = ranks;
	for (uint32_t i = 0; i < ranks; i++) {
		out->teams[0].ranks[i] = (uint16_t)i;
	}
	out->steps[0].kind = STEP_JOIN;
	out->nsteps = 1;
	if (style == SCRIPT_FIRST) {
		draw_first(out, n, &r);
	} else {
		draw_wide(out, style, again, deadline, &r);
	}
}

const char *script_name(enum step_kind kind)
{
	static const char *const names[] = { "join",	"call",	 "prepare", "start",
					     "release", "split", "derive",  "leave",
					     "message", "late",	 "reopen" };

	return names[kind];
}
