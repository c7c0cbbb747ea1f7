/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `collnet lab`: its options, and the process that the user sees.
 *
 * This process makes the supervisor and waits for it. It passes SIGINT, SIGTERM and SIGHUP on, but
 * SIGHUP stays ignored under nohup. If it dies otherwise, the kernel sends SIGKILL to the
 * supervisor.
 */
#include "client/env.h"
#include "proto/frame.h"
#include "tools/lab/command.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <termios.h>
#include <unistd.h>

static const char usage_text[] =
	"usage: collnet lab run (--shape SHAPE | --topology FILE) [OPTION...] -- COMMAND...\n"
	"       collnet lab shell (--shape SHAPE | --topology FILE) [OPTION...] [-- COMMAND...]\n"
	"\n"
	"Emulates a cluster on this machine: hosts, switches with finite buffers, links with rates.\n"
	"run runs COMMAND on every host, with its rank in COLLNET_RANK, and exits with the worst\n"
	"status. shell runs one shell (or COMMAND) in the namespace of the switches. A lab leaves\n"
	"nothing behind. Defaults are in parentheses.\n"
	"\n"
	"the network:\n"
	"  --shape A or AxB        A hosts on one switch, or on each of B switches under a root\n"
	"  --topology FILE         a topology file, which specifies rates and buffers itself\n" SHAPE_HELP
	"  --mtu BYTES             MTU of all links (1500)\n"
	"  --loss PERCENT          frames lost at random where they enter the switches\n"
	"  --duplicate PERCENT     frames duplicated where they leave the switches for hosts; up to 50%\n"
	"  --reorder PERCENT       frames delayed by 10 ms, on kernels with netem\n"
	"  --ip                    give hosts IP addresses, host names and an /etc/hosts\n"
	"\n"
	"the processes:\n"
	"  --ranks-per-node N      ranks per host (1)\n"
	"  --no-daemons            no collnetd on the hosts; ranks open the interface themselves\n"
	"  --no-topology           nodes have no topology file\n"
	"  --encapsulation udp|tcp|raw  of the frames (COLLNET_ENCAPSULATION, or udp)\n"
	"  --daemon-arg ARG        an additional argument of every collnetd; may be repeated\n"
	"  --keep-logs DIR         write the daemons' logs to DIR/HOST.log\n"
	"  --timeout SECONDS       end the lab after that time, with status 124 (no limit)\n"
	"  --tag                   prefix each line of output with [HOST:RANK]\n"
	"\n"
	"afterwards:\n"
	"  --ports                 print frames and drops of every switch port\n"
	"  --json                  print them as one JSON object, on the last line\n"
	"  --help                  print this text\n"
	"\n"
	"Exit status: that of the command; 2: invalid command line; 77: the system does not allow\n"
	"namespaces; 124: timeout.\n";

enum {
	OPT_TOPOLOGY = SHAPE_OPT_OWN,
	OPT_MTU,
	OPT_LOSS,
	OPT_DUPLICATE,
	OPT_REORDER,
	OPT_IP,
	OPT_RANKS,
	OPT_NO_DAEMONS,
	OPT_NO_TOPOLOGY,
	OPT_ENCAPSULATION,
	OPT_DAEMON_ARG,
	OPT_KEEP_LOGS,
	OPT_TIMEOUT,
	OPT_TAG,
	OPT_PORTS,
	OPT_JSON,
};

static const struct option options[] = {
	{ "help", no_argument, NULL, 'h' },
	SHAPE_OPTIONS,
	{ "topology", required_argument, NULL, OPT_TOPOLOGY },
	{ "mtu", required_argument, NULL, OPT_MTU },
	{ "loss", required_argument, NULL, OPT_LOSS },
	{ "duplicate", required_argument, NULL, OPT_DUPLICATE },
	{ "reorder", required_argument, NULL, OPT_REORDER },
	{ "ip", no_argument, NULL, OPT_IP },
	{ "ranks-per-node", required_argument, NULL, OPT_RANKS },
	{ "no-daemons", no_argument, NULL, OPT_NO_DAEMONS },
	{ "no-topology", no_argument, NULL, OPT_NO_TOPOLOGY },
	{ "encapsulation", required_argument, NULL, OPT_ENCAPSULATION },
	{ "daemon-arg", required_argument, NULL, OPT_DAEMON_ARG },
	{ "keep-logs", required_argument, NULL, OPT_KEEP_LOGS },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "tag", no_argument, NULL, OPT_TAG },
	{ "ports", no_argument, NULL, OPT_PORTS },
	{ "json", no_argument, NULL, OPT_JSON },
	{ NULL, 0, NULL, 0 },
};

