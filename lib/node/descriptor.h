/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a descriptor of the library refers to. A program can close it and open something else, which
 * gets the same number, and which the library must neither use nor close.
 */
#ifndef CN_DESCRIPTOR_H
#define CN_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>

struct cn_descriptor_id {
	uint64_t device, inode; /* of a socket, a pipe or a file; all eventfds share one */
};

void cn_descriptor_identify(int fd, struct cn_descriptor_id *id);
/* False: it was closed (also -1), or refers to something else. */
bool cn_descriptor_is(int fd, const struct cn_descriptor_id *id);
/* Closes it if it is still the same. */
void cn_descriptor_close(int fd, const struct cn_descriptor_id *id);

#endif
