/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/client/launcher.c, pmi.c and options.c: what the environment says. */
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/backend.h"
#include "client/env.h"
#include "util/clock.h"

/* An environment: "NAME=value" strings, ended by NULL. */
static const char *lookup(void *arg, const char *name)
{
	const char **env = arg;
	size_t n = strlen(name);

	for (; *env != NULL; env++) {
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=') {
			return *env + n + 1;
		}
	}
	return NULL;
}

#define ENV(...) ((const char *[]){ __VA_ARGS__, NULL })

static void expect(const char **env, const char *job, uint32_t rank, uint32_t ranks)
{
	struct cn_launch_info p;
	struct cn_err err = { .code = 0 };

	memset(&p, 0xAA, sizeof(p));
	assert_int_equal(cn_launch_info_from(lookup, env, &p, &err), COLLNET_OK);
	assert_string_equal(p.job, job);
	assert_int_equal(p.rank, rank);
	assert_int_equal(p.ranks, ranks);
}

static void refuse(const char **env, const char *word)
{
	struct cn_launch_info p = { .rank = 77 };
	struct cn_err err = { .code = 0 };

	assert_int_equal(cn_launch_info_from(lookup, env, &p, &err), COLLNET_EINVAL);
	assert_int_equal(err.code, COLLNET_EINVAL);
	assert_non_null(strstr(err.text, word));
	assert_int_equal(p.rank, 77);
}

static void place_from__nobody(void **state)
{
	(void)state;
	expect(ENV("HOME=/"), "", 0, 1);
	expect(ENV("COLLNET_RANK=", "COLLNET_SIZE="), "", 0, 1);
}

static void place_from__own_variables(void **state)
{
	(void)state;
	expect(ENV("COLLNET_RANK=3", "COLLNET_SIZE=4"), "default", 3, 4);
	expect(ENV("COLLNET_RANK=0", "COLLNET_SIZE=4096", "COLLNET_JOB=a/b.c:d@e-f_g"),
	       "a/b.c:d@e-f_g", 0, 4096);
	expect(ENV("COLLNET_JOB=lonely"), "lonely", 0, 1);
}

static void place_from__own_variables_wrong(void **state)
{
	(void)state;
	refuse(ENV("COLLNET_RANK=4", "COLLNET_SIZE=4"), "COLLNET_RANK");
	refuse(ENV("COLLNET_RANK=0", "COLLNET_SIZE=0"), "COLLNET_SIZE");
	refuse(ENV("COLLNET_RANK=0", "COLLNET_SIZE=4097"), "COLLNET_SIZE");
	refuse(ENV("COLLNET_RANK=-1", "COLLNET_SIZE=4"), "COLLNET_RANK");
	refuse(ENV("COLLNET_RANK=1x", "COLLNET_SIZE=4"), "COLLNET_RANK");
	refuse(ENV("COLLNET_RANK=99999999999999999999", "COLLNET_SIZE=4"), "COLLNET_RANK");
	refuse(ENV("COLLNET_RANK=1"), "COLLNET_SIZE");
	refuse(ENV("COLLNET_SIZE=1"), "COLLNET_RANK");
	refuse(ENV("COLLNET_JOB=two words"), "COLLNET_JOB");
	refuse(ENV("COLLNET_JOB=x234567890123456789012345678901234567890123456789012345678901234"),
	       "COLLNET_JOB");
}

static void place_from__slurm(void **state)
{
	(void)state;
	expect(ENV("SLURM_PROCID=5", "SLURM_NTASKS=8", "SLURM_JOB_ID=71", "SLURM_STEP_ID=2"),
	       "slurm-71.2", 5, 8);
	expect(ENV("SLURM_PROCID=5", "SLURM_NTASKS=8", "SLURM_JOB_ID=71"), "slurm-71", 5, 8);
	expect(ENV("SLURM_PROCID=5", "SLURM_NTASKS=8", "COLLNET_JOB=mine"), "mine", 5, 8);
	/* A shell within an allocation is nobody's rank. */
	expect(ENV("SLURM_NTASKS=8", "SLURM_JOB_ID=71"), "", 0, 1);
	refuse(ENV("SLURM_PROCID=8", "SLURM_NTASKS=8"), "SLURM_PROCID");
	refuse(ENV("SLURM_PROCID=8", "SLURM_NTASKS=many"), "SLURM_NTASKS");
}