/* ---- options -------------------------------------------------------------------------- */

/* "1%", "0.5%", "2.25": per cent, into frames of a million. */
static int parse_share(char *text, uint32_t most_ppm, uint32_t *ppm, struct cn_err *err)
{
	size_t len = strlen(text);
	uint64_t thousandths;

	if (len > 0 && text[len - 1] == '%') {
		text[len - 1] = '\0';
	}
	if (tool_parse_thousandths(text, &thousandths) != COLLNET_OK ||
	    thousandths > most_ppm / 10) {
		return cn_fail(err, COLLNET_EINVAL,
			       "'%.40s' is not a percentage from 0 to %u with at most 3 decimals",
			       text, most_ppm / 10000);
	}
	*ppm = (uint32_t)thousandths * 10;
	return COLLNET_OK;
}

static int parse_number(struct lab_options *o, int option, char *value, struct cn_err *err)
{
	switch (option) {
	case OPT_MTU:
		return tool_parse_u32(value, CN_FRAME_MTU_MIN, 65521, &o->mtu, err);
	case OPT_RANKS:
		return tool_parse_u32(value, 1, LAB_RANKS_MAX, &o->ranks_per_node, err);
	case OPT_TIMEOUT:
		return tool_parse_number(value, 1, 10000000, &o->timeout_s, err);
	case OPT_DUPLICATE:
		return parse_share(value, 500000, &o->duplicate_ppm, err);
	case OPT_REORDER:
		return parse_share(value, 1000000, &o->reorder_ppm, err);
	default: /* OPT_LOSS */
		return parse_share(value, 990000, &o->loss_ppm, err);
	}
}

static int parse_option(void *into, int option, char *value, struct cn_err *err)
{
	struct lab_options *o = into;
	enum cn_encapsulation encapsulation;

	if (option < SHAPE_OPT_OWN) {
		return shape_option(&o->shape, option, value, err);
	}
	switch (option) {
	case OPT_TOPOLOGY:
		o->topology = value;
		return COLLNET_OK;
	case OPT_IP:
		o->ip = true;
		return COLLNET_OK;
	case OPT_NO_DAEMONS:
		o->no_daemons = true;
		return COLLNET_OK;
	case OPT_NO_TOPOLOGY:
		o->no_topology = true;
		return COLLNET_OK;
	case OPT_ENCAPSULATION:
		o->encapsulation = value;
		return tool_parse_encapsulation(value, &encapsulation, err);
	case OPT_DAEMON_ARG:
		o->daemon_args[o->ndaemon_args++] = value;
		return COLLNET_OK;
	case OPT_KEEP_LOGS:
		o->keep_logs = value;
		return COLLNET_OK;
	case OPT_TAG:
		o->tag = true;
		return COLLNET_OK;
	case OPT_PORTS:
		o->ports = true;
		return COLLNET_OK;
	case OPT_JSON:
		o->json = true;
		return COLLNET_OK;
	default:
		return parse_number(o, option, value, err);
	}
}

