/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collnet: collective communication on plain Ethernet.
 *
 * The public interface of libcollnet. A program opens a context (through the node's daemon, or
 * directly on an interface), joins a team of ranks, and calls collective operations on it.
 * Endpoints send and receive single messages between nodes.
 *
 * Conventions
 *  - Functions return COLLNET_OK (0), COLLNET_INPROGRESS (1, only from tests and waits), or a
 *    negative COLLNET_E... code. collnet_strerror() describes a code; collnet_error() returns the
 *    message, which names the node, rank, interface and phase.
 *  - Outputs are set only on success.
 *  - Sizes are in bytes, timeouts in milliseconds and times in statistics in nanoseconds.
 *  - A timeout of 0 selects the context's default (struct collnet_options.timeout_ms), and
 *    COLLNET_TIMEOUT_NONE disables the deadline: the call waits as long as its peers live.
 *  - Several threads may use a context and the objects created from it; collnet_open(3) lists the
 *    rules.
 *  - Options structures begin with their size and are initialised by their init function.
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

/** Longest name of a node or a job, in bytes, without the terminating null byte. */
#define COLLNET_NAME_MAX 63
/** Largest number of ranks in a team. */
#define COLLNET_RANKS_MAX 4096
/** Largest block that one rank sends to another in a collective, in bytes. */
#define COLLNET_BLOCK_MAX ((size_t)1 << 30)
/** Largest message of an endpoint, in bytes. */
#define COLLNET_MESSAGE_MAX ((size_t)1 << 30)
/** Operations that can be outstanding on a team. The limit of a context, over all its teams and
 * endpoints, is 512. */
#define COLLNET_OUTSTANDING_MAX 64

enum collnet_status {
	COLLNET_OK = 0,
	COLLNET_INPROGRESS = 1,
	COLLNET_EINVAL = -1,	   /**< an argument is invalid */
	COLLNET_ENOMEM = -2,	   /**< there is not enough memory */
	COLLNET_ETIMEOUT = -3,	   /**< the deadline passed */
	COLLNET_EPEER = -4,	   /**< a node stopped answering or restarted */
	COLLNET_ERANK = -5,	   /**< a rank left the team or died */
	COLLNET_EMISMATCH = -6,	   /**< operations or sizes differ between ranks */
	COLLNET_EPERM = -7,	   /**< permission denied */
	COLLNET_EIFACE = -8,	   /**< there is no such interface, or it cannot be used */
	COLLNET_EDAEMON = -9,	   /**< the daemon is not running, or has terminated */
	COLLNET_ELIMIT = -10,	   /**< a documented limit has been reached */
	COLLNET_EPROTO = -11,	   /**< the versions differ, or the protocol was violated */
	COLLNET_ETRUNC = -12,	   /**< the message is longer than the buffer */
	COLLNET_ENOENT = -13,	   /**< there is no such node or endpoint */
	COLLNET_ESYSTEM = -14,	   /**< the operating system reported an error */
	COLLNET_ETOPO = -15,	   /**< the topology or configuration file has an error */
	COLLNET_EUNSUPPORTED = -16 /**< not supported in this mode or build */
};

typedef struct collnet collnet_t;
typedef struct collnet_team collnet_team_t;
typedef struct collnet_request collnet_request_t;
typedef struct collnet_endpoint collnet_endpoint_t;

/* ---- version, errors, log ------------------------------------------------------------- */

/** The version of the library at run time, such as "0.1.0". Never freed. */
const char *collnet_version(void);

/** Describes a status code, known or not. Never NULL, never freed. */
const char *collnet_strerror(int status);

/**
 * The message of the calling thread's last failed call on this context, which names the node, rank,
 * interface and phase. Valid until the thread's next call on the context. With NULL: the message of
 * the thread's last failed collnet_open(), or of its last call with a context, team, endpoint or
 * request that was NULL.
 */
const char *collnet_error(const collnet_t *c);

enum collnet_log_level {
	COLLNET_LOG_ERROR = 0,
	COLLNET_LOG_WARNING = 1,
	COLLNET_LOG_INFO = 2,
	COLLNET_LOG_DEBUG = 3
};

