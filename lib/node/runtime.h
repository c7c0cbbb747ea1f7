/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node runtime: link, topology, engine and poller of one node, for collnetd and direct mode.
 *
 * One runtime per interface and EtherType at a time: two would each acknowledge the other's
 * frames under the same address. See lock.h.
 */
#ifndef CN_RUNTIME_H
#define CN_RUNTIME_H

#include <poll.h>

#include "link/udp_address.h"
#include "node/descriptor.h"
#include "node/helper.h"
#include "node/lock.h"
#include "node/poller.h"

struct cn_runtime_config {
	const char *interface; /* NULL: the only one */
	const char *link;      /* NULL: packet */
	const char *peers;     /* as cn_udp_peers_read() takes it; NULL: the default group */
	enum cn_encapsulation encapsulation;
	const char *node;     /* NULL: the host name */
	const char *topology; /* file; NULL: none */
	const char *key; /* file, as cn_key_read() takes it; NULL: frames are not authenticated */
	uid_t key_owner; /* as cn_key_read() takes it */
	uint16_t cluster, ethertype;
	uint32_t window;	       /* COLLNET_WINDOW_AUTO, _OFF, or frames */
	uint64_t max_schedules;	       /* as in struct cn_engine_config */
	cn_time peer_timeout;	       /* dead_after of struct cn_node_config; 0: its default */
	int (*open_socket)(void *arg); /* as in struct cn_link_config */
	void *open_arg;
	struct cn_goodbye_list *goodbyes; /* as in struct cn_node_config; NULL: none */
	uint32_t goodbye_nodes;		  /* its entries, which limit the number of nodes */
	const char *advice;		  /* as in struct cn_engine_config; NULL: its default */
	struct cn_helper *helper;	  /* runs the engine's tasks, borrowed; NULL: no tasks */
};

#define CN_RUNTIME_REPLACED 8

struct cn_runtime {
	char node[COLLNET_NAME_MAX + 1];
	bool prepared;
	struct cn_lock lock;	   /* if prepared */
	struct cn_udp_peers peers; /* host names are resolved once, never in an event loop */
	bool has_key;
	uint8_t key[CN_SIPHASH_KEY]; /* of the cluster, if has_key */
	struct cn_link *link;
	struct cn_descriptor_id recv_id, send_id; /* of the link's descriptors */
	struct cn_topo *topo;
	/* replaced by reloads; teams may still use them */
	struct cn_topo *replaced[CN_RUNTIME_REPLACED];
	uint32_t nreplaced;
	struct cn_engine *engine;
	struct cn_helper *helper; /* of the engine; NULL: none */
	struct cn_poller *poller;
	enum cn_bye bye;  /* reason in its goodbyes */
	cn_time check_at; /* next check of the interface by cn_runtime_check() */
};

/* On failure nothing stays open. COLLNET_EIFACE also for an interface that is taken. */
int cn_runtime_open(const struct cn_runtime_config *config, struct cn_runtime *s,
		    struct cn_err *err);
/*
 * The two halves of cn_runtime_open(), for a node whose interface comes and goes: prepare reads the
 * name, the link's libraries and peers, and the topology, and locks the interface's name, if one is
 * specified; attach opens what needs the interface. An unattached runtime has no link, engine or
 * poller. A failed cn_runtime_attach() leaves it unattached.
 */
int cn_runtime_prepare(const struct cn_runtime_config *config, struct cn_runtime *s,
		       struct cn_err *err);
int cn_runtime_attach(const struct cn_runtime_config *config, struct cn_runtime *s,
		      struct cn_err *err);
/*
 * Reads the topology again, and sets the window and max_schedules; teams that are ready keep their
 * topology. An error changes nothing.
 */
int cn_runtime_reload(const struct cn_runtime_config *config, struct cn_runtime *s,
		      struct cn_err *err);
/* Shuts the engine down with the reason `bye`, sends goodbyes for at most `linger`, and closes the
 * link. */
void cn_runtime_detach(struct cn_runtime *s, cn_time linger);
/*
 * cn_runtime_detach(), and frees the rest. A zeroed runtime is closed already.
 */
void cn_runtime_close(struct cn_runtime *s, cn_time linger);
/* In a child of fork(): closes the descriptors that it shares with its parent, and nothing else. */
void cn_runtime_forked(struct cn_runtime *s);
/* What to wait for: input, and, if cn_poller_blocked(), room in the link's queue. */
void cn_runtime_descriptors(const struct cn_runtime *s, struct pollfd p[2]);
#define CN_RUNTIME_DRAIN (2000 * CN_MS) /* as long as a peer may be silent */
/*
 * Before closing: sends and receives until all frames of this node are acknowledged and it has no
 * acknowledgement left to send, or until `until`. True: this state was reached.
 */
bool cn_runtime_drain(struct cn_runtime *s, cn_time until);
/*
 * For a program, after a poll that returned `work`. COLLNET_EIFACE: the interface is gone, or the
 * program has closed a descriptor of the link; or the interface lost or changed its address, or was
 * given a lower MTU, of which the other nodes have been notified. Queries the kernel at most ten
 * times per second.
 */
int cn_runtime_check(struct cn_runtime *s, cn_time now, int work, struct cn_err *err);
/* The engine's counters and those of the link and the process. */
void cn_runtime_stats(struct cn_runtime *s, struct collnet_stats *out, bool reset_peak);

#endif
