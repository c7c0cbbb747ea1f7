/* SPDX-License-Identifier: BSD-2-Clause */
/* Log lines about jobs, rate-limited per payer, so that a user cannot fill the log by jobs that
 * fail; not per owner, of which a user can create many (secrets). */
#include "coll/engine_state.h"
#include "coll/team.h"

#define BURST 100u
static const cn_time each = 1000 * CN_MS;

void cn_job_log(const struct cn_team *t, enum collnet_log_level level, const char *fmt, ...)
{
	struct cn_engine *e = t->engine;
	const cn_time now = cn_node_now(e->own.node);
	struct cn_bucket *b = &e->job_log[cn_mix64(cn_team_payer(t)) % CN_JOB_LOGS];
	va_list ap;

	if (!cn_bucket_take(b, now, BURST, each)) {
		e->job_log_suppressed++;
		return;
	}
	if (e->job_log_suppressed > 0 && cn_bucket_take(&e->job_log_notes, now, 1, each)) {
		cn_log(COLLNET_LOG_WARNING, "%u more lines about jobs were suppressed",
		       e->job_log_suppressed);
		e->job_log_suppressed = 0;
	}
	va_start(ap, fmt);
	cn_vlog(level, fmt, ap);
	va_end(ap);
}
