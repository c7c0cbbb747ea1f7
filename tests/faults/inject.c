/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults: signals to ranks and daemons, interfaces and ports set down; and their end. */
#include "cluster.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const names[KINDS] = {
	[FAULT_NONE] = "none",
	[FAULT_RANK] = "kill-rank",
	[FAULT_DAEMON] = "kill-daemon",
	[FAULT_WORKER] = "kill-worker",
	[FAULT_PARENT] = "kill-parent",
	[FAULT_STOP_DAEMON] = "stop-daemon",
	[FAULT_INTERFACE] = "interface-down",
	[FAULT_LINK] = "link-down",
	[FAULT_UPLINK] = "uplink-down",
	[FAULT_STOP_RANK] = "stop-rank",
};

const char *kind_name(enum kind k)
{
	return names[k];
}

bool kind_find(const char *name, enum kind *out)
{
	for (enum kind k = FAULT_NONE; k < KINDS; k++) {
		if (strcmp(name, names[k]) == 0) {
			*out = k;
			return true;
		}
	}
	return false;
}

static const struct cn_vertex *vertex_of(const struct cluster *c, uint32_t host)
{
	return &c->topo->vertices[c->hosts[host].vertex];
}

bool fault_draw(struct cluster *c, enum kind k, struct fault *f)
{
	pid_t pids[DAEMON_PIDS];
	uint32_t parent;

	memset(f, 0, sizeof(*f));
	f->kind = k;
	f->rank = draw(c, c->shared->job.ranks);
	f->host = host_of(c, f->rank);
	f->link = vertex_of(c, f->host)->parent_link;
	if (k == FAULT_UPLINK) {
		parent = vertex_of(c, f->host)->parent;
		f->link = c->topo->vertices[parent].parent_link;
		return f->link != CN_TOPO_NONE;
	}
	return (k != FAULT_WORKER && k != FAULT_PARENT) || daemon_pids(c, f->host, pids) > 1;
}

/* As the lab names a port, for names of at most 7 characters. */
static void port_name(const struct cluster *c, const struct fault *f, char *out, size_t size)
{
	const struct cn_topo_link *l = &c->topo->links[f->link];
	const struct cn_vertex *v = c->topo->vertices;
	uint32_t sw = v[l->a].is_switch ? l->a : l->b, peer = sw == l->a ? l->b : l->a;

	snprintf(out, size, "%.7s-%.7s", v[sw].name, v[peer].name);
}

static bool set_up(const char *name, bool up)
{
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = { 0 };
	bool ok;

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	ok = s >= 0 && ioctl(s, SIOCGIFFLAGS, &r) == 0;
	if (ok) {
		r.ifr_flags = (short)(up ? r.ifr_flags | IFF_UP : r.ifr_flags & ~IFF_UP);
		ok = ioctl(s, SIOCSIFFLAGS, &r) == 0;
	}
	if (!ok) {
		perror(name);
	}
	if (s >= 0) {
		close(s);
	}
	return ok;
}