/**
 * Receives one line without a newline. Called by the thread that is inside the library or, in
 * direct mode, by the context's own thread, which responds to peers while the caller computes.
 */
typedef void (*collnet_log_fn)(void *arg, enum collnet_log_level level, const char *line);

/** Sets the log callback of the process. NULL discards the log; the library never prints. */
void collnet_set_log(collnet_log_fn fn, void *arg);

/* ---- context -------------------------------------------------------------------------- */

enum collnet_mode {
	COLLNET_MODE_AUTO = 0,	 /**< COLLNET_MODE in the environment, or daemon mode */
	COLLNET_MODE_DAEMON = 1, /**< through collnetd */
	COLLNET_MODE_DIRECT = 2	 /**< the transport runs in this process */
};

/** No deadline. When a peer, its node or this node's daemon dies, the call still fails. */
#define COLLNET_TIMEOUT_NONE UINT32_MAX

/**
 * How to open a context. collnet_options_init() fills in the defaults, which these environment
 * variables change: COLLNET_MODE (daemon, direct), COLLNET_SOCKET, COLLNET_INTERFACE,
 * COLLNET_LINK (packet, udp, pcap), COLLNET_PEERS, COLLNET_ENCAPSULATION (raw, udp, tcp),
 * COLLNET_NODE, COLLNET_TOPOLOGY, COLLNET_KEY, COLLNET_CLUSTER, COLLNET_ETHERTYPE,
 * COLLNET_TIMEOUT (milliseconds, none), COLLNET_PEER_TIMEOUT (milliseconds), COLLNET_SPIN (0, 1).
 * Strings must stay valid until collnet_open() returns; NULL means not specified.
 */
struct collnet_options {
	size_t size; /**< sizeof(struct collnet_options) */
	enum collnet_mode mode;
	const char *socket;	   /**< daemon: path of its socket */
	const char *interface;	   /**< direct: Ethernet interface */
	const char *link;	   /**< direct: "packet", "udp" or "pcap" */
	const char *node;	   /**< direct: this node's name; default is the host name */
	const char *topology;	   /**< direct: topology file */
	uint16_t cluster;	   /**< direct: cluster ID, equal on all nodes; default 0 */
	uint16_t ethertype;	   /**< direct: EtherType, UDP or TCP port; default 0x88B5 */
	int spin;		   /**< direct: busy-wait instead of sleeping in poll() */
	uint32_t timeout_ms;	   /**< deadline of calls that specify none; default 30,000 */
	uint32_t peer_timeout_ms;  /**< direct: silence after which a node is lost; 0: 1,500 */
	const char *encapsulation; /**< direct: "raw", "udp" or "tcp", equal on all nodes */
	const char *peers;	   /**< direct, link udp: as COLLNET_PEERS in collnet(7) */
	const char *key;	   /**< direct: file with the cluster's key, equal on all nodes */
};

void collnet_options_init(struct collnet_options *o);

/** Opens a context. NULL selects the default options. */
int collnet_open(const struct collnet_options *o, collnet_t **out);

/** Closes a context: leaves its teams, closes its endpoints and frees its memory. */
void collnet_close(collnet_t *c);

/** The name of the node that this context runs on. Valid until collnet_close(). */
const char *collnet_node_name(const collnet_t *c);

/**
 * Allocates memory that the transport reads and writes without a copy, page-aligned and zeroed. A
 * context can have 64 allocations, of 16 GiB in total. Calls also accept other memory, which costs
 * a copy in daemon mode. Returns NULL on error; see collnet_error().
 */
void *collnet_alloc(collnet_t *c, size_t bytes);

/** Frees memory from collnet_alloc(), which no operation may be using. NULL is ignored. */
void collnet_free(collnet_t *c, void *p);

/* ---- teams ---------------------------------------------------------------------------- */

/**
 * The members of a team. collnet_team_options_init() takes job, rank and size from the innermost
 * launcher: COLLNET_JOB, COLLNET_RANK and COLLNET_SIZE, torchrun (RANK, WORLD_SIZE, MASTER_PORT
 * and MASTER_ADDR), Open MPI (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, PMIX_NAMESPACE), PMI
 * (PMI_RANK, PMI_SIZE, PMI_JOBID or the job name of the server at PMI_FD) or Slurm (SLURM_PROCID,
 * SLURM_NTASKS, SLURM_JOB_ID and SLURM_STEP_ID). Without a launcher the team has one rank. `job`
 * is valid until the thread's next call of this function.
 */
