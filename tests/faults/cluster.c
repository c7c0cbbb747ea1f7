/* SPDX-License-Identifier: BSD-2-Clause */
/* The lab's hosts and daemons, and the ranks of a job as processes. */
#include "cluster.h"
#include "util/clock.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FDS_MORE  3
#define KIB_MORE  6144
#define SETTLE_MS 3000u

uint64_t now_us(void)
{
	return cn_now() / CN_US;
}

void pause_ms(uint32_t ms)
{
	const struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&t, NULL);
}

uint64_t mix(uint64_t a, uint64_t b)
{
	return cn_mix64(a * 0x9e3779b97f4a7c15u ^ b);
}

uint32_t draw(struct cluster *c, uint32_t below)
{
	return (uint32_t)(cn_random(&c->random) % below);
}

static bool of_name(char ch)
{
	return (ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
	       ch == '_';
}

const char *find_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
		if ((at == text || !of_name(at[-1])) && !of_name(at[n])) {
			return at;
		}
	}
	return NULL;
}

bool cluster_open(struct cluster *c, uint64_t seed)
{
	char path[256];
	struct cn_err err = { 0 };

	memset(c, 0, sizeof(*c));
	c->random = mix(seed, 1);
	c->dir = getenv("COLLNET_LAB_DIR");
	if (c->dir == NULL) {
		fprintf(stderr, "faults: run it inside `collnet lab shell`\n");
		return false;
	}
	snprintf(path, sizeof(path), "%s/topology", c->dir);
	if (cn_topo_read(path, &c->topo, &err) != COLLNET_OK || c->topo->nhosts > RANKS_MAX) {
		fprintf(stderr, "faults: %s: %s\n", path, err.text);
		return false;
	}
	for (uint32_t i = 0; i < c->topo->nhosts; i++) {
		c->hosts[i].vertex = c->topo->hosts[i];
		c->hosts[i].name = c->topo->vertices[c->topo->hosts[i]].name;
	}
	c->nhosts = c->topo->nhosts;
	c->shared = mmap(NULL, sizeof(*c->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return c->shared != MAP_FAILED;
}

void cluster_close(struct cluster *c)
{
	munmap(c->shared, sizeof(*c->shared));
	cn_topo_free(c->topo);
}

uint32_t host_of(const struct cluster *c, uint32_t rank)
{
	return rank / c->shared->job.local;
}

/* ---- daemons ---------------------------------------------------------------------------- */

static pid_t parent_of(pid_t pid)
{
	char path[64], text[512], *end;
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (f == NULL) {
		return 0;
	}
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	end = strrchr(text, ')');
	/* ") S 123": a process that has ended and is not waited for is none */
	return end == NULL || end[2] == 'Z' ? 0 : (pid_t)strtol(end + 4, NULL, 10);
}

uint32_t daemon_pids(const struct cluster *c, uint32_t host, pid_t out[DAEMON_PIDS])
{
	char path[256];
	int first = 0;
	uint32_t n = 0;
	struct dirent *d;
	DIR *proc;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.daemon.pid", c->dir, c->hosts[host].name);
	f = fopen(path, "re");
	if (f == NULL || fscanf(f, "%d", &first) != 1) {
		first = 0;
	}
	if (f != NULL) {
		fclose(f);
	}
	if (first <= 1 || parent_of(first) == 0) {
		return 0;
	}
	out[n++] = first;
	proc = opendir("/proc");
	while (proc != NULL && n < DAEMON_PIDS && (d = readdir(proc)) != NULL) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);

		if (pid > 1 && parent_of(pid) == first) {
			out[n++] = pid;
		}
	}
	if (proc != NULL) {
		closedir(proc);
	}
	return n;
}

bool daemon_start(struct cluster *c, uint32_t host)
{
	char command[128];
	pid_t pids[DAEMON_PIDS];

	if (daemon_pids(c, host, pids) > 0) {
		return true;
	}
	snprintf(command, sizeof(command), "lab-daemon %s", c->hosts[host].name);
	return system(command) == 0;
}

static long count_fds(pid_t pid)
{
	char path[64];
	long n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	while (d != NULL && readdir(d) != NULL) {
		n++;
	}
	if (d != NULL) {
		closedir(d);
	}
	return n;
}

