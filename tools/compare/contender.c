/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contenders: their launchers, and the lines to and from rank 0 of their loops.
 *
 * All loops are started by an mpirun, collnet's too, because every cluster with MPI has one that
 * works. Nothing is set that the library does not need to be on the network in question: in a lab,
 * that eth0 is the hosts' network; with --interface, that interface. How to enter the hosts of a
 * lab is in the environment of its shell.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/compare/command.h"
#include "tools/lab/command.h"

#define ARGS	  48
#define STOP_MS	  5000
#define INTERRUPT (200 * CN_MS) /* a signal is noticed within this time */

/* ---- command lines -------------------------------------------------------------------- */

struct args {
	char **v;
	size_t n;
};

static void add(struct args *a, const char *text)
{
	if (a->n < ARGS) {
		a->v[a->n++] = strdup(text);
	}
}

static void add_number(struct args *a, uint32_t number)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", number);
	add(a, text);
}

static void add_mca(struct args *a, const char *name, const char *value)
{
	add(a, "--mca");
	add(a, name);
	add(a, value);
}

/* "h0:2,h1:2" with slots, "h0,h1" without. */
static void add_hosts(struct args *a, const struct compare *c, bool slots)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	for (uint32_t i = 0; f != NULL && i < c->nhosts; i++) {
		fprintf(f, "%s%s", i > 0 ? "," : "", c->hosts[i]);
		if (slots) {
			fprintf(f, ":%u", c->o->ranks_per_node);
		}
	}
	if (f != NULL && fclose(f) == 0) {
		add(a, text);
	}
	free(text);
}

static const char *interface_of(const struct compare *c)
{
	return c->in_lab ? "eth0" : c->o->interface;
}

static void openmpi(const struct compare *c, const struct contender *t, struct args *a)
{
	char text[COMPARE_PATH + 16];

	add(a, t->launcher->mpirun);
	add(a, "--host");
	add_hosts(a, c, true);
	add(a, "-np");
	add_number(a, c->nhosts * c->o->ranks_per_node);
	add(a, "--map-by");
	snprintf(text, sizeof(text), "ppr:%u:node", c->o->ranks_per_node);
	add(a, text);
	if (interface_of(c) != NULL) {
		add_mca(a, "pml", "ob1");
		add_mca(a, "btl", "tcp,vader,self");
		add_mca(a, "btl_tcp_if_include", interface_of(c));
		add_mca(a, "oob_tcp_if_include", interface_of(c));
	}
	if (c->in_lab) {
		add_mca(a, "plm_rsh_no_tree_spawn", "1");
		/* the lab has bound its hosts to processors */
		add(a, "--bind-to");
		add(a, "none");
	}
	if (cell_on_collnet(t->library)) {
		snprintf(text, sizeof(text), "%.*s:SYS_DEFAULT:USER_DEFAULT", COMPARE_PATH - 32,
			 t->launcher->collnet);
		add_mca(a, "mca_base_component_path", text);
		add_mca(a, "coll_collnet_priority", "90");
		add_mca(a, "coll_collnet_verbose", "2");
	}
	if (t->yield >= 0) {
		add_mca(a, "mpi_yield_when_idle", t->yield ? "1" : "0");
	}
}

static void hydra(const struct compare *c, const struct contender *t, struct args *a)
{
	add(a, t->launcher->mpirun);
	add(a, "-hosts");
	add_hosts(a, c, false);
	add(a, "-n");
	add_number(a, c->nhosts * c->o->ranks_per_node);
	add(a, "-ppn");
	add_number(a, c->o->ranks_per_node);
	if (cell_on_collnet(t->library)) {
		add(a, "-genv");
		add(a, "LD_PRELOAD");
		add(a, t->launcher->collnet);
		add(a, "-genv");
		add(a, "COLLNET_MPI_VERBOSE");
		add(a, "2");
	}
}

/* The program that runs on the ranks. */
static void program(const struct compare *c, const struct contender *t, struct args *a)
{
	const struct compare_options *o = c->o;
	char text[32];

	if (t->library != CELL_COLLNET) {
		add(a, t->launcher->program);
		return;
	}
	add(a, c->self);
	add(a, "compare");
	add(a, "loop");
	snprintf(text, sizeof(text), "--timeout=%.3f", o->timeout_ms / 1e3);
	add(a, text);
	if (o->direct) {
		add(a, "--mode=direct");
	}
	if (o->spin) {
		add(a, "--spin");
	}
	if (o->m.window == COLLNET_WINDOW_OFF) {
		add(a, "--window=off");
	} else if (o->m.window != COLLNET_WINDOW_AUTO) {
		snprintf(text, sizeof(text), "--window=%u", o->m.window);
		add(a, text);
	}
}