struct collnet_team_options {
	size_t size;	     /**< sizeof(struct collnet_team_options) */
	const char *job;     /**< name of the job, equal on all ranks */
	uint32_t rank;	     /**< 0 .. ranks - 1 */
	uint32_t ranks;	     /**< 1 .. COLLNET_RANKS_MAX */
	uint32_t timeout_ms; /**< deadline for all ranks to join; 0: the context's default */
	const char *secret;  /**< owner of the team in place of the user ID: 8 .. 255 characters,
			      * equal on all ranks; NULL: COLLNET_SECRET, or the user ID */
};

void collnet_team_options_init(struct collnet_team_options *o);

/**
 * Joins the team and waits until all its ranks have joined. On COLLNET_ETIMEOUT, collnet_error()
 * lists the missing ranks.
 */
int collnet_team_create(collnet_t *c, const struct collnet_team_options *o, collnet_team_t **out);

/**
 * Creates a team of the ranks of `t` that pass the same color, ordered by key, then by rank in `t`.
 * Every rank of `t` calls it. A rank whose color is less than 0 joins no new team; its *out is
 * NULL. The new team has the same owner as `t` and outlives it.
 */
int collnet_team_split(collnet_team_t *t, int32_t color, int32_t key, collnet_team_t **out);

/** Creates another team of the same ranks, with independent operations. Every rank calls it. */
int collnet_team_dup(collnet_team_t *t, collnet_team_t **out);

/**
 * Creates a team of n ranks of `t`: ranks[i] of `t` becomes rank i. Only these ranks call it, all
 * with the same list.
 */
int collnet_team_from_ranks(collnet_team_t *t, uint32_t n, const uint32_t *ranks,
			    collnet_team_t **out);

/** Leaves the team; its outstanding requests end with COLLNET_ERANK. NULL is ignored. */
void collnet_team_destroy(collnet_team_t *t);

uint32_t collnet_team_rank(const collnet_team_t *t);
uint32_t collnet_team_size(const collnet_team_t *t);
/** The number of nodes that the team's ranks run on. */
uint32_t collnet_team_nodes(const collnet_team_t *t);
/** The name of a rank's node; NULL if the rank is not in the team. */
const char *collnet_team_node(const collnet_team_t *t, uint32_t rank);

/* ---- collective operations ------------------------------------------------------------ */

/** Values of the window other than a number of frames, 1 .. 65535. */
#define COLLNET_WINDOW_AUTO 0u	       /**< Eq. 4 from the topology; adaptive without one */
#define COLLNET_WINDOW_OFF  UINT32_MAX /**< no global window */

/**
 * How a collective operation runs. collnet_coll_options_init() fills in the defaults. The fields,
 * except user_op and the algorithm of a floating-point reduction, do not change the result; all
 * except timeout_ms and persistent must be equal on all ranks.
 */
struct collnet_coll_options {
	size_t size; /**< sizeof(struct collnet_coll_options) */
	/** NULL: the algorithm in COLLNET_ALGORITHM, or the one with the lowest predicted time. For
	 * experiments a name can have modifiers, "shuffle:shift,rank-order"; collnet_alltoall(3).
	 */
	const char *algorithm;
	uint32_t window;     /**< global window: AUTO (default), OFF, or frames */
	uint32_t timeout_ms; /**< 0: the context's default */
	/** Reductions by COLLNET_USER: the operation; must exist until the call completes. */
	const struct collnet_user_op *user_op;
	/** Non-blocking versions: 1 prepares a persistent operation, see collnet_start(). */
	int persistent;
};

void collnet_coll_options_init(struct collnet_coll_options *o);

/*
 * In place: where a description says so, the two buffers of a call may be the same memory.
 * Otherwise they must not overlap.
 *
 * A rank that receives nothing, such as the root of a broadcast or a non-root rank of a gather, can
 * return before the operation has ended: through the daemon, when up to 1 KiB has been copied. A
 * later call on the team returns an error that occurs after that.
 */