static void place_from__innermost_launcher(void **state)
{
	(void)state;
	expect(ENV("PMI_RANK=1", "PMI_SIZE=2"), "pmi", 1, 2);
	expect(ENV("PMI_RANK=1", "PMI_SIZE=2", "PMI_JOBID=k 9"), "pmi-k_9", 1, 2);
	expect(ENV("OMPI_COMM_WORLD_RANK=6", "OMPI_COMM_WORLD_SIZE=7"), "ompi", 6, 7);
	expect(ENV("OMPI_COMM_WORLD_RANK=6", "OMPI_COMM_WORLD_SIZE=7",
		   "PMIX_NAMESPACE=prterun-a-1@1"),
	       "ompi-prterun-a-1@1", 6, 7);
	/* mpirun within a Slurm job */
	expect(ENV("OMPI_COMM_WORLD_RANK=6", "OMPI_COMM_WORLD_SIZE=7", "SLURM_PROCID=0",
		   "SLURM_NTASKS=2", "SLURM_JOB_ID=9"),
	       "ompi", 6, 7);
	expect(ENV("PMI_RANK=6", "PMI_SIZE=7", "SLURM_PROCID=0", "SLURM_NTASKS=2"), "pmi", 6, 7);
	expect(ENV("COLLNET_RANK=1", "COLLNET_SIZE=2", "SLURM_PROCID=0", "SLURM_NTASKS=5"),
	       "default", 1, 2);
}

static void place_from__torchrun(void **state)
{
	(void)state;
	expect(ENV("RANK=3", "WORLD_SIZE=4", "MASTER_ADDR=n0", "MASTER_PORT=29500"),
	       "torch-29500.n0", 3, 4);
	/* torchrun within a Slurm step */
	expect(ENV("RANK=3", "WORLD_SIZE=4", "MASTER_ADDR=fe80::1%eth0", "MASTER_PORT=29501",
		   "SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_JOB_ID=9"),
	       "torch-29501.fe80::1_eth0", 3, 4);
	/* Names as common as these count only together. */
	expect(ENV("RANK=3", "WORLD_SIZE=4"), "", 0, 1);
	expect(ENV("RANK=3", "MASTER_ADDR=n0", "MASTER_PORT=29500"), "", 0, 1);
	expect(ENV("RANK=9", "WORLD_SIZE=9", "PMI_RANK=1", "PMI_SIZE=2"), "pmi", 1, 2);
	refuse(ENV("RANK=4", "WORLD_SIZE=4", "MASTER_ADDR=n0", "MASTER_PORT=29500"), "RANK");
}

static void place_from__open_mpi_before_pmix(void **state)
{
	(void)state;
	expect(ENV("OMPI_COMM_WORLD_RANK=6", "OMPI_COMM_WORLD_SIZE=7",
		   "OMPI_MCA_ess_base_jobid=896270337"),
	       "ompi-896270337", 6, 7);
	expect(ENV("OMPI_COMM_WORLD_RANK=6", "OMPI_COMM_WORLD_SIZE=7", "PMIX_NAMESPACE=9",
		   "OMPI_MCA_ess_base_jobid=896270337"),
	       "ompi-9", 6, 7);
}

static int fd_of(const char **env)
{
	struct cn_launch_info p;

	assert_int_equal(cn_launch_info_from(lookup, env, &p, NULL), COLLNET_OK);
	return p.pmi_fd;
}

static void place_from__only_a_pmi_server_knows_the_job(void **state)
{
	(void)state;
	assert_int_equal(fd_of(ENV("PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=8")), 8);
	assert_int_equal(fd_of(ENV("PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=x")), INT_MAX);
	assert_int_equal(fd_of(ENV("PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=99999999999")), INT_MAX);
	assert_int_equal(fd_of(ENV("PMI_RANK=1", "PMI_SIZE=2")), -1);
	assert_int_equal(fd_of(ENV("PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=8", "PMI_JOBID=7.0")), -1);
	assert_int_equal(fd_of(ENV("PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=8", "COLLNET_JOB=a")), -1);
	assert_int_equal(fd_of(ENV("COLLNET_RANK=1", "COLLNET_SIZE=2", "PMI_FD=8")), -1);
	assert_int_equal(fd_of(ENV("HOME=/")), -1);
	/* mpiexec -pmi-port, which says no rank */
	refuse(ENV("PMI_ID=0", "PMI_PORT=n0:45125"), "without -pmi-port");
	expect(ENV("PMI_PORT=n0:45125", "COLLNET_RANK=1", "COLLNET_SIZE=2"), "default", 1, 2);
}

