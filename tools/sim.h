/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside `collnet sim`: what was asked for, one case on a cluster in virtual time, and what the
 * equations say of it.
 *
 * sim_options.c and sim_fault.c parse, sim_fault_run.c has faults happen, sim.c puts the network
 * together and goes through sizes and algorithms, sim_run.c runs one case (the papers' experiments
 * use it too), sim_model.c is pure arithmetic, sim_watch.c writes traces and captures, sim_report.c
 * what a person or a program reads.
 */
#ifndef COLLNET_TOOLS_SIM_H
#define COLLNET_TOOLS_SIM_H

#include "sim/job.h"
#include "tools/bench/command.h"

/* ---- faults at their times (sim_fault.c, sim_fault_run.c) ----------------------------- */

#define SIM_FAULTS_MAX CN_SIM_PARTITIONS
#define SIM_NO_FAULT   UINT32_MAX

enum sim_fault_kind {
	SIM_FAULT_CRASH,
	SIM_FAULT_RESTART,
	SIM_FAULT_PAUSE,
	SIM_FAULT_CUT,
	SIM_FAULT_REPAIR,
	SIM_FAULT_PARTITION,
	SIM_FAULT_LOSS, /* from here on: shares of the frames that enter links */
	SIM_FAULT_DUPLICATE,
	SIM_FAULT_REORDER,
	SIM_FAULT_CORRUPT,
};

struct sim_fault {
	const char *text; /* as it was written; borrowed */
	enum sim_fault_kind kind;
	cn_time at, lasts; /* since the counted iterations began; 0: until the end */
	uint32_t host;	   /* CRASH, RESTART, PAUSE: index of a host; else CN_TOPO_NONE */
	uint32_t link;	   /* CUT, REPAIR, shares; CN_TOPO_NONE: all links */
	uint32_t ppm;
	uint8_t *side; /* PARTITION: [hosts], see cn_sim_partition(); else NULL; free() it */
};
/* The grammar is in sim_fault.c. `text` must live as long as *out. COLLNET_EINVAL, _ENOMEM. */
int sim_fault_parse(const struct cn_topo *t, const char *text, struct sim_fault *out,
		    struct cn_err *err);

/* What became of a fault. */
struct sim_fault_seen {
	bool began;
	bool idle; /* a restart of a host that was running */
	cn_time at;
};

/* A rank whose operation failed, or did not end. */
struct sim_end {
	uint32_t rank, host; /* host: its vertex */
	int status;
	bool pending;
	uint32_t culprit; /* vertex of the host that the error names; CN_TOPO_NONE: none */
	uint32_t fault;	  /* the culprit's last one before the error, or the first of all */
	cn_time after;	  /* from that fault to the error */
	bool faulted;	  /* the fault was the culprit's */
	bool own;	  /* the fault was its own host's */
	char text[CN_ERR_TEXT];
};

/* ---- one case (sim_run.c) ------------------------------------------------------------- */

struct sim_watch; /* sim_watch.c */

struct sim_case {
	struct cn_sim_config cluster;  /* with its topology */
	struct cn_sim_faults faults;   /* of all links, in both directions */
	const struct sim_fault *timed; /* [nfaults] */
	uint32_t nfaults;
	struct cn_coll_args args; /* op, algorithm, ..., bytes; buffers and deadline are ours */
	uint32_t local, iterations, warmup;
	bool verify;
	struct sim_watch *watch; /* NULL: nobody looks */
};

/* Where something was worst: the switch whose queue it was, and the port's other end. */
struct sim_spot {
	uint32_t at, peer; /* vertices; CN_TOPO_NONE: nowhere */
	uint64_t count;
	uint32_t room; /* frames that this queue holds, or the memory it is in; 0: not limited */
	bool input;    /* of what comes from the peer, not of what goes there */
	bool shared;   /* in the switch's memory */
};

struct sim_outcome {
	struct bench_times ns; /* of the iterations, each the mean of its ranks */
	double slowest_ns;     /* median of the slowest ranks' times */
	/* From here on of the counted iterations, of all nodes together. */
	uint64_t data_sent, data_resent, bytes_sent, ack_bytes;
	uint64_t ring_drops, drops, lost; /* full receive rings, full queues, faults */
	struct sim_spot worst_drops;
	struct sim_spot longest; /* queue */
	uint32_t window_peak;
	uint64_t wrong, frame_events;
	uint32_t failed; /* ranks; the first one's sentence is in why */
	char why[CN_ERR_TEXT + 96];
	/* Of a case with timed faults; sim_outcome_free(). */
	struct sim_fault_seen *seen; /* [nfaults] */
	struct sim_end *ends;	     /* [nends], in the order of ranks */
	uint32_t nends;
	enum sim_next {
		SIM_NEXT_NONE,	/* no rank failed */
		SIM_NEXT_RIGHT, /* when the faults were over a new job formed, and ran */
		SIM_NEXT_FAILED,
		SIM_NEXT_NEVER, /* a host stays down, or a link stays cut */
	} next;
	char next_why[CN_ERR_TEXT];
};

