/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside tools/sim/core. event.c: the event queue. net.c: links, ports, switches. host.c:
 * processors and cards. fault.c: fault injection. sim.c: construction, the event loop, counters,
 * the trace.
 *
 * Directed link d = 2 * link + end of the topology; only those of its spanning tree carry frames.
 * A frame is shared by those who hold it (a broadcast stands in many queues).
 */
#ifndef CN_SIM_PARTS_H
#define CN_SIM_PARTS_H

#include "tools/sim/core/sim.h"
#include "topo/tree.h"
#include "util/heap.h"

#define NOBODY	      UINT32_MAX
#define WIRE_OVERHEAD 24u   /* preamble 8, checksum 4, gap 12 */
#define SPREAD_MAX    8192u /* broadcasts that wait at an output port without a limit */
#define OUTPUT_FRAMES 2	    /* CN_SIM_INPUT: default at an output port */

/* Without its position: several links may carry it at the same time. */
struct frame {
	uint32_t refs;
	uint32_t len; /* from the Ethernet header on, padded; without the encapsulation */
	uint32_t to;  /* host; NOBODY: all */
	uint8_t data[];
};

/* A queue of frames, a ring that grows to what its bound allows. */
struct queue {
	struct frame **frames;
	uint32_t head, n, cap;
};

enum event_kind {
	EVENT_HEAD,   /* who: directed link; the frame's first bytes are at the switch */
	EVENT_ARRIVE, /* who: directed link; the frame is at its far end */
	EVENT_FREE,   /* who: directed link; it has sent its frame */
	EVENT_CARD,   /* who: directed link; its host puts the frame on its card */
	EVENT_USER,   /* a struct user */
};

struct event {
	cn_time at;
	uint64_t order; /* at equal times: by kind, then as they were made */
	void *what;	/* frame, or struct user */
	uint32_t who;
	uint16_t kind;
	uint16_t
		cuts; /* of the link when the frame was sent: it is lost if there were more since */
};

struct user {
	void (*fn)(void *arg);
	void *arg;
};

struct events {
	struct event *heap;
	uint32_t n, cap;
	uint64_t order;
};

/* False: no memory, and the event is not in. */
bool sim_events_push(struct events *e, struct event v);
bool sim_events_pop(struct events *e, cn_time until, struct event *out);

/* A directed link with the port that sends on it and the port that receives from it. */
struct dlink {
	uint32_t from, to; /* vertices; from == NOBODY: not in the tree */
	uint64_t rate;	   /* bit/s, all channels */
	uint32_t buffer;   /* frames that its queue holds; 0: not limited */
	bool sending;
	cn_time next_start;  /* host: not before (gap) */
	uint64_t over;	     /* below `rate`: ns * rate by which its frames were rounded up */
	cn_time spent;	     /* buckets: when all that was sent would have passed the wire */
	struct frame *frame; /* being sent, the first of queue or of spread */
	struct queue queue;  /* at the sending end: a switch's output queue, a host's card */
	struct queue input;  /* kind INPUT: at the receiving end, a switch's input queue */
	struct queue spread; /* broadcasts that wait for this port */
	uint32_t *inputs;    /* kind INPUT: directed links whose first frame wants this port */
	uint32_t ninputs, input_head, input_cap;
	struct cn_sim_port counters;
	struct cn_sim_faults faults;
	bool faulty, cut, bursting;
	uint16_t cuts; /* how often it was cut */
};

struct host {
	struct cn_engine *engine;
	uint32_t vertex, out; /* directed link to its switch */
	struct queue ring;
	struct cn_timer poll; /* when it polls next */
	cn_time busy, paused;
	cn_time due;	    /* the engine's deadline at its last call */
	bool idle, blocked; /* blocked: until the card has room */
	bool taking;	    /* it processes the first frame of its ring until `busy` */
	uint32_t incarnations;
	uint64_t left, right; /* partitions in which it is on side 1, on side 2 */
};

