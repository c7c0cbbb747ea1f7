/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of the daemon that carry a descriptor. */
#ifndef TESTS_DESCRIPTOR_H
#define TESTS_DESCRIPTOR_H

#include <stddef.h>
#include <sys/types.h>

/* Receives a message as recv() does; *out becomes the descriptor with it, -1: there is none. */
ssize_t receive_descriptor(int fd, void *m, size_t size, int flags, int *out);

#endif
