/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network as a graph: hosts and switches (vertices) and links with rates and buffers, and the
 * spanning tree of it that frames follow.
 *
 * Plain text, one statement a line, '#' begins a comment:
 *
 *   switch NAME [input-buffered]
 *   host NAME [mac XX:XX:XX:XX:XX:XX]
 *   link A B rate RATE [buffer FRAMES] [channels N]
 *
 * A name is declared before a link uses it. RATE is like 20mbit, 2.5gbit, or `none` when it is
 * not limited or not known. `buffer` is B_L, the frames that each switch port on that link can
 * hold: for the link, or, if the switch is input-buffered, from it. `channels` is the number of
 * cables that work as one link (link aggregation), each with that rate and buffer; it is 1 when not
 * said. A host has exactly one link, to a switch. Between switches there may be several links and
 * cycles; Ethernet uses a spanning tree of them, and so does everything here: breadth-first from
 * the first switch of the file, until cn_topo_span() (tools/plan) chooses another one. Errors carry
 * file, line and what was expected.
 */
#ifndef CN_TOPO_H
#define CN_TOPO_H

#include "util/util.h"

#define CN_TOPO_NONE	       UINT32_MAX
#define CN_TOPO_VERTICES_MAX   200000u
#define CN_TOPO_BUFFER_MAX     1000000u
#define CN_TOPO_BUFFER_ASSUMED 43u /* if no link says its own: the smallest of Tam and Wang's */
#define CN_TOPO_CHANNELS_MAX   65536u
#define CN_TOPO_ALL	       1024u /* unit of cn_topo_waiting(): all frames are queued */
/* Largest file, in bytes; well above what CN_TOPO_VERTICES_MAX needs. */
#define CN_TOPO_FILE_MAX ((size_t)64 << 20)

struct cn_vertex {
	char name[COLLNET_NAME_MAX + 1];
	bool is_switch;
	bool input_buffered; /* a switch with input queueing */
	bool has_mac;
	uint8_t mac[6];
	uint32_t parent;      /* in the spanning tree, towards the root; CN_TOPO_NONE: the root */
	uint32_t parent_link; /* link to it */
	uint32_t hosts;	      /* hosts in the subtree below (a host: 1) */
};

/* Frames buffered by the ports of all channels. */
static inline uint32_t cn_topo_port_frames(uint32_t buffer, uint32_t channels)
{
	const uint64_t frames = (uint64_t)buffer * channels;

	return frames < UINT32_MAX ? (uint32_t)frames : UINT32_MAX;
}

struct cn_topo_link {
	uint32_t a, b; /* vertices */
	uint64_t rate; /* bit/s a channel; 0: not limited, or not known */
	/* frames per switch port and channel; 0: unspecified (no window from it) */
	uint32_t buffer;
	uint32_t channels; /* 1 .. CN_TOPO_CHANNELS_MAX */
};

struct cn_topo {
	uint32_t nvertices, nlinks, nhosts;
	struct cn_vertex *vertices; /* in the order of the file */
	struct cn_topo_link *links;
	uint32_t *hosts; /* vertices of the hosts, in the order of the file */
	uint32_t root;	 /* of the spanning tree: the first switch of the file, or the only host */
	uint32_t *order; /* [nvertices] from the root outwards: parents before their children */
	uint32_t *adj_start; /* [nvertices + 1], and the links of vertex v: adj[adj_start[v]] .. */
	uint32_t *adj;	     /* [2 nlinks] in the order of the file; those not in the tree too */
	uint32_t *index;     /* [index_mask + 1] hash table of the names */
	uint32_t index_mask;
};

/* A file of either format: this one, or Slurm's when the first statement is a SwitchName. */
int cn_topo_read(const char *path, struct cn_topo **out, struct cn_err *err);
int cn_topo_parse(const char *text, size_t len, const char *name, struct cn_topo **out,
		  struct cn_err *err);
/*
 * Shape "A" (one switch s1) or "AxB" (B switches s1 .. sB of A hosts under the root s0); hosts
 * h0 .. . "Ax1" is "A". Rates and buffers of 0 are not said.
 */
int cn_topo_shape(const char *shape, uint64_t rate, uint32_t buffer, uint64_t uplink_rate,
		  uint32_t uplink_buffer, struct cn_topo **out, struct cn_err *err);
