/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node on the network: link, topology, engine and driver put together, as collnetd and the
 * direct mode both need them.
 *
 * One station an interface and EtherType at a time: two would each acknowledge the other's
 * frames under the same address. See lock.h.
 */
#ifndef CN_STATION_H
#define CN_STATION_H

#include "client/lock.h"
#include "link/driver.h"

struct cn_station_config {
	const char *interface; /* NULL: the only one */
	const char *link;      /* NULL: packet */
	const char *node;      /* NULL: the host name */
	const char *topology;  /* file; NULL: none */
	uint16_t cluster, ethertype;
	uint32_t window;	       /* COLLNET_WINDOW_AUTO, _OFF, or frames */
	cn_time peer_timeout;	       /* dead_after of struct cn_node_config; 0: its default */
	int (*open_socket)(void *arg); /* as in struct cn_link_config */
	void *open_arg;
	struct cn_goodbye_list *goodbyes; /* as in struct cn_node_config; NULL: none */
	uint32_t goodbye_nodes;		  /* room in it: no more nodes are known */
};

#define CN_STATION_OLD 8

struct cn_station {
	char node[COLLNET_NAME_MAX + 1];
	bool locked;
	struct cn_lock lock; /* if locked */
	struct cn_link *link;
	struct cn_topo *topo;
	struct cn_topo *old[CN_STATION_OLD]; /* of before a reload: teams may use them */
	uint32_t nold;
	struct cn_engine *engine;
	struct cn_driver *driver;
};

/* On failure nothing stays open. COLLNET_EIFACE also for an interface that is taken. */
int cn_station_open(const struct cn_station_config *config, struct cn_station *s,
		    struct cn_err *err);
/*
 * Its two halves, for a node whose interface comes and goes: the name and the topology; and what
 * needs the interface. A station that is not attached has no link, engine or driver. A failed
 * cn_station_attach() leaves it so.
 */
int cn_station_prepare(const struct cn_station_config *config, struct cn_station *s,
		       struct cn_err *err);
int cn_station_attach(const struct cn_station_config *config, struct cn_station *s,
		      struct cn_err *err);
/*
 * Reads the topology again and sets the window; teams that are ready keep theirs. An error changes
 * nothing.
 */
int cn_station_reload(const struct cn_station_config *config, struct cn_station *s,
		      struct cn_err *err);
/* Shuts the engine down, says goodbye on the wire for at most `linger`, and closes the link. */
void cn_station_detach(struct cn_station *s, cn_time linger);
/*
 * Shuts the engine down if it was not, and says goodbye on the wire for at most `linger`. A
 * station of zeroes is closed already.
 */
void cn_station_close(struct cn_station *s, cn_time linger);
/*
 * Before the end: moves frames until the others have everything of ours and we owe them nothing,
 * at most until `until`; true: so it is.
 */
bool cn_station_settle(struct cn_station *s, cn_time until);
/* Sends what waits, at most until `until`; true: all is on its way. */
bool cn_station_flush(struct cn_station *s, cn_time until);
/* The engine's counters and those of the link and the process. */
void cn_station_stats(struct cn_station *s, struct collnet_stats *out, bool reset_peak);

/* ---- pieces of it --------------------------------------------------------------------- */

/* The host name as a node name. */
int cn_host_name(char out[COLLNET_NAME_MAX + 1], struct cn_err *err);
/*
 * Processor time of this process, and its resident memory without the clients' buffers (shared
 * memory is its owner's).
 */
void cn_usage(uint64_t *cpu_ns, uint64_t *rss_bytes);

#endif
