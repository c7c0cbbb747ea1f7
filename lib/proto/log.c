/* SPDX-License-Identifier: BSD-2-Clause */
/* Log lines about peers, rate-limited per peer and in total, so that frames cannot fill the log. */

#include "proto/node_impl.h"

#define PEER_BURST 8u
static const cn_time peer_each = 10 * 1000 * CN_MS;
/* A cluster of the largest size may start at once. */
static const cn_time all_each = 1000 * CN_MS;

void cn_peer_log(struct cn_peer *p, enum collnet_log_level level, const char *fmt, ...)
{
	struct cn_node *n = p->node;
	va_list ap;

	if (!cn_bucket_take(&p->log, n->now, PEER_BURST, peer_each) ||
	    !cn_bucket_take(&n->log, n->now, 2 * n->config.max_peers, all_each)) {
		n->log_suppressed++;
		return;
	}
	if (n->log_suppressed > 0) {
		cn_log(COLLNET_LOG_WARNING, "%u more lines about nodes were suppressed",
		       n->log_suppressed);
		n->log_suppressed = 0;
	}
	va_start(ap, fmt);
	cn_vlog(level, fmt, ap);
	va_end(ap);
}