struct sw {
	enum cn_sim_kind kind;
	uint32_t used;	/* frames in its memory (SHARED, DYNAMIC) */
	uint32_t size;	/* the buffers of its ports; 0: not limited */
	bool boundless; /* the buffer of a port is not limited: the memory is not, either */
};

struct cn_sim {
	struct cn_sim_config config;
	const struct cn_topo *topo;
	struct cn_tree *tree; /* of all hosts */
	uint32_t *place;      /* [nvertices] index in the tree */
	uint32_t *up, *down;  /* [tree->n] directed links between a vertex and its parent */
	struct dlink *links;  /* [2 nlinks] */
	struct host *hosts;   /* [nhosts] */
	struct sw *switches;  /* [nvertices] */
	struct events events;
	struct cn_heap polls; /* of hosts; at equal times, events come first */
	struct frame *spare;  /* free frames, linked by their first bytes of data */
	uint32_t frame_bytes;
	cn_time now;
	uint64_t random;
	bool failed; /* out of memory: nothing goes on */
	struct cn_sim_totals totals;
	void (*trace)(void *arg, const struct cn_sim_record *record);
	void *trace_arg;
};

void sim_push(struct cn_sim *s, cn_time at, enum event_kind kind, uint32_t who, void *what);
/* The event takes the reference. */
void sim_push_frame(struct cn_sim *s, cn_time at, enum event_kind kind, uint32_t d, struct frame *f,
		    uint16_t cuts);
void sim_fail(struct cn_sim *s); /* no memory: nothing goes on */

struct frame *sim_frame_new(struct cn_sim *s); /* refs 1; NULL: no memory */
void sim_frame_put(struct cn_sim *s, struct frame *f);
/* The reference is the queue's then; false: no memory, and it is put. */
bool sim_queue_put(struct cn_sim *s, struct queue *q, struct frame *f);
struct frame *sim_queue_get(struct queue *q);
void sim_trace_frame(struct cn_sim *s, enum cn_sim_record_kind kind, uint32_t d,
		     const struct frame *f, cn_time until);
/* A number below n. */
uint64_t sim_below(struct cn_sim *s, uint64_t n);

/* net.c */
int sim_net_init(struct cn_sim *s, struct cn_err *err);
void sim_net_done(struct cn_sim *s);
void sim_head(struct cn_sim *s, const struct event *e);
void sim_arrive(struct cn_sim *s, const struct event *e);
void sim_free_port(struct cn_sim *s, uint32_t d);
void sim_start(struct cn_sim *s, uint32_t d, struct frame *f);
/* A host puts a frame on its card. */
void sim_host_send(struct cn_sim *s, uint32_t d, struct frame *f);

/* host.c */
int sim_host_start(struct cn_sim *s, uint32_t host, struct cn_err *err);
void sim_host_schedule(struct cn_sim *s, uint32_t host, cn_time at);
void sim_host_poll(struct cn_sim *s, uint32_t host);
/* Input for it: it polls, after a random scheduling delay if it was idle. */
void sim_host_wake(struct cn_sim *s, uint32_t host);
/* Its engine was called from outside. */
void sim_host_kick(struct cn_sim *s, uint32_t host);
/* Its card has sent a frame. */
void sim_host_sent(struct cn_sim *s, uint32_t host);
void sim_host_receive(struct cn_sim *s, uint32_t host, struct frame *f);

/* fault.c: what happens to a frame that enters a link; *extra: additional delay. */
enum fault_outcome {
	OUTCOME_DELIVERED,
	OUTCOME_LOST,
	OUTCOME_DUPLICATED,
};
enum fault_outcome sim_fault_outcome(struct cn_sim *s, struct dlink *l, uint32_t len,
				     cn_time *extra);
/* A partition separates the two hosts. */
bool sim_separated(const struct cn_sim *s, uint32_t from, uint32_t to);

#endif