/* Slurm's topology.conf (tree plugin): SwitchName, Switches, Nodes, LinkSpeed, host lists. */
bool cn_topo_is_slurm(const char *text, size_t len);
int cn_topo_parse_slurm(const char *text, size_t len, const char *name, struct cn_topo **out,
			struct cn_err *err);

/* True if the link is in the spanning tree; the number of those that are not. */
bool cn_topo_in_tree(const struct cn_topo *t, uint32_t link);
uint32_t cn_topo_unused(const struct cn_topo *t);
/* NULL is ignored. */
void cn_topo_free(struct cn_topo *t);

/* A hash of the whole topology; 0: no topology. */
uint32_t cn_topo_hash(const struct cn_topo *t);
/* Vertex of the host or switch of that name, or CN_TOPO_NONE. */
uint32_t cn_topo_find(const struct cn_topo *t, const char *name);
/* The switch of a host, and the rate of its link; CN_TOPO_NONE and 0: none. */
uint32_t cn_topo_switch_of(const struct cn_topo *t, uint32_t host);
uint64_t cn_topo_host_rate(const struct cn_topo *t, uint32_t host);

/*
 * The global window of Tam and Wang, Eq. 3 and 4, for an exchange among `n` hosts (vertices),
 * generalised to any tree and unequal switches: for each switch port on a link that has s of the
 * n hosts on one side, nu = s (n - s) / (n - 1) frames a step cross it, twice that with control
 * frames counted (control = 2, as the paper does in section 4.2), of which a share waits
 * (cn_topo_waiting()), and W_g is the floor of the smallest buffer / (nu share), at least 1 and at
 * most 65535. *bottleneck (may be NULL) becomes the deciding link (CN_TOPO_NONE when there is
 * none). Where no link of the file says its buffer, all are taken for CN_TOPO_BUFFER_ASSUMED.
 * Returns COLLNET_WINDOW_OFF when others do, but no port that the exchange crosses, or n < 2; and
 * 0 when there is no memory: nodes select an algorithm by it, and all must select the same one.
 * Linear in the vertices.
 */
uint32_t cn_topo_window(const struct cn_topo *t, const uint32_t *hosts, uint32_t n,
			uint32_t control, uint32_t *bottleneck);
/*
 * How many frames each host may have in flight that the ports of the slowest links hold: Eq. 4 with
 * the frames that collect there, in the place of the mean of all steps. What a host sends in
 * `time`, in frames of so many bytes, is on its way, and in no port. *slowest becomes the deciding
 * link. Returns COLLNET_WINDOW_OFF where no rate or no buffer is known, or no port of such a link
 * holds less than 65536; and 0 when there is no memory. Linear in the vertices.
 */
uint32_t cn_topo_slowest_window(const struct cn_topo *t, const uint32_t *hosts, uint32_t n,
				uint64_t time, uint32_t bytes, uint32_t *slowest);
/*
 * The window, or 2 if it is 1 and an exchange may have two frames of each host in flight where Eq.
 * 4 with control frames allows one: without control frames Eq. 4 allows two; none are sent, because
 * the next data frame to a host is sent before an acknowledgement is due; and ports have room for
 * more than the mean number of queued frames. 0: no memory.
 */
uint32_t cn_topo_widened(const struct cn_topo *t, const uint32_t *hosts, uint32_t n,
			 uint32_t window);
static inline bool cn_topo_holds_two(const struct cn_topo *t, const uint32_t *hosts, uint32_t n)
{
	return cn_topo_widened(t, hosts, n, 1) == 2;
}
/* W_g of an exchange: the smaller one of cn_topo_window(), with control frames, or 2 if that is
 * more and ports hold them, and of cn_topo_slowest_window(). 0: no memory. */
uint32_t cn_topo_exchange_window(const struct cn_topo *t, const uint32_t *hosts, uint32_t n,
				 uint64_t time, uint32_t bytes);
/*
 * The share of the frames in flight across the link from a vertex to its parent that waits in its
 * port, [nvertices], of CN_TOPO_ALL: less than all where an output-buffered switch's link is
 * faster than those that feed it. 0 where nothing crosses. free() it; NULL: no
 * memory.
 */
