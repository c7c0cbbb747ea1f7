/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/node/runtime.c: how a node begins, what can change meanwhile, and what is of whom. Exit 77
 * where the system refuses namespaces.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "namespace.h"
#include "proto/goodbye_list.h"
#include "runtime_pair.h"
#include "util/clock.h"

#define TEAMS (CN_RUNTIME_REPLACED + 1)

static char topology[] = "/tmp/collnet-topology.XXXXXX";

static uint32_t open_files(void)
{
	uint32_t n = 0;

	for (int fd = 0; fd < 1024; fd++) {
		n += fcntl(fd, F_GETFD) >= 0;
	}
	return n;
}

/* A network of so many hosts, a and b among them. */
static void write_topology(uint32_t hosts)
{
	FILE *f = fopen(topology, "w");

	assert_non_null(f);
	fputs("switch s\nhost a\nlink a s rate 1gbit\nhost b\nlink b s rate 1gbit\n", f);
	for (uint32_t i = 2; i < hosts; i++) {
		fprintf(f, "host h%u\nlink h%u s rate 1gbit\n", i, i);
	}
	assert_int_equal(fclose(f), 0);
}

/* ---- opening ---------------------------------------------------------------------------- */

/* By cn_runtime_open(), and by cn_runtime_prepare() where that needs no interface. */
static void refuse_by(int (*call)(const struct cn_runtime_config *, struct cn_runtime *,
				  struct cn_err *),
		      struct cn_runtime_config c, int status, const char *words)
{
	static const struct cn_runtime zeroed;
	const uint32_t before = open_files();
	struct cn_runtime s;
	struct cn_err err = { 0 };

	memset(&s, 0xff, sizeof(s));
	assert_int_not_equal(call(&c, &s, &err), COLLNET_OK);
	runtime_assert_words(err.text, words);
	assert_int_equal(err.code, status);
	assert_int_equal(open_files(), before);
	assert_memory_equal(&s, &zeroed, sizeof(s));
	cn_runtime_close(&s, 0);
}

static void refuse(struct cn_runtime_config c, int status, const char *words)
{
	refuse_by(cn_runtime_open, c, status, words);
}

static void refuse_early(struct cn_runtime_config c, int status, const char *words)
{
	refuse_by(cn_runtime_prepare, c, status, words);
	refuse(c, status, words);
}

static void open__fails_and_leaves_nothing_open(void **state)
{
	struct cn_runtime_config c = runtime_on_lo("a node");

	(void)state;
	write_topology(2);
	refuse_early(c, COLLNET_EINVAL, "'a node' is not a valid node name");
	c = runtime_on_lo("a");
	c.link = "carrier pigeons";
	refuse_early(c, COLLNET_EINVAL, "carrier pigeons");
	c = runtime_on_lo("a");
	c.peers = "/nonexistent/peers";
	refuse_early(c, COLLNET_ESYSTEM, "/nonexistent/peers");
	c = runtime_on_lo("a");
	c.topology = "/nonexistent/topology";
	refuse_early(c, COLLNET_ETOPO, "/nonexistent/topology");
	c.node = "c";
	c.topology = topology;
	refuse_early(c, COLLNET_ETOPO, "no host 'c'");
	c.node = "s"; /* a switch */
	refuse_early(c, COLLNET_ETOPO, "no host 's'");
	c = runtime_on_lo("a");
	c.interface = "none";
	refuse(c, COLLNET_EIFACE, "none");
}

/* Two nodes on an interface would each acknowledge the other's frames. */
static void open__takes_the_interface(void **state)
{
	struct cn_runtime_config c = runtime_on_veth("a");
	struct cn_err err = { 0 };

	(void)state;
	assert_true(add_pair());
	runtime_open_as(c, &runtime_a);
	c.node = "c";
	refuse(c, COLLNET_EIFACE, "a0 is used by another");
	/* Even if it is not there: who has it waits for another one with this name. */
	assert_int_equal(cn_runtime_prepare(&c, &runtime_b, &err), COLLNET_EIFACE);
	assert_true(runtime_b.link == NULL && !runtime_b.prepared);
	c.ethertype++;
	runtime_open_as(c, &runtime_b);
	cn_runtime_close(&runtime_b, 0);
	cn_runtime_close(&runtime_a, 0);
	c.ethertype--;
	runtime_open_as(c, &runtime_b);
	cn_runtime_close(&runtime_b, 0);
	assert_true(run_command("ip link delete a0"));
	runtime_open_as(runtime_on_lo("a"), &runtime_a);
	c = runtime_on_lo("a");
	refuse(c, COLLNET_EIFACE, "40000");
	cn_runtime_close(&runtime_a, 0);
}