static const char *size_from(const char **env)
{
	struct cn_launch_info p;

	assert_int_equal(cn_launch_info_from(lookup, env, &p, NULL), COLLNET_OK);
	return p.specified_by;
}

static void place_from__names_the_variable_of_the_size(void **state)
{
	(void)state;
	assert_null(size_from(ENV("COLLNET_JOB=a", "SLURM_NTASKS=8")));
	assert_string_equal(size_from(ENV("COLLNET_RANK=0", "COLLNET_SIZE=1")), "COLLNET_SIZE");
	assert_string_equal(size_from(ENV("PMI_RANK=0", "PMI_SIZE=1")), "PMI_SIZE");
}

/* Asks for the job's name where `answer` waits; what was asked is in `asked`. */
static bool ask(const char *answer, char *out, size_t size, char asked[64])
{
	int pair[2];
	bool known;
	ssize_t n;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	n = (ssize_t)strlen(answer);
	assert_int_equal(write(pair[1], answer, (size_t)n), n);
	assert_int_equal(shutdown(pair[1], SHUT_WR), 0);
	known = cn_pmi_job(pair[0], out, size);
	n = recv(pair[1], asked, 63, 0);
	assert_true(n >= 0);
	asked[n] = '\0';
	close(pair[0]);
	close(pair[1]);
	return known;
}

static void pmi_job__answers(void **state)
{
	static const char *const bad[] = {
		"",
		"cmd=my_kvsname kvsname=kvs_1",
		"cmd=my_kvsname\n",
		"cmd=my_kvsname kvsname=\n",
		"cmd=my_kvsname kvsname=abcdefghijklmnop\n",
		"cmd=maxes kvsname_max=256\n",
	};
	char name[16] = "kept", asked[64];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(ask(bad[i], name, sizeof(name), asked));
		assert_string_equal(name, "kept");
		assert_string_equal(asked, "cmd=get_my_kvsname\n");
	}
	assert_true(ask("cmd=my_kvsname kvsname=kvs_1_0_7_n0\nmore", name, sizeof(name), asked));
	assert_string_equal(name, "kvs_1_0_7_n0");
	assert_true(ask("cmd=my_kvsname rc=0 kvsname=abcdefghijklmno rc=0\n", name, sizeof(name),
			asked));
	assert_string_equal(name, "abcdefghijklmno");
}

static void pmi_ask__finds_a_key(void **state)
{
	static const char answer[] = "cmd=get_result rc=0 msg=success value=0.1\n";
	char value[16] = "kept";
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(write(pair[1], answer, strlen(answer)), strlen(answer));
	}
	assert_false(cn_pmi_ask(pair[0], "cmd=get\n", " values=", value, sizeof(value)));
	assert_string_equal(value, "kept");
	assert_true(cn_pmi_ask(pair[0], "cmd=get\n", " value=", value, sizeof(value)));
	assert_string_equal(value, "0.1");
	close(pair[0]);
	close(pair[1]);
}

static void pmi_job__strange_descriptors_get_no_bytes(void **state)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	socklen_t size = sizeof(at);
	char name[64], got[8];
	int pair[2], server, client;

	(void)state;
	assert_false(cn_pmi_job(-1, name, sizeof(name)));
	assert_false(cn_pmi_job(INT_MAX, name, sizeof(name)));
	assert_int_equal(pipe(pair), 0);
	assert_false(cn_pmi_job(pair[1], name, sizeof(name)));
	close(pair[1]);
	assert_int_equal(read(pair[0], got, sizeof(got)), 0);
	close(pair[0]);
	/* A connection to a server that has an address, as collnetd's. */
	server = socket(AF_UNIX, SOCK_STREAM, 0);
	client = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(server, (struct sockaddr *)&at, sizeof(sa_family_t)), 0);
	assert_int_equal(listen(server, 1), 0);
	assert_int_equal(getsockname(server, (struct sockaddr *)&at, &size), 0);
	assert_int_equal(connect(client, (struct sockaddr *)&at, size), 0);
	assert_false(cn_pmi_job(client, name, sizeof(name)));
	pair[0] = accept(server, NULL, NULL);
	assert_true(pair[0] >= 0);
	assert_int_equal(recv(pair[0], got, sizeof(got), MSG_DONTWAIT), -1);
	close(pair[0]);
	close(client);
	close(server);
}

