/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sets up link, topology, engine and poller, and tears them down.
 */
#include "node/runtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coll/join.h"
#include "link/interface.h"
#include "node/key.h"
#include "proto/wire.h"
#include "topo/topo.h"
#include "util/clock.h"
#include "util/priority.h"

/* Interval of checks of the interface. Peers detect by probes that large frames are lost after half
 * a second (proto/path_mtu.c); the reason must reach them before. A check is four system calls. */
#define CHECK_INTERVAL (100 * CN_MS)
#define GOODBYES       (20 * CN_MS) /* time limit for the link to accept them, within a call */

/* The host name as a node name. */
static int host_name(char out[COLLNET_NAME_MAX + 1], struct cn_err *err)
{
	char name[256];

	if (gethostname(name, sizeof(name)) != 0) {
		return cn_fail(err, COLLNET_ESYSTEM, "cannot read the host name: %s",
			       strerror(errno));
	}
	name[sizeof(name) - 1] = '\0';
	if (!cn_valid_name(name)) {
		return cn_fail(
			err, COLLNET_EINVAL,
			"the host name '%.80s' is not a valid node name (1 to %d characters of A-Z "
			"a-z 0-9 . _ : @ / -): set one, with collnetd --node or, in direct mode, "
			"COLLNET_NODE",
			name, COLLNET_NAME_MAX);
	}
	memcpy(out, name, strlen(name) + 1);
	return COLLNET_OK;
}

/* A random epoch, never 0, and a random key of the transport. */
static int new_identity(struct cn_node_config *c, struct cn_err *err)
{
	uint8_t random[sizeof(c->epoch) + sizeof(c->key)];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
		return cn_fail(err, COLLNET_ESYSTEM,
			       "cannot get random numbers from the kernel: %s", strerror(errno));
	}
	memcpy(&c->epoch, random, sizeof(c->epoch));
	memcpy(c->key, random + sizeof(c->epoch), sizeof(c->key));
	c->epoch += c->epoch == 0;
	return COLLNET_OK;
}

static int read_topology(const struct cn_runtime_config *config, const struct cn_runtime *s,
			 struct cn_topo **out, struct cn_err *err)
{
	uint32_t vertex;
	int rc;

	*out = NULL;
	if (config->topology == NULL) {
		return COLLNET_OK;
	}
	rc = cn_topo_read(config->topology, out, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	vertex = cn_topo_find(*out, s->node);
	if (vertex == CN_TOPO_NONE || (*out)->vertices[vertex].is_switch) {
		cn_topo_free(*out);
		*out = NULL;
		return cn_fail(
			err, COLLNET_ETOPO,
			"%s: no host '%s': add it, or set the name of this node, with collnetd "
			"--node or, in direct mode, COLLNET_NODE",
			config->topology, s->node);
	}
	return COLLNET_OK;
}

static int make_engine(const struct cn_runtime_config *config, struct cn_runtime *s,
		       struct cn_err *err)
{
	struct cn_engine_config ec;
	int rc;

