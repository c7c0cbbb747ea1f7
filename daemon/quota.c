/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits per user: connections, teams, endpoints, requests, regions and memory, so that other users
 * get a share; and the rate of log lines about a user.
 *
 * Root is limited only by the tables. Memory is charged by its mapped size: a client can touch each
 * page at any time. Regions are charged, too, however small: the kernel limits the mappings and
 * descriptors of a process, and the daemon has those of all clients.
 */
#include "daemon/daemon.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define LOG_BURST 10u		 /* lines at once about one user */
#define LOG_EVERY (1000 * CN_MS) /* one more */

const struct cn_quota_kind cn_quota_kinds[CN_QUOTAS] = {
	[CN_QUOTA_CONNECTIONS] = { "max-connections", "connections", CN_CLIENTS_MAX / 4,
				   CN_CLIENTS_MAX, "a number from 1 to 1024" },
	[CN_QUOTA_TEAMS] = { "max-teams", "teams", 1024, 4096, "a number from 1 to 4096" },
	[CN_QUOTA_ENDPOINTS] = { "max-endpoints", "endpoints", 128, 1024,
				 "a number from 1 to 1024" },
	[CN_QUOTA_REQUESTS] = { "max-requests", "outstanding requests", 16384, 1000000,
				"a number from 1 to 1000000" },
	[CN_QUOTA_REGIONS] = { "max-regions", "regions of shared memory", CN_REGIONS_MAX / 3,
			       CN_REGIONS_MAX, "a number from 1 to 49152" },
	[CN_QUOTA_MEMORY] = { "max-memory", "bytes of shared memory", 0, UINT64_MAX,
			      "a size in bytes such as 512m or 16g" },
};

/* Half of the descriptors, if there are fewer than needed. */
static uint64_t regions_max(const struct cn_daemon *d)
{
	const uint64_t half = d->descriptors / 2;

	return half > 0 && half < CN_REGIONS_MAX ? half : CN_REGIONS_MAX;
}

uint64_t cn_quota_limit(const struct cn_daemon *d, enum cn_quota q)
{
	if (d->config.limits[q] != 0) {
		return d->config.limits[q];
	}
	return q == CN_QUOTA_MEMORY    ? d->memory.base / 2
	       : q == CN_QUOTA_REGIONS ? regions_max(d) / 3
				       : cn_quota_kinds[q].limit;
}

int cn_quota_check(const struct cn_daemon *d, const struct cn_user *u, enum cn_quota q,
		   uint64_t used, uint64_t n, struct cn_err *err)
{
	const uint64_t limit = cn_quota_limit(d, q);

	if (u->uid == 0 || (used <= limit && n <= limit - used)) {
		return COLLNET_OK;
	}
	return cn_fail(err, COLLNET_ELIMIT,
		       "user %lu has %" PRIu64 " %s on this node; %" PRIu64
		       " more would exceed the limit of %" PRIu64
		       ": release some, or see %s in collnetd.conf(5)",
		       (unsigned long)u->uid, used, cn_quota_kinds[q].things, n, limit,
		       cn_quota_kinds[q].key);
}

/* The limits of all users together, including root, that no table imposes. */
static int check_totals(const struct cn_daemon *d, enum cn_quota q, uint64_t n, struct cn_err *err)
{
	if (q == CN_QUOTA_MEMORY && n > d->memory.total - d->memory.used) {
		return cn_fail(err, COLLNET_ELIMIT,
			       "all users together have %" PRIu64
			       " bytes of shared memory on this node; "
			       "%" PRIu64 " more would exceed three quarters of %s (%" PRIu64 ")",
			       d->memory.used, n,
			       d->memory.limited ? "the memory limit of the daemon's control group"
						 : "its memory",
			       d->memory.total);
	}
	if (q == CN_QUOTA_REGIONS && n > regions_max(d) - d->memory.regions) {
		return cn_fail(err, COLLNET_ELIMIT,
			       "all users together have %" PRIu64
			       " regions of shared memory on this node, of %" PRIu64,
			       d->memory.regions, regions_max(d));
	}
	return COLLNET_OK;
}

int cn_quota_charge(struct cn_daemon *d, struct cn_user *u, enum cn_quota q, uint64_t n,
		    struct cn_err *err)
{
	int rc = cn_quota_check(d, u, q, u->used[q], n, err);

