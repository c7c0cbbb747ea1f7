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

#endif
