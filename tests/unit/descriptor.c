/* SPDX-License-Identifier: BSD-2-Clause */
#include "descriptor.h"

#include <string.h>
#include <sys/socket.h>

ssize_t receive_descriptor(int fd, void *m, size_t size, int flags, int *out)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = m, .iov_len = size };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.space),
	};
	const ssize_t n = recvmsg(fd, &msg, flags);

	*out = -1;
	if (n > 0 && CMSG_FIRSTHDR(&msg) != NULL) {
		memcpy(out, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(*out));
	}
	return n;
}
