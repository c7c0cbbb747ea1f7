/* SPDX-License-Identifier: BSD-2-Clause */
/* A line at most every 0.2 s: what is simulated, and how far it is in virtual time. */
#include "tools/sim/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"

#define LOOK_EVERY 1024u /* records: a look at the clock costs as much as a few */

bool sim_progress_wanted(void)
{
	const char *always = getenv("COLLNET_PROGRESS");

	return isatty(STDERR_FILENO) || (always != NULL && strcmp(always, "1") == 0);
}

static void show(struct sim_progress *p, cn_time at)
{
	p->line = isatty(STDERR_FILENO);
	fprintf(stderr, "%s%s: %.6f s simulated, %" PRIu64 " frames sent%s",
		p->line ? "\r\033[K" : "", p->what, (double)at / 1e9, p->frames,
		p->line ? "" : "\n");
	fflush(stderr);
}

void sim_progress_record(void *progress, const struct cn_sim_record *record)
{
	struct sim_progress *p = progress;
	cn_time now;

	if (p->trace != NULL) {
		sim_trace_record(p->trace, record);
	}
	p->frames += record->kind == CN_SIM_SENT;
	if (p->records++ % LOOK_EVERY != 0) {
		return;
	}
	now = cn_now();
	if (p->last == 0 || now - p->last >= 200 * CN_MS) {
		p->last = now;
		show(p, record->at);
	}
}

void sim_progress_end(struct sim_progress *p)
{
	if (p->line) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
	}
	p->line = false;
}
