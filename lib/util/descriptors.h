/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors of a process. */
#ifndef CN_DESCRIPTORS_H
#define CN_DESCRIPTORS_H

#include <fcntl.h>
#include <unistd.h>

/*
 * For the start of a program: standard descriptors that are closed become /dev/null, opened with
 * these flags, and not a file, pipe or socket that the program opens later. With O_RDONLY, what is
 * written to them fails as it would have.
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