/* A host's own interface, from a child inside its namespace. */
static bool set_host_up(const struct cluster *c, uint32_t host, bool up)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		char path[256];
		int fd;

		snprintf(path, sizeof(path), "/run/netns/%s", c->hosts[host].name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		_exit(fd < 0 || setns(fd, CLONE_NEWNET) < 0 || !set_up("eth0", up));
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* The daemon's processes get a signal: all of them, or its children only. */
static bool signal_daemon(const struct cluster *c, uint32_t host, int sig, uint32_t first)
{
	pid_t pids[DAEMON_PIDS];
	uint32_t n = daemon_pids(c, host, pids);

	for (uint32_t i = n; i > first; i--) {
		kill(pids[i - 1], SIGSTOP); /* none reacts to another's death */
	}
	for (uint32_t i = n; sig != SIGSTOP && i > first; i--) {
		kill(pids[i - 1], sig);
	}
	return n > first;
}

bool fault_begin(struct cluster *c, struct fault *f)
{
	pid_t pids[DAEMON_PIDS];
	uint32_t n;
	char port[64];

	f->at_us = now_us();
	switch (f->kind) {
	case FAULT_NONE:
		return true;
	case FAULT_RANK:
		return kill(c->shared->slots[f->rank].pid, SIGKILL) == 0;
	case FAULT_STOP_RANK:
		return kill(c->shared->slots[f->rank].pid, SIGSTOP) == 0;
	case FAULT_DAEMON:
		return signal_daemon(c, f->host, SIGKILL, 0);
	case FAULT_WORKER:
	case FAULT_PARENT:
		n = daemon_pids(c, f->host, pids);
		f->worker = n > 1 ? pids[1] : 0;
		f->at_us = now_us();
		return n > 1 && kill(pids[f->kind == FAULT_WORKER], SIGKILL) == 0;
	case FAULT_STOP_DAEMON:
		return signal_daemon(c, f->host, SIGSTOP, 0);
	case FAULT_INTERFACE:
		return set_host_up(c, f->host, false);
	default:
		port_name(c, f, port, sizeof(port));
		return set_up(port, false);
	}
}

/* A process of a daemon that was killed runs still. */
static bool is_ending(const struct cluster *c, const struct fault *f)
{
	pid_t pids[DAEMON_PIDS];

	return (f->worker > 0 && kill(f->worker, 0) == 0) ||
	       ((f->kind == FAULT_WORKER || f->kind == FAULT_PARENT || f->kind == FAULT_DAEMON) &&
		daemon_pids(c, f->host, pids) > 0);
}

bool fault_heal(struct cluster *c, const struct fault *f)
{
	pid_t pids[DAEMON_PIDS];
	uint32_t n;
	char port[64];

	switch (f->kind) {
	case FAULT_STOP_RANK:
		kill(c->shared->slots[f->rank].pid, SIGCONT);
		break;
	case FAULT_STOP_DAEMON:
		n = daemon_pids(c, f->host, pids);
		for (uint32_t i = 0; i < n; i++) {
			kill(pids[i], SIGCONT);
		}
		break;
	case FAULT_INTERFACE:
		if (!set_host_up(c, f->host, true)) {
			return false;
		}
		break;
	case FAULT_LINK:
	case FAULT_UPLINK:
		port_name(c, f, port, sizeof(port));
		if (!set_up(port, true)) {
			return false;
		}
		break;
	default:
		break;
	}
	/* What is left of a daemon needs a moment to say goodbye, and holds the interface until
	 * then. */
	for (int i = 0; i < 500 && is_ending(c, f); i++) {
		pause_ms(10);
	}
	return daemon_start(c, f->host);
}

/* The host is below the fault's link. */
static bool below(const struct cluster *c, const struct fault *f, uint32_t host)
{
	uint32_t v = c->hosts[host].vertex;

	for (; v != c->topo->root; v = c->topo->vertices[v].parent) {
		if (c->topo->vertices[v].parent_link == f->link) {
			return true;
		}
	}
	return false;
}

bool fault_own(const struct cluster *c, const struct fault *f, uint32_t rank)
{
	return f->kind == FAULT_RANK ? rank == f->rank
				     : f->kind != FAULT_UPLINK && host_of(c, rank) == f->host;
}

/* The host that stands first in the text; NOBODY: none. */
static uint32_t accused(const struct cluster *c, const char *text)
{
	const char *first = NULL;
	uint32_t host = NOBODY;

	for (uint32_t i = 0; i < c->nhosts; i++) {
		const char *at = find_word(text, c->hosts[i].name);

		if (at != NULL && (first == NULL || at < first)) {
			first = at;
			host = i;
		}
	}
	return host;
}

bool fault_named(const struct cluster *c, const struct fault *f, uint32_t rank, const char *text)
{
	uint32_t host = accused(c, text);
	char word[32];

	if (f->kind == FAULT_RANK || f->kind == FAULT_STOP_RANK) {
		snprintf(word, sizeof(word), "rank %u", f->rank);
		return find_word(text, word) != NULL;
	}
	if (f->kind != FAULT_UPLINK) {
		return host == f->host;
	}
	/* a host on the other side of the link */
	return host != NOBODY ? below(c, f, host) != below(c, f, host_of(c, rank))
			      : strstr(text, "cut off") != NULL;
}