char **compare_argv(const struct compare *c, const struct contender *t)
{
	struct args a = { calloc(ARGS + 1, sizeof(char *)), 0 };

	if (a.v == NULL) {
		return NULL;
	}
	if (c->in_lab) {
		add(&a, "lab-on");
		add(&a, c->hosts[0]);
	}
	if (t->launcher->library == CELL_OPENMPI) {
		openmpi(c, t, &a);
	} else {
		hydra(c, t, &a);
	}
	program(c, t, &a);
	return a.v;
}

void compare_argv_free(char **argv)
{
	for (size_t i = 0; argv != NULL && argv[i] != NULL; i++) {
		free(argv[i]);
	}
	free(argv);
}

/* ---- the start ------------------------------------------------------------------------ */

/* Each launcher has a TMPDIR of its own: Open MPI's fail when two make the directory of their
 * sessions at the same moment. */
static void set_environment(const struct compare *c, const struct contender *t)
{
	char path[COMPARE_PATH + 32];

	if (c->in_lab) {
		unsetenv("COLLNET_JOB"); /* the caller's: each launcher names its own */
		unsetenv("COLLNET_SIZE");
		unsetenv("COLLNET_RANK");
		snprintf(path, sizeof(path), "%s/%s", c->directory, t->key);
		if (mkdir(path, 0700) == 0 || errno == EEXIST) {
			setenv("TMPDIR", path, 1);
		}
	}
	if (interface_of(c) != NULL) {
		setenv("UCX_TLS", "tcp,self", 1);
		setenv("UCX_NET_DEVICES", interface_of(c), 1);
		setenv("FI_TCP_IFACE", interface_of(c), 1);
	}
}

__attribute__((noreturn)) static void become(const struct compare *c, const struct contender *t,
					     int in, int out)
{
	int log = open(t->log, O_WRONLY | O_CREAT | O_APPEND, 0644);
	char **argv = compare_argv(c, t);

	setpgid(0, 0); /* a Ctrl-C is for `collnet compare` */
	signal(SIGPIPE, SIG_DFL);
	set_environment(c, t);
	if (log >= 0 && argv != NULL && dup2(in, 0) >= 0 && dup2(out, 1) >= 0 &&
	    dup2(log, 2) >= 0) {
		execvp(argv[0], argv);
	}
	dprintf(2, "%s: %s\n", argv != NULL ? argv[0] : "?", strerror(errno));
	_exit(127);
}

static int start(const struct compare *c, struct contender *t)
{
	int to[2], from[2];

	snprintf(t->log, sizeof(t->log), "%.*s/%s.log", COMPARE_PATH - 32, c->directory, t->key);
	unlink(t->log);
	if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0) {
		tool_complain("pipe: %s", strerror(errno));
		return TOOL_FAILED;
	}
	fflush(NULL);
	t->pid = fork();
	if (t->pid == 0) {
		become(c, t, to[0], from[1]);
	}
	if (t->pid > 0) {
		setpgid(t->pid, t->pid); /* so that it has its group before it can be stopped */
	}
	close(to[0]);
	close(from[1]);
	t->to = to[1];
	t->from = from[0];
	if (t->pid < 0) {
		t->pid = 0;
		tool_complain("fork: %s", strerror(errno));
		return TOOL_FAILED;
	}
	return TOOL_OK;
}

static void add_contender(struct compare *c, enum cell_library library,
			  const struct compare_mpi *launcher, int yield)
{
	struct contender *t = &c->contenders[c->ncontenders++];

	t->library = library;
	t->launcher = launcher;
	t->yield = yield;
	t->to = t->from = -1;
	snprintf(t->key, sizeof(t->key), "%s%s", compare_library_key(library),
		 yield < 0 ? ""
		 : yield   ? "-yield"
			   : "-spin");
}

/* Open MPI takes part with two settings. */
static void add_library(struct compare *c, enum cell_library library,
			const struct compare_mpi *launcher)
{
	if (launcher->library == CELL_OPENMPI) {
		add_contender(c, library, launcher, 0);
		add_contender(c, library, launcher, 1);
	} else {
		add_contender(c, library, launcher, -1);
	}
}

