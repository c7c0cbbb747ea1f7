/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verb `collnet lab`: its options, and the process that the user sees.
 *
 * This process makes the supervisor and waits for it. It passes SIGINT, SIGTERM and SIGHUP on;
 * should it die of anything else, the supervisor gets SIGKILL from the kernel.
 */
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
#include <unistd.h>

static const char usage_text[] =
	"usage: collnet lab run (--shape SHAPE | --topology FILE) [option...] -- COMMAND...\n"
	"       collnet lab shell (--shape SHAPE | --topology FILE) [option...] [-- COMMAND...]\n"
	"Emulates a cluster on this machine: hosts, switches with finite buffers, links with rates.\n"
	"`run` runs COMMAND on every host, its rank in COLLNET_RANK, and exits with the worst status.\n"
	"`shell` runs one shell (or COMMAND) among the switches. Nothing of it stays afterwards.\n"
	"\n"
	"The network:\n"
	"  --shape A or AxB        A hosts on one switch, or on each of B switches under a root\n"
	"  --topology FILE         a network from a topology file; it says rates and buffers itself\n"
	"  --rate RATE             of a host's link, or none; 20mbit, beyond 16 hosts 10mbit\n"
	"  --uplink RATE           of a switch's uplink, or none; ten times the host's\n"
	"  --buffer FRAMES         of a switch port to a host; 43\n"
	"  --uplink-buffer FRAMES  of a port on an uplink; 45\n"
	"  --mtu BYTES             1500\n"
	"  --loss PERCENT          of the frames, lost at random where they enter the switches\n"
	"  --duplicate PERCENT     of the frames that leave the switches for hosts come twice; to 50%\n"
	"  --reorder PERCENT       of them come 10 ms late, on kernels with netem\n"
	"  --ip                    gives hosts IP addresses, host names and an /etc/hosts\n"
	"\n"
	"The processes:\n"
	"  --ranks-per-node N      1\n"
	"  --no-daemons            no collnetd in the hosts; ranks open the interface themselves\n"
	"  --daemon-arg ARG        one more argument for every collnetd; may be repeated\n"
	"  --keep-logs DIR         writes the daemons' logs there (HOST.log)\n"
	"  --timeout SECONDS       ends everything, with status 124\n"
	"  --tag                   marks each line of output with [HOST:RANK]\n"
	"\n"
	"Afterwards:\n"
	"  --ports                 prints frames and drops of every switch port\n"
	"  --json                  the same as one JSON object, on the last line\n"
	"  --help\n"
	"\n"
	"Status 77: the system does not allow namespaces.\n";

enum {
	OPT_SHAPE = 256,
	OPT_TOPOLOGY,
	OPT_RATE,
	OPT_UPLINK,
	OPT_BUFFER,
	OPT_UPLINK_BUFFER,
	OPT_MTU,
	OPT_LOSS,
	OPT_DUPLICATE,
	OPT_REORDER,
	OPT_IP,
	OPT_RANKS,
	OPT_NO_DAEMONS,
	OPT_DAEMON_ARG,
	OPT_KEEP_LOGS,
	OPT_TIMEOUT,
	OPT_TAG,
	OPT_PORTS,
	OPT_JSON,
	OPT_HELP,
};

static const struct option long_options[] = {
	{ "shape", required_argument, NULL, OPT_SHAPE },
	{ "topology", required_argument, NULL, OPT_TOPOLOGY },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "uplink", required_argument, NULL, OPT_UPLINK },
	{ "buffer", required_argument, NULL, OPT_BUFFER },
	{ "uplink-buffer", required_argument, NULL, OPT_UPLINK_BUFFER },
	{ "mtu", required_argument, NULL, OPT_MTU },
	{ "loss", required_argument, NULL, OPT_LOSS },
	{ "duplicate", required_argument, NULL, OPT_DUPLICATE },
	{ "reorder", required_argument, NULL, OPT_REORDER },
	{ "ip", no_argument, NULL, OPT_IP },
	{ "ranks-per-node", required_argument, NULL, OPT_RANKS },
	{ "no-daemons", no_argument, NULL, OPT_NO_DAEMONS },
	{ "daemon-arg", required_argument, NULL, OPT_DAEMON_ARG },
	{ "keep-logs", required_argument, NULL, OPT_KEEP_LOGS },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "tag", no_argument, NULL, OPT_TAG },
	{ "ports", no_argument, NULL, OPT_PORTS },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