/* Errors are of the set-up; an operation that fails is an outcome. */
int sim_run(const struct sim_case *c, struct sim_outcome *out, struct cn_err *err);
void sim_outcome_free(struct sim_outcome *out);

/* The timed faults of a case whose counted iterations begin now; `s` ends before they are freed. */
struct sim_armed;
int sim_faults_arm(struct cn_sim *s, const struct sim_case *c, struct sim_fault_seen *seen,
		   struct sim_armed **out, struct cn_err *err);
void sim_faults_free(struct sim_armed *a); /* NULL is ignored */
/* Runs until the last of them has ended; false: a host stays down or a link stays cut. */
bool sim_faults_over(struct sim_armed *a);
/* The ranks of the job that failed, into out->ends. */
int sim_faults_ends(const struct sim_armed *a, const struct cn_job *j, struct sim_outcome *out,
		    struct cn_err *err);

/* ---- what the equations say (sim_model.c) --------------------------------------------- */

/*
 * Microseconds, NAN where an equation does not speak of the operation. Tam and Wang:
 * Eq. 2, the shuffle: all blocks of a host one frame every g, and T_w = O_s + L - g + O_r + U_r.
 * Eq. 6, pairwise exchange: the same with T_w once a round.
 * Eq. 7, the best that the busiest link allows, whichever it is and whatever the operation: what
 * must cross it, with the headers of its frames, at its rate.
 * A frame's g is what its host's link, its gap, or its processor needs, the longest of the three.
 */
struct sim_model {
	double eq2, eq6, eq7;
	double best;   /* the larger of Eq. 7 and Eq. 2 */
	double g, t_w; /* of a full frame, of the last frame of a block */
};
/* place->topo says all rates. */
void sim_model(const struct cn_sim_config *c, const struct bench_place *place, enum bench_op op,
	       uint64_t bytes, struct sim_model *out);

/* ---- traces and captures (sim_watch.c) ------------------------------------------------ */

#define SIM_TRACE_MAX 2000000u /* events of a trace file */

/*
 * trace: a file of Chrome's trace format, who sends what when on which port, of the counted
 * iterations. pcap: a capture file of the frames that cross `link`, in both directions, since the
 * beginning. Either may be NULL.
 */
int sim_watch_open(const struct cn_topo *t, const char *trace, const char *pcap, uint32_t link,
		   struct sim_watch **out, struct cn_err *err);
void sim_watch_measure(struct sim_watch *w, bool measuring);
/* For cn_sim_watch(). */
void sim_watch_see(void *arg, const struct cn_sim_sight *seen);
/* *cut (may be NULL): the trace has reached SIM_TRACE_MAX. NULL is ignored. */
int sim_watch_close(struct sim_watch *w, bool *cut, struct cn_err *err);

/* "SWITCH-PEER": the link between the two; names may have a '-'. COLLNET_EINVAL. */
int sim_find_port(const struct cn_topo *t, const char *text, uint32_t *link, struct cn_err *err);

/* ---- the verb ------------------------------------------------------------------------- */

struct sim_options {
	struct bench_options bench; /* operation, sizes, algorithms, ..., iterations, outputs */
	const char *shape, *topology;
	uint64_t rate, uplink; /* 0: not said */
	uint32_t buffer, uplink_buffer;
	bool buffer_said, uplink_buffer_said;
	struct cn_sim_config cluster; /* without topology: kind, times, seed */
	struct cn_sim_faults faults;
	const char *fault_texts[SIM_FAULTS_MAX];
	struct sim_fault timed[SIM_FAULTS_MAX]; /* of the texts, once the topology is there */
	uint32_t nfaults;
	uint32_t local;
	const char *trace, *pcap, *port;
	const char *experiment, *output;
	const char *alien; /* the first option that does not go with an experiment */
	bool quick;
};

/* TOOL_OK, TOOL_USAGE, or -1: help was asked for and given. */
int sim_options_parse(struct sim_options *o, int argc, char **argv);
/* "500", "500ns", "2.5us", "1ms", "0" -> nanoseconds, at most a minute. */
int sim_parse_time(const char *text, cn_time *out, struct cn_err *err);

/* A row of the table; and the closing line, of the fastest of `rivals` algorithms. */
struct sim_row {
	const struct sim_options *o;
	const struct bench_result *r; /* failed: of the rest only model and predicted_us count */
	const struct sim_outcome *out;
	const struct sim_model *model;
	double predicted_us;
};
bool sim_report(struct bench *b, const struct sim_row *row);

/* Of timed faults (sim_fault_report.c): keys of the object, columns of the CSV file, and lines. */
extern const char sim_fault_names[];
void sim_fault_json(struct json *j, const struct cn_topo *t, const struct sim_row *row);
void sim_fault_cells(FILE *f, const struct sim_outcome *out);
void sim_fault_table(const struct cn_topo *t, const struct sim_row *row);

void sim_report_end(const struct bench *b, const struct sim_row *best, uint32_t rivals);

#endif
