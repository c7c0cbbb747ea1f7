/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's configuration: its file, and the command line. */
#ifndef CN_DAEMON_CONFIG_H
#define CN_DAEMON_CONFIG_H

#include "ipc/msg.h"
#include "link/link.h"
#include "util/util.h"

#define CN_PATH_MAX 256u

/* What is limited per user. */
enum cn_quota {
	CN_QUOTA_CONNECTIONS,
	CN_QUOTA_TEAMS,
	CN_QUOTA_ENDPOINTS,
	CN_QUOTA_REQUESTS,
	CN_QUOTA_REGIONS,
	CN_QUOTA_MEMORY, /* bytes */
	CN_QUOTAS
};

/* Empty strings: not specified. */
struct cn_config {
	char interface[32];
	char link[16];
	char peers[CN_PATH_MAX];
	enum cn_encapsulation encapsulation;
	char node[CN_MSG_NAME];
	char topology[CN_PATH_MAX];
	char key[CN_PATH_MAX];
	char socket[108]; /* as long as a Unix socket's path can be */
	char user[64];
	char group[64];
	uint32_t socket_mode;
	uint16_t cluster, ethertype;
	uint32_t window;
	uint16_t peer_timeout_ms;
	uint64_t limits[CN_QUOTAS]; /* of each user; 0: the default */
	enum collnet_log_level log_level;
	int ready_fd; /* -1: none */
};

void cn_config_init(struct cn_config *c);
/* The text of a configuration file; errors name file and line. */
int cn_config_parse(struct cn_config *c, const char *text, size_t len, const char *name,
		    struct cn_err *err);
int cn_config_read(struct cn_config *c, const char *path, struct cn_err *err);
/*
 * The command line, over the file that it names. COLLNET_INPROGRESS: --help or --version, whose
 * text is to be printed.
 */
int cn_config_args(struct cn_config *c, int argc, char **argv, const char **print,
		   struct cn_err *err);

#endif
