/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages between libcollnet and collnetd, on the node's Unix socket and in shared memory.
 *
 * A SOCK_SEQPACKET socket keeps the boundaries of messages, so a message is one C structure, in
 * the byte order of the machine that both run on, and its length on the socket is exactly its
 * size. Fields are of fixed width and laid out without padding, so that a library of 32 bits and a
 * daemon of 64 understand each other; `zero` fields are 0; strings end
 * with a zero inside their array, and everything after it is ignored. cn_msg_check() checks all
 * that and every bound that does not depend on the receiver's state; a message that fails it ends
 * the connection.
 *
 * The course of a connection
 *
 *   library                     daemon
 *   HELLO(version)        ->
 *                         <-    WELCOME(node name), or an error message and end of file
 *   REGION(CN_MSG_RINGS)  ->                               the rings
 *                         <-    REPLY + their descriptor
 *   REGION(number, bytes) ->                               shared memory
 *                         <-    REPLY + its descriptor
 *   JOIN(team, job...)    ->
 *                         <-    JOINED, when all ranks are there
 *   RANKS(team, first)    ->                               unless JOINED says where they are
 *                         <-    RANK_NAMES
 *   COLL(team, places)    ->
 *                         <-    DONE
 *   LEAVE(team)           ->
 *                         <-    DONE for what was outstanding, then REPLY
 *
 * The library chooses all numbers (of regions, teams, endpoints, requests) below the bounds here;
 * the daemon keeps tables of that size per client, and closes the connection when a new number is
 * in use, or an old one is not.
 *
 *  - The daemon combines short blocks of a reduction itself. For others it sends COMBINE with
 *    places in the buffers of the request, which the library combines while the caller is inside
 *    it; then it sends COMBINED. The daemon reads nothing in it but which piece it is.
 *  - Asynchronous requests (JOIN, COLL, SEND, RECV) carry a free request number as their tag and
 *    are completed once, at any time, by DONE or JOINED with that tag. Then the number is free.
 *  - A COLL that is persistent keeps its number until RELEASE; DONE means that START can start it.
 *    LEAVE ends its team: then START ends with an error, and RELEASE is still due.
 *  - START, RELEASE, COMBINED, UNREGION and DOORBELL have no response of their own.
 *  - Synchronous requests (all others) get their responses at once and in order, with the tag of
 *    the request, which means nothing to the daemon.
 *
 * Rings. The region CN_MSG_RINGS holds two rings (ipc/shm_ring.h) of these messages: the library
 * puts COLL, START, RELEASE, SEND, RECV and COMBINED into the first, the daemon puts DONE, JOINED
 * and COMBINE into the second, so that neither makes a system call while the other polls. To a
 * daemon that sleeps, the library sends DOORBELL on the socket; a library that sleeps is woken by a
 * futex in the ring or by EVENT, as it has chosen. There is room for all requests that a client can
 * have outstanding, and a piece of each of them. Before the daemon serves a message from the
 * socket, it serves those that were in the ring before; before the library uses one from the
 * socket, it takes the completions. A client without rings sends all requests on the socket and
 * gets DONE and JOINED there.
 *
 * Deadlines. A request says when it was called, by CLOCK_MONOTONIC, and its deadline counts from
 * then, however long the daemon takes no requests of the client, because one of them waits for its
 * plan. The daemon takes no moment to come for it, so a client can make its deadlines earlier only.
 * The ring says which request waits (`blocked_on`: its number + 1), and how many messages have been
 * taken from the socket (`consumed_oob`), HELLO included; a request that has not been taken then
 * when its deadline passes has ended for the library: it is in the ring still, and the daemon
 * touches no memory of it, and completes it with COLLNET_ETIMEOUT, when it takes it. A library
 * whose clock is another one, as in a time namespace of its own, sees that by WELCOME, and does
 * neither.
 *
 * A connection that ends while teams are joined is a death: the teams' other ranks are told.
 * LEAVE before the end is the proper way.
 *
 * Descriptors go from the daemon to the library only; a message that brings one to the daemon ends
 * the connection.
 *
 * Memory. A region is a memfd that the daemon makes, seals against shrinking and growing, and hands
 * out, so that neither side's mapping can fault. The client maps it and seals it against new
 * mappings and holes; the daemon uses no region before (node/memfd.h), the rings after the client's
 * next message. Operations refer to buffers in regions. Its memory is read and written by the
 * daemon until DONE. UNREGION gives the number back at once, but not that of rings in use; the
 * daemon unmaps the region when no request uses it. The client's user is charged for it until no
 * process has it any more.
 */