/* The loop says where its ranks are; a launcher that put them elsewhere measures another thing. */
static bool greet(struct compare *c, struct contender *t)
{
	uint32_t ranks, nodes, want = c->nhosts * c->o->ranks_per_node;
	char line[512], clock[16];
	int at = 0;

	if (!contender_receive(t, c->o->timeout_ms, line, sizeof(line))) {
		return false;
	}
	if (sscanf(line, "ready %u %u %15s %n", &ranks, &nodes, clock, &at) != 3 || at == 0) {
		tool_complain("%s: unexpected line '%.80s'", compare_library_name(t->library),
			      line);
		t->failed = true;
		return false;
	}
	snprintf(t->version, sizeof(t->version), "%.*s", COMPARE_TEXT - 1, line + at);
	c->one_clock = c->one_clock && strcmp(clock, "one-clock") == 0;
	if (ranks != want || nodes != c->nhosts) {
		tool_complain("%s started %u ranks on %u nodes instead of %u on %u",
			      compare_library_name(t->library), ranks, nodes, want, c->nhosts);
		t->failed = true;
		return false;
	}
	return true;
}

int compare_start(struct compare *c)
{
	int rc = TOOL_OK;

	signal(SIGPIPE, SIG_IGN);
	add_contender(c, CELL_COLLNET, &c->mpi[0], -1);
	for (size_t i = 0; i < c->nmpi; i++) {
		add_library(c, c->mpi[i].library, &c->mpi[i]);
		if (c->mpi[i].collnet[0] != '\0') {
			add_library(c, cell_with_collnet(c->mpi[i].library), &c->mpi[i]);
		}
	}
	c->one_clock = true;
	/* One after the other: each start takes processor time, and an error is one library's. */
	for (size_t i = 0; i < c->ncontenders && rc == TOOL_OK && !compare_interrupted(); i++) {
		rc = start(c, &c->contenders[i]);
		if (rc == TOOL_OK && !greet(c, &c->contenders[i])) {
			c->bad = true;
			rc = i == 0 ? TOOL_FAILED : TOOL_OK; /* without collnet it is pointless */
		}
	}
	return compare_interrupted() ? TOOL_FAILED : rc;
}

/* ---- lines ---------------------------------------------------------------------------- */