	cn_engine_config_init(&ec);
	memcpy(ec.node.mac, s->link->mac, sizeof(ec.node.mac));
	ec.node.ethertype = config->ethertype;
	ec.node.cluster = config->cluster;
	ec.node.authenticated = s->has_key;
	memcpy(ec.node.cluster_key, s->key, sizeof(ec.node.cluster_key));
	ec.node.encapsulation = cn_link_is_udp(config->link) ? CN_ENCAPSULATION_UDP
							     : config->encapsulation;
	ec.node.mtu = s->link->mtu;
	snprintf(ec.node.name, sizeof(ec.node.name), "%s", s->node);
	ec.node.goodbyes = config->goodbyes;
	if (config->peer_timeout != 0) {
		ec.node.dead_after = config->peer_timeout;
	}
	if (config->goodbyes != NULL && ec.node.max_peers > config->goodbye_nodes) {
		ec.node.max_peers = config->goodbye_nodes;
	}
	snprintf(ec.interface, sizeof(ec.interface), "%s", s->link->interface);
	ec.advice = config->advice != NULL ? config->advice : ec.advice;
	ec.topo = s->topo;
	ec.rate = s->link->rate;
	ec.window = config->window;
	ec.max_teams = CN_TEAMS_MAX;
	ec.max_schedules = config->max_schedules;
	ec.task_min = config->helper != NULL ? CN_TASK_MIN : 0;
	s->helper = config->helper;
	rc = new_identity(&ec.node, err);
	if (rc == COLLNET_OK) {
		rc = cn_engine_new(&ec, &s->engine, err);
	}
	if (rc != COLLNET_OK) {
		return rc;
	}
	rc = cn_poller_new(s->link, s->engine, &s->poller, err);
	if (rc == COLLNET_OK && cn_is_real_time()) {
		cn_poller_set_bursts(s->poller);
	}
	return rc;
}

int cn_runtime_prepare(const struct cn_runtime_config *config, struct cn_runtime *s,
		       struct cn_err *err)
{
	const struct cn_link_config lc = {
		.kind = config->link,
		.ethertype = config->ethertype,
		.encapsulation = config->encapsulation,
	};
	int rc = COLLNET_OK;

	memset(s, 0, sizeof(*s));
	s->lock = CN_LOCK_NONE;
	s->prepared = true;
	if (config->node == NULL) {
		rc = host_name(s->node, err);
	} else if (!cn_valid_name(config->node)) {
		rc = cn_fail(
			err, COLLNET_EINVAL,
			"'%.80s' is not a valid node name: 1 to %d characters of A-Z a-z 0-9 . _ : @ / -",
			config->node, COLLNET_NAME_MAX);
	} else {
		snprintf(s->node, sizeof(s->node), "%s", config->node);
	}
	if (rc == COLLNET_OK) {
		rc = cn_link_prepare(&lc, err);
	}
	if (rc == COLLNET_OK && config->peers != NULL && !cn_link_is_udp(config->link)) {
		cn_log(COLLNET_LOG_WARNING,
		       "only link udp uses peers; link %s finds all nodes of the Ethernet",
		       config->link != NULL ? config->link : "packet");
	}
	if (rc == COLLNET_OK && config->peers != NULL && cn_link_is_udp(config->link)) {
		rc = cn_udp_peers_read(config->peers, config->ethertype, &s->peers, err);
	}
	if (rc == COLLNET_OK && config->key != NULL) {
		rc = cn_key_read(config->key, config->key_owner, s->key, err);
		s->has_key = rc == COLLNET_OK;
	}
	if (rc == COLLNET_OK) {
		rc = read_topology(config, s, &s->topo, err);
	}
	if (rc == COLLNET_OK && config->interface != NULL && !cn_link_is_udp(config->link)) {
		rc = cn_lock_acquire_file(CN_LOCK_DIR, config->interface, config->ethertype,
					  &s->lock, err);
	}
	if (rc != COLLNET_OK) {
		cn_runtime_close(s, 0);
	}
	return rc;
}

int cn_runtime_attach(const struct cn_runtime_config *config, struct cn_runtime *s,
		      struct cn_err *err)
{
	struct cn_link_config lc = {
		.kind = config->link,
		.interface = config->interface,
		.ethertype = config->ethertype,
		.peers = config->peers != NULL ? &s->peers : NULL,
		.encapsulation = config->encapsulation,
		.auth = s->has_key ? CN_WIRE_AUTH : 0,
		.open_socket = config->open_socket,
		.open_arg = config->open_arg,
	};
	int rc = cn_link_open(&lc, &s->link, err);