#ifndef CN_MSG_H
#define CN_MSG_H

#include "ipc/shm_ring.h"
#include "sched/sched.h"

#define CN_MSG_MAGIC   0x6e6c6f63u /* first field of a HELLO */
#define CN_MSG_VERSION 24u
#define CN_MSG_SOCKET  "/run/collnet/collnetd.sock"

/* Bounds per client. */
#define CN_MSG_TEAMS		 1024u
#define CN_MSG_ENDPOINTS	 64u
#define CN_MSG_ENDPOINT_REQUESTS 64u  /* sends and receives outstanding, over all endpoints */
#define CN_MSG_REQUESTS		 512u /* outstanding requests, over all teams and endpoints */
#define CN_MSG_USER_REGIONS	 64u  /* numbers 0 .. 63: collnet_alloc() */
#define CN_MSG_REGIONS		 576u /* the others: staging buffers of the library */
#define CN_MSG_USER_BYTES	 ((uint64_t)16 << 30)
#define CN_MSG_BYTES		 ((uint64_t)32 << 30) /* of all regions of a client together */
#define CN_MSG_BYTES_UNIT	 4096u		      /* the smallest page of any machine */
#define CN_MSG_NO_REGION	 UINT32_MAX	      /* of no buffer; offset 0 */
#define CN_MSG_RINGS		 CN_MSG_REGIONS	      /* the region of the rings */
#define CN_MSG_RING_SLOTS	 1024u		      /* of each ring */
#define CN_MSG_REQUEST_SLOT	 192u		      /* bytes of a slot */
#define CN_MSG_DONE_SLOT	 448u
#define CN_MSG_PAGE_MAX		 65536u /* bytes of the largest page of any machine */

#define CN_MSG_ALGORITHM	16u /* bytes of an algorithm's name with its zero; "": the default */
#define CN_MSG_NAME		(COLLNET_NAME_MAX + 1)
#define CN_MSG_PAGE		64u	  /* entries of one table message */
#define CN_MSG_MAPPED		128u	  /* ranks of the largest team that JOINED maps */
#define CN_MSG_TIMEOUT_MAX	86400000u /* milliseconds: a day; or COLLNET_TIMEOUT_NONE */
#define CN_MSG_PEER_TIMEOUT_MIN 300u	  /* milliseconds */
#define CN_MSG_PEER_TIMEOUT_MAX 60000u
#define CN_MSG_PEER_TIMEOUT	1500u /* the default */

enum cn_msg_type {
	/* from the library */
	CN_MSG_HELLO = 1,
	CN_MSG_REGION,
	CN_MSG_UNREGION,
	CN_MSG_JOIN,
	CN_MSG_LEAVE,
	CN_MSG_RANKS,
	CN_MSG_COLL,
	CN_MSG_OPEN,
	CN_MSG_CLOSE,
	CN_MSG_SEND,
	CN_MSG_RECV,
	CN_MSG_STATS,
	CN_MSG_NODES,
	CN_MSG_JOBS,
	CN_MSG_PING,
	CN_MSG_DOORBELL,
	CN_MSG_COMBINED,
	CN_MSG_START,
	CN_MSG_RELEASE,
	CN_MSG_LAST_REQUEST = CN_MSG_RELEASE,
	/* from the daemon */
	CN_MSG_WELCOME = 64,
	CN_MSG_REPLY,
	CN_MSG_DONE,
	CN_MSG_RANK_NAMES,
	CN_MSG_STATS_REPLY,
	CN_MSG_NODE_TABLE,
	CN_MSG_JOB_TABLE,
	CN_MSG_PONG,
	CN_MSG_EVENT,
	CN_MSG_COMBINE,
	CN_MSG_JOINED,
	CN_MSG_LAST_RESPONSE = CN_MSG_JOINED,
};

