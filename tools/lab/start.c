/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bringing daemons, ranks and the shell to life.
 *
 * How a daemon is started is written down once, in hN.daemon.cmd in the lab's directory, and that
 * script is what the lab itself runs too: so a test can kill a daemon by hN.daemon.pid and start
 * it again by hN.daemon.cmd, from any host (all of them share one process namespace).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/lab/command.h"
#include "tools/plan/write.h"

#define DAEMON_READY_MS 10000
#define LOG_TAIL	2048
#define LAB_RSH		LAB_DIR "/bin/lab-rsh"

/* lab-on HOST COMMAND...: enters the namespaces of a host, with its environment. */
static const char lab_on[] = "#!/bin/sh\n"
			     "# lab-on HOST COMMAND...: runs COMMAND on HOST\n"
			     "if [ $# -lt 2 ]; then\n"
			     "	echo \"usage: lab-on HOST COMMAND...\" >&2\n"
			     "	exit 2\n"
			     "fi\n"
			     "if [ ! -r " LAB_DIR "/\"$1\".env ]; then\n"
			     "	echo \"lab-on: there is no host '$1' in this lab\" >&2\n"
			     "	exit 2\n"
			     "fi\n"
			     ". " LAB_DIR "/\"$1\".env\n"
			     "host=$1\n"
			     "shift\n"
			     "exec nsenter --net=/run/netns/\"$host\" --uts=" LAB_DIR
			     "/uts/\"$host\" -- \"$@\"\n";

/* What a launcher of MPI calls instead of ssh. */
static const char lab_rsh[] =
	"#!/bin/sh\n"
	"# lab-rsh [OPTION...] HOST COMMAND...: like rsh; options are ignored\n"
	"while :; do\n"
	"	case $1 in\n"
	"	-*) shift ;;\n"
	"	*) break ;;\n"
	"	esac\n"
	"done\n"
	"host=$1\n"
	"shift\n"
	"exec lab-on \"$host\" sh -c \"$*\"\n";

/*
 * lab-daemon HOST: starts the daemon of HOST again and returns when it is ready. It waits for a
 * killed one to be gone; one that is alive keeps its pid file.
 */
static const char lab_daemon[] =
	"#!/bin/sh\n"
	"# lab-daemon HOST: starts HOST's collnetd, returns when it is ready\n"
	"if [ $# -ne 1 ]; then\n"
	"	echo \"usage: lab-daemon HOST\" >&2\n"
	"	exit 2\n"
	"fi\n"
	"if [ ! -r " LAB_DIR "/\"$1\".daemon.cmd ]; then\n"
	"	echo \"lab-daemon: there is no daemon for a host '$1' in this lab\" >&2\n"
	"	exit 2\n"
	"fi\n"
	"# a killed one may need a moment to end\n"
	"if read -r old <" LAB_DIR "/\"$1\".daemon.pid &&\n"
	"	! timeout 20 tail --pid=\"$old\" -s 0.02 -f /dev/null; then\n"
	"	echo \"lab-daemon: the daemon of $1 runs still, process $old: kill it first\" >&2\n"
	"	exit 1\n"
	"fi\n"
	"fifo=" LAB_DIR "/ready.$$\n"
	"mkfifo \"$fifo\" || exit 1\n"
	"setsid sh " LAB_DIR "/\"$1\".daemon.cmd --ready-fd 9 9>\"$fifo\" >/dev/null &\n"
	"line=\n"
	"read -r line <\"$fifo\"\n"
	"rm -f \"$fifo\"\n"
	"if [ \"$line\" != READY ]; then\n"
	"	echo \"lab-daemon: the daemon of $1 did not start; its log ends:\" >&2\n"
	"	tail -n 1 " LAB_DIR "/logs/\"$1\".log >&2\n"
	"	exit 1\n"
	"fi\n";

/* 'text' for the shell, whatever is in it. */
static void quote(const char *text, FILE *f)
{
	fputc('\'', f);
	for (; *text != '\0'; text++) {
		if (*text == '\'') {
			fputs("'\\''", f);
		} else {
			fputc(*text, f);
		}
	}
	fputc('\'', f);
}

