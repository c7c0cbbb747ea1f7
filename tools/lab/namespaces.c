/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "tools/lab/command.h"

int lab_unshare(const char *what, unsigned kinds, struct cn_err *err)
{
	static const struct {
		unsigned flag;
		const char *name;
	} all[] = {
		{ CLONE_NEWNS, "mnt" },
		{ CLONE_NEWNET, "net" },
		{ CLONE_NEWUTS, "uts" },
		{ CLONE_NEWIPC, "ipc" },
	};

	/* One after the other, so that it is known which kind the kernel refuses. */
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if ((kinds & all[i].flag) == 0 || unshare((int)all[i].flag) == 0) {
			continue;
		}
		if (errno == ENOSPC) { /* the user has as many as allowed */
			return cn_fail(err, COLLNET_EPERM,
				       "%s: %s; as root: sysctl user.max_%s_namespaces=10000", what,
				       strerror(errno), all[i].name);
		}
		return cn_fail(err, errno == EPERM ? COLLNET_EPERM : COLLNET_ESYSTEM, "%s: %s",
			       what, strerror(errno));
	}
	return COLLNET_OK;
}
