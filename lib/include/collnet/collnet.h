/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collnet: collective communication on plain Ethernet.
 *
 * The whole public interface of libcollnet. A program opens a context (through the node's
 * daemon, or directly on an interface), joins a team of ranks, and calls collective operations
 * on it. Endpoints carry single messages between nodes.
 *
 * Conventions
 *  - Functions return COLLNET_OK (0), COLLNET_INPROGRESS (1, only from collnet_test() and
 *    collnet_wait()), or a negative COLLNET_E... code. collnet_strerror() turns a code into text;
 *    collnet_error() gives the sentence that names the node, rank, interface and phase.
 *  - Outputs are written only on success.
 *  - Sizes are bytes, times are milliseconds (timeouts) or nanoseconds (statistics).
 *  - Every call that waits has a deadline. A timeout of 0 means the context's default
 *    (struct collnet_options.timeout_ms).
 *  - A context and everything made from it belongs to one thread at a time.
 *  - Options structures begin with their size and are filled by their init function.
 */
#ifndef COLLNET_H
#define COLLNET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

#define COLLNET_VERSION_MAJOR 0
#define COLLNET_VERSION_MINOR 1
#define COLLNET_VERSION_PATCH 0

/** Longest name of a node or a job, in bytes, without the terminating zero. */
#define COLLNET_NAME_MAX 63
/** Largest number of ranks in a team. */
#define COLLNET_RANKS_MAX 4096
/** Largest block of one rank pair in a collective, in bytes. */
#define COLLNET_BLOCK_MAX ((size_t)1 << 30)
/** Largest message of an endpoint, in bytes. */
#define COLLNET_MESSAGE_MAX ((size_t)1 << 30)
/** Operations that may be outstanding on one team at a time. */
#define COLLNET_OUTSTANDING_MAX 8

enum collnet_status {
	COLLNET_OK = 0,
	COLLNET_INPROGRESS = 1,
	COLLNET_EINVAL = -1,	    /**< an argument is not valid */
	COLLNET_ENOMEM = -2,	    /**< no memory */
	COLLNET_ETIMEOUT = -3,	    /**< the deadline passed */
	COLLNET_EPEER = -4,	    /**< a node stopped answering or restarted */
	COLLNET_ERANK = -5,	    /**< a rank left the team or died */
	COLLNET_EMISMATCH = -6,	    /**< ranks called with different operations or sizes */
	COLLNET_EPERM = -7,	    /**< no permission */
	COLLNET_EIFACE = -8,	    /**< no such interface, or it cannot be used */
	COLLNET_EDAEMON = -9,	    /**< the daemon is not there, or went away */
	COLLNET_ELIMIT = -10,	    /**< a stated bound is reached */
	COLLNET_EPROTO = -11,	    /**< the other side broke the protocol */
	COLLNET_ETRUNC = -12,	    /**< the message is longer than the buffer */
	COLLNET_ENOENT = -13,	    /**< no such node or endpoint */
	COLLNET_ESYSTEM = -14,	    /**< the operating system refused */
	COLLNET_ETOPO = -15,	    /**< the topology or configuration is wrong */
	COLLNET_EUNSUPPORTED = -16, /**< not possible in this mode or build */
};

typedef struct collnet collnet_t;
typedef struct collnet_team collnet_team_t;
typedef struct collnet_request collnet_request_t;
typedef struct collnet_endpoint collnet_endpoint_t;

/* ---- version, errors, log ------------------------------------------------------------- */

/** The version of the library that runs, as text: "0.1.0". Never freed. */
const char *collnet_version(void);

/** The text of a status code. Never NULL, never freed; unknown codes have a text too. */
const char *collnet_strerror(int status);

/**
 * The sentence that belongs to the last failed call on this context: which node, rank,
 * interface and phase. Valid until the next call on the context. With NULL: that of the last
 * failed collnet_open() of the calling thread.
 */
const char *collnet_error(const collnet_t *c);

