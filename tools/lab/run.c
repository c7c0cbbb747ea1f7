/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The supervisor: makes the cluster, runs the command on it, reports.
 *
 * It is PID 1 of its process namespace: it reaps everything, and when it returns everything that
 * is left is killed by the kernel. So it ends daemons politely, and need not be complete.
 *
 * Output of the ranks (but of rank 0, if it goes to a terminal) is passed on in whole lines, so
 * that lines of different ranks do not mix.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/lab/command.h"
#include "util/clock.h"

#define LINE_MAX_BYTES 65536u
#define STOP_MS	       5000 /* daemons have this long to end */
#define GRACE_MS       1000 /* and all processes, after a signal */

/* One stream of a rank's output. */
struct stream {
	int from; /* -1: at its end */
	int to;
	uint32_t rank;
	bool within; /* a line of which LINE_MAX_BYTES or more were passed on */
	size_t len;
	char *line;
};

struct run {
	struct lab *lab;
	struct stream *streams;
	uint32_t nstreams;
	struct pollfd *polls; /* [nstreams + 2] */
	uint32_t running;     /* ranks, or the shell */
	pid_t shell;
	int shell_status;
	bool stopping; /* daemons are being ended: their end is no accident */
	int unwritten; /* why output was lost: errno; or 0 */
};

static uint64_t now_ms(void)
{
	return cn_now() / CN_MS;
}

int lab_ms_until(uint64_t until)
{
	uint64_t now = now_ms();

	if (until == 0) {
		return -1;
	}
	return until <= now ? 0 : until - now > 3600000 ? 3600000 : (int)(until - now);
}

static void die_alone(const struct pollfd *lifeline)
{
	if (lifeline->revents != 0) {
		_exit(128 + SIGKILL); /* `collnet lab` is gone */
	}
}

static int shell_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- ends of processes ---------------------------------------------------------------- */

static void daemon_ended(struct run *run, struct lab_host *h, int status)
{
	bool killed = WIFSIGNALED(status) &&
		      (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGTERM);

	h->daemon = 0;
	if (status == 0) {
		return;
	}
	if (killed) {
		if (!run->stopping) {
			tool_complain("collnetd on %s was killed by signal %d", h->name,
				      WTERMSIG(status));
		}
		return;
	}
	run->lab->daemon_bad = true;
	tool_complain("collnetd on %s ended with status %d; its last messages:", h->name,
		      shell_status(status));
	lab_print_log_tail(h);
}

static void reap(struct run *run)
{
	struct lab *lab = run->lab;
	int status;
	uint32_t i;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (i = 0; i < lab->nranks; i++) {
			if (lab->ranks[i].pid == pid) {
				lab->ranks[i].pid = 0;
				lab->ranks[i].status = shell_status(status);
				run->running--;
			}
		}
		for (i = 0; i < lab->nhosts; i++) {
			if (lab->hosts[i].daemon == pid) {
				daemon_ended(run, &lab->hosts[i], status);
			}
		}
		if (pid == run->shell) {
			run->shell = 0;
			run->shell_status = shell_status(status);
			run->running--;
		}
	}
}

void lab_read_signals(struct lab *lab)
{
	struct signalfd_siginfo info;

	while (read(lab->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo != SIGCHLD && lab->stopped_by == 0) {
			lab->stopped_by = (int)info.ssi_signo;
		}
	}
}

static void read_signals(struct run *run)
{
	lab_read_signals(run->lab);
	reap(run);
}

/* ---- output --------------------------------------------------------------------------- */

/* Waits until `fd` takes a page. False: it does not, and the lab ends. */
static bool wait_writable(struct run *run, int fd)
{
	struct pollfd p[] = { { .fd = fd, .events = POLLOUT },
			      { .fd = run->lab->signals, .events = POLLIN },
			      { .fd = run->lab->lifeline, .events = POLLIN } };
	bool ending;

	do {
		ending = run->stopping || run->lab->stopped_by != 0;
		if (poll(p, 3, ending ? 0 : lab_ms_until(run->lab->deadline)) == 0) {
			return false;
		}
		die_alone(&p[2]);
		if (p[1].revents != 0) {
			read_signals(run);
		}
	} while (p[0].revents == 0);
	return true;
}