static int answers_to;
static volatile sig_atomic_t answered;

/* One more byte of an answer without an end, 20 of them. */
static void answer_a_bit(int signal)
{
	const struct itimerval none = { .it_value = { 0 } };

	(void)signal;
	if (write(answers_to, "c", 1) != 1 || ++answered == 20) {
		setitimer(ITIMER_REAL, &none, NULL);
	}
}

/* Neither its bytes nor the signals prolong the wait for the line. */
static void pmi_job__a_slow_server_and_signals(void **state)
{
	const struct itimerval every_second = { .it_interval = { .tv_sec = 1 },
						.it_value = { .tv_sec = 1 } };
	const struct itimerval none = { .it_value = { 0 } };
	const struct sigaction act = { .sa_handler = answer_a_bit };
	char name[16];
	int pair[2];
	cn_time ms;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	answers_to = pair[1];
	assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &every_second, NULL), 0);
	ms = cn_now() / CN_MS;
	assert_false(cn_pmi_job(pair[0], name, sizeof(name)));
	ms = cn_now() / CN_MS - ms;
	setitimer(ITIMER_REAL, &none, NULL);
	signal(SIGALRM, SIG_DFL);
	assert_true(answered > 0);
	assert_true(ms >= 5000 && ms < 15000);
	close(pair[0]);
	close(pair[1]);
}

/* A rank that a PMI-1 server at `fd` started. */
static void start_by(int fd)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", fd);
	assert_int_equal(setenv("PMI_FD", number, 1), 0);
	assert_int_equal(setenv("PMI_RANK", "0", 1), 0);
	assert_int_equal(setenv("PMI_SIZE", "2", 1), 0);
}

struct refusing {
	int fd;
	pthread_mutex_t *lock; /* of the context */
	uint32_t asked;
	bool locked; /* while it was asked */
};

/* A server that names no job. */
static void *refuse_requests(void *arg)
{
	static const char refusal[] = "cmd=unknown\n";
	struct refusing *s = arg;
	char request[64];

	while (recv(s->fd, request, sizeof(request), 0) > 0) {
		s->asked++;
		if (pthread_mutex_trylock(s->lock) == 0) {
			pthread_mutex_unlock(s->lock);
		} else {
			s->locked = true;
		}
		if (send(s->fd, refusal, strlen(refusal), MSG_NOSIGNAL) < 0) {
			break;
		}
	}
	return NULL;
}

/* Returns how often a team with these options asks the server. */
static uint32_t asks_for_a_team(const struct collnet_team_options *o, const char *error)
{
	struct collnet *c = calloc(1, sizeof(*c));
	struct refusing server = { .asked = 0 };
	collnet_team_t *t = NULL;
	pthread_t thread;
	int pair[2];

	assert_non_null(c);
	assert_int_equal(cn_threads_init(c, &c->err), COLLNET_OK);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	server.fd = pair[1];
	server.lock = &c->lock;
	assert_int_equal(pthread_create(&thread, NULL, refuse_requests, &server), 0);
	start_by(pair[0]);
	assert_int_equal(collnet_team_create(c, o, &t), COLLNET_EINVAL);
	assert_non_null(strstr(collnet_error(c), error));
	close(pair[0]);
	pthread_join(thread, NULL);
	close(pair[1]);
	assert_false(server.locked);
	cn_threads_fini(c);
	free(c);
	return server.asked;
}

/* The server may take its time: it is asked once, and other threads use the context meanwhile. */
static void team_create__asks_once(void **state)
{
	struct collnet_team_options o = { .size = sizeof(o) };

	(void)state;
	assert_int_equal(asks_for_a_team(NULL, "PMI server"), 1);
	assert_int_equal(asks_for_a_team(&o, "PMI server"), 1);
	o.ranks = o.rank = 2;
	assert_int_equal(asks_for_a_team(&o, "rank 2 of 2"), 0);
}

