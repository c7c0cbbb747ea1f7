/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors of a process. */
#ifndef CN_DESCRIPTORS_H
#define CN_DESCRIPTORS_H

#include <fcntl.h>
#include <unistd.h>

/*
 * At program start: opens closed standard descriptors to /dev/null with these flags, so that no
 * file, pipe or socket opened later gets their numbers. With O_RDONLY, writes to them still fail.
 */
static inline void cn_open_standard_descriptors(int flags)
{
	int fd;

	do {
		fd = open("/dev/null", flags);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0) {
		close(fd);
	}
}

#endif
