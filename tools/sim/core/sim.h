/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cluster in virtual time: every host of a topology runs the same engine and transport as
 * collnetd, switches have finite buffers, and one event queue with a nanosecond clock moves frames
 * between them. The simulator contains nothing of the protocol: it makes the four calls of
 * lib/coll/engine.h.
 *
 * All randomness comes from one seed: the same configuration and seed give the same run, frame for
 * frame, on every machine (integers only). Single-threaded, no sockets, no wall clock.
 *
 * Model. A host has one processor: a frame costs it o_send before it is on the card, and o_recv
 * + u_recv before the engine sees it, one after another; between two of its frames at least
 * `gap` passes on the wire side, and when it wakes from idleness it may be late by a random
 * scheduling delay. Its card holds a few frames to be sent and `ring` received ones. A directed
 * link sends one frame at a time, at rate * channels of the topology, 24 bytes per frame
 * (preamble, checksum, gap between frames) and the padding to 64 included; `latency` passes on
 * the cable. A switch stores a frame and forwards it `delay` after its last bit; where frames queue
 * depends on its kind, below. With cut-through it forwards `delay` after the first 64 bytes if the
 * output link is idle and not faster than the input link; otherwise it stores the frame.
 *
 * A link of several channels is one link with the sum of their rates. Broadcasts have a queue of
 * their own at every output port, as long as the port's buffer, and are sent first.
 */
#ifndef CN_SIM_H
#define CN_SIM_H

#include "coll/engine.h"

struct cn_sim;

enum cn_sim_kind {
	CN_SIM_OUTPUT = 0,  /* a queue of `buffer` frames at every output port */
	CN_SIM_INPUT = 1,   /* ... at every input port; its head blocks those behind it until the
				output port, which holds `output` frames, has room */
	CN_SIM_SHARED = 2,  /* one memory per switch, `buffer` frames times its ports; one queue per
			       output */
	CN_SIM_DYNAMIC = 3, /* shared; an output holds at most alpha_pct % of the free memory */
};

struct cn_sim_config {
	const struct cn_topo *topo; /* borrowed; its tree, rates and buffers */
	enum cn_sim_kind kind;
	struct cn_sim_root { /* the switch at the root of the tree may be of another kind */
		bool other;
		enum cn_sim_kind kind;
		uint32_t memory; /* SHARED, DYNAMIC: frames; 0: its ports' buffers together */
	} root;
	bool cut_through;
	bool buckets;	    /* links are token buckets, as in the lab: a frame passes at once
			     * while there are tokens (for two frames and 250 us), and only
			     * its own bytes count */
	uint32_t alpha_pct; /* CN_SIM_DYNAMIC: 100 is alpha = 1 */
	uint64_t rate;	    /* bit/s of links without a rate */
	uint32_t buffer;    /* frames of ports without a buffer size; 0: not limited */
	uint32_t output;    /* CN_SIM_INPUT: frames at an output port, the one being sent
				       included; 0: 2, one being sent and one ready to follow */
	cn_time latency, delay;
	cn_time o_send, o_recv, u_recv, gap;
	cn_time jitter;	     /* longest scheduling delay ... */
	uint32_t jitter_ppm; /* ... and how often there is one, of a million wake-ups */
	uint32_t ring;	     /* received frames that wait at a host; 0: 2,048 */
	uint32_t queue;	     /* frames to be sent that wait at a host's card; 0: 2 */
	uint64_t seed;
	struct cn_engine_config engine; /* its names, addresses, epochs and topo are set here */
	const uint32_t
		*mtus; /* [hosts] of each, up to the engine's; NULL: the engine's; borrowed */
	bool topology_unaware; /* the engines are not given the topology */
	bool place; /* payloads are received where they belong, and others where they do not, as by
		     * a link that guesses (cn_rx_place_fn) */
};

void cn_sim_config_init(struct cn_sim_config *c);
int cn_sim_new(const struct cn_sim_config *c, struct cn_sim **out, struct cn_err *err);
void cn_sim_free(struct cn_sim *s); /* NULL is ignored */

/* ---- running -------------------------------------------------------------------------- */

cn_time cn_sim_now(const struct cn_sim *s); /* begins at one second */
/* The next event; false: nothing is left to happen before `until`, and the time is `until`. */
bool cn_sim_step(struct cn_sim *s, cn_time until);
void cn_sim_run(struct cn_sim *s, cn_time until);
/* It ran out of memory: it does not go on, and its counters are not valid. */
bool cn_sim_failed(const struct cn_sim *s);