/* An interface that comes and goes: what was prepared stays. */
static void attach__again(void **state)
{
	struct cn_runtime_config c = runtime_on_veth("a");
	const struct cn_node_config *node;
	const uint32_t before = open_files();
	struct cn_err err = { 0 };
	uint32_t prepared;

	(void)state;
	write_topology(2);
	c.topology = topology;
	c.goodbye_nodes = 3;
	c.goodbyes = calloc(1, cn_goodbye_list_size(c.goodbye_nodes));
	c.window = 5;
	c.max_schedules = 1 << 20;
	assert_int_equal(cn_runtime_prepare(&c, &runtime_a, &err), COLLNET_OK);
	prepared = open_files(); /* with the lock's file, where the directory is usable */
	write_topology(3);
	assert_int_equal(cn_runtime_reload(&c, &runtime_a, &err), COLLNET_OK);
	assert_int_equal(unlink(topology), 0);
	for (uint32_t n = 0; n < 2; n++) {
		assert_int_equal(cn_runtime_attach(&c, &runtime_a, &err), COLLNET_EIFACE);
		assert_true(runtime_a.link == NULL && runtime_a.engine == NULL &&
			    runtime_a.poller == NULL);
		assert_int_equal(open_files(), prepared);
		assert_true(add_pair());
		assert_int_equal(cn_runtime_attach(&c, &runtime_a, &err), COLLNET_OK);
		node = cn_node_config(cn_engine_node(runtime_a.engine));
		assert_string_equal(node->name, "a");
		assert_int_equal(node->dead_after, RUNTIME_LONG);
		assert_ptr_equal(node->goodbyes, c.goodbyes);
		assert_int_equal(node->max_peers, c.goodbye_nodes);
		assert_int_equal(runtime_a.engine->config.topo->nhosts, 3);
		assert_int_equal(runtime_a.engine->config.window, c.window);
		assert_int_equal(runtime_a.engine->config.max_schedules, c.max_schedules);
		assert_true(run_command("ip link delete a0"));
		cn_runtime_detach(&runtime_a, 0);
		assert_true(runtime_a.link == NULL && runtime_a.engine == NULL &&
			    runtime_a.poller == NULL);
		assert_int_equal(open_files(), prepared);
	}
	cn_runtime_close(&runtime_a, 0);
	assert_int_equal(open_files(), before);
	free(c.goodbyes);
}

/* Each process is another node to its peers, also under the same name. */
static void open__is_another_process(void **state)
{
	struct cn_node_config first;

	(void)state;
	runtime_open_as(runtime_on_lo("a"), &runtime_a);
	first = *cn_node_config(cn_engine_node(runtime_a.engine));
	cn_runtime_close(&runtime_a, 0);
	runtime_open_as(runtime_on_lo("a"), &runtime_a);
	assert_true(cn_node_config(cn_engine_node(runtime_a.engine))->epoch != first.epoch);
	assert_memory_not_equal(cn_node_config(cn_engine_node(runtime_a.engine))->key, first.key,
				sizeof(first.key));
	cn_runtime_close(&runtime_a, 0);
}

/* ---- reload ----------------------------------------------------------------------------- */

/* A team goes on with the topology with which it became ready, and so do eight of them. An error
 * changes nothing. */