/**
 * All-to-all (complete exchange): block i of `send` (`bytes` bytes at i * bytes) goes to rank i,
 * and block j of `recv` comes from rank j. Both buffers hold one block per rank. In place, `send`
 * is `recv`; the library then copies what is sent. Tam and Wang, Algorithms 1 to 3.
 */
int collnet_alltoall(collnet_team_t *t, const void *send, void *recv, size_t bytes,
		     const struct collnet_coll_options *o);

/**
 * All-to-all broadcast: the block `send` of rank j arrives in block j of `recv`, which holds one
 * block per rank, on every rank. In place, `send` is the rank's own block of `recv`.
 */
int collnet_allgather(collnet_team_t *t, const void *send, void *recv, size_t bytes,
		      const struct collnet_coll_options *o);

/** Broadcast: `bytes` bytes of the root's `buffer` arrive in `buffer` on every other rank. */
int collnet_bcast(collnet_team_t *t, void *buffer, size_t bytes, uint32_t root,
		  const struct collnet_coll_options *o);

/**
 * Scatter: block i of the root's `send`, which holds one block per rank and is ignored on other
 * ranks, arrives in `recv` of rank i. In place, `recv` of the root is its own block of `send`.
 */
int collnet_scatter(collnet_team_t *t, const void *send, void *recv, size_t bytes, uint32_t root,
		    const struct collnet_coll_options *o);

/**
 * Gather: the block `send` of rank i arrives in block i of the root's `recv`, which holds one
 * block per rank and is ignored on other ranks. In place, `send` of the root is its own block of
 * `recv`.
 */
int collnet_gather(collnet_team_t *t, const void *send, void *recv, size_t bytes, uint32_t root,
		   const struct collnet_coll_options *o);

/*
 * Vector variants: blocks of any size, 0 included, at any place of a buffer. Counts and
 * displacements are in bytes, one per rank; NULL displacements mean that blocks follow one another
 * without gaps. Blocks of a receive buffer must not overlap; bytes between them are not written.
 * A rank passes only the sizes of what it sends and receives itself. The sender and the receiver of
 * a block must pass the same size; otherwise the operation fails with COLLNET_EMISMATCH. The arrays
 * can be changed as soon as the call, blocking or not, has returned.
 */

/**
 * All-to-all: send_counts[i] bytes at send_displs[i] of `send` go to rank i, recv_counts[j] bytes
 * at recv_displs[j] of `recv` come from rank j. In place, `send` is `recv`; the counts and
 * displacements of both sides still apply.
 */
int collnet_alltoallv(collnet_team_t *t, const void *send, const size_t *send_counts,
		      const size_t *send_displs, void *recv, const size_t *recv_counts,
		      const size_t *recv_displs, const struct collnet_coll_options *o);

/**
 * All-to-all broadcast: the `bytes` bytes of `send` of rank j arrive at displs[j] of `recv` on
 * every rank. counts[j], the bytes of rank j, is equal on all ranks; displacements need not be. In
 * place, `send` is the rank's own block of `recv`.
 */
int collnet_allgatherv(collnet_team_t *t, const void *send, size_t bytes, void *recv,
		       const size_t *counts, const size_t *displs,
		       const struct collnet_coll_options *o);

/**
 * Gather: the `bytes` bytes of `send` of rank i arrive at displs[i] of the root's `recv`; counts[i]
 * is their number. `recv`, `counts` and `displs` are ignored on other ranks. In place, `send` of
 * the root is its own block of `recv`.
 */
int collnet_gatherv(collnet_team_t *t, const void *send, size_t bytes, void *recv,
		    const size_t *counts, const size_t *displs, uint32_t root,
		    const struct collnet_coll_options *o);

/**
 * Scatter: counts[i] bytes at displs[i] of the root's `send` arrive in `recv` of rank i, which
 * expects `bytes` bytes. `send`, `counts` and `displs` are ignored on other ranks. In place, `recv`
 * of the root is its own block of `send`.
 */
int collnet_scatterv(collnet_team_t *t, const void *send, const size_t *counts,
		     const size_t *displs, void *recv, size_t bytes, uint32_t root,
		     const struct collnet_coll_options *o);

