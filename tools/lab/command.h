/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lab: an emulated cluster of network namespaces, which exists while one command runs.
 *
 *   collnet lab        the process that the user started; waits, forwards signals
 *   `- supervisor      PID 1 of a new process namespace; creates the cluster, starts everything
 *      |- collnetd     one per host, in the host's network and host-name namespace
 *      `- ranks        the user's command, likewise
 *
 * When the supervisor ends, for whatever reason, the kernel kills everything in its process
 * namespace, and with the last process the mounts and networks go too. The supervisor in turn
 * dies with `collnet lab` (parent-death signal). So nothing needs to be cleaned up, and nothing
 * can be left behind.
 *
 * The network: every host is a network namespace with an interface eth0; all switches are Linux
 * bridges in one more namespace, the fabric, which is the supervisor's own.
 */
#ifndef CN_LAB_H
#define CN_LAB_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "tools/shape.h"
#include "tools/tool.h"

#define LAB_RATE_MAX	 1000000000000u /* of a link, with all channels */
#define LAB_BUFFER_MAX	 100000u
#define LAB_HOSTS_MAX	 1024u
#define LAB_RANKS_MAX	 COLLNET_RANKS_MAX
#define LAB_DIR		 "/run/collnet-lab" /* private: /run is the lab's own */
#define LAB_LOGS	 LAB_DIR "/logs"    /* of the daemons; --keep-logs is mounted there */
#define LAB_EXIT_SKIP	 77		    /* the system refuses namespaces */
#define LAB_EXIT_TIMEOUT 124

struct lab_options {
	bool shell; /* `lab shell`, else `lab run` */
	struct shape shape;
	const char *topology; /* file to read instead of a shape */
	uint32_t mtu;
	uint32_t loss_ppm; /* frames lost of a million */
	uint32_t duplicate_ppm, reorder_ppm;
	uint32_t ranks_per_node;
	uint64_t timeout_s;	   /* 0: none */
	const char *encapsulation; /* NULL: the default */
	bool no_daemons, no_topology, ip, ports, json, tag;
	const char *keep_logs;
	char **daemon_args; /* points into argv */
	uint32_t ndaemon_args;
	char **command; /* NULL-terminated; NULL: none */
};

struct lab_host {
	uint32_t vertex;
	const char *name;
	cpu_set_t cpus; /* that its processes run on; none: all */
	pid_t daemon;	/* 0: not running (any more) */
	int ready;	/* readable when the daemon is ready, until it is; else -1 */
};

struct lab_rank {
	pid_t pid; /* 0: ended */
	uint32_t host;
	int status; /* exit status, as a shell encodes it */
};

struct lab {
	const struct lab_options *o;
	struct cn_topo *topo;
	struct lab_host *hosts;
	uint32_t nhosts;
	struct lab_rank *ranks;
	uint32_t nranks;
	bool nohup;	  /* SIGHUP is ignored, and stays so */
	bool plain_names; /* interfaces of the fabric are called as switches and hosts are */
	char job[COLLNET_NAME_MAX + 1];
	char *daemon;	   /* path of collnetd */
	int lifeline;	   /* at its end when `collnet lab` is gone */
	int signals;	   /* signalfd */
	int stopped_by;	   /* signal, or 0 */
	uint64_t deadline; /* ms of the monotonic clock; 0: none */
	bool daemon_bad;   /* a daemon ended that was not killed */
};

struct lab_port_count {
	uint64_t frames, bytes, drops;
};

/* command.c: the signals that end the lab, and the directory of this program. */
void lab_signals(const struct lab *lab, sigset_t *set);
void lab_own_directory(char *dir, size_t size);

/* plan.c: what is to be made. Fills in the options that were not specified. */
int lab_plan(struct lab *lab, struct lab_options *o, struct cn_err *err);

/* namespaces.c: new ones of this process, of the kinds CLONE_NEW*. COLLNET_EPERM: refused. */
int lab_unshare(const char *what, unsigned kinds, struct cn_err *err);

/* net.c: the private file systems, the namespaces and the wires. COLLNET_EPERM: refused. */
int lab_private_files(struct lab *lab, struct cn_err *err);
int lab_make_network(struct lab *lab, struct cn_err *err);
/* Enters the namespaces of a host (or, by NULL, of the fabric). */
int lab_enter(const char *host, struct cn_err *err);
/* Name of the interface on switch `sw` that leads over `link`. */
void lab_port_name(const struct lab *lab, uint32_t sw, uint32_t link, char *out, size_t size);

/* fault.c: --loss and --duplicate, in the fabric; --reorder, in the host's namespace. */
#define LAB_NIC_QUEUE 1000u /* frames that wait at a host's interface */
int lab_lose_frames(struct lab *lab, struct cn_err *err);
int lab_duplicate_frames(struct lab *lab, struct cn_err *err);
int lab_reorder_frames(const struct lab *lab, uint64_t rate, struct cn_err *err);

/* tool.c: running ip, tc, bridge and nft. */
bool lab_find_tool(const char *name, char *path, size_t size);
/* Runs argv with `input` on its standard input; *output (may be NULL) is the caller's to free. */
int lab_tool(char *const argv[], const char *input, size_t len, char **output, struct cn_err *err);
/* A batch of commands for one: written to f, and run. lab_batch_run() closes and frees it. */
struct lab_batch {
	char *text;
	size_t len;
	FILE *f;
};
int lab_batch_open(struct lab_batch *b, struct cn_err *err);
int lab_batch_run(struct lab_batch *b, char *const argv[], struct cn_err *err);
int lab_write_file(const char *path, mode_t mode, const char *text, struct cn_err *err);

/* cpus.c: hosts and processors. lab_bind() binds this process to those of a host; lab_write_bind()
 * writes the command that binds a shell. */
void lab_assign_cpus(struct lab *lab);
void lab_bind(const struct lab_host *h);
void lab_write_bind(const struct lab_host *h, FILE *f);

/* start.c: daemons and ranks come to life. */
int lab_write_scripts(struct lab *lab, struct cn_err *err);
int lab_start_daemons(struct lab *lab, struct cn_err *err);
void lab_print_log_tail(const struct lab_host *h);
/* Starts rank r; *out and *errs become the reading ends of its output, or -1: passed through. */
int lab_start_rank(struct lab *lab, uint32_t r, int *out, int *errs, struct cn_err *err);
int lab_start_shell(struct lab *lab, pid_t *pid, struct cn_err *err);

/* run.c: the supervisor's life from the first process to the last. */
int lab_supervise(struct lab *lab);
/* For poll(): milliseconds until then; of 0, no limit. */
int lab_ms_until(uint64_t until);
/* Notes the first signal that came, but for SIGCHLD, in lab->stopped_by. */
void lab_read_signals(struct lab *lab);

/* ports.c: what the ports counted. */
int lab_report_ports(struct lab *lab, int status, struct cn_err *err);

#endif