/* ---- options -------------------------------------------------------------------------- */

static int bad_value(const char *option, const char *value, const char *expected)
{
	fprintf(stderr, "collnet lab: --%s %s: expected %s\n", option, value, expected);
	return LAB_EXIT_USAGE;
}

static bool take_rate(const char *text, uint64_t *rate, bool *said)
{
	*said = true;
	if (strcmp(text, "none") == 0 || strcmp(text, "0") == 0) {
		*rate = 0;
		return true;
	}
	return cn_parse_rate(text, rate) && *rate <= 1000000000000u;
}

static bool take_uint(const char *text, uint64_t min, uint64_t max, uint32_t *out)
{
	uint64_t n;

	if (!cn_parse_uint(text, min, max, &n)) {
		return false;
	}
	*out = (uint32_t)n;
	return true;
}

/* "1%", "0.5%", "2.25": per cent, into frames of a million. */
static bool take_share(const char *text, uint64_t most_ppm, uint32_t *ppm)
{
	char number[32];
	size_t len = strlen(text);
	uint64_t n = 0;

	if (len > 0 && text[len - 1] == '%') {
		len--;
	}
	/* as kbit, a fraction of up to 3 digits comes out whole, in thousandths */
	if (len == 0 || len > sizeof(number) - 8 || strspn(text, "0123456789.") < len) {
		return false;
	}
	snprintf(number, sizeof(number), "%.*skbit", (int)len, text);
	if (!cn_parse_rate(number, &n) && strspn(text, "0.") < len) {
		return false;
	}
	*ppm = (uint32_t)(n * 10);
	return n * 10 <= most_ppm;
}

static int take_number(struct lab_options *o, int option, const char *v)
{
	switch (option) {
	case OPT_BUFFER:
		o->buffer_said = true;
		return take_uint(v, 1, 100000, &o->buffer)
			       ? 0
			       : bad_value("buffer", v, "1 to 100000 frames");
	case OPT_UPLINK_BUFFER:
		o->uplink_buffer_said = true;
		return take_uint(v, 1, 100000, &o->uplink_buffer)
			       ? 0
			       : bad_value("uplink-buffer", v, "1 to 100000 frames");
	case OPT_MTU:
		return take_uint(v, 68, 65521, &o->mtu) ? 0
							: bad_value("mtu", v, "68 to 65521 bytes");
	case OPT_RANKS:
		return take_uint(v, 1, LAB_RANKS_MAX, &o->ranks_per_node)
			       ? 0
			       : bad_value("ranks-per-node", v, "a number from 1");
	case OPT_TIMEOUT:
		return cn_parse_uint(v, 1, 10000000, &o->timeout_s)
			       ? 0
			       : bad_value("timeout", v, "seconds, from 1");
	case OPT_RATE:
		return take_rate(v, &o->rate, &o->rate_said)
			       ? 0
			       : bad_value("rate", v, "a rate like 20mbit, or none");
	case OPT_UPLINK:
		return take_rate(v, &o->uplink, &o->uplink_said)
			       ? 0
			       : bad_value("uplink", v, "a rate like 200mbit, or none");
	case OPT_DUPLICATE:
		return take_share(v, 500000, &o->duplicate_ppm)
			       ? 0
			       : bad_value("duplicate", v, "0% to 50%, with at most 3 decimals");
	case OPT_REORDER:
		return take_share(v, 1000000, &o->reorder_ppm)
			       ? 0
			       : bad_value("reorder", v, "0% to 100%, with at most 3 decimals");
	default:
		return take_share(v, 1000000, &o->loss_ppm)
			       ? 0
			       : bad_value("loss", v, "0% to 100%, with at most 3 decimals");
	}
}

