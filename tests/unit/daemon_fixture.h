/* SPDX-License-Identifier: BSD-2-Clause */
/* A daemon with one client, on a network without other nodes. */
#ifndef TESTS_DAEMON_FIXTURE_H
#define TESTS_DAEMON_FIXTURE_H

#include "daemon/daemon.h"
#include "tests/unit/hub.h"

struct daemon_fixture {
	struct cn_daemon *daemon;
	struct cn_hub *hub;
	struct cn_client *client;
	struct cn_user *user;
	int fd; /* the client's */
};

void daemon_fixture_begin(struct daemon_fixture *f);
/* Nothing remains charged to the user. */
void daemon_fixture_end(struct daemon_fixture *f);
/* Another client of this user, after the handshake; the test's end of its socket in *end. */
struct cn_client *daemon_fixture_another(struct cn_daemon *d, uid_t uid, int *end);

#define DAEMON_FIXTURE_CROWD 130u /* ranks on the node: their all-to-all is planned by a task */

/* The ranks of a crowd join, each a team's number. The first n are another client's, whose socket's
 * end is given. */
void daemon_fixture_crowd(struct daemon_fixture *f, struct cn_client *other, int end, uint32_t n);
/* A rank of the crowd calls an all-to-all of no bytes. Later ranks have later deadlines. */
void daemon_fixture_alltoall(struct cn_client *of, uint32_t rank, bool persistent);
/* The loop goes on until a task is done. */
void daemon_fixture_run_task(struct cn_daemon *d);

#endif
