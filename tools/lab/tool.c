/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Running the tools that make a network: ip, bridge, tc (iproute2) and nft (nftables).
 *
 * Their input and output go through files in memory, so that no pipe can fill up, and a failed
 * batch is reported with the very line that failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/lab/command.h"

static const char *const tool_dirs[] = { "/usr/sbin", "/sbin",		 "/usr/bin",
					 "/bin",      "/usr/local/sbin", "/usr/local/bin" };

bool lab_find_tool(const char *name, char *path, size_t size)
{
	const char *p = getenv("PATH"), *end;
	size_t i;
	int n;

	while (p != NULL && *p != '\0') {
		end = strchrnul(p, ':');
		n = snprintf(path, size, "%.*s/%s", (int)(end - p), p, name);
		if (*p == '/' && n > 0 && (size_t)n < size && access(path, X_OK) == 0) {
			return true;
		}
		p = *end == ':' ? end + 1 : end;
	}
	for (i = 0; i < sizeof(tool_dirs) / sizeof(tool_dirs[0]); i++) {
		n = snprintf(path, size, "%s/%s", tool_dirs[i], name);
		if (n > 0 && (size_t)n < size && access(path, X_OK) == 0) {
			return true;
		}
	}
	return false;
}

static bool write_all(int fd, const char *p, size_t len)
{
	ssize_t n;

	while (len > 0) {
		n = write(fd, p, len);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n <= 0) {
			return false;
		}
		p += n;
		len -= (size_t)n;
	}
	return true;
}

int lab_write_file(const char *path, mode_t mode, const char *text, struct cn_err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	bool ok = fd >= 0 && write_all(fd, text, strlen(text)) && fchmod(fd, mode) == 0;

	if (!ok) {
		cn_fail(err, COLLNET_ESYSTEM, "cannot write %s: %s", path, strerror(errno));
	}
	if (fd >= 0) {
		close(fd);
	}
	return ok ? COLLNET_OK : COLLNET_ESYSTEM;
}

/* The child's part: standard input and output are the two files, then the tool. */
static void become_tool(const char *path, char *const argv[], int in, int out)
{
	sigset_t none;

	setpgid(0, 0); /* Ctrl-C is for the lab, which ends when this has */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(out, 2) >= 0) {
		execv(path, argv);
	}
	_exit(127);
}

/* All of a file in memory as a string, or NULL. */
static char *contents(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *text;
	ssize_t n;

	if (size < 0) {
		return NULL;
	}
	text = malloc((size_t)size + 1);
	if (text == NULL) {
		return NULL;
	}
	n = pread(fd, text, (size_t)size, 0);
	text[n < 0 ? 0 : n] = '\0';
	return text;
}

/* Line `number` of the batch, which a tool complains about as "-:number". */
static void batch_line(const char *input, unsigned long number, char *line, size_t size)
{
	const char *p = input, *end;

	while (p != NULL && number > 1) {
		p = strchr(p, '\n');
		p = p == NULL ? NULL : p + 1;
		number--;
	}
	line[0] = '\0';
	if (p != NULL) {
		end = strchrnul(p, '\n');
		snprintf(line, size, "%.*s", (int)(end - p < 120 ? end - p : 120), p);
	}
}

static int tool_failed(char *const argv[], const char *input, const char *output,
		       struct cn_err *err)
{
	const char *at = output == NULL ? NULL : strstr(output, "failed -:");
	char line[160] = "", first[160] = "";

	if (at != NULL && input != NULL) {
		batch_line(input, strtoul(at + 9, NULL, 10), line, sizeof(line));
	} else {
		snprintf(line, sizeof(line), "%s %s", argv[1] == NULL ? "" : argv[1],
			 argv[1] == NULL || argv[2] == NULL ? "" : argv[2]);
	}
	if (output != NULL) {
		snprintf(first, sizeof(first), "%.*s", (int)strcspn(output, "\n"), output);
	}
	return cn_fail(err, COLLNET_ESYSTEM, "%s refused '%s': %s", argv[0], line,
		       first[0] == '\0' ? "no reason given" : first);
}

int lab_tool(char *const argv[], const char *input, size_t len, char **output, struct cn_err *err)
{
	int in = memfd_create("lab-in", MFD_CLOEXEC), out = memfd_create("lab-out", MFD_CLOEXEC);
	int status = -1, rc = COLLNET_OK;
	char path[256], *text = NULL;
	pid_t pid = -1;

	if (!lab_find_tool(argv[0], path, sizeof(path))) {
		rc = cn_fail(err, COLLNET_ESYSTEM, "%s is missing: install the Debian package %s",
			     argv[0], strcmp(argv[0], "nft") == 0 ? "nftables" : "iproute2");
	} else if (in >= 0 && out >= 0 && write_all(in, input == NULL ? "" : input, len) &&
		   lseek(in, 0, SEEK_SET) == 0) {
		pid = fork();
	}
	if (pid == 0) {
		become_tool(path, argv, in, out);
	}
	if (pid > 0) {
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
			/* again */
		}
		text = contents(out);
		if (status != 0) {
			rc = tool_failed(argv, input, text, err);
		}
	} else if (rc == COLLNET_OK) {
		rc = cn_fail(err, COLLNET_ESYSTEM, "cannot run %s: %s", path, strerror(errno));
	}
	if (in >= 0) {
		close(in);
	}
	if (out >= 0) {
		close(out);
	}
	if (rc == COLLNET_OK && output != NULL) {
		*output = text;
	} else {
		free(text);
	}
	return rc;
}

int lab_batch_open(struct lab_batch *b, struct cn_err *err)
{
	b->text = NULL;
	b->f = open_memstream(&b->text, &b->len);
	return b->f != NULL ? COLLNET_OK
			    : cn_fail(err, COLLNET_ENOMEM, "no memory for a batch of commands");
}

int lab_batch_run(struct lab_batch *b, char *const argv[], struct cn_err *err)
{
	int rc = fclose(b->f) == 0
			 ? COLLNET_OK
			 : cn_fail(err, COLLNET_ENOMEM, "no memory for a batch of commands");

	if (rc == COLLNET_OK && b->len > 0) {
		rc = lab_tool(argv, b->text, b->len, NULL, err);
	}
	free(b->text);
	return rc;
}