/* Conflicting options, and networks that the lab cannot emulate. */
static int check_options(const struct lab_options *o)
{
	const struct shape *s = &o->shape;

	if ((s->text == NULL) == (o->topology == NULL)) {
		return tool_usage("%s", tool_network_fault(s->text != NULL));
	}
	if (o->topology != NULL && shape_has_rates(s)) {
		return tool_usage("a topology file specifies rates and buffers itself: drop "
				  "--rate, --uplink, --buffer and --uplink-buffer");
	}
	if (s->rate > LAB_RATE_MAX || s->uplink > LAB_RATE_MAX) {
		return tool_usage("the lab's links have rates up to 1tbit");
	}
	if (s->buffer > LAB_BUFFER_MAX || s->uplink_buffer > LAB_BUFFER_MAX) {
		return tool_usage("the lab's ports have buffers up to %u frames", LAB_BUFFER_MAX);
	}
	if (!o->shell && o->no_daemons && o->ranks_per_node > 1) {
		return tool_usage("without daemons, a host has one rank: drop --no-daemons or "
				  "--ranks-per-node");
	}
	if (o->shell && (o->tag || o->ranks_per_node > 1)) {
		return tool_usage("a shell has no ranks: drop --tag and --ranks-per-node, or use "
				  "collnet lab run");
	}
	if (o->no_daemons && o->keep_logs != NULL) {
		return tool_usage("there are no daemons: drop --keep-logs or --no-daemons");
	}
	if (!o->shell && o->command == NULL) {
		return tool_usage("no command given; write it after --: collnet lab run ... -- "
				  "COMMAND");
	}
	return TOOL_OK;
}

/* TOOL_OK, TOOL_USAGE after a complaint, or -1: help was given. */
static int parse_options(struct lab_options *o, int argc, char **argv)
{
	int rc;

	if (argc < 2) {
		return tool_usage("no subcommand given; there are run and shell");
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		fputs(usage_text, stdout);
		return -1;
	}
	o->shell = strcmp(argv[1], "shell") == 0;
	if (!o->shell && strcmp(argv[1], "run") != 0) {
		return tool_usage("unknown subcommand '%.40s'; there are run and shell", argv[1]);
	}
	argc--;
	argv++;
	rc = tool_options_of_command(argc, argv, options, parse_option, o);
	if (rc < 0) {
		fputs(usage_text, stdout);
	}
	if (rc != TOOL_OK) {
		return rc;
	}
	o->command = optind < argc ? argv + optind : NULL;
	return check_options(o);
}

/* ---- collnetd and the tools ----------------------------------------------------------- */

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

void lab_own_directory(char *dir, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", dir, size - 1);

	dir[n < 0 ? 0 : n] = '\0';
	if (strrchr(dir, '/') != NULL) {
		*strrchr(dir, '/') = '\0';
	}
}

/* $COLLNETD, else next to this program: built in place, built with libtool, or installed. */
static int find_daemon(struct lab *lab, struct cn_err *err)
{
	static const char *const places[] = { "collnetd", "../daemon/collnetd",
					      "../../daemon/collnetd", "../sbin/collnetd" };
	const char *env = cn_env_value(cn_getenv, NULL, "COLLNETD");
	char dir[4096], path[4200];
	size_t i;

	if (env != NULL) {
		if (!is_program(env)) {
			return cn_fail(err, COLLNET_EDAEMON, "COLLNETD=%s is not a program", env);
		}
		lab->daemon = realpath(env, NULL);
	}
	lab_own_directory(dir, sizeof(dir));
	for (i = 0; lab->daemon == NULL && i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, places[i]);
		if (is_program(path)) {
			lab->daemon = realpath(path, NULL);
		}
	}
	if (lab->daemon == NULL && lab_find_tool("collnetd", path, sizeof(path))) {
		lab->daemon = strdup(path);
	}
	if (lab->daemon == NULL) {
		return cn_fail(err, COLLNET_EDAEMON,
			       "collnetd is neither near %s nor in PATH: "
			       "set COLLNETD to its path, or use --no-daemons",
			       dir);
	}
	return COLLNET_OK;
}

static int check_tools(const struct lab *lab, struct cn_err *err)
{
	static const struct {
		const char *tool, *package;
	} tools[] = { { "ip", "iproute2" },	   { "bridge", "iproute2" },
		      { "tc", "iproute2" },	   { "nsenter", "util-linux" },
		      { "taskset", "util-linux" }, { "nft", "nftables" } };
	size_t i, n = sizeof(tools) / sizeof(tools[0]) -
		      (lab->o->loss_ppm == 0 && lab->o->duplicate_ppm == 0 ? 1 : 0);
	char path[256];

	for (i = 0; i < n; i++) {
		if (!lab_find_tool(tools[i].tool, path, sizeof(path))) {
			return cn_fail(err, COLLNET_ESYSTEM,
				       "%s is missing: install the Debian "
				       "package %s",
				       tools[i].tool, tools[i].package);
		}
	}
	return COLLNET_OK;
}