enum collnet_log_level {
	COLLNET_LOG_ERROR = 0,
	COLLNET_LOG_WARNING = 1,
	COLLNET_LOG_INFO = 2,
	COLLNET_LOG_DEBUG = 3,
};

/**
 * Receives one line without a newline. Called from the thread that is in the library, or, in
 * direct mode, from the context's own thread that answers peers while the caller computes.
 */
typedef void (*collnet_log_fn)(void *arg, enum collnet_log_level level, const char *line);

/** Sets the log callback of the process; the library itself never prints. NULL is silence. */
void collnet_set_log(collnet_log_fn fn, void *arg);

/* ---- context -------------------------------------------------------------------------- */

enum collnet_mode {
	COLLNET_MODE_AUTO = 0,	 /**< COLLNET_MODE in the environment, else the daemon */
	COLLNET_MODE_DAEMON = 1, /**< through collnetd */
	COLLNET_MODE_DIRECT = 2, /**< the transport runs in this process; needs CAP_NET_RAW */
};

/**
 * How to open a context. collnet_options_init() fills in the defaults, which come from the
 * environment where it speaks: COLLNET_MODE (daemon, direct), COLLNET_SOCKET,
 * COLLNET_INTERFACE, COLLNET_LINK (packet, pcap), COLLNET_NODE, COLLNET_TOPOLOGY,
 * COLLNET_CLUSTER, COLLNET_ETHERTYPE, COLLNET_TIMEOUT (milliseconds), COLLNET_SPIN (0, 1).
 * Pointers are not copied until collnet_open() returns; NULL means "not said".
 */
struct collnet_options {
	size_t size; /**< sizeof(struct collnet_options) */
	enum collnet_mode mode;
	const char *socket;    /**< daemon: path of its socket */
	const char *interface; /**< direct: Ethernet interface */
	const char *link;      /**< direct: "packet" or "pcap" */
	const char *node;      /**< direct: this node's name; default is the host name */
	const char *topology;  /**< direct: topology file */
	uint16_t cluster;      /**< direct: cluster id, equal on all nodes */
	uint16_t ethertype;    /**< direct: EtherType, default 0x88B5 */
	int spin;	       /**< direct: waits spin instead of sleeping in poll() */
	uint32_t timeout_ms;   /**< deadline of calls that name none; default 30,000 */
};

void collnet_options_init(struct collnet_options *o);

/** Opens a context. NULL options are the defaults. */
int collnet_open(const struct collnet_options *o, collnet_t **out);

/** Closes a context: its teams are left, its endpoints closed, its buffers freed. */
void collnet_close(collnet_t *c);

/** The name of the node that this context runs on. Valid until collnet_close(). */
const char *collnet_node_name(const collnet_t *c);

/**
 * Memory that the transport reads and writes without a copy; page-aligned, zeroed, up to 64
 * pieces of together 16 GiB a context. Any other memory works too, at the price of a copy
 * when the context goes through the daemon. NULL when there is none; see collnet_error().
 */
void *collnet_alloc(collnet_t *c, size_t bytes);

/** Frees what collnet_alloc() gave; NULL is ignored. No operation may be using it. */
void collnet_free(collnet_t *c, void *p);

/* ---- teams ---------------------------------------------------------------------------- */

/**
 * Who takes part. collnet_team_options_init() takes job, rank and size from the innermost
 * launcher: COLLNET_JOB, COLLNET_RANK, COLLNET_SIZE, else torchrun (RANK, WORLD_SIZE, MASTER_PORT
 * and MASTER_ADDR), Open MPI (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, PMIX_NAMESPACE), PMI
 * (PMI_RANK, PMI_SIZE, PMI_JOBID or what the server at PMI_FD calls the job) or Slurm
 * (SLURM_PROCID, SLURM_NTASKS, SLURM_JOB_ID and SLURM_STEP_ID), else one rank of one. Its `job`
 * is valid until the thread's next call of it.
 */