	if (rc == COLLNET_OK) {
		cn_descriptor_identify(s->link->recv_fd, &s->recv_id);
		cn_descriptor_identify(s->link->send_fd, &s->send_id);
	}
	if (rc == COLLNET_OK && !cn_link_is_udp(config->link)) { /* the port is its own lock */
		rc = cn_lock_acquire(CN_LOCK_DIR, s->link->interface, config->ethertype, &s->lock,
				     err);
	}
	if (rc == COLLNET_OK) {
		rc = make_engine(config, s, err);
	}
	if (rc != COLLNET_OK) {
		cn_runtime_detach(s, 0);
	}
	return rc;
}

static void check_carrier(const struct cn_runtime *s)
{
	if (!cn_interface_has_carrier(s->link->send_fd, s->link->interface)) {
		cn_log(COLLNET_LOG_WARNING,
		       "interface %s has no carrier on node %s: is its cable plugged in?",
		       s->link->interface, s->node);
	}
}

int cn_runtime_open(const struct cn_runtime_config *config, struct cn_runtime *s,
		    struct cn_err *err)
{
	int rc = cn_runtime_prepare(config, s, err);

	if (rc == COLLNET_OK) {
		rc = cn_runtime_attach(config, s, err);
		if (rc == COLLNET_OK) {
			check_carrier(s);
			cn_link_advise(s->link);
		} else {
			cn_runtime_close(s, 0);
		}
	}
	return rc;
}

void cn_runtime_descriptors(const struct cn_runtime *s, struct pollfd p[2])
{
	p[0] = (struct pollfd){ .fd = s->link->recv_fd, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = s->link->send_fd, .events = POLLOUT };
}

/* Waits for events of the first n descriptors. A link that was full is tried again once it is
 * writable. */
static void wait_for_link(struct cn_runtime *s, struct pollfd *p, nfds_t n, cn_time timeout)
{
	const struct timespec ts = cn_timespec(timeout);

	if (ppoll(p, n, &ts, NULL) > 0 && (p[n - 1].revents & ~POLLIN) != 0) {
		cn_poller_writable(s->poller);
	}
}

bool cn_runtime_drain(struct cn_runtime *s, cn_time until)
{
	for (;;) {
		struct pollfd p[2];
		cn_time now = cn_now(), wake;
		bool drained = cn_engine_drain(s->engine);
		int work = cn_poller_poll(s->poller, now);

		if (work < 0 || now >= until || (drained && work == 0)) {
			return work == 0 && drained;
		}
		wake = cn_min_time(until, cn_poller_deadline(s->poller));
		if (work == 0 && wake > now) {
			cn_runtime_descriptors(s, p);
			wait_for_link(s, p, cn_poller_blocked(s->poller) ? 2 : 1, wake - now);
		}
	}
}

/* Sends what is queued, at most until `until`. True: the queue is empty. */
static bool flush(struct cn_runtime *s, cn_time until)
{
	cn_poller_writable(s->poller); /* which the link may have become since the last poll */
	for (;;) {
		cn_time now = cn_now();
		int work = cn_poller_poll(s->poller, now);
		struct pollfd p = { .fd = s->link->send_fd, .events = POLLOUT };

		if (work < 0) {
			return false;
		}
		if (work == 0 && !cn_poller_blocked(s->poller)) {
			return true;
		}
		if (now >= until) {
			return false;
		}
		if (work == 0) {
			wait_for_link(s, &p, 1, until - now);
		}
	}
}

/* True if the program has closed the descriptor. What was opened under its number is not closed
 * with the link, except by the libraries of the pcap link. */
static bool was_closed(int *fd, const struct cn_descriptor_id *id)
{
	if (*fd < 0 || cn_descriptor_is(*fd, id)) {
		return false;
	}
	*fd = -1;
	return true;
}

/* True if the program has closed a descriptor of the link. */
static bool lost_descriptors(struct cn_runtime *s)
{
	const bool recv_closed = was_closed(&s->link->recv_fd, &s->recv_id);

	return was_closed(&s->link->send_fd, &s->send_id) || recv_closed;
}

/* Queued frames, such as the reason of a failure, go first. */
static void say_goodbye(struct cn_runtime *s, cn_time linger)
{
	flush(s, cn_now() + linger);
	cn_engine_shutdown(s->engine, s->bye);
	flush(s, cn_now() + linger);
}

/* True if the interface has lost or changed the address that the link's socket was opened with. */
static bool has_other_address(const struct cn_link *l)
{
	uint8_t mac[6];

	return !cn_link_is_udp(l->ops->name) && cn_interface_mac(l->send_fd, l->interface, mac) &&
	       memcmp(mac, l->mac, sizeof(mac)) != 0;
}

int cn_runtime_check(struct cn_runtime *s, cn_time now, int work, struct cn_err *err)
{
	struct cn_link *l = s->link;
	uint32_t mtu;

	if (work < 0 && !l->moved) {
		struct cn_interface i;
		const bool is_down = cn_interface_find(l->interface, &i, NULL) == 1 && !i.up;

		return cn_fail(err, COLLNET_EIFACE, "interface %s of node %s %s", l->interface,
			       s->node, is_down ? "went down" : "disappeared");
	}
	if (now < s->check_at && work >= 0) {
		return COLLNET_OK;
	}
	s->check_at = now + CHECK_INTERVAL;
	if (lost_descriptors(s)) {
		return cn_fail(err, COLLNET_EIFACE,
			       "the program closed a descriptor of the library: its socket on "
			       "interface %s of node %s",
			       l->interface, s->node);
	}
	if (l->moved || has_other_address(l)) {
		/* No acknowledgement reaches the former address, so do not wait for any. */
		cn_fail(err, COLLNET_EIFACE, "interface %s %s on node %s", l->interface,
			cn_link_address_changed(l), s->node);
		cn_engine_fail(s->engine, now, err->code, err->text);
		s->bye = CN_BYE_ADDRESS;
		say_goodbye(s, GOODBYES);
		return COLLNET_EIFACE;
	}
	cn_engine_set_carrier(s->engine, cn_interface_has_carrier(l->send_fd, l->interface));
	mtu = cn_interface_mtu(l->send_fd, l->interface);
	if (mtu == 0 || mtu >= l->mtu) {
		return COLLNET_OK;
	}
	/* The kernel refuses single frames from now on and lets super-frames pass: operations would
	 * crawl. The reason is not to be overtaken by this node's goodbyes. */
	cn_fail(err, COLLNET_EIFACE, "interface %s was given an MTU of %u instead of %u on node %s",
		l->interface, mtu, l->mtu, s->node);
	cn_engine_fail(s->engine, now, err->code, err->text);
	cn_engine_abandon_longer(s->engine, mtu);
	cn_runtime_drain(s, now + CN_RUNTIME_DRAIN);
	return COLLNET_EIFACE;
}

/* Frees replaced topologies that no team uses. */
static void free_replaced(struct cn_runtime *s)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < s->nreplaced; i++) {
		if (s->engine != NULL && cn_engine_uses(s->engine, s->replaced[i])) {
			s->replaced[used++] = s->replaced[i];
		} else {
			cn_topo_free(s->replaced[i]);
		}
	}
	s->nreplaced = used;
}