/* ---- the supervisor ------------------------------------------------------------------- */

static bool write_map(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0) {
		close(fd);
	}
	return ok;
}

static bool sysctl_is(const char *path, char value)
{
	char c = '\0';
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool is = fd >= 0 && read(fd, &c, 1) == 1 && c == value;

	if (fd >= 0) {
		close(fd);
	}
	return is;
}

/* Why an ordinary user may not have namespaces, and what the administrator can do. */
static void explain_refusal(const char *what, int error)
{
	const char *advice = "the system, or the container this runs in, forbids it; "
			     "run it as root, or elsewhere";

	if (sysctl_is("/proc/sys/kernel/unprivileged_userns_clone", '0')) {
		advice = "as root: sysctl kernel.unprivileged_userns_clone=1";
	} else if (sysctl_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1')) {
		advice = "as root: sysctl kernel.apparmor_restrict_unprivileged_userns=0";
	} else if (sysctl_is("/proc/sys/user/max_user_namespaces", '0')) {
		advice = "as root: sysctl user.max_user_namespaces=10000";
	} else if (sysctl_is("/proc/sys/user/max_pid_namespaces", '0')) {
		advice = "as root: sysctl user.max_pid_namespaces=10000";
	}
	tool_complain("%s: %s; %s", what, strerror(error), advice);
}

/*
 * fork() into new namespaces: the child is PID 1 of its process namespace. (With unshare() this
 * process itself would be left without a namespace to fork into, which a leak checker needs.)
 */
static pid_t fork_into(unsigned long namespaces)
{
#ifdef __s390__
	return (pid_t)syscall(SYS_clone, 0UL, namespaces | SIGCHLD, 0UL, 0UL, 0UL);
#else
	return (pid_t)syscall(SYS_clone, namespaces | SIGCHLD, 0UL, 0UL, 0UL, 0UL);
#endif
}

/* In the child: it becomes root of its user namespace, and no other user is mapped there. */
static bool become_inner_root(uid_t uid, gid_t gid)
{
	char users[40], groups[40];

	snprintf(users, sizeof(users), "0 %u 1", (unsigned int)uid);
	snprintf(groups, sizeof(groups), "0 %u 1", (unsigned int)gid);
	if (!write_map("/proc/self/setgroups", "deny") || !write_map("/proc/self/uid_map", users) ||
	    !write_map("/proc/self/gid_map", groups)) {
		explain_refusal("cannot map the user of a namespace", errno);
		return false;
	}
	return true;
}

static volatile sig_atomic_t passed_on;
static volatile pid_t supervisor;

static void forward_signal(int sig)
{
	if (supervisor > 0) {
		kill(supervisor, passed_on++ == 0 ? sig : SIGKILL);
	}
}

void lab_signals(const struct lab *lab, sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	if (!lab->nohup) {
		sigaddset(set, SIGHUP);
	}
	if (!lab->o->shell) {
		sigaddset(set, SIGINT);
	}
}

/*
 * The supervisor is PID 1 of its namespace, which gets no signal that it neither blocks nor
 * handles. It blocks these until it reads them from a descriptor, so that none is lost meanwhile.
 */
static void block_signals(const struct lab *lab, sigset_t *before)
{
	sigset_t set;

	lab_signals(lab, &set);
	sigprocmask(SIG_BLOCK, &set, before);
}

