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
	cn_time check_at;  /* while it is down: a notification may be lost */
	bool no_carrier;   /* it is up without one */
	bool advised;	   /* advice about the system was logged */
	cn_time log_until; /* lines are counted until then */
	uint32_t logged;   /* lines, including suppressed ones */
	enum collnet_log_level suppressed_level;
	char suppressed[CN_ERR_TEXT]; /* the last suppressed line */
	char text[CN_ERR_TEXT];
	char failed[CN_ERR_TEXT]; /* why all operations failed the last time */
	char lost[CN_ERR_TEXT];	  /* why handles of an earlier engine are lost */
};

/* The configuration of the runtime, which points into that of the daemon. */
void cn_iface_config(struct cn_daemon *d, struct cn_runtime_config *out);
/*
 * Attaches the runtime to its interface, or begins to wait for a named interface that is down,
 * missing or, with link udp, without an IPv4 address. All other problems are errors.
 */
int cn_iface_open(struct cn_daemon *d, struct cn_err *err);
/* Logs what it waits for, or that there is no carrier; cn_iface_open() does not, because a failed
 * start logs only the reason. */
void cn_iface_log_start(struct cn_daemon *d);
/* Logs advice about the system, the first time that there is a link. */
void cn_iface_advise(struct cn_daemon *d);
void cn_iface_close(struct cn_daemon *d);
/* Notifications have arrived. An error ends the daemon. */
int cn_iface_readable(struct cn_daemon *d, struct cn_err *err);
/* Checks the interface and handles a change. went_down: it was down since the last check. */
int cn_iface_check(struct cn_daemon *d, bool went_down, struct cn_err *err);
/* After d->iface.log_until: logs the last suppressed line. */
void cn_iface_log(struct cn_daemon *d);

#endif