/* The header of every message. */
struct cn_msg_head {
	uint32_t type; /* enum cn_msg_type */
	uint32_t tag;  /* number of an asynchronous request, or arbitrary */
};

/* A buffer reference: a range of shared memory. */
struct cn_msg_buffer_ref {
	uint32_t region;
	uint32_t zero;
	uint64_t offset; /* bytes from the region's beginning */
};

/* First message. A daemon of another version responds WELCOME with COLLNET_EPROTO and closes. */
struct cn_msg_hello {
	struct cn_msg_head head;
	uint32_t magic;
	uint32_t version;
};

/* -> REPLY; on success it carries the descriptor (SCM_RIGHTS) of a sealed memfd of `bytes`. */
struct cn_msg_region {
	struct cn_msg_head head;
	uint32_t region; /* a free number, or CN_MSG_RINGS */
	uint32_t zero;
	/*
	 * CN_MSG_BYTES_UNIT .. CN_MSG_BYTES, a multiple of the former; of the rings
	 * CN_MSG_RINGS_BYTES, in whole pages
	 */
	uint64_t bytes;
};

/* No response. */
struct cn_msg_unregion {
	struct cn_msg_head head;
	uint32_t region;
	uint32_t zero;
};

/*
 * Joins as rank `rank`. The team number is in use until LEAVE, whatever the result. -> JOINED, or
 * DONE if it failed or no team was made.
 */
struct cn_msg_join {
	struct cn_msg_head head;
	uint32_t team; /* a free number */
	uint32_t rank;
	uint32_t ranks;
	uint32_t timeout_ms; /* from `called` on, for all ranks to join */
	char job[CN_MSG_NAME];
	uint64_t secret; /* the owner by a secret, with CN_OWNER_SECRET; 0: the user */
	/* A team of ranks of a team that is ready: a bit for each of them (cn_team_derive()). */
	uint32_t derived; /* 0, 1; 0: the rest is ignored */
	uint32_t parent;
	/* Not CN_MAKING_NONE: the parent is divided instead (cn_team_split()). Rank and size are
	 * the parent's, members are ignored, and with a color less than 0 the number stays free. */
	uint32_t making;
	int32_t color;
	int32_t key;
	uint32_t refused; /* as in cn_msg_coll, of the parent that is divided */
	uint64_t called;  /* likewise */
	uint64_t members[COLLNET_RANKS_MAX / 64];
};

/* Outstanding requests of the team are DONE with COLLNET_ERANK first. -> REPLY */
struct cn_msg_leave {
	struct cn_msg_head head;
	uint32_t team;
	uint32_t zero;
};

/* Requests the nodes of ranks `first` .. of a joined team. -> RANK_NAMES */
struct cn_msg_ranks {
	struct cn_msg_head head;
	uint32_t team;
	uint32_t first;
};

/*
 * A collective operation; the fields are those of collnet_coll_options. -> DONE
 *
 * Of a vector operation, `blocks` is where arrays of struct cn_block are, one entry per rank: those
 * of the send buffer, then those of the receive buffer, as far as the rank needs them
 * (cn_call_send_blocks()). The daemon copies them when it processes the message. `bytes` is the
 * length of a buffer of one block (scatterv, gatherv). Of other operations, `blocks` is ignored.
 */
struct cn_msg_coll {
	struct cn_msg_head head;
	uint32_t team;
	uint32_t op; /* enum cn_op_kind */
	char algorithm[CN_MSG_ALGORITHM];
	uint32_t permutation;
	uint32_t contention_aware; /* 0, 1 */
	uint32_t window;
	uint32_t timeout_ms;
	uint32_t root;
	uint32_t element; /* the last fields except the buffer references: reductions, as in struct
			   * cn_plan */
	uint16_t function;
	uint16_t ordered;    /* 0, 1 */
	uint16_t persistent; /* 0, 1: DONE means that it is prepared; the tag is in use until
			      * RELEASE */
	uint16_t buffered;   /* 0, 1: its caller does not wait for DONE, which is not urgent */
	uint64_t bytes;	     /* of one block */
	struct cn_msg_buffer_ref send, recv, blocks, scratch;
	uint64_t called; /* start of timeout_ms; 0: when the daemon processes it */
	/* Operations of the team that were DONE with COLLNET_ELIMIT or COLLNET_ENOMEM, of which the
	 * program has been told. The daemon refuses a call that was sent before that: it would take
	 * the place of the one that was refused. Ignored if persistent. */
	uint32_t refused;
	uint32_t zero;
};