uint32_t cn_sim_hosts(const struct cn_sim *s); /* host i is topo->hosts[i], its name the vertex's */
/* NULL while it is crashed. After calling it from outside of events: cn_sim_kick(). */
struct cn_engine *cn_sim_engine(struct cn_sim *s, uint32_t host);
void cn_sim_kick(struct cn_sim *s, uint32_t host);

/* fn(arg) at time `at` (an event as others: in order, replayable). COLLNET_ENOMEM. */
int cn_sim_at(struct cn_sim *s, cn_time at, void (*fn)(void *arg), void *arg);

/* ---- counters and trace --------------------------------------------------------------- */

/* The kind of switch v; *memory: frames that its shared memory holds, 0: not limited, or none. */
enum cn_sim_kind cn_sim_switch(const struct cn_sim *s, uint32_t v, uint32_t *memory);

/* Ports: the two ends of a link of the topology; end 0 sends from links[link].a. */
struct cn_sim_port {
	uint64_t frames,
		bytes;	/* sent, on the wire; bytes with headers and padding, without the 24 */
	uint64_t drops; /* frames that found no room in this port's queue */
	uint32_t peak;	/* most frames in that queue */
	uint64_t
		input_drops; /* the same of the queue at the far end, in an input-buffered switch */
	uint32_t input_peak;
	cn_time busy; /* the time it was sending */
};
void cn_sim_port(const struct cn_sim *s, uint32_t link, uint32_t end, struct cn_sim_port *out);
/* Peaks count from here on. */
void cn_sim_reset_peaks(struct cn_sim *s);

struct cn_sim_totals {
	uint64_t events;       /* taken from the heap */
	uint64_t frame_events; /* frames sent by hosts, carried over a link, received by hosts */
	uint64_t drops, lost;  /* by full queues; by faults, and at hosts that are down */
	uint64_t ring_drops;   /* by full receive rings */
};
void cn_sim_totals(const struct cn_sim *s, struct cn_sim_totals *out);

/* The trace: a record for each event of a frame, for trace files, captures and oracles. */
enum cn_sim_record_kind {
	CN_SIM_TAKEN,	 /* from a host's engine; link, end it leaves by */
	CN_SIM_SENT,	 /* a port begins to send it; link, end */
	CN_SIM_DROPPED,	 /* a full queue or ring, or a fault; link, end of the way it was to take */
	CN_SIM_RECEIVED, /* given to a host's engine; link, end it came by */
};
struct cn_sim_record {
	enum cn_sim_record_kind kind;
	cn_time at, until; /* SENT: when its last bit has left */
	uint32_t link, end;
	const uint8_t *frame; /* from the Ethernet header on; valid during the call */
	size_t len;
};
void cn_sim_trace(struct cn_sim *s, void (*fn)(void *arg, const struct cn_sim_record *record),
		  void *arg);

/* ---- faults (by the same seed) -------------------------------------------------------- */

/* Of frames that enter a directed link, in parts per million; `spike` is added to the latency. */
struct cn_sim_faults {
	uint32_t loss, duplicate, reorder, corrupt, spikes;
	uint32_t burst; /* mean length of a burst of losses, frames; 0, 1: independent ones */
	uint32_t mtu;	/* longer frames are lost, by bytes after the Ethernet header; 0: none */
	cn_time late, spike; /* how long a reordered frame, and one in a spike, is held back */
};
/* link CN_TOPO_NONE: all links; end 2: both directions. */
void cn_sim_fault(struct cn_sim *s, uint32_t link, uint32_t end, const struct cn_sim_faults *f);
/* Cuts a cable (frames on it are lost, too), or repairs it. end 0 or 1: only that port receives
 * nothing. */
void cn_sim_cut(struct cn_sim *s, uint32_t link, uint32_t end, bool cut);
/* Partition `id`: frames between hosts of side 1 and hosts of side 2 are lost at the receiving
 * host, in both directions. side[i] belongs to host i and is 0 (in neither), 1 or 2; NULL: the
 * partition ends. Partitions of other ids are independent. */
#define CN_SIM_PARTITIONS 64u
void cn_sim_partition(struct cn_sim *s, uint32_t id, const uint8_t *side);
void cn_sim_pause(struct cn_sim *s, uint32_t host, cn_time duration);
/* Ends at once and sends nothing: its done functions are called with COLLNET_EDAEMON. */
void cn_sim_crash(struct cn_sim *s, uint32_t host);
/* With a new epoch. */
int cn_sim_restart(struct cn_sim *s, uint32_t host, struct cn_err *err);

#endif
