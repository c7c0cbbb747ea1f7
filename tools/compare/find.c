/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The MPI libraries that are installed, and their loops.
 *
 * A library is found by its mpicc. Its mpirun is next to it, with the same suffix (mpicc.mpich,
 * mpirun.mpich), and identifies the library. The loop is compiled for every comparison: it takes a
 * second, and must match the current headers of the MPI library.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/compare/command.h"
#include "tools/lab/command.h"

#define CANDIDATES 16
#define FILES	   4 /* of the loop */

static const struct {
	const char *name, *key;
	const char *signs[4]; /* in what its mpirun --version prints */
} libraries[CELL_LIBRARIES] = {
	[CELL_COLLNET] = { "collnet", "collnet", { NULL } },
	[CELL_OPENMPI] = { "Open MPI", "openmpi", { "Open MPI", "open-mpi", "PRRTE", NULL } },
	[CELL_OPENMPI_ON_COLLNET] = { "Open MPI on collnet", "openmpi_on_collnet", { NULL } },
	[CELL_MPICH_ON_COLLNET] = { "MPICH on collnet", "mpich_on_collnet", { NULL } },
	[CELL_MPICH] = { "MPICH", "mpich", { "HYDRA", "Hydra", "mpich", NULL } },
};

const char *compare_library_name(enum cell_library library)
{
	return libraries[library].name;
}

const char *compare_library_key(enum cell_library library)
{
	return libraries[library].key;
}

/* Runs a program with its output in a file; its exit status, or 127. */
static int run_into(const char *path, char *const argv[])
{
	int status = -1, null, out;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		null = open("/dev/null", O_RDONLY);
		out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		if (null >= 0 && out >= 0 && dup2(null, 0) >= 0 && dup2(out, 1) >= 0 &&
		    dup2(out, 2) >= 0) {
			execv(argv[0], argv);
		}
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

/* The first line of a file that has one of these words, or any; "" without one. */
static void find_line(const char *path, const char *const *words, char *line, size_t size)
{
	FILE *f = fopen(path, "re");
	bool found = false;

	while (f != NULL && !found && fgets(line, (int)size, f) != NULL) {
		for (size_t i = 0; words[i] != NULL && !found; i++) {
			found = strstr(line, words[i]) != NULL;
		}
	}
	if (f != NULL) {
		fclose(f);
	}
	line[found ? strcspn(line, "\n") : 0] = '\0';
}

/* DIR/NAME; false, after a complaint: too long. */
static bool path_in(const char *dir, const char *name, char out[COMPARE_PATH])
{
	int n = snprintf(out, COMPARE_PATH, "%s/%s", dir, name);

	if (n < 0 || n >= COMPARE_PATH) {
		tool_complain("the path %.100s... is too long", dir);
		return false;
	}
	return true;
}

/* Where the loop's source is installed: relative to this program, so that a copy of an installation
 * works; where it was configured; or the source tree of a program that is not installed. */
static bool find_source(const struct compare *c, char out[COMPARE_PATH])
{
	static const char *const places[] = { "../share/collnet/compare", CN_COMPARE_DIR, "../.." };
	char dir[COMPARE_PATH], file[COMPARE_PATH];

	snprintf(dir, sizeof(dir), "%s", c->self);
	*strrchr(dir, '/') = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (places[i][0] == '/') {
			snprintf(out, COMPARE_PATH, "%s", places[i]);
		} else if (!path_in(dir, places[i], out)) {
			return false;
		}
		if (!path_in(out, "tools/compare/loop_mpi.c", file)) {
			return false;
		}
		if (access(file, R_OK) == 0) {
			return true;
		}
	}
	tool_complain("the source of the loop is neither in %s/%s nor in %s: install collnet", dir,
		      places[0], places[1]);
	return false;
}

/* ---- one library ---------------------------------------------------------------------- */

/* mpirun, or mpiexec, next to mpicc and with its suffix. */
static bool find_mpirun(const char *mpicc, char mpirun[COMPARE_PATH])
{
	static const char *const names[] = { "mpirun", "mpiexec" };
	const char *base = strrchr(mpicc, '/') + 1, *suffix = strstr(base, "mpicc");

	suffix = suffix != NULL ? suffix + strlen("mpicc") : "";
	for (size_t i = 0; i < 2; i++) {
		snprintf(mpirun, COMPARE_PATH, "%.*s%s%.40s", (int)(base - mpicc), mpicc, names[i],
			 suffix);
		if (access(mpirun, X_OK) == 0) {
			return true;
		}
	}
	return false;
}

static bool identify(const struct compare *c, struct compare_mpi *mpi)
{
	char *argv[] = { mpi->mpirun, (char *)"--version", NULL };
	char path[COMPARE_PATH], line[COMPARE_TEXT];

	if (!path_in(c->directory, "version", path) || run_into(path, argv) != 0) {
		return false;
	}
	for (int i = CELL_COLLNET + 1; i < CELL_LIBRARIES; i++) {
		find_line(path, libraries[i].signs, line, sizeof(line));
		if (line[0] != '\0') {
			mpi->library = (enum cell_library)i;
			return true;
		}
	}
	return false;
}