/*
 * The fragment of request `tag` with this number is combined. Ignored if it is not outstanding any
 * more: the request has failed meanwhile.
 */
struct cn_msg_combined {
	struct cn_msg_head head;
	uint32_t piece;
	uint32_t zero;
};

/* Starts the persistent operation `tag`. -> DONE */
struct cn_msg_start {
	struct cn_msg_head head;
	uint32_t timeout_ms;
	uint32_t refused; /* as in cn_msg_coll */
	uint64_t called;  /* likewise */
};

/* Releases the persistent operation `tag`, which is not outstanding. No response. */
struct cn_msg_release {
	struct cn_msg_head head;
};

/* Opens endpoint `number` of the node (0: a free one). -> REPLY, value: the number */
struct cn_msg_open {
	struct cn_msg_head head;
	uint32_t endpoint; /* a free number of this client */
	uint32_t number;   /* 0 .. 65535 */
	uint64_t secret;   /* as in cn_msg_join */
};

/* Outstanding requests of the endpoint are DONE with COLLNET_EINVAL first. -> REPLY */
struct cn_msg_close {
	struct cn_msg_head head;
	uint32_t endpoint;
	uint32_t zero;
};

struct cn_msg_send {
	struct cn_msg_head head;
	uint32_t endpoint;
	uint32_t to; /* endpoint there, 1 .. 65535 */
	char node[CN_MSG_NAME];
	struct cn_msg_buffer_ref data;
	uint64_t bytes; /* 0 .. COLLNET_MESSAGE_MAX */
	uint32_t timeout_ms;
	uint32_t zero;
	uint64_t called; /* as in cn_msg_coll */
};

struct cn_msg_recv {
	struct cn_msg_head head;
	uint32_t endpoint;
	uint32_t timeout_ms;
	struct cn_msg_buffer_ref data;
	uint64_t capacity; /* 0 .. COLLNET_MESSAGE_MAX */
	uint64_t called;   /* as in cn_msg_coll */
};

/* -> STATS_REPLY */
struct cn_msg_stats {
	struct cn_msg_head head;
	uint32_t reset_peak; /* 0, 1 */
	uint32_t zero;
};

/* NODES and JOBS request the entries `first` .. of a table. -> NODE_TABLE, JOB_TABLE */
struct cn_msg_table {
	struct cn_msg_head head;
	uint32_t first;
	uint32_t zero;
};

/*
 * Messages that are a head alone. PING probes whether the daemon runs, when a program has waited
 * for a while; -> PONG. The library has at most one outstanding. While the daemon is blocked
 * because a call waits for its plan, it answers every message except REGION by a PONG, before its
 * response. DOORBELL: there are requests in the ring. EVENT: there are completions. Neither has a
 * response.
 */

/* Same length and text offset in all versions, so that a library of another version can report the
 * mismatch. */
struct cn_msg_welcome {
	struct cn_msg_head head;
	int32_t status;
	uint32_t version;	  /* of the daemon */
	uint32_t peer_timeout_ms; /* the daemon's peer timeout; 0 with an error */
	uint32_t zero;
	char node[CN_MSG_NAME];
	union {
		char text[CN_ERR_TEXT]; /* of an error */
		uint64_t now;		/* else: by the daemon's clock, after it has read HELLO */
	};
};

struct cn_msg_reply {
	struct cn_msg_head head;
	int32_t status;
	uint32_t zero;
	uint64_t value;
	char text[CN_ERR_TEXT];
};

/* Completion of a request; `from_endpoint`, `bytes` and `from_node` belong to a RECV. */
struct cn_msg_done {
	struct cn_msg_head head;
	int32_t status;
	uint32_t from_endpoint;
	uint64_t bytes; /* length of the message */
	char from_node[CN_MSG_NAME];
	char text[CN_ERR_TEXT];
};