static void daemon_script(const struct lab *lab, const struct lab_host *h, FILE *f)
{
	const char *host = h->name;
	uint32_t i;

	fprintf(f,
		"#!/bin/sh\n# starts collnetd on %s, in the foreground; more options may follow\n"
		"echo $$ >" LAB_DIR "/%s.daemon.pid\n",
		host, host);
	lab_write_bind(h, f);
	fprintf(f, "exec nsenter --net=/run/netns/%s --uts=" LAB_DIR "/uts/%s -- ", host, host);
	quote(lab->daemon, f);
	fprintf(f,
		" --interface eth0 --node %s%s --socket " LAB_DIR
		"/%s.sock --cluster 1 --user none",
		host, lab->o->no_topology ? "" : " --topology " LAB_DIR "/topology", host);
	if (lab->o->encapsulation != NULL) {
		fputs(" --encapsulation ", f);
		quote(lab->o->encapsulation, f);
	}
	for (i = 0; i < lab->o->ndaemon_args; i++) {
		fputc(' ', f);
		quote(lab->o->daemon_args[i], f);
	}
	fprintf(f, " \"$@\" </dev/null 2>>" LAB_LOGS "/%s.log\n", host);
}

/* Hands a finished memory stream to a file of the lab's directory. */
static int finish_file(FILE *f, char **text, const char *name, mode_t mode, struct cn_err *err)
{
	char path[160];
	int rc;

	snprintf(path, sizeof(path), "%s/%s", LAB_DIR, name);
	if (fclose(f) != 0) {
		rc = cn_fail(err, COLLNET_ESYSTEM, "cannot write %s: %s", path, strerror(errno));
	} else {
		rc = lab_write_file(path, mode, *text, err);
	}
	free(*text);
	return rc;
}

static int host_files(const struct lab *lab, const struct lab_host *h, struct cn_err *err)
{
	const char *host = h->name;
	char name[COLLNET_NAME_MAX + 20], *text = NULL;
	int rc = COLLNET_OK;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (f == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the lab's scripts");
	}
	/* A socket of the lab is another host's: that of a rank that calls lab-on. */
	fprintf(f,
		"export COLLNET_NODE=%s\n"
		"case ${COLLNET_SOCKET-} in\n"
		"\"\" | " LAB_DIR "/*) export COLLNET_SOCKET=" LAB_DIR "/%s.sock ;;\n"
		"esac\n",
		host, host);
	lab_write_bind(h, f);
	snprintf(name, sizeof(name), "%s.env", host);
	rc = finish_file(f, &text, name, 0644, err);
	if (rc != COLLNET_OK || lab->o->no_daemons) {
		return rc;
	}
	f = open_memstream(&text, &len);
	if (f == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the lab's scripts");
	}
	daemon_script(lab, h, f);
	snprintf(name, sizeof(name), "%s.daemon.cmd", host);
	return finish_file(f, &text, name, 0755, err);
}

int lab_write_scripts(struct lab *lab, struct cn_err *err)
{
	char *text = NULL;
	uint32_t i;
	size_t len;
	int rc = COLLNET_OK;
	FILE *f = open_memstream(&text, &len);

	if (f == NULL || cn_topo_write(lab->topo, f) != COLLNET_OK) {
		rc = cn_fail(err, COLLNET_ENOMEM, "no memory for the topology file");
	}
	if (f != NULL && rc == COLLNET_OK) {
		rc = finish_file(f, &text, "topology", 0644, err);
	}
	for (i = 0; rc == COLLNET_OK && i < lab->nhosts; i++) {
		rc = host_files(lab, &lab->hosts[i], err);
	}
	if (rc == COLLNET_OK) {
		rc = lab_write_file(LAB_DIR "/bin/lab-on", 0755, lab_on, err);
	}
	if (rc == COLLNET_OK) {
		rc = lab_write_file(LAB_RSH, 0755, lab_rsh, err);
	}
	if (rc == COLLNET_OK && !lab->o->no_daemons) {
		rc = lab_write_file(LAB_DIR "/bin/lab-daemon", 0755, lab_daemon, err);
	}
	return rc;
}

/* ---- what every child needs ----------------------------------------------------------- */