/* One option. Negative: --help; else an exit status. */
static int take_option(struct lab_options *o, int option, char *value)
{
	switch (option) {
	case OPT_SHAPE:
		o->shape = value;
		return 0;
	case OPT_TOPOLOGY:
		o->topology = value;
		return 0;
	case OPT_IP:
		o->ip = true;
		return 0;
	case OPT_NO_DAEMONS:
		o->no_daemons = true;
		return 0;
	case OPT_DAEMON_ARG:
		o->daemon_args[o->ndaemon_args++] = value;
		return 0;
	case OPT_KEEP_LOGS:
		o->keep_logs = value;
		return 0;
	case OPT_TAG:
		o->tag = true;
		return 0;
	case OPT_PORTS:
		o->ports = true;
		return 0;
	case OPT_JSON:
		o->json = true;
		return 0;
	case OPT_HELP:
		return -1;
	default:
		return take_number(o, option, value);
	}
}

static int complain(const char *text)
{
	fprintf(stderr, "collnet lab: %s\n", text);
	return LAB_EXIT_USAGE;
}

static int bad_option(int kind, const char *option)
{
	fprintf(stderr, "collnet lab: %s: %s; see collnet lab --help\n", option,
		kind == ':' ? "expected a value after it" : "unknown or ambiguous option");
	return LAB_EXIT_USAGE;
}

/* What does not go together. */
static int check_options(const struct lab_options *o)
{
	if ((o->shape == NULL) == (o->topology == NULL)) {
		return complain("specify --shape (e.g. 8x2) or --topology FILE");
	}
	if (o->topology != NULL &&
	    (o->rate_said || o->uplink_said || o->buffer_said || o->uplink_buffer_said)) {
		return complain("rates and buffers are the topology file's to say: drop --rate, "
				"--uplink, --buffer and --uplink-buffer");
	}
	if (o->rate_said && o->rate == 0 && o->buffer_said) {
		return complain("--buffer needs a rate: a port without one never fills up");
	}
	if (o->uplink_said && o->uplink == 0 && o->uplink_buffer_said) {
		return complain("--uplink-buffer needs a rate: a port without one never fills up");
	}
	if (!o->shell && o->command == NULL) {
		return complain("a command is missing: collnet lab run ... -- COMMAND...");
	}
	return 0;
}

/* Exit status, or -1: go on. */
static int parse_options(struct lab_options *o, int argc, char **argv)
{
	int option, rc = 0;

	if (argc >= 2 && strcmp(argv[1], "shell") == 0) {
		o->shell = true;
	} else if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		fputs(usage_text, stdout);
		return 0;
	} else if (argc < 2 || strcmp(argv[1], "run") != 0) {
		return complain(
			"say `collnet lab run` or `collnet lab shell`; see collnet lab --help");
	}
	argc--;
	argv++;
	argv[0] = "collnet lab";
	optind = 0;
	while (rc == 0 && (option = getopt_long(argc, argv, "+:", long_options, NULL)) != -1) {
		rc = option == '?' || option == ':' ? bad_option(option, argv[optind - 1])
						    : take_option(o, option, optarg);
	}
	if (rc < 0) {
		fputs(usage_text, stdout);
		return 0;
	}
	if (rc != 0) {
		return rc;
	}
	o->command = optind < argc ? argv + optind : NULL;
	rc = check_options(o);
	return rc != 0 ? rc : -1;
}