static int wait_supervisor(const struct lab *lab, const sigset_t *before)
{
	const struct lab_options *o = lab->o;
	struct sigaction act = { .sa_handler = forward_signal };
	struct termios modes;
	const bool has_modes = tcgetattr(0, &modes) == 0;
	int status;

	sigaction(SIGTERM, &act, NULL);
	if (!lab->nohup) {
		sigaction(SIGHUP, &act, NULL);
	}
	act.sa_handler = o->shell ? SIG_IGN : forward_signal;
	sigaction(SIGINT, &act, NULL);
	sigprocmask(SIG_SETMASK, before, NULL);
	while (waitpid(supervisor, &status, 0) < 0) {
		if (errno != EINTR) {
			return 1;
		}
	}
	if (o->shell && o->command == NULL && isatty(0)) { /* which the shell took */
		signal(SIGTTOU, SIG_IGN);
		(void)tcsetpgrp(0, getpgrp());
		if (has_modes) { /* a shell that was killed has not restored them */
			(void)tcsetattr(0, TCSADRAIN, &modes);
		}
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void name_job(struct lab *lab)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	snprintf(lab->job, sizeof(lab->job), "lab-%d-%llx", (int)getpid(),
		 (unsigned long long)cn_mix64((uint64_t)t.tv_sec * 1000000000u +
					      (uint64_t)t.tv_nsec));
}

/* Many ranks mean many pipes. */
static void many_descriptors(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
		r.rlim_cur = r.rlim_max < 65536 ? r.rlim_max : 65536;
		(void)setrlimit(RLIMIT_NOFILE, &r);
	}
}

static int run_lab(struct lab *lab)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	bool mapped = false;
	int fds[2], status;
	struct sigaction hangup;
	sigset_t before;
	pid_t pid;

	lab->nohup = sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler == SIG_IGN;
	fflush(NULL);
	many_descriptors();
	if (pipe2(fds, O_CLOEXEC) < 0) {
		tool_complain("pipe: %s", strerror(errno));
		return 1;
	}
	name_job(lab);
	block_signals(lab, &before);
	pid = uid == 0 ? fork_into(CLONE_NEWPID) : -1;
	if (pid < 0) {
		mapped = true;
		pid = fork_into(CLONE_NEWUSER | CLONE_NEWPID);
	}
	if (pid < 0) {
		explain_refusal("cannot make a user namespace", errno);
		return LAB_EXIT_SKIP;
	}
	if (pid == 0) {
		/* If the parent has died already, the lifeline is at its end. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[1]);
		lab->lifeline = fds[0];
		status = mapped && !become_inner_root(uid, gid) ? LAB_EXIT_SKIP
								: lab_supervise(lab);
		fflush(NULL);
		_exit(status);
	}
	supervisor = pid;
	close(fds[0]);
	return wait_supervisor(lab, &before);
}

static void free_lab(struct lab *lab)
{
	cn_topo_free(lab->topo);
	free(lab->hosts);
	free(lab->ranks);
	free(lab->daemon);
}

/* From the environment. */
static int parse_encapsulation(struct lab_options *o)
{
	enum cn_encapsulation encapsulation;
	struct cn_err err;

	o->encapsulation = cn_env_value(cn_getenv, NULL, "COLLNET_ENCAPSULATION");
	return o->encapsulation == NULL ||
			       tool_parse_encapsulation(o->encapsulation, &encapsulation, &err) ==
				       COLLNET_OK
		       ? TOOL_OK
		       : tool_usage("COLLNET_ENCAPSULATION: %s", err.text);
}

int collnet_cmd_lab(int argc, char **argv)
{
	struct lab_options o = { .mtu = 1500, .ranks_per_node = 1 };
	struct lab lab = { .lifeline = -1, .signals = -1 };
	struct cn_err err = { 0 };
	int rc;

	o.daemon_args = calloc((size_t)argc + 1, sizeof(*o.daemon_args));
	if (o.daemon_args == NULL) {
		tool_complain("no memory");
		return TOOL_FAILED;
	}
	rc = parse_options(&o, argc, argv);
	if (rc == TOOL_OK && o.encapsulation == NULL) {
		rc = parse_encapsulation(&o);
	}
	if (rc == TOOL_OK) {
		rc = lab_plan(&lab, &o, &err);
		if (rc != COLLNET_OK) {
			tool_complain("%s", err.text);
			rc = TOOL_USAGE;
		} else if ((!o.no_daemons && find_daemon(&lab, &err) != COLLNET_OK) ||
			   check_tools(&lab, &err) != COLLNET_OK) {
			tool_complain("%s", err.text);
			rc = TOOL_FAILED;
		} else {
			rc = run_lab(&lab);
		}
	}
	free_lab(&lab);
	free(o.daemon_args);
	return rc < 0 ? TOOL_OK : rc;
}