static void default_signals(void)
{
	sigset_t none;

	signal(SIGPIPE, SIG_DFL);
	signal(SIGTTOU, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void set_number(const char *name, uint32_t value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	setenv(name, text, 1);
}

static void common_environment(const struct lab *lab)
{
	const char *path = getenv("PATH");
	char own[4096], *longer = NULL;

	setenv("COLLNET_LAB", "1", 1);
	setenv("COLLNET_LAB_DIR", LAB_DIR, 1);
	if (lab->o->no_topology) {
		unsetenv("COLLNET_TOPOLOGY");
	} else {
		setenv("COLLNET_TOPOLOGY", LAB_DIR "/topology", 1);
	}
	setenv("COLLNET_INTERFACE", "eth0", 1);
	setenv("COLLNET_CLUSTER", "1", 1);
	if (lab->o->encapsulation != NULL) {
		setenv("COLLNET_ENCAPSULATION", lab->o->encapsulation, 1);
	}
	if (lab->o->no_daemons) {
		setenv("COLLNET_MODE", "direct", 1);
	} else {
		unsetenv("COLLNET_MODE"); /* the caller's; daemons are the default */
	}
	lab_own_directory(own, sizeof(own));
	if (asprintf(&longer, "%s:/usr/sbin:/sbin:" LAB_DIR "/bin:%s",
		     path == NULL ? "/usr/local/bin:/usr/bin:/bin" : path, own) >= 0) {
		setenv("PATH", longer, 1);
		free(longer);
	}
}

static void host_environment(const struct lab_host *h)
{
	char path[COLLNET_NAME_MAX + 40];

	snprintf(path, sizeof(path), "%s/%s.sock", LAB_DIR, h->name);
	setenv("COLLNET_NODE", h->name, 1);
	setenv("COLLNET_SOCKET", path, 1);
}

__attribute__((noreturn)) static void child_failed(const char *what, int status)
{
	tool_complain("%s: %s", what, strerror(errno));
	_exit(status);
}

__attribute__((noreturn)) static void become(char **command)
{
	execvp(command[0], command);
	child_failed(command[0], errno == ENOENT ? 127 : 126);
}

/* ---- daemons -------------------------------------------------------------------------- */

static int start_daemon(struct lab *lab, struct lab_host *h, struct cn_err *err)
{
	char script[160];
	char *argv[] = { "sh", script, "--ready-fd", "3",
			 NULL }; /* a number that any shell knows */
	int fds[2], null;

	snprintf(script, sizeof(script), "%s/%s.daemon.cmd", LAB_DIR, h->name);
	if (pipe2(fds, O_CLOEXEC) < 0) {
		return cn_fail(err, COLLNET_ESYSTEM, "%s: pipe: %s", h->name, strerror(errno));
	}
	h->daemon = fork();
	if (h->daemon == 0) {
		default_signals();
		common_environment(lab);
		host_environment(h);
		setsid(); /* a Ctrl-C is the supervisor's to handle */
		null = open("/dev/null", O_WRONLY);
		if (null < 0 || dup2(null, 1) < 0 ||
		    (fds[1] == 3 ? fcntl(3, F_SETFD, 0) : dup2(fds[1], 3)) < 0) {
			child_failed("cannot start a daemon", 126);
		}
		execv("/bin/sh", argv);
		child_failed("/bin/sh", 126);
	}
	close(fds[1]);
	h->ready = fds[0];
	if (h->daemon < 0) {
		h->daemon = 0;
		return cn_fail(err, COLLNET_ESYSTEM, "%s: fork: %s", h->name, strerror(errno));
	}
	return COLLNET_OK;
}

void lab_print_log_tail(const struct lab_host *h)
{
	char name[COLLNET_NAME_MAX + 40], text[LOG_TAIL + 1], *line, *rest;
	off_t size;
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), LAB_LOGS "/%s.log", h->name);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return;
	}
	size = lseek(fd, 0, SEEK_END);
	n = pread(fd, text, LOG_TAIL, size > LOG_TAIL ? size - LOG_TAIL : 0);
	close(fd);
	text[n < 0 ? 0 : n] = '\0';
	rest = text;
	if (size > LOG_TAIL) {
		strsep(&rest, "\n"); /* the beginning of this line is missing */
	}
	while ((line = strsep(&rest, "\n")) != NULL) {
		if (*line != '\0') {
			fprintf(stderr, "[%s] %s\n", h->name, line);
		}
	}
}