/* ---- collnetd and the tools ----------------------------------------------------------- */

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* $COLLNETD, else next to this program: built in place, built with libtool, or installed. */
static int find_daemon(struct lab *lab, struct cn_err *err)
{
	static const char *const places[] = { "collnetd", "../daemon/collnetd",
					      "../../daemon/collnetd", "../sbin/collnetd" };
	const char *env = getenv("COLLNETD");
	char dir[4096], path[4200];
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
	size_t i;

	if (env != NULL) {
		if (!is_program(env)) {
			return cn_fail(err, COLLNET_EDAEMON, "COLLNETD=%s is not a program", env);
		}
		lab->daemon = realpath(env, NULL);
	}
	dir[n < 0 ? 0 : n] = '\0';
	if (strrchr(dir, '/') != NULL) {
		*strrchr(dir, '/') = '\0';
	}
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
	} tools[] = { { "ip", "iproute2" },
		      { "bridge", "iproute2" },
		      { "tc", "iproute2" },
		      { "nsenter", "util-linux" },
		      { "nft", "nftables" } };
	size_t i, n = sizeof(tools) / sizeof(tools[0]) - (lab->o->loss_ppm == 0 ? 1 : 0);
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
static void say_refusal(const char *what, int error)
{
	const char *advice = "the system, or the container this runs in, forbids it; "
			     "run it as root, or elsewhere";

	if (sysctl_is("/proc/sys/kernel/unprivileged_userns_clone", '0')) {
		advice = "as root: sysctl kernel.unprivileged_userns_clone=1";
	} else if (sysctl_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1')) {
		advice = "as root: sysctl kernel.apparmor_restrict_unprivileged_userns=0";
	} else if (sysctl_is("/proc/sys/user/max_user_namespaces", '0')) {
		advice = "as root: sysctl user.max_user_namespaces=10000";
	}
	fprintf(stderr, "collnet lab: %s: %s; %s\n", what, strerror(error), advice);
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

/* In the child: it becomes root of its user namespace, and nobody else is mapped there. */
static bool become_inner_root(uid_t uid, gid_t gid)
{
	char users[40], groups[40];

	snprintf(users, sizeof(users), "0 %u 1", (unsigned int)uid);
	snprintf(groups, sizeof(groups), "0 %u 1", (unsigned int)gid);
	if (!write_map("/proc/self/setgroups", "deny") || !write_map("/proc/self/uid_map", users) ||
	    !write_map("/proc/self/gid_map", groups)) {
		say_refusal("cannot map the user of a namespace", errno);
		return false;
	}
	return true;
}

static volatile sig_atomic_t passed_on;
static volatile pid_t supervisor;

static void pass_on(int sig)
{
	(void)sig;
	if (supervisor > 0) {
		kill(supervisor, passed_on++ == 0 ? SIGTERM : SIGKILL);
	}
}

static int wait_supervisor(const struct lab_options *o)
{
	struct sigaction act = { .sa_handler = pass_on };
	int status;

	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGHUP, &act, NULL);
	act.sa_handler = o->shell ? SIG_IGN : pass_on;
	sigaction(SIGINT, &act, NULL);
	while (waitpid(supervisor, &status, 0) < 0) {
		if (errno != EINTR) {
			return 1;
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
	pid_t pid;

	fflush(NULL);
	many_descriptors();
	if (pipe2(fds, O_CLOEXEC) < 0) {
		fprintf(stderr, "collnet lab: pipe: %s\n", strerror(errno));
		return 1;
	}
	name_job(lab);
	pid = uid == 0 ? fork_into(CLONE_NEWPID) : -1;
	if (pid < 0) {
		mapped = true;
		pid = fork_into(CLONE_NEWUSER | CLONE_NEWPID);
	}
	if (pid < 0) {
		say_refusal("cannot make a user namespace", errno);
		return LAB_EXIT_SKIP;
	}
	if (pid == 0) {
		/* Should the parent have died already, the lifeline says so. */
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
	return wait_supervisor(lab->o);
}

static void free_lab(struct lab *lab)
{
	cn_topo_free(lab->topo);
	free(lab->hosts);
	free(lab->ranks);
	free(lab->daemon);
}

int collnet_cmd_lab(int argc, char **argv)
{
	struct lab_options o = { .mtu = 1500, .ranks_per_node = 1 };
	struct lab lab = { .lifeline = -1, .signals = -1 };
	struct cn_err err = { 0 };
	int rc;

	o.daemon_args = calloc((size_t)argc + 1, sizeof(*o.daemon_args));
	if (o.daemon_args == NULL) {
		fputs("collnet lab: no memory\n", stderr);
		return 1;
	}
	rc = parse_options(&o, argc, argv);
	if (rc < 0) {
		rc = lab_plan(&lab, &o, &err);
		if (rc != COLLNET_OK) {
			fprintf(stderr, "collnet lab: %s\n", err.text);
			rc = LAB_EXIT_USAGE;
		} else if ((!o.no_daemons && find_daemon(&lab, &err) != COLLNET_OK) ||
			   check_tools(&lab, &err) != COLLNET_OK) {
			fprintf(stderr, "collnet lab: %s\n", err.text);
			rc = 1;
		} else {
			rc = run_lab(&lab);
		}
	}
	free_lab(&lab);
	free(o.daemon_args);
	return rc;
}
