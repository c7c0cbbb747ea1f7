/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options that describe a network without a file.
 */
#include "tools/shape.h"

#include "tools/tool.h"

#define RATE_DEFAULT	      20000000u
#define RATE_DEFAULT_MANY     10000000u /* for more than 16 hosts: two processors can keep up */
#define UPLINK_FACTOR	      10u
#define BUFFER_DEFAULT	      43u
#define UPLINK_BUFFER_DEFAULT 45u
/* Of a port without a rate, which hands frames to the next namespace: the kernel's
 * net.core.netdev_max_backlog. */
#define UNLIMITED_DEFAULT 1000u

int shape_option(struct shape *s, int opt, char *arg, struct cn_err *err)
{
	switch (opt) {
	case SHAPE_OPT_SHAPE:
		s->text = arg;
		return COLLNET_OK;
	case SHAPE_OPT_RATE:
		s->rate_given = true;
		return tool_parse_rate_or_none(arg, &s->rate, err);
	case SHAPE_OPT_UPLINK:
		s->uplink_given = true;
		return tool_parse_rate_or_none(arg, &s->uplink, err);
	case SHAPE_OPT_BUFFER:
		s->buffer_given = true;
		return tool_parse_u32(arg, 1, CN_TOPO_BUFFER_MAX, &s->buffer, err);
	default: /* SHAPE_OPT_UPLINK_BUFFER */
		s->uplink_buffer_given = true;
		return tool_parse_u32(arg, 1, CN_TOPO_BUFFER_MAX, &s->uplink_buffer, err);
	}
}

bool shape_has_rates(const struct shape *s)
{
	return s->rate_given || s->uplink_given || s->buffer_given || s->uplink_buffer_given;
}

int shape_defaults(struct shape *s, struct cn_err *err)
{
	struct cn_topo *t = NULL;
	int rc = cn_topo_shape(s->text, 0, 0, 0, 0, &t, err); /* to count the hosts */

	if (rc != COLLNET_OK) {
		return rc;
	}
	if (!s->rate_given) {
		s->rate = t->nhosts > 16 ? RATE_DEFAULT_MANY : RATE_DEFAULT;
	}
	if (!s->uplink_given) {
		s->uplink = s->rate < CN_RATE_MAX / UPLINK_FACTOR ? s->rate * UPLINK_FACTOR
								  : CN_RATE_MAX;
	}
	if (!s->buffer_given) {
		s->buffer = s->rate == 0 ? UNLIMITED_DEFAULT : BUFFER_DEFAULT;
	}
	if (!s->uplink_buffer_given) {
		s->uplink_buffer = s->uplink == 0 ? UNLIMITED_DEFAULT : UPLINK_BUFFER_DEFAULT;
	}
	cn_topo_free(t);
	return COLLNET_OK;
}