/* A reader may be slow: the time and signals do not wait for it. Without one the lab ends. */
static void put(struct run *run, int fd, const char *p, size_t len)
{
	ssize_t n;

	while (len > 0 && wait_writable(run, fd)) {
		n = write(fd, p, len < PIPE_BUF ? len : PIPE_BUF);
		if (n < 0 && errno == EPIPE && run->lab->stopped_by == 0) {
			run->lab->stopped_by = SIGPIPE;
		}
		if (n < 0 && errno != EINTR && errno != EAGAIN) {
			run->unwritten = errno;
			return;
		}
		p += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
}

static void put_lines(struct run *run, struct stream *s, bool all)
{
	const struct lab *lab = run->lab;
	char tag[COLLNET_NAME_MAX + 20] = "", *end;
	size_t start = 0, n;

	if (lab->o->tag) {
		snprintf(tag, sizeof(tag), "[%s:%u] ", lab->hosts[lab->ranks[s->rank].host].name,
			 s->rank);
	}
	while (start < s->len) {
		end = memchr(s->line + start, '\n', s->len - start);
		if (end == NULL && !all && (start > 0 || s->len < LINE_MAX_BYTES)) {
			break;
		}
		n = end == NULL ? s->len - start : (size_t)(end - (s->line + start)) + 1;
		put(run, s->to, tag, s->within ? 0 : strlen(tag));
		put(run, s->to, s->line + start, n);
		s->within = end == NULL;
		start += n;
	}
	if (all && s->within) {
		put(run, s->to, "\n", 1);
		s->within = false;
	}
	memmove(s->line, s->line + start, s->len - start);
	s->len -= start;
}

/* Takes what one read() gives, so that nothing else waits for a busy stream: its bytes, if any. */
static ssize_t read_stream(struct run *run, struct stream *s)
{
	ssize_t n = read(s->from, s->line + s->len, LINE_MAX_BYTES - s->len);

	if (n > 0) {
		s->len += (size_t)n;
		put_lines(run, s, false);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		put_lines(run, s, true);
		close(s->from);
		s->from = -1;
	}
	return n;
}

/* Takes what is there now, and ends the last line. */
static void drain_stream(struct run *run, struct stream *s)
{
	int left = 0;
	ssize_t n = 1;

	(void)ioctl(s->from, FIONREAD, &left);
	for (; left > 0 && n > 0; left -= (int)n) {
		n = read_stream(run, s);
	}
	put_lines(run, s, true);
}

static int add_stream(struct run *run, int from, int to, uint32_t rank)
{
	struct stream *s = &run->streams[run->nstreams];

	if (from < 0) {
		return 0;
	}
	s->line = malloc(LINE_MAX_BYTES);
	if (s->line == NULL || fcntl(from, F_SETFL, O_NONBLOCK) < 0) {
		return -1;
	}
	s->from = from;
	s->to = to;
	s->rank = rank;
	s->len = 0;
	run->nstreams++;
	return 0;
}

/* Waits for the next event, at most until `until` (0: no limit). False: `until` has passed. */
static bool wait_event(struct run *run, uint64_t until)
{
	uint32_t i;
	int n;

	for (i = 0; i < run->nstreams; i++) {
		run->polls[i].fd = run->streams[i].from;
		run->polls[i].events = POLLIN;
	}
	run->polls[i].fd = run->lab->signals;
	run->polls[i].events = POLLIN;
	run->polls[i + 1].fd = run->lab->lifeline;
	run->polls[i + 1].events = POLLIN;
	n = poll(run->polls, run->nstreams + 2, lab_ms_until(until));
	if (n > 0) {
		die_alone(&run->polls[run->nstreams + 1]);
	}
	for (i = 0; n > 0 && i < run->nstreams; i++) {
		if (run->polls[i].revents != 0) {
			read_stream(run, &run->streams[i]);
		}
	}
	read_signals(run);
	return until == 0 || now_ms() < until;
}

/* ---- the story ------------------------------------------------------------------------ */

static int start_ranks(struct run *run, struct cn_err *err)
{
	struct lab *lab = run->lab;
	int rc = COLLNET_OK, out, errs;
	uint32_t r;

	run->streams = calloc(2 * (size_t)lab->nranks, sizeof(*run->streams));
	run->polls = calloc(2 * (size_t)lab->nranks + 2, sizeof(*run->polls));
	if (run->streams == NULL || run->polls == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory");
	}
	for (r = 0; rc == COLLNET_OK && r < lab->nranks; r++) {
		rc = lab_start_rank(lab, r, &out, &errs, err);
		if (rc == COLLNET_OK) {
			run->running++;
			if (add_stream(run, out, 1, r) < 0 || add_stream(run, errs, 2, r) < 0) {
				rc = cn_fail(err, COLLNET_ENOMEM, "no memory");
			}
		}
	}
	return rc;
}

static void print_remaining(const struct run *run)
{
	const struct lab *lab = run->lab;
	uint32_t r, n = 0;

	fprintf(stderr, "collnet lab: timed out after %llu s",
		(unsigned long long)lab->o->timeout_s);
	for (r = 0; r < lab->nranks; r++) {
		if (lab->ranks[r].pid != 0 && n++ < 16) {
			fprintf(stderr, "%s %u", n == 1 ? "; still running: rank" : ",", r);
		}
	}
	fputs(n > 16 ? ", ...\n" : "\n", stderr);
}

/* Runs until the ranks (or the shell) have ended, the time is over or a signal came. */
static int run_command(struct run *run)
{
	struct lab *lab = run->lab;
	bool in_time = true;
	uint32_t i;
	int worst;

	while (in_time && run->running > 0 && run->lab->stopped_by == 0) {
		in_time = wait_event(run, run->lab->deadline) || run->running == 0;
	}
	for (i = 0; i < run->nstreams; i++) {
		if (run->streams[i].from >= 0) {
			drain_stream(run, &run->streams[i]);
		}
	}
	if (run->lab->stopped_by != 0) {
		return 128 + run->lab->stopped_by;
	}
	if (!in_time) {
		print_remaining(run);
		return LAB_EXIT_TIMEOUT;
	}
	worst = run->shell_status;
	for (i = 0; i < lab->nranks; i++) {
		worst = lab->ranks[i].status > worst ? lab->ranks[i].status : worst;
	}
	return worst;
}

static bool all_ended(const struct lab *lab)
{
	uint32_t i;

	for (i = 0; i < lab->nhosts; i++) {
		if (lab->hosts[i].daemon != 0) {
			return false;
		}
	}
	return true;
}

/* Ends the daemons by SIGTERM; whoever does not end in time is named. */
static void stop_daemons(struct run *run)
{
	struct lab *lab = run->lab;
	bool in_time = true;
	uint64_t until = now_ms() + STOP_MS;
	uint32_t i;

	run->stopping = true;
	for (i = 0; i < lab->nhosts; i++) {
		if (lab->hosts[i].daemon != 0) {
			kill(lab->hosts[i].daemon, SIGTERM);
		}
	}
	while (in_time && !all_ended(lab)) {
		in_time = wait_event(run, until);
	}
	for (i = 0; i < lab->nhosts; i++) {
		if (lab->hosts[i].daemon != 0) {
			lab->daemon_bad = true;
			tool_complain("collnetd on %s did not end within %d s of SIGTERM",
				      lab->hosts[i].name, STOP_MS / 1000);
			lab_print_log_tail(&lab->hosts[i]);
		}
	}
}

/* Instead of a shell. It may have files outside the lab to remove at its end, as collnet compare
 * does. */
static bool has_command(const struct lab_options *o)
{
	return o->shell && o->command != NULL && o->command[0] != NULL;
}

/* After the timeout: it gets a grace period before SIGKILL. */
static void stop_command(struct run *run)
{
	const uint64_t until = now_ms() + STOP_MS;

	run->stopping = true;
	if (run->running > 0) {
		kill(run->shell, SIGTERM);
	}
	while (run->running > 0 && wait_event(run, until)) {
		/* again */
	}
}

/* After a signal: all processes get a grace period before SIGKILL. */
static void stop_all(struct run *run)
{
	uint64_t until = now_ms() + (has_command(run->lab->o) ? STOP_MS : GRACE_MS);

	run->stopping = true;
	kill(-1, SIGTERM);
	while ((run->running > 0 || !all_ended(run->lab)) && wait_event(run, until)) {
		/* again */
	}
}

static void print_usage(const struct lab *lab)
{
	static const char mpi[] =
		"  lab-on HOST mpirun ...     ranks of MPI on hosts; see collnet-lab(1)\n";
	const char *first = lab->hosts[0].name;

	printf("A cluster of %u hosts (%s .. %s) is up; it ends with this shell.\n"
	       "  lab-on %s COMMAND          runs COMMAND on a host (ip netns exec %s: on all processors)\n"
	       "  lab-on %s collnet status   nodes, jobs and counters of its daemon\n"
	       "  lab-daemon %s              restarts its daemon\n"
	       "%s"
	       "  tc -s qdisc                the switches' ports (this shell is among the switches)\n"
	       "  %s           topology, logs, process ids\n",
	       lab->nhosts, first, lab->hosts[lab->nhosts - 1].name, first, first, first, first,
	       lab->o->ip ? mpi : "", LAB_DIR);
}

/* Signals come through a descriptor from here on; PID 1 would not get them otherwise. */
static int take_signals(struct lab *lab, struct cn_err *err)
{
	sigset_t set;

	lab_signals(lab, &set);
	sigaddset(&set, SIGCHLD);
	signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL) == 0) {
		lab->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	}
	return lab->signals >= 0 ? COLLNET_OK
				 : cn_fail(err, COLLNET_ESYSTEM, "signalfd: %s", strerror(errno));
}