static void reload__while_teams_are_there(void **state)
{
	struct cn_runtime_config c = runtime_on_lo("a");
	struct runtime_rank r[TEAMS];
	struct cn_err err = { 0 };
	char job[16];

	(void)state;
	write_topology(2);
	c.topology = topology;
	runtime_open_as(c, &runtime_a);
	for (uint32_t n = 0; n < TEAMS; n++) {
		const struct cn_topo *last = runtime_a.topo;

		assert_int_equal(runtime_a.topo->nhosts, 2 + n);
		snprintf(job, sizeof(job), "job%u", n);
		runtime_join(&runtime_a, job, 0, 1, &r[n]);
		cn_poller_poll(runtime_a.poller, cn_now());
		assert_int_equal(r[n].calls, 1);
		assert_int_equal(r[n].status, COLLNET_OK);
		c.window = 100 + n;
		c.max_schedules = 1000 + n;
		assert_int_equal(cn_runtime_reload(&c, &runtime_a, &err), COLLNET_OK);
		assert_ptr_equal(runtime_a.topo, last); /* the file is the same */
		assert_int_equal(runtime_a.engine->config.window, 100 + n);
		assert_int_equal(runtime_a.engine->config.max_schedules, 1000 + n);
		write_topology(3 + n);
		c.window = 200 + n;
		c.max_schedules = 2000 + n;
		if (n < CN_RUNTIME_REPLACED) {
			assert_int_equal(cn_runtime_reload(&c, &runtime_a, &err), COLLNET_OK);
			assert_int_equal(runtime_a.engine->config.window, 200 + n);
			assert_int_equal(runtime_a.engine->config.max_schedules, 2000 + n);
			assert_ptr_equal(runtime_a.engine->config.topo, runtime_a.topo);
			assert_true(cn_engine_uses(runtime_a.engine, last));
		}
	}
	for (uint32_t n = 0; n < 2; n++) {
		c.topology = n == 0 ? "/nonexistent/topology" : topology;
		assert_int_equal(cn_runtime_reload(&c, &runtime_a, &err),
				 n == 0 ? COLLNET_ETOPO : COLLNET_ELIMIT);
		assert_int_equal(runtime_a.topo->nhosts, 1 + TEAMS);
		assert_ptr_equal(runtime_a.engine->config.topo, runtime_a.topo);
		assert_int_equal(runtime_a.engine->config.window, 100 + TEAMS - 1);
		assert_int_equal(runtime_a.engine->config.max_schedules, 1000 + TEAMS - 1);
	}
	cn_team_leave(r[4].member, cn_now(), false); /* any of them */
	assert_int_equal(cn_runtime_reload(&c, &runtime_a, &err), COLLNET_OK);
	assert_int_equal(runtime_a.topo->nhosts, 2 + TEAMS);
	c.topology = NULL;
	assert_int_equal(cn_runtime_reload(&c, &runtime_a, &err), COLLNET_ELIMIT);
	for (uint32_t n = 0; n < TEAMS; n++) {
		if (n != 4) {
			cn_team_leave(r[n].member, cn_now(), false);
		}
	}
	for (uint32_t n = 0; n < 3 * TEAMS; n++) { /* nobody needs those that were replaced */
		c.topology = n % 2 == 0 ? NULL : topology;
		assert_int_equal(cn_runtime_reload(&c, &runtime_a, &err), COLLNET_OK);
		assert_true((runtime_a.topo == NULL) == (c.topology == NULL));
	}
	cn_runtime_close(&runtime_a, 0);
}

/* ---- of the process ---------------------------------------------------------------------- */

/* A child of fork() that has done so holds nothing of its parent's, which goes on. */
static void forked__closes_what_is_shared(void **state)
{
	struct cn_runtime_config c = runtime_on_veth("a");
	const uint32_t before = open_files();
	char file[32];
	int status, other;
	pid_t pid;

	(void)state;
	assert_true(add_pair());
	runtime_open_as(runtime_on_veth("a"), &runtime_a);
	runtime_open_as(runtime_on_veth("b"), &runtime_b);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		cn_runtime_forked(&runtime_a);
		cn_runtime_forked(&runtime_b);
		_exit(open_files() != before || runtime_a.link != NULL || runtime_a.prepared);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	snprintf(file, sizeof(file), "/proc/self/fd/%d", runtime_a.lock.file_fd);
	other = open(file, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(other, LOCK_EX | LOCK_NB), -1);
	assert_int_equal(errno, EWOULDBLOCK);
	close(other);
	runtime_discover();
	c.node = "c";
	refuse(c, COLLNET_EIFACE, "a0 is used by another");
	cn_runtime_close(&runtime_a, RUNTIME_LONG);
	cn_runtime_close(&runtime_b, RUNTIME_LONG);
	assert_true(run_command("ip link delete a0"));
}

static void stats__of_link_and_process(void **state)
{
	struct cn_runtime_config c = runtime_on_lo("a");
	struct collnet_stats s;

	(void)state;
	c.cluster = 7;
	runtime_open_as(c, &runtime_a);
	cn_runtime_stats(&runtime_a, &s, false);
	assert_int_equal(s.size, sizeof(s));
	assert_string_equal(s.interface, "lo");
	assert_string_equal(s.link, "udp");
	assert_string_equal(s.encapsulation, "udp");
	assert_int_equal(s.ethertype, RUNTIME_PORT);
	assert_int_equal(s.cluster, 7);
	assert_true(s.cpu_ns > 0 && s.cpu_ns < UINT64_C(3600000000000));
	assert_true(s.rss_bytes > 1 << 18 && s.rss_bytes < UINT64_C(1) << 32);
	cn_runtime_close(&runtime_a, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open__fails_and_leaves_nothing_open),
		cmocka_unit_test(open__takes_the_interface),
		cmocka_unit_test(attach__again),
		cmocka_unit_test(open__is_another_process),
		cmocka_unit_test(reload__while_teams_are_there),
		cmocka_unit_test(forked__closes_what_is_shared),
		cmocka_unit_test(stats__of_link_and_process),
	};
	const char *why = runtime_namespace();
	int fd, failed;

	if (why != NULL) {
		printf("skipped: %s\n", why);
		return 77;
	}
	fd = mkstemp(topology);
	if (fd < 0) {
		return 1;
	}
	close(fd);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(topology);
	return failed;
}
