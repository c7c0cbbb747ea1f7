/* SPDX-License-Identifier: BSD-2-Clause */
#include "node/key.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIGITS ((size_t)2 * CN_SIPHASH_KEY)

static int digit(char c)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *at = c != '\0' ? strchr(digits, c) : NULL;

	return at != NULL ? (int)(at - digits) % 16 : -1;
}

static bool parse(const char *text, size_t len, uint8_t out[CN_SIPHASH_KEY])
{
	if (len == DIGITS + 1 && text[DIGITS] == '\n') {
		len--;
	}
	for (size_t i = 0; i < len && len == DIGITS; i++) {
		const int d = digit(text[i]);

		if (d < 0) {
			return false;
		}
		out[i / 2] = (uint8_t)(i % 2 == 0 ? d << 4 : out[i / 2] | d);
	}
	return len == DIGITS;
}

/* As ssh does with keys; and another user's file would be a key that he knows. */
static int check_file(int fd, const char *path, uid_t owner, struct cn_err *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0) {
		return cn_fail(err, COLLNET_ESYSTEM, "%s: %s", path, strerror(errno));
	}
	if (!S_ISREG(st.st_mode)) {
		return cn_fail(err, COLLNET_EINVAL, "%s: not a regular file", path);
	}
	if ((st.st_mode & 077) != 0) {
		return cn_fail(err, COLLNET_EPERM,
			       "%s: others than its owner have permissions: chmod 600 %s", path,
			       path);
	}
	if (st.st_uid != 0 && st.st_uid != geteuid() && st.st_uid != owner) {
		return cn_fail(
			err, COLLNET_EPERM,
			"%s: it belongs to user %lu, who knows the key: chown it to the user "
			"who reads it, or to root",
			path, (unsigned long)st.st_uid);
	}
	return COLLNET_OK;
}

static int read_text(int fd, const char *path, uint8_t out[CN_SIPHASH_KEY], struct cn_err *err)
{
	char text[DIGITS + 2]; /* one more than there may be */
	const ssize_t n = read(fd, text, sizeof(text));
	bool right;

	if (n < 0) {
		return cn_fail(err, COLLNET_ESYSTEM, "%s: %s", path, strerror(errno));
	}
	right = parse(text, (size_t)n, out);
	explicit_bzero(text, sizeof(text));
	if (!right) {
		return cn_fail(err, COLLNET_EINVAL,
			       "%s: expected one line of %zu hexadecimal digits, as of 'openssl "
			       "rand -hex %d'",
			       path, DIGITS, CN_SIPHASH_KEY);
	}
	return COLLNET_OK;
}

int cn_key_read(const char *path, uid_t owner, uint8_t out[CN_SIPHASH_KEY], struct cn_err *err)
{
	/* A FIFO does not block. */
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int rc;

	if (fd < 0) {
		return cn_fail(err, COLLNET_ESYSTEM, "cannot read the key %s: %s", path,
			       strerror(errno));
	}
	rc = check_file(fd, path, owner, err);
	if (rc == COLLNET_OK) {
		rc = read_text(fd, path, out, err);
	}
	close(fd);
	return rc;
}

void cn_key_protect(void)
{
#ifndef CN_SANITIZED
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}