/* Teams may still use the replaced topology; a reload after they end frees it. */
static int replace_topology(struct cn_runtime *s, struct cn_topo *fresh, struct cn_err *err)
{
	free_replaced(s);
	if (s->nreplaced == CN_RUNTIME_REPLACED) {
		return cn_fail(err, COLLNET_ELIMIT,
			       "jobs still use the topologies of the last %d reloads: wait until "
			       "they end",
			       CN_RUNTIME_REPLACED);
	}
	if (s->topo != NULL) {
		s->replaced[s->nreplaced++] = s->topo;
	}
	s->topo = fresh;
	return COLLNET_OK;
}

int cn_runtime_reload(const struct cn_runtime_config *config, struct cn_runtime *s,
		      struct cn_err *err)
{
	struct cn_topo *fresh;
	int rc = read_topology(config, s, &fresh, err);
	const bool same = rc == COLLNET_OK && cn_topo_hash(s->topo) == cn_topo_hash(fresh);

	if (rc == COLLNET_OK && !same) {
		rc = replace_topology(s, fresh, err);
	}
	if (same || rc != COLLNET_OK) {
		cn_topo_free(fresh);
	}
	if (rc == COLLNET_OK && s->engine != NULL) {
		cn_engine_reconfigure(s->engine, s->topo, config->window, config->max_schedules);
	}
	return rc;
}