uint32_t *cn_topo_waiting(const struct cn_topo *t, const uint32_t *hosts, uint32_t n);
/* Eq. 4 of one port, as it counts there: `frames` is its buffer, of all channels together; s of the
 * n hosts are on one side of its link; share is that of cn_topo_waiting(), not 0; control is not 0.
 */
uint32_t cn_topo_port_window(uint64_t frames, uint32_t s, uint32_t n, uint32_t share,
			     uint32_t control);
/* Declares all switches input-buffered, as those of Tam and Wang are. */
void cn_topo_input_buffered(struct cn_topo *t);
/* The buffer that links which do not say theirs have in these windows: CN_TOPO_BUFFER_ASSUMED where
 * none says one; 0 otherwise: they do not count. */
uint32_t cn_topo_assumed_buffer(const struct cn_topo *t);
/*
 * A host's share, in bit/s, of what the busiest link carries in an exchange among n hosts, or all
 * that a cable of the slowest one carries, where it carries one message at a time. 0 where a rate
 * is not known; -1: no memory.
 */
double cn_topo_share(const struct cn_topo *t, const uint32_t *hosts, uint32_t n, bool exchange);
/* The frames of `bytes` that a host has in cables and processors, and not in ports: what it sends
 * at that rate in a time of so many nanoseconds. */
static inline uint32_t cn_topo_transit(double share, uint64_t time, uint32_t bytes)
{
	const double frames = share * (double)time / 1e9 / (8.0 * bytes);

	return frames < 65535 ? (uint32_t)frames : 65535;
}
/*
 * How many frames each of n hosts may send each other one, all at once: in turn over the others, so
 * that frames reach a port at the mean rate, and of what comes faster than it sends three quarters
 * of its buffer have room. A host's port has room for all that is for it. 0: not one each;
 * COLLNET_WINDOW_OFF: no memory.
 */
uint32_t cn_topo_burst(const struct cn_topo *t, const uint32_t *hosts, uint32_t n);
/*
 * The window for schedules in which no link carries two messages at a time. What may stand at a
 * port is the end of one message and the beginning of the next one: half of the smallest buffer.
 * (Not less: acknowledgements are its clock, and they come once or twice a window.) At least 1;
 * COLLNET_WINDOW_OFF as above; 0 when there is no memory: schedules depend on it, and all nodes
 * must plan the same.
 */
uint32_t cn_topo_link_window(const struct cn_topo *t, const uint32_t *hosts, uint32_t n);
/* What it is where two nodes send to one at a time. */
static inline uint32_t cn_topo_two_way_window(uint32_t link_window)
{
	return link_window == COLLNET_WINDOW_OFF || link_window == 1 ? link_window
								     : link_window / 2;
}
/*
 * The window of one host towards one other, for exchanges of blocks of any size: all hosts may send
 * to one, whose port must hold their frames. The smallest buffer of the hosts' own ports, less a
 * quarter or an acknowledgement from each host, divided by n - 1. At least 1; COLLNET_WINDOW_OFF
 * as above.
 */
uint32_t cn_topo_pair_window(const struct cn_topo *t, const uint32_t *hosts, uint32_t n);
/*
 * Frames of such an exchange for one host, that its port holds besides as many of the one before,
 * or a frame from each other host: half of the smallest buffer of the hosts' own ports, or what n
 * frames leave of it. 0: none.
 */
uint32_t cn_topo_port_holds(const struct cn_topo *t, const uint32_t *hosts, uint32_t n);
/*
 * Frames of such an exchange that each host may send at once, to any of them, if no host is sent
 * more than its port holds: on no link more than where all hosts send each other
 * cn_topo_burst().
 */
uint32_t cn_topo_few(const struct cn_topo *t, const uint32_t *hosts, uint32_t n);
/*
 * The window of one host where all others send to it: at most `*senders` of them at a time, so that
 * the frames of all fit into the smallest buffer on the way, less an eighth and one frame. At least
 * 1; COLLNET_WINDOW_OFF where no buffer is limited; 0 when there is no memory. Without a topology,
 * a port has CN_TOPO_BUFFER_ASSUMED frames.
 */
uint32_t cn_topo_fan_in(const struct cn_topo *t, const uint32_t *hosts, uint32_t n,
			uint32_t *senders);

#endif
