/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dropping privileges, for good: groups, user, capabilities, and the way back through set-user-ID
 * programs. The raw sockets and the listening socket are open by then.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whether a look-up that found nothing means that there is nothing; see getpwnam(3). */
static bool is_missing(int e)
{
	return e == 0 || e == ENOENT || e == ESRCH || e == EBADF || e == EPERM;
}

static int find_group(const char *name, const struct group **out, struct cn_err *err)
{
	errno = 0;
	*out = getgrnam(name);
	return *out != NULL || is_missing(errno)
		       ? COLLNET_OK
		       : cn_fail(err, COLLNET_ESYSTEM, "cannot look up group '%s': %s", name,
				 cn_strerror(errno));
}

static int find_user(const char *name, struct cn_identity *out, struct cn_err *err)
{
	const struct passwd *pw;

	errno = 0;
	pw = getpwnam(name);
	if (pw == NULL && !is_missing(errno)) {
		return cn_fail(err, COLLNET_ESYSTEM, "cannot look up user '%s': %s", name,
			       cn_strerror(errno));
	}
	if (pw == NULL) {
		return cn_fail(err, COLLNET_EINVAL,
			       "no such user '%s': create it, or choose another with user in the "
			       "configuration or --user (none keeps the current user)",
			       name);
	}
	out->uid = pw->pw_uid;
	out->gid = pw->pw_gid;
	snprintf(out->name, sizeof(out->name), "%s", name);
	return COLLNET_OK;
}

int cn_priv_find(const struct cn_config *c, struct cn_identity *out, struct cn_err *err)
{
	const struct group *gr = NULL;
	int rc;

	memset(out, 0, sizeof(*out));
	out->uid = geteuid();
	out->gid = getegid();
	if (strcmp(c->user, "none") == 0 || (c->user[0] == '\0' && geteuid() != 0)) {
		out->keep = strcmp(c->user, "none") == 0;
	} else {
		rc = find_user(c->user[0] != '\0' ? c->user : "collnet", out, err);
		if (rc == COLLNET_EINVAL && c->user[0] == '\0') {
			rc = find_user("nobody", out, err);
		}
		if (rc != COLLNET_OK) {
			return rc;
		}
		if (out->uid == 0) {
			return cn_fail(
				err, COLLNET_EINVAL,
				"user '%s' is root: choose an unprivileged one with user in the "
				"configuration or --user, or none to keep all privileges",
				out->name);
		}
	}
	if (c->group[0] != '\0') {
		rc = find_group(c->group, &gr, err);
		if (rc != COLLNET_OK) {
			return rc;
		}
		if (gr == NULL) {
			return cn_fail(
				err, COLLNET_EINVAL,
				"no such group '%s': create it, or choose another with group "
				"in the configuration or --group",
				c->group);
		}
	} else if (geteuid() == 0 && !out->keep) {
		rc = find_group("collnet", &gr, err); /* those who may use the socket */
		if (rc != COLLNET_OK) {
			return rc;
		}
		out->lacks_group = gr == NULL;
	}
	if (gr != NULL) {
		out->gid = gr->gr_gid;
	}
	return COLLNET_OK;
}

/* Only who has CAP_SETPCAP may; it matters little when there are no capabilities to bound. */
static void empty_bounding_set(void)
{
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
		prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	}
}

static int clear_capabilities(struct cn_err *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3], now[_LINUX_CAPABILITY_U32S_3];

	memset(none, 0, sizeof(none));
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &head, none) != 0 || syscall(SYS_capget, &head, now) != 0) {
		return cn_fail(err, COLLNET_EPERM, "cannot drop capabilities: %s", strerror(errno));
	}
	if (memcmp(none, now, sizeof(none)) != 0) {
		return cn_fail(err, COLLNET_EPERM, "capabilities are left after they were dropped");
	}
	return COLLNET_OK;
}

int cn_priv_become(const struct cn_identity *id, struct cn_err *err)
{
	const char *step = NULL;
	uid_t ruid, euid, suid;
	gid_t rgid, egid, sgid;

	/* No name: started by an unprivileged user, who stays what he is. */
	if (id->keep || id->name[0] == '\0' || id->uid == geteuid()) {
		return COLLNET_OK;
	}
	if (setgroups(1, &id->gid) != 0) {
		step = "setgroups";
	} else if (setresgid(id->gid, id->gid, id->gid) != 0) {
		step = "setresgid";
	} else if (setresuid(id->uid, id->uid, id->uid) != 0) {
		step = "setresuid";
	}
	if (step != NULL) {
		return cn_fail(err, COLLNET_EPERM,
			       "cannot become user '%s' (%s: %s): --user none keeps the current "
			       "user",
			       id->name, step, strerror(errno));
	}
	if (getresuid(&ruid, &euid, &suid) != 0 || getresgid(&rgid, &egid, &sgid) != 0 ||
	    ruid != id->uid || euid != id->uid || suid != id->uid || rgid != id->gid ||
	    egid != id->gid || sgid != id->gid || setresuid((uid_t)-1, 0, (uid_t)-1) == 0) {
		return cn_fail(err, COLLNET_EPERM, "user '%s' can become root again", id->name);
	}
	return COLLNET_OK;
}

int cn_priv_drop(const struct cn_identity *id, struct cn_err *err)
{
	int rc;

	if (id->keep) {
		return cn_seccomp_install(err);
	}
	empty_bounding_set();
	rc = cn_priv_become(id, err);
	if (rc == COLLNET_OK) {
		rc = clear_capabilities(err);
	}
	if (rc == COLLNET_OK && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
		rc = cn_fail(err, COLLNET_EPERM, "no_new_privs: %s", strerror(errno));
	}
	return rc == COLLNET_OK ? cn_seccomp_install(err) : rc;
}