/* The last lines of its log: launchers print much about a failure, the library last or first. */
static void print_log(const struct contender *t)
{
	char text[2048], *line, *rest = text;
	int fd = open(t->log, O_RDONLY | O_CLOEXEC), lines = 0;
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;

	if (fd >= 0) {
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	while ((line = strsep(&rest, "\n")) != NULL && lines < 12) {
		if (line[0] != '\0' && strspn(line, "-=") < strlen(line)) {
			fprintf(stderr, "[%s] %s\n", t->key, line);
			lines++;
		}
	}
}

bool contender_used_collnet(const struct contender *t)
{
	static const char world[] = "communicator MPI_COMM_WORLD ", not [] = "not served: ";
	char line[1024], why[512] = "its ranks did not load the component or the preloaded library";
	FILE *f = fopen(t->log, "re");
	bool used = false;

	while (f != NULL && !used && fgets(line, sizeof(line), f) != NULL) {
		const char *reason = strstr(line, not );

		if (strstr(line, world) != NULL && reason != NULL) {
			snprintf(why, sizeof(why), "%.*s", (int)strcspn(reason, "\n"), reason);
		}
		used = strstr(line, world) != NULL && strstr(line, ": served by") != NULL;
	}
	if (f != NULL) {
		fclose(f);
	}
	if (!used) {
		tool_complain("%s (%s) did not use collnet: %s", compare_library_name(t->library),
			      t->key, why);
	}
	return used;
}

const char *contender_choice(const struct contender *t, enum loop_op op, uint64_t bytes)
{
	const char *always = getenv(t->launcher->library == CELL_OPENMPI
					    ? "OMPI_MCA_coll_collnet_select"
					    : "COLLNET_MPI_SELECT");
	const char *by = NULL;
	char line[1024], sign[96], size[48] = "";
	uint64_t least = 1;
	FILE *f;

	if (always != NULL && strcmp(always, "always") == 0) {
		return "collnet";
	}
	while (least <= bytes / 2) {
		least *= 2;
	}
	if (least > 1) {
		snprintf(size, sizeof(size), " of %" PRIu64 " bytes and more", least);
	}
	snprintf(sign, sizeof(sign), "%s%s: ", loop_op_function(op), size);
	f = fopen(t->log, "re");
	while (f != NULL && by == NULL && fgets(line, sizeof(line), f) != NULL) {
		if (strstr(line, "communicator MPI_COMM_WORLD ") != NULL &&
		    strstr(line, sign) != NULL) {
			by = strstr(line, ": by collnet") != NULL ? "collnet" : "mpi";
		}
	}
	if (f != NULL) {
		fclose(f);
	}
	return by;
}

static bool lost(struct contender *t, const char *why)
{
	tool_complain("%s (%s) %s", compare_library_name(t->library), t->key, why);
	print_log(t);
	t->failed = true;
	if (t->pid > 0) {
		kill(-t->pid, SIGTERM); /* its ranks may be spinning */
	}
	return false;
}

bool contender_send(struct contender *t, const char *line)
{
	size_t len = strlen(line);

	return write(t->to, line, len) == (ssize_t)len || lost(t, "has ended");
}

/* What a library or launcher prints goes to the log. */
static void keep_line(const struct contender *t, const char *line)
{
	int fd = open(t->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	if (fd >= 0) {
		dprintf(fd, "%s\n", line);
		close(fd);
	}
}

/* Takes a whole line from the buffer; false: there is none yet. */
static bool next_line(struct contender *t, char *line, size_t size)
{
	char *end = memchr(t->line, '\n', t->len);
	size_t n;

	if (end == NULL && t->len < sizeof(t->line)) {
		return false;
	}
	n = end != NULL ? (size_t)(end - t->line) : t->len;
	snprintf(line, size, "%.*s", (int)n, t->line);
	n += end != NULL;
	memmove(t->line, t->line + n, t->len - n);
	t->len -= n;
	return true;
}

bool contender_receive(struct contender *t, uint32_t within, char *line, size_t size)
{
	cn_time until = cn_now() + within * CN_MS, now, left;
	struct pollfd p = { .fd = t->from, .events = POLLIN };
	char text[sizeof(t->line)], *mark;
	ssize_t n;

	for (;;) {
		while (next_line(t, text, sizeof(text))) {
			mark = strstr(text, LOOP_MARK); /* hydra can prepend to a line */
			if (mark != NULL) {
				snprintf(line, size, "%s", mark + strlen(LOOP_MARK));
				return true;
			}
			keep_line(t, text);
		}
		if (compare_interrupted()) {
			t->failed = true;
			return false;
		}
		now = cn_now();
		if (now >= until) {
			return lost(t, "does not answer");
		}
		left = until - now < INTERRUPT ? until - now : INTERRUPT;
		if (poll(&p, 1, (int)(left / CN_MS) + 1) <= 0) {
			continue;
		}
		n = read(t->from, t->line + t->len, sizeof(t->line) - t->len);
		if (n <= 0 && !(n < 0 && errno == EINTR)) {
			return lost(t, "has ended");
		}
		t->len += n > 0 ? (size_t)n : 0;
	}
}

/* ---- the end -------------------------------------------------------------------------- */

static bool ended(struct contender *t, cn_time until)
{
	const struct timespec pause = { .tv_nsec = 5000000 };

	while (waitpid(t->pid, NULL, WNOHANG) == 0) {
		if (cn_now() >= until) {
			return false;
		}
		nanosleep(&pause, NULL);
	}
	t->pid = 0;
	return true;
}

void compare_stop(struct compare *c)
{
	static const int signals[] = { 0, SIGTERM, SIGKILL };

	for (size_t i = 0; i < c->ncontenders; i++) {
		struct contender *t = &c->contenders[i];

		if (t->pid > 0 && !t->failed) {
			(void)!write(t->to, "quit\n", 5);
		}
		if (t->to >= 0) {
			close(t->to);
		}
		t->to = -1;
	}
	for (size_t i = 0; i < c->ncontenders; i++) {
		struct contender *t = &c->contenders[i];

		for (size_t s = t->failed || compare_interrupted(); s < 3 && t->pid > 0; s++) {
			if (signals[s] != 0) {
				kill(-t->pid, signals[s]);
			}
			(void)ended(t, cn_now() + STOP_MS * CN_MS);
		}
		if (t->from >= 0) {
			close(t->from);
		}
		t->from = -1;
	}
}
