/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a command as systemd does for a unit with SystemCallFilter=, SystemCallErrorNumber=EPERM and
 * RestrictAddressFamilies=: restrict CALLS FAMILIES COMMAND [ARGUMENT]...
 *
 * CALLS is a file with the numbers of the allowed system calls, one a line; FAMILIES a list of the
 * allowed address families, such as "AF_UNIX AF_PACKET".
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLS_MAX    1000
#define FAMILIES_MAX 8

static const struct {
	const char *name;
	uint32_t number;
} families[] = {
	{ "AF_UNIX", AF_UNIX },	      { "AF_INET", AF_INET },	  { "AF_INET6", AF_INET6 },
	{ "AF_NETLINK", AF_NETLINK }, { "AF_PACKET", AF_PACKET },
};

struct program {
	struct sock_filter code[2 * (CALLS_MAX + FAMILIES_MAX) + 8];
	unsigned short n;
};

static void die(const char *what)
{
	fprintf(stderr, "restrict: %s: %s\n", what, strerror(errno));
	exit(125);
}

static void add(struct program *p, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
	p->code[p->n++] = (struct sock_filter){ code, jt, jf, k };
}

static void load(struct program *p, size_t offset)
{
	add(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void allow(struct program *p, uint32_t value)
{
	add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value);
	add(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
}

static void install(struct program *p, int error)
{
	struct sock_fprog f = { .len = (unsigned short)(p->n + 1), .filter = p->code };

	add(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | (uint32_t)error);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &f) != 0) {
		die("filter");
	}
}

static void restrict_calls(const char *path)
{
	static struct program p;
	unsigned long nr;
	FILE *f = fopen(path, "r");

	if (f == NULL) {
		die(path);
	}
	load(&p, offsetof(struct seccomp_data, nr));
	for (int i = 0; i < CALLS_MAX && fscanf(f, "%lu", &nr) == 1; i++) {
		allow(&p, (uint32_t)nr);
	}
	fclose(f);
	install(&p, EPERM);
}

static void restrict_families(char *list)
{
	static struct program p;
	unsigned n = 0;

	load(&p, offsetof(struct seccomp_data, nr));
	add(&p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_socket);
	add(&p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
	load(&p, offsetof(struct seccomp_data, args) +
			 (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 4));
	for (char *name = strtok(list, " "); name != NULL; name = strtok(NULL, " ")) {
		size_t i = 0;

		while (i < sizeof(families) / sizeof(families[0]) &&
		       strcmp(families[i].name, name) != 0) {
			i++;
		}
		if (i == sizeof(families) / sizeof(families[0]) || n++ == FAMILIES_MAX) {
			errno = EAFNOSUPPORT;
			die(name);
		}
		allow(&p, families[i].number);
	}
	install(&p, EAFNOSUPPORT);
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: restrict CALLS FAMILIES COMMAND [ARGUMENT]...\n");
		return 125;
	}
	restrict_families(argv[2]);
	restrict_calls(argv[1]);
	execvp(argv[3], &argv[3]);
	die(argv[3]);
	return 125;
}