static void *ask_for_place(void *arg)
{
	struct cn_launch_info p;

	(void)cn_launch_info(&p, NULL);
	return arg;
}

/* A child of fork() asks, while a thread of its parent waits for the server's answer. */
static void launch_info__in_a_child(void **state)
{
	static const char answer[] = "cmd=my_kvsname kvsname=kvs_7\n", refusal[] = "cmd=unknown\n";
	struct cn_launch_info p;
	int parents[2], childs[2], status = 1;
	pthread_t thread;
	char asked[64];
	pid_t child;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, parents), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, childs), 0);
	assert_int_equal(write(childs[1], answer, strlen(answer)), strlen(answer));
	start_by(parents[0]);
	assert_int_equal(pthread_create(&thread, NULL, ask_for_place, NULL), 0);
	assert_true(recv(parents[1], asked, sizeof(asked), 0) > 0);
	start_by(childs[0]);
	child = fork();
	if (child == 0) {
		alarm(10);
		_exit(cn_launch_info(&p, NULL) != COLLNET_OK || strcmp(p.job, "pmi-kvs_7") != 0);
	}
	assert_int_equal(write(parents[1], refusal, strlen(refusal)), strlen(refusal));
	pthread_join(thread, NULL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	for (int i = 0; i < 2; i++) {
		close(parents[i]);
		close(childs[i]);
	}
}

static void place_from__long_names_are_cut(void **state)
{
	struct cn_launch_info p;

	(void)state;
	assert_int_equal(
		cn_launch_info_from(
			lookup,
			ENV("OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1",
			    "PMIX_NAMESPACE=0123456789012345678901234567890123456789012345678901234"
			    "567890123456789012345678901234567890"),
			&p, NULL),
		COLLNET_OK);
	assert_int_equal(strlen(p.job), COLLNET_NAME_MAX);
	assert_true(cn_valid_name(p.job));
}

static void options_from__defaults(void **state)
{
	struct collnet_options o;

	(void)state;
	assert_int_equal(cn_options_from(lookup, ENV("HOME=/"), &o, NULL), COLLNET_OK);
	assert_int_equal(o.size, sizeof(o));
	assert_int_equal(o.mode, COLLNET_MODE_AUTO);
	assert_null(o.socket);
	assert_null(o.interface);
	assert_null(o.encapsulation);
	assert_int_equal(o.ethertype, 0x88B5);
	assert_int_equal(o.timeout_ms, 30000);
	assert_int_equal(o.peer_timeout_ms, 0);
	assert_int_equal(o.spin, 0);
}

static void options_from__everything(void **state)
{
	struct collnet_options o;
	const char **none = ENV("COLLNET_TIMEOUT=none");
	const char **env = ENV("COLLNET_MODE=direct", "COLLNET_SOCKET=/s", "COLLNET_INTERFACE=eth7",
			       "COLLNET_LINK=pcap", "COLLNET_ENCAPSULATION=udp", "COLLNET_NODE=n1",
			       "COLLNET_TOPOLOGY=/t", "COLLNET_KEY=/k", "COLLNET_CLUSTER=65535",
			       "COLLNET_ETHERTYPE=0x88b6", "COLLNET_TIMEOUT=1", "COLLNET_SPIN=1",
			       "COLLNET_PEER_TIMEOUT=300");

	(void)state;
	assert_int_equal(cn_options_from(lookup, env, &o, NULL), COLLNET_OK);
	assert_int_equal(o.mode, COLLNET_MODE_DIRECT);
	assert_string_equal(o.socket, "/s");
	assert_string_equal(o.interface, "eth7");
	assert_string_equal(o.link, "pcap");
	assert_string_equal(o.encapsulation, "udp");
	assert_string_equal(o.node, "n1");
	assert_string_equal(o.topology, "/t");
	assert_string_equal(o.key, "/k");
	assert_int_equal(o.cluster, 65535);
	assert_int_equal(o.ethertype, 0x88B6);
	assert_int_equal(o.timeout_ms, 1);
	assert_int_equal(o.peer_timeout_ms, 300);
	assert_int_equal(o.spin, 1);
	assert_int_equal(cn_options_from(lookup, none, &o, NULL), COLLNET_OK);
	assert_int_equal(o.timeout_ms, COLLNET_TIMEOUT_NONE);
}