/** Types of a reduction's elements. */
enum collnet_type {
	COLLNET_INT8 = 1,
	COLLNET_INT16 = 2,
	COLLNET_INT32 = 3,
	COLLNET_INT64 = 4,
	COLLNET_UINT8 = 5,
	COLLNET_UINT16 = 6,
	COLLNET_UINT32 = 7,
	COLLNET_UINT64 = 8,
	COLLNET_FLOAT16 = 9,   /**< IEEE 754 binary16 */
	COLLNET_BFLOAT16 = 10, /**< the upper half of a float */
	COLLNET_FLOAT32 = 11,
	COLLNET_FLOAT64 = 12,
	/* C structures of a value and an index, for MINLOC and MAXLOC */
	COLLNET_FLOAT32_INT32 = 13, /**< struct { float value; int32_t index; } */
	COLLNET_FLOAT64_INT32 = 14,
	COLLNET_INT16_INT32 = 15,
	COLLNET_INT32_INT32 = 16,
	COLLNET_INT64_INT32 = 17
};

/** Operations of reductions. */
enum collnet_op {
	COLLNET_SUM = 1,  /**< integers: modulo 2^bits */
	COLLNET_PROD = 2, /**< likewise */
	COLLNET_MIN = 3,
	COLLNET_MAX = 4,
	COLLNET_LAND = 5, /**< logical; integers */
	COLLNET_LOR = 6,
	COLLNET_LXOR = 7,
	COLLNET_BAND = 8, /**< bitwise; integers */
	COLLNET_BOR = 9,
	COLLNET_BXOR = 10,
	COLLNET_MINLOC = 11, /**< the least value, and the lowest index that has it; pairs */
	COLLNET_MAXLOC = 12,
	COLLNET_USER = 13 /**< user_op of the options; the type is ignored */
};

/** Bytes of an element; 0: there is no such type. */
size_t collnet_type_size(enum collnet_type type);

/** The largest element of a user-defined operation, in bytes. */
#define COLLNET_ELEMENT_MAX ((size_t)1 << 20)

/**
 * A user-defined operation, which must be associative. combine() is called in a thread that is in a
 * function of this library with the context, with arrays of `count` elements: out[i] = left[i] op
 * right[i]. `out` may be `left` or `right`. It must not call this library.
 */
struct collnet_user_op {
	size_t size;	 /**< sizeof(struct collnet_user_op) */
	size_t element;	 /**< bytes of an element, 1 .. COLLNET_ELEMENT_MAX */
	int commutative; /**< 0: contributions are combined in the order of the ranks */
	void (*combine)(const void *left, const void *right, void *out, size_t count,
			void *context);
	void *context;
};

/**
 * Allreduce: element i of `recv` is, on every rank, the combination of the elements i of all ranks'
 * `send`. Both have `count` elements of a type; they may be the same memory, otherwise they must
 * not overlap. The result has the same bits on all ranks, and on every run with the same nodes, the
 * same ranks on them and the same count.
 */
int collnet_allreduce(collnet_team_t *t, const void *send, void *recv, size_t count,
		      enum collnet_type type, enum collnet_op op,
		      const struct collnet_coll_options *o);

/** Reduce: as allreduce, to the root's `recv`, which is ignored on other ranks. */
int collnet_reduce(collnet_team_t *t, const void *send, void *recv, size_t count,
		   enum collnet_type type, enum collnet_op op, uint32_t root,
		   const struct collnet_coll_options *o);

/**
 * Reduce-scatter: `send` has one block of `count` elements per rank; `recv` of rank r is the
 * combination of all ranks' blocks r. The two must not overlap.
 */
int collnet_reduce_scatter(collnet_team_t *t, const void *send, void *recv, size_t count,
			   enum collnet_type type, enum collnet_op op,
			   const struct collnet_coll_options *o);

/**
 * Reduce-scatter with blocks of counts[r] elements for rank r, one after another in `send`. The
 * counts are equal on all ranks.
 */
int collnet_reduce_scatterv(collnet_team_t *t, const void *send, void *recv, const size_t *counts,
			    enum collnet_type type, enum collnet_op op,
			    const struct collnet_coll_options *o);

