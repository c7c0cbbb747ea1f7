/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of the options of `collnet sim` and of its faults. */
#ifndef COLLNET_SIM_PARSE_H
#define COLLNET_SIM_PARSE_H

#include "topo/topo.h"
#include "util/util.h"

/* "500ns", "2.5us", "1ms", "0" -> nanoseconds, at most a minute. */
int sim_parse_time(const char *text, cn_time *out, struct cn_err *err);
/* "SWITCH-PEER": the link between the two; names may have a '-'. COLLNET_EINVAL. */
int sim_find_port(const struct cn_topo *t, const char *text, uint32_t *link, struct cn_err *err);

#endif