/* The word of one daemon: 1 ready, 0 not yet, -1 it is gone. */
static int read_ready_line(struct lab_host *h)
{
	char word[16];
	ssize_t n = read(h->ready, word, sizeof(word));

	if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
		return 0;
	}
	close(h->ready);
	h->ready = -1;
	return n >= 5 && memcmp(word, "READY", 5) == 0 ? 1 : -1;
}

static int wait_ready(struct lab *lab, struct cn_err *err)
{
	struct pollfd *p = calloc((size_t)lab->nhosts + 2, sizeof(*p));
	uint32_t i, left = lab->nhosts;
	int rc = p == NULL ? cn_fail(err, COLLNET_ENOMEM, "no memory") : COLLNET_OK, n, ms;

	while (rc == COLLNET_OK && left > 0) {
		for (i = 0; i < lab->nhosts; i++) {
			p[i].fd = lab->hosts[i].ready; /* -1 is ignored */
			p[i].events = POLLIN;
		}
		p[i].fd = lab->lifeline;
		p[i].events = POLLIN;
		p[i + 1].fd = lab->signals;
		p[i + 1].events = POLLIN;
		ms = lab_ms_until(lab->deadline);
		n = poll(p, lab->nhosts + 2, ms < 0 || ms > DAEMON_READY_MS ? DAEMON_READY_MS : ms);
		lab_read_signals(lab);
		for (i = 0; rc == COLLNET_OK && n > 0 && i < lab->nhosts; i++) {
			if (p[i].revents == 0) {
				continue;
			}
			n = read_ready_line(&lab->hosts[i]);
			left -= n == 1;
			if (n < 0) {
				lab_print_log_tail(&lab->hosts[i]);
				rc = cn_fail(err, COLLNET_EDAEMON, "collnetd on %s did not start",
					     lab->hosts[i].name);
			}
			n = 1;
		}
		if (rc != COLLNET_OK || left == 0) {
			break;
		}
		if (lab->stopped_by != 0 || (n > 0 && p[lab->nhosts].revents != 0)) {
			rc = cn_fail(err, COLLNET_ESYSTEM, "interrupted");
		} else if (lab_ms_until(lab->deadline) == 0) {
			rc = cn_fail(err, COLLNET_ETIMEOUT,
				     "timed out after %llu s; daemons not ready: %u of %u",
				     (unsigned long long)lab->o->timeout_s, left, lab->nhosts);
		} else if (n == 0) {
			for (i = 0; lab->hosts[i].ready < 0; i++) {
				/* the first that is not ready */
			}
			lab_print_log_tail(&lab->hosts[i]);
			rc = cn_fail(err, COLLNET_EDAEMON, "collnetd on %s was not ready in %d s",
				     lab->hosts[i].name, DAEMON_READY_MS / 1000);
		}
	}
	free(p);
	return rc;
}

int lab_start_daemons(struct lab *lab, struct cn_err *err)
{
	int rc = COLLNET_OK;
	uint32_t i;

	for (i = 0; i < lab->nhosts; i++) {
		lab->hosts[i].ready = -1;
	}
	for (i = 0; rc == COLLNET_OK && i < lab->nhosts; i++) {
		rc = start_daemon(lab, &lab->hosts[i], err);
	}
	return rc != COLLNET_OK ? rc : wait_ready(lab, err);
}

/* ---- ranks and the shell -------------------------------------------------------------- */