static int make_cluster(struct lab *lab, struct cn_err *err)
{
	int rc = lab_private_files(lab, err);

	if (rc == COLLNET_OK) {
		rc = lab_make_network(lab, err);
	}
	return rc != COLLNET_OK ? rc : lab_write_scripts(lab, err);
}

static int start_lab(struct run *run, struct cn_err *err)
{
	struct lab *lab = run->lab;
	int rc = make_cluster(lab, err);

	if (rc == COLLNET_OK) {
		rc = take_signals(lab, err);
	}
	if (lab->o->timeout_s != 0) {
		lab->deadline = now_ms() + lab->o->timeout_s * 1000;
	}
	if (rc == COLLNET_OK && !lab->o->no_daemons) {
		rc = lab_start_daemons(lab, err);
	}
	if (rc != COLLNET_OK) {
		return rc;
	}
	if (!lab->o->shell) {
		rc = start_ranks(run, err);
	} else {
		run->polls = calloc(2, sizeof(*run->polls));
		if (run->polls == NULL) {
			return cn_fail(err, COLLNET_ENOMEM, "no memory");
		}
		if (lab->o->command == NULL || lab->o->command[0] == NULL) {
			print_usage(lab);
		}
		rc = lab_start_shell(lab, &run->shell, err);
		run->running = rc == COLLNET_OK ? 1 : 0;
	}
	return rc;
}

int lab_supervise(struct lab *lab)
{
	struct run run = { .lab = lab };
	struct cn_err err = { 0 };
	int rc = start_lab(&run, &err), status;

	if (rc != COLLNET_OK && lab->stopped_by != 0) {
		return 128 + lab->stopped_by;
	}
	if (rc != COLLNET_OK) {
		tool_complain("%s", err.text);
		return rc == COLLNET_EPERM	? LAB_EXIT_SKIP
		       : rc == COLLNET_ETIMEOUT ? LAB_EXIT_TIMEOUT
						: 1;
	}
	status = run_command(&run);
	if (lab->stopped_by != 0) {
		stop_all(&run);
		return status;
	}
	if (status == LAB_EXIT_TIMEOUT && has_command(lab->o)) {
		stop_command(&run);
	}
	stop_daemons(&run);
	status = status == 0 && lab->daemon_bad ? 1 : status;
	if (run.unwritten != 0) {
		tool_complain("the ranks' output could not be written: %s",
			      strerror(run.unwritten));
		status = status == 0 ? 1 : status;
	}
	if (lab_report_ports(lab, status, &err) != COLLNET_OK) {
		tool_complain("%s", err.text);
		status = status == 0 ? 1 : status;
	}
	return status;
}