struct collnet_team_options {
	size_t size;	     /**< sizeof(struct collnet_team_options) */
	const char *job;     /**< name of the job, equal on all ranks */
	uint32_t rank;	     /**< 0 .. ranks - 1 */
	uint32_t ranks;	     /**< 1 .. COLLNET_RANKS_MAX */
	uint32_t timeout_ms; /**< until when all ranks must be there; 0: the default */
	const char *secret;  /**< equal on all ranks, 8 .. 255 characters: the team is of who knows
			      * it; NULL: COLLNET_SECRET, or without that the team is of the user */
};

void collnet_team_options_init(struct collnet_team_options *o);

/**
 * Joins the team and waits until all its ranks are there. COLLNET_ETIMEOUT lists the missing
 * ranks in collnet_error().
 */
int collnet_team_create(collnet_t *c, const struct collnet_team_options *o, collnet_team_t **out);

/** Leaves the team; outstanding requests of it end with COLLNET_ERANK. NULL is ignored. */
void collnet_team_destroy(collnet_team_t *t);

uint32_t collnet_team_rank(const collnet_team_t *t);
uint32_t collnet_team_size(const collnet_team_t *t);
/** Number of nodes the team's ranks run on. */
uint32_t collnet_team_nodes(const collnet_team_t *t);
/** Name of the node of a rank; NULL for a rank that is not in the team. */
const char *collnet_team_node(const collnet_team_t *t, uint32_t rank);

/* ---- collective operations ------------------------------------------------------------ */

/** Window values besides a number of frames, 1 .. 65535. */
#define COLLNET_WINDOW_AUTO 0u	       /**< Eq. 4 from the topology; none without a topology */
#define COLLNET_WINDOW_OFF  UINT32_MAX /**< no global window */

enum collnet_permutation {
	COLLNET_PERM_AUTO =
		0, /**< xor for powers of two, edge-colour for other even sizes, shift */
	COLLNET_PERM_SHIFT = 1,
	COLLNET_PERM_XOR = 2, /**< powers of two only */
	COLLNET_PERM_EDGE_COLOUR = 3,
};

/**
 * How a collective runs. Every rank must say the same. collnet_coll_options_init() fills in
 * the defaults. All fields but timeout_ms choose among correct ways to do the same thing.
 */
struct collnet_coll_options {
	size_t size;	       /**< sizeof(struct collnet_coll_options) */
	const char *algorithm; /**< NULL: COLLNET_ALGORITHM in the environment, else the one with
				     the smallest predicted time; see collnet_alltoall(3) */
	enum collnet_permutation permutation;
	int contention_aware; /**< 1: Eq. 5 numbering from the topology (default); 0: rank order */
	uint32_t window;      /**< global window: AUTO (default), OFF, or frames */
	uint32_t timeout_ms;  /**< 0: the context's default */
};

void collnet_coll_options_init(struct collnet_coll_options *o);

/**
 * Complete exchange: block i of `send` (bytes long, at i * bytes) goes to rank i, and block j
 * of `recv` comes from rank j. Both buffers hold size * bytes. They must not overlap.
 * Tam and Wang, Algorithms 1 to 3.
 */
int collnet_alltoall(collnet_team_t *t, const void *send, void *recv, size_t bytes,
		     const struct collnet_coll_options *o);

/**
 * All-to-all broadcast: `send` (bytes long) of rank j arrives in block j of `recv` (size *
 * bytes) on every rank. `send` may be that block of `recv` itself; no other overlap.
 */
int collnet_allgather(collnet_team_t *t, const void *send, void *recv, size_t bytes,
		      const struct collnet_coll_options *o);

/**
 * Broadcast: the root's `bytes` at buffer arrive at buffer on every rank.
 */
int collnet_bcast(collnet_team_t *t, void *buffer, size_t bytes, uint32_t root,
		  const struct collnet_coll_options *o);

/**
 * Scatter: block i of the root's send buffer (size * bytes; ignored on other ranks) arrives at
 * recv (bytes) of rank i. On the root the two must not overlap.
 */