/* Another thread can fork() at any time: the child must not see freed objects. */
void cn_runtime_detach(struct cn_runtime *s, cn_time linger)
{
	struct cn_poller *poller = s->poller;
	struct cn_engine *engine = s->engine;
	struct cn_link *link = s->link;

	if (link != NULL) {
		(void)lost_descriptors(s); /* which are not used any more */
	}
	if (poller != NULL) {
		say_goodbye(s, linger);
		s->poller = NULL;
		cn_poller_free(poller);
	}
	s->engine = NULL;
	if (engine != NULL && s->helper != NULL) {
		cn_helper_wait(s->helper, engine);
	}
	if (engine != NULL) {
		cn_engine_free(engine);
	}
	s->link = NULL;
	if (link != NULL) {
		cn_link_close(link);
	}
	if (s->prepared) {
		cn_lock_release_name(&s->lock);
	}
	free_replaced(s);
}

void cn_runtime_forked(struct cn_runtime *s)
{
	if (s->link != NULL) {
		(void)lost_descriptors(s);
		cn_link_close(s->link);
	}
	if (s->prepared) {
		cn_lock_forked(&s->lock);
	}
	s->link = NULL;
	s->prepared = false;
}

void cn_runtime_close(struct cn_runtime *s, cn_time linger)
{
	cn_runtime_detach(s, linger);
	if (s->prepared) {
		cn_lock_release(&s->lock);
	}
	if (s->topo != NULL) {
		cn_topo_free(s->topo);
	}
	free(s->peers.list);
	memset(s, 0, sizeof(*s));
}

/*
 * Processor time of this process, and its resident memory without the clients' buffers (shared
 * memory is its owner's).
 */
static void usage(uint64_t *cpu_ns, uint64_t *rss_bytes)
{
	static const char field[] = "RssShmem:";
	unsigned long long size = 0, resident = 0, shared_kib = 0;
	struct rusage u;
	char line[256];
	FILE *f;

	if (getrusage(RUSAGE_SELF, &u) == 0) {
		*cpu_ns = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000u +
			  (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000u;
	}
	f = fopen("/proc/self/statm", "re");
	if (f != NULL) {
		if (fscanf(f, "%llu %llu", &size, &resident) != 2) {
			resident = 0;
		}
		fclose(f);
	}
	f = fopen("/proc/self/status", "re");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, field, sizeof(field) - 1) == 0) {
			shared_kib = strtoull(line + sizeof(field) - 1, NULL, 10);
			break;
		}
	}
	if (f != NULL) {
		fclose(f);
	}
	resident *= (unsigned long long)sysconf(_SC_PAGESIZE);
	*rss_bytes = resident > shared_kib * 1024 ? resident - shared_kib * 1024 : 0;
}

void cn_runtime_stats(struct cn_runtime *s, struct collnet_stats *out, bool reset_peak)
{
	const struct cn_node_config *c = cn_node_config(cn_engine_node(s->engine));
	struct cn_link_counters counters = { .ring_drops = 0 };

	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	cn_engine_stats(s->engine, out, reset_peak);
	cn_link_counters(s->link, &counters);
	out->ring_drops = counters.ring_drops;
	out->send_full = counters.send_full;
	out->send_errors = counters.send_errors;
	usage(&out->cpu_ns, &out->rss_bytes);
	snprintf(out->interface, sizeof(out->interface), "%s", s->link->interface);
	snprintf(out->link, sizeof(out->link), "%s", s->link->ops->name);
	snprintf(out->encapsulation, sizeof(out->encapsulation), "%s",
		 cn_encapsulation_name(c->encapsulation));
	out->ethertype = c->ethertype;
	out->cluster = c->cluster;
	out->authenticated = c->authenticated;
}
