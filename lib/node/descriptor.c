/* SPDX-License-Identifier: BSD-2-Clause */
#include "node/descriptor.h"

#include <sys/stat.h>
#include <unistd.h>

static bool identify(int fd, struct cn_descriptor_id *id)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0) {
		return false;
	}
	*id = (struct cn_descriptor_id){ (uint64_t)st.st_dev, (uint64_t)st.st_ino };
	return true;
}

void cn_descriptor_identify(int fd, struct cn_descriptor_id *id)
{
	*id = (struct cn_descriptor_id){ 0 };
	(void)identify(fd, id);
}

bool cn_descriptor_is(int fd, const struct cn_descriptor_id *id)
{
	struct cn_descriptor_id now;

	return identify(fd, &now) && now.device == id->device && now.inode == id->inode;
}

void cn_descriptor_close(int fd, const struct cn_descriptor_id *id)
{
	if (cn_descriptor_is(fd, id)) {
		close(fd);
	}
}