int collnet_scatter(collnet_team_t *t, const void *send, void *recv, size_t bytes, uint32_t root,
		    const struct collnet_coll_options *o);

/**
 * Gather: the `bytes` at send of rank i arrive in block i of the root's recv (size * bytes;
 * ignored on other ranks). On the root, send may be its own block of recv.
 */
int collnet_gather(collnet_team_t *t, const void *send, void *recv, size_t bytes, uint32_t root,
		   const struct collnet_coll_options *o);

/** Returns when every rank of the team has called it. */
int collnet_barrier(collnet_team_t *t, const struct collnet_coll_options *o);

/*
 * Non-blocking twins. The buffers are not the caller's until the request is complete. At most
 * COLLNET_OUTSTANDING_MAX are outstanding on a team, and every rank starts them in the same
 * order. The timeout runs from the start of the operation.
 */
int collnet_ialltoall(collnet_team_t *t, const void *send, void *recv, size_t bytes,
		      const struct collnet_coll_options *o, collnet_request_t **out);
int collnet_iallgather(collnet_team_t *t, const void *send, void *recv, size_t bytes,
		       const struct collnet_coll_options *o, collnet_request_t **out);
int collnet_ibcast(collnet_team_t *t, void *buffer, size_t bytes, uint32_t root,
		   const struct collnet_coll_options *o, collnet_request_t **out);
int collnet_iscatter(collnet_team_t *t, const void *send, void *recv, size_t bytes, uint32_t root,
		     const struct collnet_coll_options *o, collnet_request_t **out);
int collnet_igather(collnet_team_t *t, const void *send, void *recv, size_t bytes, uint32_t root,
		    const struct collnet_coll_options *o, collnet_request_t **out);
int collnet_ibarrier(collnet_team_t *t, const struct collnet_coll_options *o,
		     collnet_request_t **out);

/**
 * COLLNET_INPROGRESS, or the result of the operation; then the request is freed and must not
 * be used again. Never sleeps.
 */
int collnet_test(collnet_request_t *r);

/**
 * Waits for the result, at most timeout_ms (0: until the operation's own deadline), and frees
 * the request, except when it returns COLLNET_INPROGRESS: the wait ended before the operation.
 */
int collnet_wait(collnet_request_t *r, uint32_t timeout_ms);

/* ---- endpoints ------------------------------------------------------------------------ */

/** Where a message comes from or goes to. */
struct collnet_address {
	char node[COLLNET_NAME_MAX + 1]; /**< name of the node */
	uint16_t endpoint;		 /**< number of the endpoint there, 1 .. 65535 */
};

/**
 * Opens the endpoint with this number on this node; 0 takes a free one. One context at a time
 * holds a number.
 */
int collnet_endpoint_open(collnet_t *c, uint16_t number, collnet_endpoint_t **out);
void collnet_endpoint_close(collnet_endpoint_t *e);
uint16_t collnet_endpoint_number(const collnet_endpoint_t *e);

/**
 * Sends one message of 0 .. COLLNET_MESSAGE_MAX bytes. Complete when `data` may be used
 * again, which can be before the other side has received it. Messages from one endpoint to
 * another arrive in order, once. COLLNET_ENOENT: no such node, or the endpoint is not open.
 */
int collnet_send(collnet_endpoint_t *e, const struct collnet_address *to, const void *data,
		 size_t bytes, uint32_t timeout_ms);
/**
 * Receives the next message, from anyone, into `data`; `bytes` holds its capacity and then the
 * length of the message. COLLNET_ETRUNC: the message was longer; its beginning is in `data`,
 * its rest is lost. `from` may be NULL.
 */
int collnet_recv(collnet_endpoint_t *e, struct collnet_address *from, void *data, size_t *bytes,
		 uint32_t timeout_ms);

/** Non-blocking twins; `from` and `bytes` are written when the request completes. */
int collnet_isend(collnet_endpoint_t *e, const struct collnet_address *to, const void *data,
		  size_t bytes, uint32_t timeout_ms, collnet_request_t **out);