	if (rc == COLLNET_OK) {
		rc = check_totals(d, q, n, err);
	}
	if (rc == COLLNET_OK) {
		u->used[q] += n;
		d->memory.used += q == CN_QUOTA_MEMORY ? n : 0;
		d->memory.regions += q == CN_QUOTA_REGIONS ? n : 0;
	}
	return rc;
}

void cn_quota_uncharge(struct cn_daemon *d, struct cn_user *u, enum cn_quota q, uint64_t n)
{
	u->used[q] -= n;
	d->memory.used -= q == CN_QUOTA_MEMORY ? n : 0;
	d->memory.regions -= q == CN_QUOTA_REGIONS ? n : 0;
}

/* ---- users ---------------------------------------------------------------------------- */

static bool is_idle(const struct cn_user *u)
{
	for (int q = 0; q < CN_QUOTAS; q++) {
		if (u->used[q] > 0) {
			return false;
		}
	}
	return true;
}

struct cn_user *cn_user_find(struct cn_daemon *d, uid_t uid)
{
	struct cn_user *best = NULL;

	uid = cn_subuid_owner(&d->subuids, uid);
	for (uint32_t i = 0; i < CN_USERS_MAX; i++) {
		struct cn_user *u = &d->users[i];

		if (u->known && u->uid == uid) {
			u->seen = d->now;
			return u;
		}
		/* A free entry, or the one that is idle for longest. */
		if (!u->known ? best == NULL || best->known
			      : is_idle(u) &&
					(best == NULL || (best->known && u->seen < best->seen))) {
			best = u;
		}
	}
	if (best != NULL) {
		memset(best, 0, sizeof(*best));
		best->known = true;
		best->uid = uid;
		best->seen = best->log_at = d->now;
		best->log_lines = LOG_BURST;
	}
	return best;
}

bool cn_user_may_log(struct cn_daemon *d, struct cn_user *u)
{
	const cn_time earned = (d->now - u->log_at) / LOG_EVERY;

	if (earned > 0) {
		u->log_lines = earned >= LOG_BURST - u->log_lines ? LOG_BURST
								  : u->log_lines + (uint32_t)earned;
		u->log_at += earned * LOG_EVERY;
	}
	if (u->log_lines == 0) {
		u->log_suppressed++;
		return false;
	}
	u->log_lines--;
	if (u->log_suppressed > 0) {
		cn_log(COLLNET_LOG_WARNING, "%" PRIu64 " log lines about user %lu were suppressed",
		       u->log_suppressed, (unsigned long)u->uid);
		u->log_suppressed = 0;
	}
	return true;
}

/* ---- available memory ----------------------------------------------------------------- */

/* A number in a file; false: there is none ("max", or no file). */
static bool read_number(const char *path, uint64_t *out)
{
	char text[32] = "";
	FILE *f = fopen(path, "re");
	bool ok = f != NULL && fgets(text, sizeof(text), f) != NULL && text[0] >= '0' &&
		  text[0] <= '9';

	if (f != NULL) {
		fclose(f);
	}
	if (ok) {
		*out = strtoull(text, NULL, 10);
	}
	return ok;
}

/* Reads the limits of a control group and of those above it. */
static void read_group_limits(struct cn_daemon *d, const char *root, char *path, const char *limit)
{
	char file[4400];
	uint64_t n;

	for (;;) {
		snprintf(file, sizeof(file), "%s%s/%s", root, path, limit);
		if (read_number(file, &n) && n < d->memory.base) {
			d->memory.base = n;
			d->memory.limited = true;
		}
		if (strrchr(path, '/') == NULL) {
			return;
		}
		*strrchr(path, '/') = '\0';
	}
}

void cn_quota_open(struct cn_daemon *d)
{
	char line[4200];
	struct sysinfo info;
	FILE *f;

	d->memory.base = sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit
					     : (uint64_t)1 << 30;
	f = fopen("/proc/self/cgroup", "re");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		/* ID:controllers:path; the path may have colons. */
		char *path = strchr(line, ':');

		path = path != NULL ? strchr(path + 1, ':') : NULL;
		line[strcspn(line, "\n")] = '\0';
		if (path != NULL && strncmp(line, "0::", 3) == 0) {
			read_group_limits(d, "/sys/fs/cgroup", path + 1, "memory.max");
		} else if (path != NULL && strstr(line, ":memory:") != NULL) {
			read_group_limits(d, "/sys/fs/cgroup/memory", path + 1,
					  "memory.limit_in_bytes");
		}
	}
	if (f != NULL) {
		fclose(f);
	}
	d->memory.total = d->memory.base / 4 * 3;
}
