/* SPDX-License-Identifier: BSD-2-Clause */
/* A daemon without an engine, and clients that have regions, for tests of daemon/. */
#ifndef TESTS_REGION_DAEMON_H
#define TESTS_REGION_DAEMON_H

#include "daemon/daemon.h"

#define MIB ((uint64_t)1 << 20)

/* Freed by free(). */
struct cn_daemon *region_daemon(void);
/* One whose loop watches memory; region_loop_end() frees it, and nothing is charged any more. */
struct cn_daemon *region_loop(void);
void region_loop_end(struct cn_daemon *d);
bool region_has_events(const struct cn_daemon *d);

/* A client of this user, or of user 1000; the test's end of its socket in *fd. */
struct cn_client *region_client_of(struct cn_daemon *d, uid_t uid, int *fd);
struct cn_client *region_client(struct cn_daemon *d, int *fd);

/* Requests region 0. The result is that of region_answer(). */
int region_ask(struct cn_client *c, int fd, uint64_t bytes, char text[CN_ERR_TEXT]);
/* The response to a REGION with tag 9: its descriptor, or -1 and the text of the refusal. */
int region_answer(int fd, char text[CN_ERR_TEXT]);
/* Region 0 as the client maps it. */
uint8_t *region_map(struct cn_client *c, int fd, uint64_t bytes);

#endif
