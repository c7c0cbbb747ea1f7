/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network that is made from options: --shape with its rates and buffers, as `collnet lab` and
 * `collnet topo` take them.
 */
#ifndef COLLNET_TOOLS_SHAPE_H
#define COLLNET_TOOLS_SHAPE_H

#include "topo/topo.h"
#include "util/util.h"

struct shape {
	const char *text; /* "8x2"; NULL: not given */
	uint64_t rate, uplink;
	uint32_t buffer, uplink_buffer;
	bool rate_given, uplink_given, buffer_given, uplink_buffer_given;
};

enum shape_option {
	SHAPE_OPT_SHAPE = 256,
	SHAPE_OPT_RATE,
	SHAPE_OPT_UPLINK,
	SHAPE_OPT_BUFFER,
	SHAPE_OPT_UPLINK_BUFFER,
	SHAPE_OPT_OWN, /* a subcommand's own begin here */
};
/* clang-format off */
#define SHAPE_OPTIONS                                                                              \
	{ "shape", required_argument, NULL, SHAPE_OPT_SHAPE },                                     \
	{ "rate", required_argument, NULL, SHAPE_OPT_RATE },                                       \
	{ "uplink", required_argument, NULL, SHAPE_OPT_UPLINK },                                   \
	{ "buffer", required_argument, NULL, SHAPE_OPT_BUFFER },                                   \
	{ "uplink-buffer", required_argument, NULL, SHAPE_OPT_UPLINK_BUFFER }
/* clang-format on */
/* Lines of help. */
#define SHAPE_HELP                                                                                 \
	"  --rate RATE             of a host's link, or none (20mbit; beyond 16 hosts 10mbit)\n"   \
	"  --uplink RATE           of a switch's uplink, or none (ten times the host's)\n"         \
	"  --buffer FRAMES         of a switch port to a host (43)\n"                              \
	"  --uplink-buffer FRAMES  of a port on an uplink (45)\n"

/* COLLNET_EINVAL. */
int shape_option(struct shape *s, int opt, char *arg, struct cn_err *err);
/* Whether a rate or buffer is given: they go with --shape, a topology file has its own. */
bool shape_has_rates(const struct shape *s);
/* The rates and buffers that were not given. COLLNET_ETOPO: the shape is not one. */
int shape_defaults(struct shape *s, struct cn_err *err);

#endif
