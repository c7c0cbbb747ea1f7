/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `collnet compare`: where it runs, its directory, and the order of things.
 *
 * With a network to emulate it becomes `collnet lab shell`, which runs it again inside. A user can
 * also run it in the shell of a lab with --ip.
 */
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/compare/command.h"

static volatile sig_atomic_t signalled; /* by this signal; 0: not yet */

static void note_signal(int number)
{
	signalled = number;
}

/* Signals that the caller ignores, as nohup does, stay ignored. */
static void catch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction act = { .sa_handler = note_signal };
	struct sigaction old;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) {
			sigaction(signals[i], &act, NULL);
		}
	}
}

bool compare_interrupted(void)
{
	return signalled != 0;
}

static int find_self(char self[COMPARE_PATH])
{
	ssize_t n = readlink("/proc/self/exe", self, COMPARE_PATH - 1);

	self[n > 0 ? n : 0] = '\0';
	if (n <= 0) {
		tool_complain("/proc/self/exe: %s", strerror(errno));
	}
	return n > 0 ? TOOL_OK : TOOL_FAILED;
}

/* ---- into a lab ----------------------------------------------------------------------- */

/* Returns only when it fails. */
static int enter_lab(const struct compare_options *o, char *self)
{
	char **argv = calloc(o->nlab_args + o->nown_args + o->nops + 12, sizeof(*argv));
	size_t n = 0;

	if (argv == NULL) {
		tool_complain("no memory");
		return TOOL_FAILED;
	}
	argv[n++] = self;
	argv[n++] = (char *)"lab";
	argv[n++] = (char *)"shell";
	for (size_t i = 0; i < o->nlab_args; i++) {
		argv[n++] = o->lab_args[i];
	}
	argv[n++] = (char *)"--ip";
	if (o->direct) {
		argv[n++] = (char *)"--no-daemons";
	}
	argv[n++] = (char *)"--";
	argv[n++] = self;
	argv[n++] = (char *)"compare";
	for (size_t i = 0; i < o->nops; i++) {
		argv[n++] = (char *)loop_op_name(o->ops[i]);
	}
	for (size_t i = 0; i < o->nown_args; i++) {
		argv[n++] = o->own_args[i];
	}
	execv(self, argv);
	tool_complain("%s: %s", self, strerror(errno));
	free(argv);
	return TOOL_FAILED;
}