static int compile(const struct compare *c, struct compare_mpi *mpi)
{
	static const char *const files[FILES] = { "tools/compare/loop.c",
						  "tools/compare/loop_blocks.c",
						  "tools/compare/loop_mpi.c",
						  "tools/bench/pattern.c" };
	static const char *const words[] = { "error", "not found", "cannot", "undefined", NULL };
	char source[COMPARE_PATH], log[COMPARE_PATH], name[64], line[COMPARE_TEXT];
	char path[FILES][COMPARE_PATH], include[3][COMPARE_PATH + 16];
	char *argv[] = { mpi->mpicc,
			 (char *)"-O2",
			 (char *)"-std=gnu11",
			 (char *)"-D_GNU_SOURCE",
			 include[0],
			 include[1],
			 include[2],
			 (char *)"-o",
			 mpi->program,
			 path[0],
			 path[1],
			 path[2],
			 path[3],
			 NULL };

	snprintf(name, sizeof(name), "loop-%s", compare_library_key(mpi->library));
	if (!find_source(c, source) || !path_in(c->directory, name, mpi->program) ||
	    !path_in(c->directory, "compile.log", log)) {
		return TOOL_FAILED;
	}
	snprintf(include[0], sizeof(include[0]), "-I%s", source);
	snprintf(include[1], sizeof(include[1]), "-I%s/lib", source);
	snprintf(include[2], sizeof(include[2]), "-I%s/lib/include", source);
	for (size_t i = 0; i < FILES; i++) {
		if (!path_in(source, files[i], path[i])) {
			return TOOL_FAILED;
		}
	}
	if (run_into(log, argv) != 0) {
		if (compare_interrupted()) {
			return TOOL_FAILED;
		}
		find_line(log, words, line, sizeof(line));
		tool_complain("%s does not compile the loop: %s", mpi->mpicc,
			      line[0] != '\0' ? line : "no reason given");
		return TOOL_FAILED;
	}
	return TOOL_OK;
}

/* The component of Open MPI or the library for MPICH (collnet_mpi(7)): relative to this program, or
 * where it was configured. Leaves mpi->collnet empty, after a complaint, if it is not there. */
static void find_component(struct compare *c, struct compare_mpi *mpi)
{
	const bool openmpi = mpi->library == CELL_OPENMPI;
	const char *const places[] = { openmpi ? "../lib/collnet/openmpi" : "../lib",
				       openmpi ? CN_OPENMPI_DIR : CN_LIB_DIR };
	const char *name = openmpi ? "mca_coll_collnet.so" : "libcollnet_mpich.so";
	char dir[COMPARE_PATH], place[COMPARE_PATH], file[COMPARE_PATH];
	char *real = NULL;

	snprintf(dir, sizeof(dir), "%s", c->self);
	*strrchr(dir, '/') = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && real == NULL; i++) {
		snprintf(place, sizeof(place), "%s", places[i]);
		if ((places[i][0] == '/' || path_in(dir, places[i], place)) &&
		    path_in(place, name, file) && access(file, R_OK) == 0) {
			real = realpath(openmpi ? place : file, NULL);
		}
	}
	if (real == NULL) {
		tool_complain("--mpi-on-collnet: there is no %s in %s; see collnet_mpi(7)", name,
			      places[1]);
		c->bad = true;
		return;
	}
	snprintf(mpi->collnet, sizeof(mpi->collnet), "%s", real);
	free(real);
}

/* One mpicc. `named`: by the user, so that it must be of use. */
static int add(struct compare *c, const char *mpicc, bool named)
{
	struct compare_mpi *mpi = &c->mpi[c->nmpi];
	char path[COMPARE_PATH];

	/* not realpath(): a wrapper may go by the name that it is called by */
	snprintf(path, sizeof(path), "%s", mpicc);
	if (strchr(mpicc, '/') != NULL ? access(mpicc, X_OK) != 0
				       : !lab_find_tool(mpicc, path, sizeof(path))) {
		if (named) {
			tool_complain("--mpicc: there is no program %.200s", mpicc);
		}
		return named ? TOOL_FAILED : TOOL_OK;
	}
	snprintf(mpi->mpicc, sizeof(mpi->mpicc), "%s", path);
	if (!find_mpirun(path, mpi->mpirun)) {
		tool_complain("%s has no mpirun next to it; it is left out", mpi->mpicc);
		c->bad = c->bad || named;
		return TOOL_OK;
	}
	if (!identify(c, mpi)) {
		tool_complain("%s is neither Open MPI's nor MPICH's; it is left out", mpi->mpirun);
		c->bad = c->bad || named;
		return TOOL_OK;
	}
	for (size_t i = 0; i < c->nmpi; i++) {
		if (c->mpi[i].library == mpi->library) {
			return TOOL_OK; /* mpicc is usually one of the others */
		}
	}
	if (compile(c, mpi) != TOOL_OK) {
		c->bad = true;
		return TOOL_OK;
	}
	if (c->o->mpi_on_collnet) {
		find_component(c, mpi);
	}
	c->nmpi++;
	return TOOL_OK;
}

int compare_find(struct compare *c)
{
	static const char *const usual[] = { "mpicc.openmpi", "mpicc.mpich", "mpicc" };
	const char *names[CANDIDATES];
	struct cn_err err = { 0 };
	size_t n = sizeof(usual) / sizeof(usual[0]);
	int rc = TOOL_OK;

	memcpy(names, usual, sizeof(usual));
	if (c->o->mpicc != NULL &&
	    tool_split(c->o->mpicc, names, CANDIDATES, &n, &err) != COLLNET_OK) {
		return tool_usage("--mpicc: %s", err.text);
	}
	for (size_t i = 0;
	     i < n && rc == TOOL_OK && c->nmpi < CELL_LIBRARIES - 1 && !compare_interrupted();
	     i++) {
		rc = add(c, names[i], c->o->mpicc != NULL);
	}
	if (compare_interrupted()) {
		return TOOL_FAILED;
	}
	if (rc == TOOL_OK && c->nmpi == 0) {
		tool_complain(
			"no MPI library to compare with: install Open MPI or MPICH with its compiler "
			"(Debian: libopenmpi-dev and openmpi-bin, libmpich-dev and mpich), load its "
			"module, or name its mpicc with --mpicc");
		return TOOL_FAILED;
	}
	return rc;
}
