/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The measuring loop over collnet: `collnet compare loop`, which compare starts on every rank. It
 * uses the public interface, as a user's program does.
 */
#include "tools/compare/command.h"

#define DAY_MS 86400000u /* ranks may wait long for a command */

/* A process is one rank. */
static struct {
	const struct compare_options *o;
	collnet_t *c;
	collnet_team_t *team;
	struct collnet_coll_options how;
} self;

static int open_team(uint32_t *rank, uint32_t *ranks)
{
	struct collnet_team_options team;
	struct collnet_options options;
	int rc;

	collnet_options_init(&options);
	if (self.o->direct) {
		options.mode = COLLNET_MODE_DIRECT;
	}
	options.spin = options.spin || self.o->spin;
	rc = collnet_open(&options, &self.c);
	if (rc != COLLNET_OK) {
		return rc;
	}
	collnet_team_options_init(&team);
	team.timeout_ms = self.o->timeout_ms;
	rc = collnet_team_create(self.c, &team, &self.team);
	if (rc != COLLNET_OK) {
		return rc;
	}
	collnet_coll_options_init(&self.how);
	self.how.window = self.o->m.window;
	self.how.timeout_ms = self.o->timeout_ms;
	*rank = collnet_team_rank(self.team);
	*ranks = collnet_team_size(self.team);
	return COLLNET_OK;
}

static void close_team(void)
{
	/* No rank leaves while another still needs the last acknowledgements. */
	(void)collnet_barrier(self.team, &self.how);
	collnet_team_destroy(self.team);
	collnet_close(self.c);
}

static void *alloc_buffer(size_t bytes)
{
	return collnet_alloc(self.c, bytes);
}

static void free_buffer(void *p)
{
	collnet_free(self.c, p);
}

static int announce(void *data, size_t bytes)
{
	struct collnet_coll_options how = self.how;

	how.timeout_ms = DAY_MS;
	return collnet_bcast(self.team, data, bytes, 0, &how);
}

static const char *version(void)
{
	static char text[64];

	snprintf(text, sizeof(text), "collnet %s", collnet_version());
	return text;
}

static const char *error(void)
{
	return collnet_error(self.c);
}

/* ---- operations ----------------------------------------------------------------------- */

static int alltoall(const struct loop_call *c)
{
	return collnet_alltoall(self.team, c->send, c->recv, c->bytes, &self.how);
}

static int alltoallv(const struct loop_call *c)
{
	return collnet_alltoallv(self.team, c->send, c->to->bytes, c->to->at, c->recv,
				 c->from->bytes, c->from->at, &self.how);
}

static int allgather(const struct loop_call *c)
{
	return collnet_allgather(self.team, c->send, c->recv, c->bytes, &self.how);
}

static int allgatherv(const struct loop_call *c)
{
	return collnet_allgatherv(self.team, c->send, c->to->total, c->recv, c->from->bytes,
				  c->from->at, &self.how);
}

static int bcast(const struct loop_call *c)
{
	return collnet_bcast(self.team, c->recv, c->bytes, 0, &self.how);
}

static int scatter(const struct loop_call *c)
{
	return collnet_scatter(self.team, c->send, c->recv, c->bytes, 0, &self.how);
}

static int gather(const struct loop_call *c)
{
	return collnet_gather(self.team, c->send, c->recv, c->bytes, 0, &self.how);
}

static int gatherv(const struct loop_call *c)
{
	return collnet_gatherv(self.team, c->send, c->to->total, c->recv, c->from->bytes,
			       c->from->at, 0, &self.how);
}

static int allreduce(const struct loop_call *c)
{
	return collnet_allreduce(self.team, c->send, c->recv, c->bytes, COLLNET_UINT8, COLLNET_BXOR,
				 &self.how);
}

static int reduce(const struct loop_call *c)
{
	return collnet_reduce(self.team, c->send, c->recv, c->bytes, COLLNET_UINT8, COLLNET_BXOR, 0,
			      &self.how);
}

static int reduce_scatter(const struct loop_call *c)
{
	return collnet_reduce_scatter(self.team, c->send, c->recv, c->bytes, COLLNET_UINT8,
				      COLLNET_BXOR, &self.how);
}

static int scan(const struct loop_call *c)
{
	return collnet_scan(self.team, c->send, c->recv, c->bytes, COLLNET_UINT8, COLLNET_BXOR,
			    &self.how);
}

static int barrier(const struct loop_call *c)
{
	(void)c;
	return collnet_barrier(self.team, &self.how);
}

int compare_loop(const struct compare_options *o)
{
	static const struct loop_library collnet = {
		.open = open_team,
		.close = close_team,
		.alloc = alloc_buffer,
		.free = free_buffer,
		.announce = announce,
		.version = version,
		.error = error,
		.ops = {
			[LOOP_ALLTOALL] = alltoall,
			[LOOP_ALLTOALLV] = alltoallv,
			[LOOP_ALLGATHER] = allgather,
			[LOOP_ALLGATHERV] = allgatherv,
			[LOOP_BCAST] = bcast,
			[LOOP_SCATTER] = scatter,
			[LOOP_GATHER] = gather,
			[LOOP_GATHERV] = gatherv,
			[LOOP_ALLREDUCE] = allreduce,
			[LOOP_REDUCE] = reduce,
			[LOOP_REDUCE_SCATTER] = reduce_scatter,
			[LOOP_SCAN] = scan,
			[LOOP_BARRIER] = barrier,
		},
	};

	self.o = o;
	return loop_run(&collnet, stdin, stdout);
}