/* The hosts of the lab that this process runs in. */
static int lab_hosts(struct compare *c, const char *lab, struct cn_err *err)
{
	char path[COMPARE_PATH];
	struct cn_topo *t;
	int rc;

	snprintf(path, sizeof(path), "%s/topology", lab);
	rc = cn_topo_read(path, &t, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	c->hosts = calloc(t->nhosts, sizeof(*c->hosts));
	for (uint32_t i = 0; c->hosts != NULL && i < t->nhosts; i++) {
		c->hosts[i] = strdup(t->vertices[t->hosts[i]].name);
	}
	c->nhosts = t->nhosts;
	cn_topo_free(t);
	if (c->hosts == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for host names");
	}
	return c->nhosts > 1 ? COLLNET_OK
			     : cn_fail(err, COLLNET_EINVAL, "a comparison needs two hosts");
}

static int find_hosts(struct compare *c)
{
	const char *lab = getenv("COLLNET_LAB_DIR");
	struct cn_err err = { 0 };
	int rc;

	c->in_lab = lab != NULL && c->o->hosts == NULL;
	if (lab == NULL && c->o->hosts == NULL) {
		return tool_usage("no network given: specify --shape (e.g. 8x2) or --topology FILE "
				  "for an emulated one, or --hosts");
	}
	rc = c->in_lab ? lab_hosts(c, lab, &err)
		       : compare_hosts(c->o->hosts, &c->hosts, &c->nhosts, &err);
	return rc == COLLNET_OK ? TOOL_OK : tool_usage("%s", err.text);
}

/* ---- the directory -------------------------------------------------------------------- */

/* Else errno says why. */
static bool is_writable(const char *directory)
{
	struct stat st;

	if (stat(directory, &st) == 0 && !S_ISDIR(st.st_mode)) {
		errno = ENOTDIR;
		return false;
	}
	return access(directory, W_OK | X_OK) == 0;
}

/* A lab sees what this machine sees; on a network all hosts see the current directory, usually. */
static int make_directory(struct compare *c)
{
	const char *tmp = getenv("TMPDIR");
	char path[COMPARE_PATH], *real;

	if (c->o->directory != NULL) {
		c->keep = true;
		snprintf(path, sizeof(path), "%s", c->o->directory);
		if ((mkdir(path, 0777) != 0 && errno != EEXIST) || !is_writable(path)) {
			tool_complain("--directory %s: %s", path, strerror(errno));
			return TOOL_FAILED;
		}
	} else {
		snprintf(path, sizeof(path), "%.4000s/collnet-compare.XXXXXX",
			 !c->in_lab    ? "."
			 : tmp != NULL ? tmp
				       : "/tmp");
		if (mkdtemp(path) == NULL) {
			tool_complain("%s: %s", path, strerror(errno));
			return TOOL_FAILED;
		}
	}
	real = realpath(path, NULL);
	snprintf(c->directory, sizeof(c->directory), "%s", real != NULL ? real : path);
	free(real);
	return TOOL_OK;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	(void)remove(path);
	return 0;
}

/* A launcher's processes in other process groups end a little later, and may write until then. */
static void remove_directory(const char *path)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	const cn_time until = cn_now() + 2000 * CN_MS;

	(void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	while (access(path, F_OK) == 0 && cn_now() < until) {
		nanosleep(&pause, NULL);
		(void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	}
}

static void clean_up(struct compare *c)
{
	if (c->directory[0] != '\0' && !c->keep) {
		remove_directory(c->directory);
	}
	for (uint32_t i = 0; c->hosts != NULL && i < c->nhosts; i++) {
		free(c->hosts[i]);
	}
	free(c->hosts);
	free(c->cells);
}

/* ---- the order of things -------------------------------------------------------------- */

/* What the comparison would only fail at in the end. */
static int check_outputs(const struct compare_options *o)
{
	struct cn_err err = { 0 };

	if ((o->m.csv != NULL && !compare_can_write(o->m.csv, &err)) ||
	    (o->plot != NULL && !compare_can_plot(o->plot, &err))) {
		tool_complain("%s", err.text);
		return TOOL_FAILED;
	}
	return TOOL_OK;
}

static int run(struct compare *c)
{
	int rc = find_hosts(c);

	catch_signals();
	rc = rc == TOOL_OK ? make_directory(c) : rc;
	rc = rc == TOOL_OK ? compare_find(c) : rc;
	rc = rc == TOOL_OK ? compare_start(c) : rc;
	rc = rc == TOOL_OK ? compare_run(c) : rc;
	compare_stop(c);
	if (c->csv != NULL && !measure_report_written(fclose(c->csv) == 0, c->o->m.csv)) {
		rc = TOOL_FAILED;
	}
	if (rc == TOOL_OK && c->o->plot != NULL && !compare_interrupted()) {
		rc = compare_plot(c);
	}
	return rc == TOOL_OK && c->bad ? TOOL_FAILED : rc;
}

int collnet_cmd_compare(int argc, char **argv)
{
	struct compare_options o;
	struct compare *c = calloc(1, sizeof(*c));
	int rc;

	if (c == NULL) {
		tool_complain("no memory");
		return TOOL_FAILED;
	}
	c->o = &o;
	rc = compare_options_parse(&o, argc, argv);
	if (rc == TOOL_OK && o.loop) {
		rc = compare_loop(&o);
	} else if (rc == TOOL_OK) {
		rc = check_outputs(&o);
		rc = rc == TOOL_OK ? find_self(c->self) : rc;
		if (rc == TOOL_OK) {
			rc = o.lab_given ? enter_lab(&o, c->self) : run(c);
		}
		clean_up(c);
	}
	compare_options_free(&o);
	free(c);
	if (compare_interrupted()) {
		signal(signalled, SIG_DFL);
		raise(signalled);
	}
	return rc < 0 ? TOOL_OK : rc;
}