/** Inclusive scan: as allreduce, but `recv` of rank r combines `send` of ranks 0 .. r. */
int collnet_scan(collnet_team_t *t, const void *send, void *recv, size_t count,
		 enum collnet_type type, enum collnet_op op, const struct collnet_coll_options *o);

/** Exclusive scan: of ranks 0 .. r - 1; `recv` of rank 0 is left unchanged. */
int collnet_exscan(collnet_team_t *t, const void *send, void *recv, size_t count,
		   enum collnet_type type, enum collnet_op op,
		   const struct collnet_coll_options *o);

/** Returns after every rank of the team has called it. */
int collnet_barrier(collnet_team_t *t, const struct collnet_coll_options *o);

/*
 * The non-blocking versions. Until the request completes, the caller must neither write to the
 * buffers nor read the receive buffer.
 * At most COLLNET_OUTSTANDING_MAX requests can be outstanding on a team, counted from the oldest
 * one that is outstanding on a rank of the node, and every rank starts them in the same order. The
 * deadline is measured from the start of the operation.
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
int collnet_ialltoallv(collnet_team_t *t, const void *send, const size_t *send_counts,
		       const size_t *send_displs, void *recv, const size_t *recv_counts,
		       const size_t *recv_displs, const struct collnet_coll_options *o,
		       collnet_request_t **out);
int collnet_iallgatherv(collnet_team_t *t, const void *send, size_t bytes, void *recv,
			const size_t *counts, const size_t *displs,
			const struct collnet_coll_options *o, collnet_request_t **out);
int collnet_igatherv(collnet_team_t *t, const void *send, size_t bytes, void *recv,
		     const size_t *counts, const size_t *displs, uint32_t root,
		     const struct collnet_coll_options *o, collnet_request_t **out);
int collnet_iscatterv(collnet_team_t *t, const void *send, const size_t *counts,
		      const size_t *displs, void *recv, size_t bytes, uint32_t root,
		      const struct collnet_coll_options *o, collnet_request_t **out);
int collnet_iallreduce(collnet_team_t *t, const void *send, void *recv, size_t count,
		       enum collnet_type type, enum collnet_op op,
		       const struct collnet_coll_options *o, collnet_request_t **out);
int collnet_ireduce(collnet_team_t *t, const void *send, void *recv, size_t count,
		    enum collnet_type type, enum collnet_op op, uint32_t root,
		    const struct collnet_coll_options *o, collnet_request_t **out);
int collnet_ireduce_scatter(collnet_team_t *t, const void *send, void *recv, size_t count,
			    enum collnet_type type, enum collnet_op op,
			    const struct collnet_coll_options *o, collnet_request_t **out);
int collnet_ireduce_scatterv(collnet_team_t *t, const void *send, void *recv, const size_t *counts,
			     enum collnet_type type, enum collnet_op op,
			     const struct collnet_coll_options *o, collnet_request_t **out);
int collnet_iscan(collnet_team_t *t, const void *send, void *recv, size_t count,
		  enum collnet_type type, enum collnet_op op, const struct collnet_coll_options *o,
		  collnet_request_t **out);
int collnet_iexscan(collnet_team_t *t, const void *send, void *recv, size_t count,
		    enum collnet_type type, enum collnet_op op,
		    const struct collnet_coll_options *o, collnet_request_t **out);
int collnet_ibarrier(collnet_team_t *t, const struct collnet_coll_options *o,
		     collnet_request_t **out);

/**
 * Returns COLLNET_INPROGRESS, or the result of the operation and frees the request, which must
 * not be used again. Never sleeps.
 */
int collnet_test(collnet_request_t *r);

/**
 * As collnet_test(), but first waits until the operation completes, for at most timeout_ms (0:
 * until the operation's own deadline).
 */
int collnet_wait(collnet_request_t *r, uint32_t timeout_ms);

/**
 * Starts a persistent operation, which a non-blocking version with the option `persistent` has
 * prepared: checked and planned once, for the same buffers and options each time. Its completion
 * does not free the request, which is inactive until the next start: the caller owns the buffers,
 * and tests and waits return COLLNET_OK at once. The deadline is measured from the start.
 */
int collnet_start(collnet_request_t *r);
/** Frees a persistent request, which must be inactive. The team may already be destroyed. */
int collnet_request_free(collnet_request_t *r);