__attribute__((noreturn)) static void become_rank(struct lab *lab, uint32_t r, int out, int errs)
{
	const struct lab_host *h = &lab->hosts[lab->ranks[r].host];
	struct cn_err err;
	int null;

	default_signals();
	if (lab_enter(h->name, &err) != COLLNET_OK) {
		tool_complain("%s", err.text);
		_exit(126);
	}
	common_environment(lab);
	host_environment(h);
	lab_bind(h);
	setenv("COLLNET_JOB", lab->job, 0);
	set_number("COLLNET_RANK", r);
	set_number("COLLNET_SIZE", lab->nranks);
	if (r != 0) {
		null = open("/dev/null", O_RDONLY);
		if (null < 0 || dup2(null, 0) < 0) {
			child_failed("/dev/null", 126);
		}
	}
	if ((out >= 0 && dup2(out, 1) < 0) || (errs >= 0 && dup2(errs, 2) < 0)) {
		child_failed("dup2", 126);
	}
	become(lab->o->command);
}

/* Rank 0 writes to a terminal itself, as it reads standard input itself. */
static bool is_piped(const struct lab *lab, uint32_t r, int fd)
{
	return r != 0 || lab->o->tag || (lab->o->json && fd == 1) || !isatty(fd);
}

static bool same_file(int a, int b)
{
	struct stat sa, sb;

	return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

int lab_start_rank(struct lab *lab, uint32_t r, int *out, int *errs, struct cn_err *err)
{
	int op[2] = { -1, -1 }, ep[2] = { -1, -1 };
	bool out_piped = is_piped(lab, r, 1), errs_piped = is_piped(lab, r, 2);
	/* One pipe for both keeps a rank's lines in order. */
	bool shared = out_piped && errs_piped && same_file(1, 2);
	pid_t pid;

	if ((out_piped && pipe2(op, O_CLOEXEC) < 0) ||
	    (errs_piped && !shared && pipe2(ep, O_CLOEXEC) < 0)) {
		return cn_fail(err, COLLNET_ESYSTEM, "rank %u: pipe: %s", r, strerror(errno));
	}
	pid = fork();
	if (pid == 0) {
		become_rank(lab, r, op[1], shared ? op[1] : ep[1]);
	}
	if (op[1] >= 0) {
		close(op[1]);
	}
	if (ep[1] >= 0) {
		close(ep[1]);
	}
	*out = op[0];
	*errs = ep[0];
	if (pid < 0) {
		return cn_fail(err, COLLNET_ESYSTEM, "rank %u: fork: %s", r, strerror(errno));
	}
	lab->ranks[r].pid = pid;
	return COLLNET_OK;
}

/* Launchers of MPI start ranks on the lab's hosts without further options. */
static void launcher_environment(void)
{
	setenv("HYDRA_LAUNCHER", "rsh", 1);
	setenv("HYDRA_LAUNCHER_EXEC", LAB_RSH, 1);
	/* Ranks inherit from lab-rsh; otherwise all would have the first host's COLLNET_SOCKET. */
	setenv("HYDRA_ENV", "none", 1);
	setenv("OMPI_MCA_plm_rsh_agent", LAB_RSH, 1);
	setenv("PRTE_MCA_plm_ssh_agent", LAB_RSH, 1); /* Open MPI 5 */
	setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);     /* everyone is root in a lab */
	setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
	setenv("PRTE_ALLOW_RUN_AS_ROOT", "1", 1);
	setenv("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
}

int lab_start_shell(struct lab *lab, pid_t *pid, struct cn_err *err)
{
	const char *user_shell = getenv("SHELL");
	char *shell[] = { (char *)(user_shell == NULL ? "/bin/sh" : user_shell), NULL };

	fflush(NULL);
	*pid = fork();
	if (*pid < 0) {
		return cn_fail(err, COLLNET_ESYSTEM, "fork: %s", strerror(errno));
	}
	if (*pid == 0) {
		/* A shell is a job of its own, so that it can have jobs; a command is one of the
		 * caller's shell, which Ctrl-C and Ctrl-Z are for. */
		if (lab->o->command == NULL && isatty(0)) {
			setpgid(0, 0);
			signal(SIGTTOU, SIG_IGN);
			(void)tcsetpgrp(0, getpid());
		}
		default_signals();
		common_environment(lab);
		launcher_environment();
		unsetenv("COLLNET_RANK"); /* of a program outside */
		unsetenv("COLLNET_SIZE");
		unsetenv("COLLNET_SOCKET");
		become(lab->o->command != NULL ? lab->o->command : shell);
	}
	return COLLNET_OK;
}