/* A range of a buffer of a request. */
struct cn_msg_span {
	uint32_t buffer; /* CN_BUF_SEND, CN_BUF_RECV, CN_BUF_SCRATCH */
	uint32_t zero;
	uint64_t offset;
};

/* A fragment of the reduction `tag`, as struct cn_combine. -> COMBINED, unless it is the last; at
 * most one outstanding per request. */
struct cn_msg_combine {
	struct cn_msg_head head;
	uint32_t piece; /* its number */
	uint32_t operands;
	uint32_t last; /* 1: DONE follows */
	uint32_t zero;
	struct cn_msg_span left, right, out;
	uint64_t bytes;
};

/* The end of a JOIN of a team that is ready. */
struct cn_msg_joined {
	struct cn_msg_head head;
	uint64_t run;  /* cn_member_run() */
	uint32_t rank; /* the client's own */
	uint32_t ranks;
	uint32_t nodes;	 /* of the team */
	uint32_t mapped; /* ranks; or 0, and RANKS requests their nodes */
	/* Of a team of ranks of another one: for each a rank of the parent on the same node. */
	uint16_t in_parent[CN_MSG_MAPPED];
};

struct cn_msg_rank_names {
	struct cn_msg_head head;
	uint32_t ranks; /* of the team */
	uint32_t count; /* names that follow, of ranks first .. first + count - 1 */
	char names[CN_MSG_PAGE][CN_MSG_NAME];
};

struct cn_msg_stats_reply {
	struct cn_msg_head head;
	/* The counters begin at 16, whatever the width of stats.size, which nobody reads. */
	uint8_t fill[8 - offsetof(struct collnet_stats, frames_sent)];
	struct collnet_stats stats;
};

struct cn_msg_node_table {
	struct cn_msg_head head;
	uint32_t total; /* entries of the whole table */
	uint32_t count; /* entries that follow */
	struct collnet_node_info nodes[CN_MSG_PAGE];
};

struct cn_msg_job_table {
	struct cn_msg_head head;
	uint32_t total;
	uint32_t count;
	struct collnet_job_info jobs[CN_MSG_PAGE];
};

/* Large enough for any message. */
union cn_msg {
	struct cn_msg_head head;
	struct cn_msg_hello hello;
	struct cn_msg_region region;
	struct cn_msg_unregion unregion;
	struct cn_msg_join join;
	struct cn_msg_leave leave;
	struct cn_msg_ranks ranks;
	struct cn_msg_coll coll;
	struct cn_msg_open open;
	struct cn_msg_close close;
	struct cn_msg_send send;
	struct cn_msg_recv recv;
	struct cn_msg_stats stats;
	struct cn_msg_table table;
	struct cn_msg_combined combined;
	struct cn_msg_start start;
	struct cn_msg_release release;
	struct cn_msg_combine combine;
	struct cn_msg_joined joined;
	struct cn_msg_welcome welcome;
	struct cn_msg_reply reply;
	struct cn_msg_done done;
	struct cn_msg_rank_names rank_names;
	struct cn_msg_stats_reply stats_reply;
	struct cn_msg_node_table node_table;
	struct cn_msg_job_table job_table;
};

#define CN_MSG_RINGS_BYTES                                                                         \
	(CN_SHM_RING_BYTES(CN_MSG_RING_SLOTS, CN_MSG_REQUEST_SLOT) +                               \
	 CN_SHM_RING_BYTES(CN_MSG_RING_SLOTS, CN_MSG_DONE_SLOT))

/* Initialises one side of the rings in the region CN_MSG_RINGS. */
void cn_msg_rings_init(void *memory, struct cn_shm_ring *requests, struct cn_shm_ring *completions);

/* A valid timeout: 1 .. CN_MSG_TIMEOUT_MAX, or COLLNET_TIMEOUT_NONE. */
bool cn_msg_timeout_ok(uint32_t ms);

/* The size of messages of a type; 0: there is no such type. */
size_t cn_msg_size(uint32_t type);

/*
 * Validates a message of `len` bytes in *m. NULL: valid; else what is wrong with it. from_daemon:
 * direction.
 */
const char *cn_msg_check(const union cn_msg *m, size_t len, bool from_daemon);

#endif
