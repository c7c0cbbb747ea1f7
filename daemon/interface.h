/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's network interface, which may go down, be removed and come back while the daemon
 * runs. While it is down, requests that need the network are refused with COLLNET_EIFACE.
 *
 * An interface that only went down keeps its link, engine and peers: to the transport it is a cable
 * that was cut. One that was removed, or has another address (with link udp: another IPv4 address),
 * is opened again, with a new engine.
 */
#ifndef CN_DAEMON_INTERFACE_H
#define CN_DAEMON_INTERFACE_H

#include "util/util.h"

struct cn_daemon;
struct cn_runtime_config;

struct cn_iface {
	int netlink_fd; /* -1: none */
	bool down;	/* `text` has the reason */
	char name[32];
	int index;	   /* of the link that is open, */
	uint8_t mac[6];	   /* and the address that the interface had then */
	cn_time look_at;   /* while it is down: notifications are not relied on alone */
	bool no_carrier;   /* it is up without one */
	bool advised;	   /* the log has what the system could do better */
	cn_time log_until; /* lines are counted until then */
	uint32_t logged;   /* and those that were left out */
	enum collnet_log_level left_level;
	char left[CN_ERR_TEXT]; /* the last one that was left out */
	char text[CN_ERR_TEXT];
	char failed[CN_ERR_TEXT]; /* why operations have failed, the last time that all did */
	char lost[CN_ERR_TEXT];	  /* why what clients had of an earlier engine is gone */
};

/* The configuration of the runtime, which points into that of the daemon. */
void cn_iface_config(struct cn_daemon *d, struct cn_runtime_config *out);
/*
 * Attaches the runtime to its interface, or begins to wait for an interface that was named and is
 * down, not there, or with link udp has no IPv4 address. What waiting cannot cure is an error.
 */
int cn_iface_open(struct cn_daemon *d, struct cn_err *err);
/* Logs what it waits for, or that there is no carrier; cn_iface_open() does not, as a start that
 * fails logs the reason alone. */
void cn_iface_log_start(struct cn_daemon *d);
/* Logs what the system could do better, the first time that there is a link. */
void cn_iface_advise(struct cn_daemon *d);
void cn_iface_close(struct cn_daemon *d);
/* Notifications have come. An error ends the daemon. */
int cn_iface_readable(struct cn_daemon *d, struct cn_err *err);
/* Looks at the interface and acts on a change. went_down: it was down meanwhile. */
int cn_iface_look(struct cn_daemon *d, bool went_down, struct cn_err *err);
/* When d->iface.log_until is over: logs the last line that was left out. */
void cn_iface_log(struct cn_daemon *d);

#endif