static void options_from__wrong_values_are_named(void **state)
{
	static const char *const bad[] = {
		"COLLNET_MODE=fast",	    "COLLNET_CLUSTER=65536",
		"COLLNET_CLUSTER=-1",	    "COLLNET_ETHERTYPE=5",
		"COLLNET_ETHERTYPE=0x5",    "COLLNET_ETHERTYPE=0x188b5",
		"COLLNET_ETHERTYPE=0x",	    "COLLNET_ETHERTYPE=0x8g",
		"COLLNET_TIMEOUT=0",	    "COLLNET_TIMEOUT=soon",
		"COLLNET_SPIN=2",	    "COLLNET_TIMEOUT=86400001",
		"COLLNET_PEER_TIMEOUT=299", "COLLNET_PEER_TIMEOUT=60001",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct collnet_options o;
		struct cn_err err = { .code = 0 };
		size_t n = strcspn(bad[i], "=");

		assert_int_equal(cn_options_from(lookup, ENV(bad[i], "COLLNET_NODE=kept"), &o,
						 &err),
				 COLLNET_EINVAL);
		assert_memory_equal(err.text, bad[i], n);
		assert_non_null(strstr(err.text, bad[i] + n + 1));
		assert_string_equal(o.node, "kept");
		assert_int_equal(o.timeout_ms, 30000);
		assert_int_equal(o.ethertype, 0x88B5);
	}
}

static void expect_peers(const char **env, const char *given, const char *want)
{
	struct cn_err err;
	char *peers;

	assert_int_equal(cn_peers_from(lookup, env, given, &peers, &err), COLLNET_OK);
	if (want == NULL) {
		assert_null(peers);
	} else {
		assert_string_equal(peers, want);
	}
	free(peers);
}

static void peers_from__launchers(void **state)
{
	struct cn_err err;
	char *peers;

	(void)state;
	expect_peers(ENV("SLURM_JOB_NODELIST=n[1-2]"), NULL, NULL);
	expect_peers(ENV("SLURM_JOB_NODELIST=n[1-2]"), "hosts", "hosts");
	expect_peers(ENV("SLURM_JOB_NODELIST=n[1-4]", "PBS_NODEFILE=/f"), "launcher", "n[1-4],");
	expect_peers(ENV("SLURM_JOB_NODELIST=n[1-4]", "SLURM_STEP_NODELIST=n2"), "launcher", "n2,");
	expect_peers(ENV("PBS_NODEFILE=/f", "SLURM_JOB_NODELIST="), "launcher", "/f");
	expect_peers(ENV("LSB_DJOB_HOSTFILE=/g"), "launcher", "/g");
	assert_int_equal(cn_peers_from(lookup, ENV("PMI_RANK=1"), "launcher", &peers, &err),
			 COLLNET_EINVAL);
	assert_null(peers);
	assert_non_null(strstr(err.text, "SLURM_JOB_NODELIST"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(place_from__nobody),
		cmocka_unit_test(place_from__own_variables),
		cmocka_unit_test(place_from__own_variables_wrong),
		cmocka_unit_test(place_from__slurm),
		cmocka_unit_test(peers_from__launchers),
		cmocka_unit_test(place_from__innermost_launcher),
		cmocka_unit_test(place_from__torchrun),
		cmocka_unit_test(place_from__open_mpi_before_pmix),
		cmocka_unit_test(place_from__only_a_pmi_server_knows_the_job),
		cmocka_unit_test(place_from__names_the_variable_of_the_size),
		cmocka_unit_test(pmi_job__answers),
		cmocka_unit_test(pmi_ask__finds_a_key),
		cmocka_unit_test(pmi_job__strange_descriptors_get_no_bytes),
		cmocka_unit_test(pmi_job__a_slow_server_and_signals),
		cmocka_unit_test(team_create__asks_once),
		cmocka_unit_test(launch_info__in_a_child),
		cmocka_unit_test(place_from__long_names_are_cut),
		cmocka_unit_test(options_from__defaults),
		cmocka_unit_test(options_from__everything),
		cmocka_unit_test(options_from__wrong_values_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
