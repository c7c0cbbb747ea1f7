/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Subordinate user IDs, subuid(5): ranges of IDs that a user may give to processes of his own, in a
 * user namespace. The kernel says such an ID of a client, and its limits are those of the range's
 * owner: else they would be multiplied by as many IDs as there are in the range. Whose jobs it may
 * join stays a matter of its own ID, as a container may keep its processes from its owner's.
 *
 * In a user namespace that does not map all users, the kernel reports one ID for all whom it does
 * not map. They would be one user, and join each other's jobs, so they are refused.
 *
 * The files are read once, before privileges are dropped: names are looked up, which the filter of
 * system calls may forbid later.
 */
#include "daemon/daemon.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/file.h"

#define FILE_MAX  ((size_t)1 << 20) /* bytes */
#define NAMES_MAX (5000 * CN_MS)    /* for the look-up of all names; one can take seconds */

struct owner {
	const char *name;
	uid_t uid;
};

/* The user of this name or number; `unknown` if there is none. */
static uid_t find_owner(const char *name, uid_t unknown, cn_time until)
{
	const struct passwd *pw;
	uint64_t number;

	if (cn_parse_uint(name, 0, UINT32_MAX, &number)) {
		return (uid_t)number;
	}
	pw = cn_now() < until ? getpwnam(name) : NULL;
	return pw != NULL ? pw->pw_uid : unknown;
}

/* A line, owner:first:count. */
static void parse_range(struct cn_subuids *s, char *line, struct owner *last, cn_time until)
{
	const char *name = strsep(&line, ":"), *first = strsep(&line, ":"),
		   *count = strsep(&line, ":");
	uint64_t from, n;

	if (count == NULL || line != NULL || name[0] == '\0' || name[0] == '#' ||
	    !cn_parse_uint(first, 1, UINT32_MAX, &from) ||
	    !cn_parse_uint(count, 1, UINT32_MAX, &n)) {
		return;
	}
	/* A user has a line per range. One who is unknown counts as the first ID of the range. */
	if (last->name == NULL || strcmp(last->name, name) != 0) {
		*last = (struct owner){ name, find_owner(name, (uid_t)from, until) };
	}
	/* Root has no limits, and those who run under the IDs that it gave away are not root. */
	if (last->uid != 0) {
		s->ranges[s->n++] = (struct cn_subuid){ (uid_t)from, (uint32_t)n, last->uid };
	}
}

void cn_subuid_read(struct cn_subuids *s, const char *path)
{
	const cn_time until = cn_now() + NAMES_MAX;
	struct owner last = { NULL, 0 };
	size_t size = 0;
	FILE *f = fopen(path, "re");
	char *text = f != NULL ? cn_read_all(f, FILE_MAX, &size) : NULL, *at = text, *line;

	s->n = 0;
	if (size > FILE_MAX) {
		text[FILE_MAX] = '\0';
	}
	while (s->n < CN_SUBUIDS_MAX && (line = strsep(&at, "\n")) != NULL) {
		parse_range(s, line, &last, until);
	}
	if (size > FILE_MAX || (at != NULL && *at != '\0')) {
		cn_log(COLLNET_LOG_WARNING, "%s is too long: its first %u ranges are used", path,
		       s->n);
	}
	free(text);
	if (f != NULL) {
		fclose(f);
	}
}

void cn_subuid_read_map(struct cn_subuids *s, const char *path)
{
	unsigned long first, outside, count;
	uint64_t users = 0;
	FILE *f = fopen(path, "re");

	while (f != NULL && fscanf(f, "%lu %lu %lu", &first, &outside, &count) == 3) {
		users += count;
	}
	s->lacks_users = users > 0 && users < UINT32_MAX;
	if (f != NULL) {
		fclose(f);
	}
}

uid_t cn_subuid_owner(const struct cn_subuids *s, uid_t uid)
{
	for (uint32_t i = 0; i < s->n; i++) {
		const struct cn_subuid *r = &s->ranges[i];

		if (uid >= r->first && uid - r->first < r->count) {
			return r->owner;
		}
	}
	return uid;
}