static long resident_kib(pid_t pid)
{
	char path[64];
	long size, pages = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "re");
	if (f != NULL) {
		if (fscanf(f, "%ld %ld", &size, &pages) != 2) {
			pages = 0;
		}
		fclose(f);
	}
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static bool usage(struct cluster *c, uint32_t host, long *fds, long *kib)
{
	struct host *h = &c->hosts[host];
	pid_t pids[DAEMON_PIDS];
	uint32_t n = daemon_pids(c, host, pids);

	*fds = *kib = 0;
	for (uint32_t i = 0; i < n; i++) {
		*fds += count_fds(pids[i]);
		*kib += resident_kib(pids[i]);
	}
	if (n > 0 && h->daemon != pids[0]) {
		h->daemon = pids[0];
		h->fds = *fds;
		h->rss_kib = *kib;
	}
	return n > 0;
}

bool daemons_usage(struct cluster *c, long *worst_fds, long *worst_kib)
{
	const uint64_t until = now_us() + SETTLE_MS * 1000;

	for (uint32_t i = 0; i < c->nhosts; i++) {
		const struct host *h = &c->hosts[i];
		long fds, kib;

		if (!usage(c, i, &fds, &kib)) {
			printf("FAIL: the daemon of %s does not run\n", h->name);
			return false;
		}
		if (h->fds == 0 || h->rss_kib == 0) {
			printf("FAIL: what the daemon of %s uses cannot be read\n", h->name);
			return false;
		}
		while (fds > h->fds + FDS_MORE && now_us() < until) {
			pause_ms(50);
			usage(c, i, &fds, &kib);
		}
		if (fds > h->fds + FDS_MORE || kib > h->rss_kib + KIB_MORE) {
			printf("FAIL: the daemon of %s leaks: %ld descriptors (first %ld), %ld KiB "
			       "(first %ld)\n",
			       h->name, fds, h->fds, kib, h->rss_kib);
			return false;
		}
		*worst_fds = fds - h->fds > *worst_fds ? fds - h->fds : *worst_fds;
		*worst_kib = kib - h->rss_kib > *worst_kib ? kib - h->rss_kib : *worst_kib;
	}
	return true;
}

/* ---- ranks ------------------------------------------------------------------------------ */

bool job_start(struct cluster *c)
{
	struct job *j = &c->shared->job;

	memset(c->shared->slots, 0, sizeof(c->shared->slots));
	j->number = c->jobs++;
	fflush(stdout);
	for (uint32_t i = 0; i < j->ranks; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			rank_run(c, i);
			_exit(0);
		}
		if (pid < 0) {
			perror("faults: fork");
			return false;
		}
		c->shared->slots[i].pid = pid;
	}
	return true;
}

bool job_progress(struct cluster *c, const uint32_t *than, uint32_t ops, uint32_t ms,
		  uint32_t except)
{
	const uint64_t until = now_us() + (uint64_t)ms * 1000;

	for (uint32_t i = 0; i < c->shared->job.ranks; i++) {
		struct slot *s = &c->shared->slots[i];

		while (i != except && !atomic_load(&s->ended) &&
		       atomic_load(&s->ops) < ops + (than != NULL ? than[i] : 0)) {
			if (now_us() >= until) {
				return false;
			}
			pause_ms(2);
		}
	}
	return true;
}

bool job_ended(struct cluster *c, uint32_t ms, uint32_t except)
{
	return job_progress(c, NULL, UINT32_MAX, ms, except);
}

void job_reap(struct cluster *c)
{
	for (uint32_t i = 0; i < c->shared->job.ranks; i++) {
		struct slot *s = &c->shared->slots[i];

		if (s->pid <= 0) {
			continue;
		}
		if (!atomic_load(&s->ended)) {
			kill(s->pid, SIGKILL);
		}
		while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR) {
		}
		s->pid = 0;
	}
}

void job_print(const struct cluster *c, FILE *f)
{
	for (uint32_t i = 0; i < c->shared->job.ranks; i++) {
		struct slot *s = &c->shared->slots[i];

		fprintf(f, "  rank %u on %s: %u operations, %u wrong bytes, %s%s\n", i,
			c->hosts[host_of(c, i)].name, atomic_load(&s->ops), s->wrong,
			!atomic_load(&s->ended) ? "did not end"
			: s->status == 0	? "ended well"
						: "error: ",
			s->text);
	}
}