/**
 * As collnet_wait() and collnet_test(), for all of n requests on any teams and endpoints of one
 * context. Entries that are NULL or inactive are ignored. COLLNET_INPROGRESS: some have not
 * completed, and nothing has changed. Otherwise all have completed, the entries of those that are
 * not persistent are set to NULL, and the result is the first error in the array other than
 * COLLNET_ETIMEOUT, else COLLNET_ETIMEOUT, else COLLNET_OK. `statuses`, which may be NULL, receives
 * the n results. COLLNET_EINVAL: a request is listed twice, and nothing has changed.
 */
int collnet_waitall(size_t n, collnet_request_t **requests, int *statuses, uint32_t timeout_ms);
int collnet_testall(size_t n, collnet_request_t **requests, int *statuses);

/**
 * The same, for any of n requests: the result is that of requests[*index], which has completed and
 * whose entry is set to NULL unless it is persistent. If all entries were ignored, *index is n and
 * the result is COLLNET_OK.
 */
int collnet_waitany(size_t n, collnet_request_t **requests, size_t *index, uint32_t timeout_ms);
int collnet_testany(size_t n, collnet_request_t **requests, size_t *index);

/* ---- endpoints ------------------------------------------------------------------------ */

/** The address of an endpoint. */
struct collnet_address {
	char node[COLLNET_NAME_MAX + 1]; /**< name of the node */
	uint16_t endpoint;		 /**< number of the endpoint there, 1 .. 65535 */
};

/**
 * Opens the endpoint `number` on this node; 0 selects a free number. Only one context of a node at
 * a time can use a number.
 */
int collnet_endpoint_open(collnet_t *c, uint16_t number, collnet_endpoint_t **out);
void collnet_endpoint_close(collnet_endpoint_t *e);
uint16_t collnet_endpoint_number(const collnet_endpoint_t *e);

/**
 * Sends one message of 0 .. COLLNET_MESSAGE_MAX bytes. Returns when `data` can be reused, which
 * may be before the receiver has received the message. Messages from one endpoint to another are
 * delivered exactly once and in order. COLLNET_ENOENT: there is no such node, or the endpoint is
 * not open.
 */
int collnet_send(collnet_endpoint_t *e, const struct collnet_address *to, const void *data,
		 size_t bytes, uint32_t timeout_ms);
/**
 * Receives the next message from any sender. On entry `bytes` is the capacity of `data`, on return
 * the length of the message. COLLNET_ETRUNC: the message was longer; `data` contains its
 * beginning, the rest is lost. `from` may be NULL.
 */
int collnet_recv(collnet_endpoint_t *e, struct collnet_address *from, void *data, size_t *bytes,
		 uint32_t timeout_ms);

/** The non-blocking versions; `from` and `bytes` are set when the request completes. */
int collnet_isend(collnet_endpoint_t *e, const struct collnet_address *to, const void *data,
		  size_t bytes, uint32_t timeout_ms, collnet_request_t **out);
int collnet_irecv(collnet_endpoint_t *e, struct collnet_address *from, void *data, size_t *bytes,
		  uint32_t timeout_ms, collnet_request_t **out);

/* ---- statistics, nodes, jobs ---------------------------------------------------------- */