int collnet_irecv(collnet_endpoint_t *e, struct collnet_address *from, void *data, size_t *bytes,
		  uint32_t timeout_ms, collnet_request_t **out);

/* ---- what the node knows -------------------------------------------------------------- */

/** Counters of the node since its transport started, over all jobs. */
struct collnet_stats {
	size_t size;		  /**< sizeof(struct collnet_stats), set by the caller */
	uint64_t frames_sent;	  /**< every frame put on the wire */
	uint64_t frames_received; /**< every valid frame taken from it */
	uint64_t bytes_sent;	  /**< with Ethernet headers, as padded to 60 */
	uint64_t bytes_received;
	uint64_t data_sent;	/**< reliable frames sent for the first time */
	uint64_t data_resent;	/**< reliable frames sent again */
	uint64_t data_received; /**< reliable frames accepted in order */
	uint64_t acks_sent;	/**< frames that only acknowledge */
	uint64_t ack_bytes_sent;
	uint64_t naks_sent;	 /**< of those, negative ones */
	uint64_t duplicates;	 /**< reliable frames that had come before */
	uint64_t gaps;		 /**< reliable frames that came too early */
	uint64_t timeouts;	 /**< retransmission timers that ran out */
	uint64_t busy;		 /**< frames not accepted because no buffer was free */
	uint64_t bad_frames;	 /**< malformed */
	uint64_t foreign_frames; /**< another cluster's or protocol's */
	uint64_t stale_frames;	 /**< of an older epoch, or of a node not heard of */
	uint64_t ring_drops;	 /**< frames that the kernel dropped before us */
	uint64_t cpu_ns;	 /**< processor time of the process that runs the transport */
	uint64_t rss_bytes;	 /**< its resident memory, without its clients' buffers */
	uint32_t window;	 /**< W_g in force; COLLNET_WINDOW_OFF for none */
	uint32_t window_now;	 /**< eta: frames counted against it */
	uint32_t window_peak;	 /**< largest eta since the last reset of the peak */
	uint32_t nodes;		 /**< nodes known, this one included */
	uint32_t jobs;		 /**< teams that have a rank here */
	uint32_t mtu;		 /**< bytes after the Ethernet header */
	uint64_t link_rate;	 /**< bit/s of this node's link by the topology; 0: unknown */
	uint64_t version_frames; /**< of another wire version */
};

/** Reads the counters; reset_peak != 0 sets the peak to the present value afterwards. */
int collnet_get_stats(collnet_t *c, struct collnet_stats *out, int reset_peak);

/** One node of the node table. */
struct collnet_node_info {
	char name[COLLNET_NAME_MAX + 1];
	uint8_t mac[6];
	uint8_t alive;	       /**< heard of lately */
	uint8_t self;	       /**< this node */
	uint32_t mtu;	       /**< 0: not known */
	uint32_t wire_version; /**< of its frames; not this node's: the two cannot communicate */
	uint64_t heard_ns;     /**< how long ago its last frame came */
	uint64_t rtt_ns;       /**< smoothed round trip; 0: not measured */
	uint64_t data_sent;
	uint64_t data_resent;
	uint64_t data_received;
};

/** Writes up to *count entries; *count becomes the number of nodes known. Up to 16 senders of
 * another wire version that were never in the table come last, by the topology's name or by
 * address. */
int collnet_get_nodes(collnet_t *c, struct collnet_node_info *out, size_t *count);

/** One team that has a rank on this node. */
struct collnet_job_info {
	char name[COLLNET_NAME_MAX + 1];
	uint32_t ranks;	     /**< size of the team */
	uint32_t local;	     /**< ranks on this node */
	uint32_t present;    /**< ranks that have joined */
	uint32_t ready;	     /**< all are there */
	uint64_t operations; /**< collectives completed here */
};

/** Writes up to *count entries; *count becomes the number of jobs. */
int collnet_get_jobs(collnet_t *c, struct collnet_job_info *out, size_t *count);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