/** Counters of the node since its transport started, over all jobs. */
struct collnet_stats {
	size_t size;		  /**< sizeof(struct collnet_stats), set by the caller */
	uint64_t frames_sent;	  /**< all frames sent */
	uint64_t frames_received; /**< all valid frames received */
	uint64_t bytes_sent;	  /**< with Ethernet headers and padding to 60 bytes */
	uint64_t bytes_received;
	uint64_t data_sent;	/**< reliable frames sent for the first time */
	uint64_t data_resent;	/**< reliable frames retransmitted */
	uint64_t data_received; /**< reliable frames accepted in order */
	uint64_t acks_sent;	/**< frames that carry only an acknowledgement */
	uint64_t ack_bytes_sent;
	uint64_t naks_sent;	  /**< those of them that carry a negative acknowledgement */
	uint64_t duplicates;	  /**< reliable frames that had been received before */
	uint64_t gaps;		  /**< reliable frames that arrived ahead of a missing one */
	uint64_t timeouts;	  /**< expiries of the retransmission timer */
	uint64_t busy;		  /**< frames rejected because no buffer was free (RNR) */
	uint64_t bad_frames;	  /**< malformed frames; wrong tags */
	uint64_t foreign_frames;  /**< frames of another protocol, hellos of another cluster */
	uint64_t stale_frames;	  /**< frames of an earlier incarnation or an unknown node */
	uint64_t ring_drops;	  /**< frames that the kernel dropped: no room to receive */
	uint64_t cpu_ns;	  /**< processor time of the process that runs the transport */
	uint64_t rss_bytes;	  /**< its resident memory, without its clients' buffers */
	uint32_t window;	  /**< global window in force; COLLNET_WINDOW_OFF for none */
	uint32_t window_now;	  /**< frames in flight under the global window */
	uint32_t window_peak;	  /**< their maximum since the context reset the peak */
	uint32_t nodes;		  /**< known nodes, including this one */
	uint32_t jobs;		  /**< teams that have a rank here */
	uint32_t mtu;		  /**< bytes after the Ethernet header */
	uint64_t link_rate;	  /**< bit/s of this node's link; 0: unknown */
	uint64_t version_frames;  /**< frames of another version, encapsulation, key */
	uint64_t plans;		  /**< schedules planned */
	uint32_t adaptive_window; /**< of exchanges, without a topology; 0: not in use */
	uint8_t no_carrier;	  /**< 1: the interface is up and has no carrier */
	uint8_t other_heard;	  /**< 1: a hello of another cluster came in the last minute */
	uint16_t other_cluster;	  /**< its cluster ID */
	char interface[32];	  /**< the network interface */
	char link[8];		  /**< "packet", "udp" or "pcap" */
	char encapsulation[8];	  /**< "raw", "udp" or "tcp" */
	uint16_t ethertype;	  /**< or UDP or TCP port */
	uint16_t cluster;
	uint32_t down;		/**< 1: the interface is down or missing; through a daemon only */
	uint64_t send_full;	/**< times that the interface's queue had no room */
	uint64_t send_errors;	/**< frames that were refused: too long, interface down, firewall */
	uint64_t authenticated; /**< 1: frames are authenticated by the cluster's key */
};

/** Reads the counters; reset_peak != 0 then sets this context's window_peak to window_now. */
int collnet_get_stats(collnet_t *c, struct collnet_stats *out, int reset_peak);

/** One node of the node table. */
struct collnet_node_info {
	char name[COLLNET_NAME_MAX + 1];
	uint8_t mac[6];
	uint8_t alive;	       /**< a frame arrived recently */
	uint8_t self;	       /**< this node */
	uint32_t mtu;	       /**< 0: unknown */
	uint32_t wire_version; /**< of its frames; nodes communicate only if it is equal */
	uint64_t heard_ns;     /**< time since its last frame */
	uint64_t rtt_ns;       /**< smoothed round-trip time; 0: unknown */
	uint64_t data_sent;
	uint64_t data_resent;
	uint64_t data_received;
	/** Why the two nodes cannot communicate, as "speaks wire version 2, this node 3", "uses
	 * encapsulation udp, this node raw", "has a key, this node none", "has no key, this node
	 * has one", "has another key than this node", "is called n1, as this node" or "is called
	 * n1, as another node"; "": not known */
	char mismatch[COLLNET_NAME_MAX + 33];
};

/**
 * Writes up to *count entries and sets *count to the number of known nodes. Up to 16 nodes with a
 * mismatch that were never in the table are listed last, by the topology's name or by address; by
 * address those that share a name.
 */
int collnet_get_nodes(collnet_t *c, struct collnet_node_info *out, size_t *count);

/** One team that has a rank on this node. */
struct collnet_job_info {
	char name[COLLNET_NAME_MAX + 1];
	uint32_t ranks;	     /**< size of the team */
	uint32_t local;	     /**< ranks on this node */
	uint32_t present;    /**< ranks that have joined */
	uint32_t ready;	     /**< all ranks have joined */
	uint64_t operations; /**< collectives completed here */
};

/** Writes up to *count entries and sets *count to the number of jobs. */
int collnet_get_jobs(collnet_t *c, struct collnet_job_info *out, size_t *count);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
