/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wires of the lab.
 *
 * The topology is a tree here (plan.c leaves out what the spanning tree does not use), and a
 * link of several channels is one cable of all their rate and buffers.
 *
 * A link of the topology is a veth pair. A port of a switch is the end of it that is enslaved to
 * the switch's bridge, and what the port sends goes through a token bucket (tbf) of the link's
 * rate with a queue of `buffer` frames (pfifo, so it counts frames and not bytes): a frame that
 * finds the queue full is lost, as in a switch. The host's end has a token bucket of the same
 * rate with a long queue: that is its network card, which makes the program wait instead.
 *
 * The bucket holds two frames and a quarter of a millisecond's worth: with less, a timer that
 * fires late loses what the link could have carried in the meantime. Short frames count as 60
 * bytes, as Ethernet pads them.
 *
 * Linux carries a frame's tie to the sender's socket along until the receiver has it: a full
 * switch would push back into the sender, which no real switch does. Bridges in promiscuous mode
 * forward a copy without that tie, so a frame leaves the sender's account when it leaves its card.
 *
 * Random loss is drawn once a frame, where it enters its first switch from a host.
 *
 * Nothing but the hosts' own frames is on the wires: no IPv6, no spanning tree, no multicast
 * snooping; the bridges know every host's address from the start, so nothing is flooded.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/lab/command.h"
#include "util/clock.h"

#define NETNS_DIR  "/run/netns"
#define UTS_DIR	   LAB_DIR "/uts"
#define ETH_HEADER 14u
#define ETH_MIN	   60u
#define READY_MS   10000

static int refused(const char *what, struct cn_err *err)
{
	return cn_fail(err, errno == EPERM || errno == EACCES ? COLLNET_EPERM : COLLNET_ESYSTEM,
		       "%s: %s", what, strerror(errno));
}

/* ---- private file systems ------------------------------------------------------------- */

static int write_hosts_file(const struct lab *lab, struct cn_err *err)
{
	char *text = NULL;
	size_t len;
	uint32_t i;
	FILE *f = open_memstream(&text, &len);
	int rc;

	if (f == NULL) {
		return refused("open_memstream", err);
	}
	fputs("127.0.0.1 localhost\n", f);
	for (i = 0; i < lab->nhosts; i++) {
		fprintf(f, "10.77.%u.%u %s\n", (i + 1) / 256, (i + 1) % 256, lab->hosts[i].name);
	}
	if (fclose(f) != 0) {
		free(text);
		return refused("the lab's /etc/hosts", err);
	}
	rc = lab_write_file(LAB_DIR "/hosts", 0644, text, err);
	free(text);
	if (rc == COLLNET_OK && mount(LAB_DIR "/hosts", "/etc/hosts", NULL, MS_BIND, NULL) < 0) {
		rc = refused("cannot put the lab's names on /etc/hosts", err);
	}
	return rc;
}

/* The user's directory for the logs, opened while it can be seen. It becomes LAB_LOGS. */
static int mount_logs(int fd, struct cn_err *err)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (mount(path, LAB_LOGS, NULL, MS_BIND, NULL) < 0) {
		return refused("cannot mount the directory of --keep-logs", err);
	}
	return COLLNET_OK;
}

static int private_run(struct lab *lab, int logs, struct cn_err *err)
{
	static const char *const dirs[] = { LAB_DIR,	    LAB_LOGS,  UTS_DIR,
					    LAB_DIR "/bin", NETNS_DIR, "/run/lock" };
	size_t i;
	int rc;

	if (mount("collnet-lab", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0) {
		return refused("cannot mount a private /run", err);
	}
	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		if (mkdir(dirs[i], 0755) < 0) {
			return refused(dirs[i], err);
		}
	}
	if (logs >= 0) {
		rc = mount_logs(logs, err);
		if (rc != COLLNET_OK) {
			return rc;
		}
	}
	return lab->o->ip ? write_hosts_file(lab, err) : COLLNET_OK;
}

int lab_private_files(struct lab *lab, struct cn_err *err)
{
	int logs = -1, rc;

	rc = lab_unshare("cannot make namespaces",
			 CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		return refused("cannot make the mounts private", err);
	}
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
		return refused("cannot mount a private /proc", err);
	}
	if (lab->o->keep_logs != NULL) {
		logs = open(lab->o->keep_logs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (logs < 0 || faccessat(logs, ".", W_OK | X_OK, 0) < 0) {
			return cn_fail(err, COLLNET_ESYSTEM, "--keep-logs %s: %s",
				       lab->o->keep_logs, strerror(errno));
		}
	}
	rc = private_run(lab, logs, err);
	if (logs >= 0) {
		close(logs);
	}
	return rc;
}

/* ---- namespaces ----------------------------------------------------------------------- */

static int pin_namespace(const char *kind, const char *dir, const char *name, struct cn_err *err)
{
	char from[64], to[160];
	int fd;

	snprintf(from, sizeof(from), "/proc/self/ns/%s", kind);
	snprintf(to, sizeof(to), "%s/%s", dir, name);
	fd = open(to, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0 || mount(from, to, NULL, MS_BIND, NULL) < 0) {
		refused(to, err);
		if (fd >= 0) {
			close(fd);
		}
		return COLLNET_ESYSTEM;
	}
	close(fd);
	return COLLNET_OK;
}

static int enter_one(const char *dir, const char *name, int kind, struct cn_err *err)
{
	char path[160];
	int fd, rc = COLLNET_OK;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, kind) < 0) {
		rc = refused(path, err);
	}
	if (fd >= 0) {
		close(fd);
	}
	return rc;
}

int lab_enter(const char *host, struct cn_err *err)
{
	int rc;

	if (host == NULL) {
		host = "@fabric";
	}
	rc = enter_one(NETNS_DIR, host, CLONE_NEWNET, err);
	return rc != COLLNET_OK ? rc : enter_one(UTS_DIR, host, CLONE_NEWUTS, err);
}

/* Writes a setting of the present network namespace, if the kernel has it. */
static void set(const char *file, const char *value)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (write(fd, value, strlen(value)) < 0) {
			tool_complain("%s: %s", file, strerror(errno));
		}
		close(fd);
	}
}

/*
 * For every interface to come: IPv6 off, against router solicitations and the like; and bridges
 * that are switches: they do not reassemble and fragment IP datagrams, which would carry frames
 * across links with a smaller MTU.
 */
static void set_kernel(void)
{
	set("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
	set("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	set("/proc/sys/net/bridge/bridge-nf-call-iptables", "0");
}

/* The supervisor's present namespaces get a name. */
static int pin_both(const char *name, struct cn_err *err)
{
	int rc = pin_namespace("net", NETNS_DIR, name, err);

	return rc != COLLNET_OK ? rc : pin_namespace("uts", UTS_DIR, name, err);
}

static int make_namespaces(struct lab *lab, struct cn_err *err)
{
	int rc = pin_both("@fabric", err);
	uint32_t i;

	set_kernel();
	for (i = 0; rc == COLLNET_OK && i < lab->nhosts; i++) {
		rc = lab_unshare("cannot make a host's namespaces", CLONE_NEWNET | CLONE_NEWUTS,
				 err);
		if (rc != COLLNET_OK) {
			break;
		}
		set_kernel();
		if (lab->o->ip && sethostname(lab->hosts[i].name, strlen(lab->hosts[i].name)) < 0) {
			rc = refused("cannot set a host name", err);
			break;
		}
		rc = pin_both(lab->hosts[i].name, err);
	}
	return rc != COLLNET_OK ? rc : lab_enter(NULL, err);
}

/* ---- links ---------------------------------------------------------------------------- */

static void switch_name(const struct lab *lab, uint32_t sw, char *out, size_t size)
{
	if (lab->plain_names) {
		snprintf(out, size, "%.7s", lab->topo->vertices[sw].name);
	} else {
		snprintf(out, size, "sw%u", sw);
	}
}

void lab_port_name(const struct lab *lab, uint32_t sw, uint32_t link, char *out, size_t size)
{
	const struct cn_topo_link *l = &lab->topo->links[link];
	uint32_t peer = l->a == sw ? l->b : l->a;

	if (lab->plain_names) {
		snprintf(out, size, "%.7s-%.7s", lab->topo->vertices[sw].name,
			 lab->topo->vertices[peer].name);
	} else {
		snprintf(out, size, "port%u%c", link, l->a == sw ? 'a' : 'b');
	}
}

static void write_mac(FILE *f, const uint8_t *m)
{
	fprintf(f, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5]);
}

static void link_commands(const struct lab *lab, uint32_t link, FILE *f)
{
	const struct cn_topo_link *l = &lab->topo->links[link];
	const struct cn_vertex *v = lab->topo->vertices;
	uint32_t sw = v[l->a].is_switch ? l->a : l->b, other = sw == l->a ? l->b : l->a;
	char port[IFNAMSIZ], peer[IFNAMSIZ], name[IFNAMSIZ];

	lab_port_name(lab, sw, link, port, sizeof(port));
	fprintf(f, "link add name %s mtu %u type veth peer name ", port, lab->o->mtu);
	if (v[other].is_switch) {
		lab_port_name(lab, other, link, peer, sizeof(peer));
		fprintf(f, "%s mtu %u\n", peer, lab->o->mtu);
		switch_name(lab, other, name, sizeof(name));
		fprintf(f, "link set dev %s master %s up\n", peer, name);
	} else {
		fputs("eth0 address ", f);
		write_mac(f, v[other].mac);
		fprintf(f, " mtu %u netns %s\n", lab->o->mtu, v[other].name);
	}
	switch_name(lab, sw, name, sizeof(name));
	fprintf(f, "link set dev %s master %s up\n", port, name);
}

/* Without a rate nothing queues, and the copies would only cost time. */
static bool has_queues(const struct cn_topo *t)
{
	uint32_t i;

	for (i = 0; i < t->nlinks; i++) {
		if (t->links[i].rate != 0) {
			return true;
		}
	}
	return false;
}

static int make_links(struct lab *lab, struct cn_err *err)
{
	static char *const argv[] = { "ip", "-batch", "-", NULL };
	const struct cn_topo *t = lab->topo;
	char name[IFNAMSIZ];
	struct lab_batch b;
	uint32_t i;
	int rc = lab_batch_open(&b, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	fputs("link set lo up\n", b.f);
	for (i = 0; i < t->nvertices; i++) {
		if (t->vertices[i].is_switch) {
			switch_name(lab, i, name, sizeof(name));
			fprintf(b.f,
				"link add name %s address 02:c0:12:%02x:%02x:%02x mtu %u type bridge "
				"stp_state 0 forward_delay 0 mcast_snooping 0 ageing_time 8640000\n",
				name, (i >> 16) & 0xff, (i >> 8) & 0xff, i & 0xff, lab->o->mtu);
			fprintf(b.f, "link set dev %s%s up\n", name,
				has_queues(t) ? " promisc on" : "");
		}
	}
	for (i = 0; i < t->nlinks; i++) {
		link_commands(lab, i, b.f);
	}
	return lab_batch_run(&b, argv, err);
}

/* Tells every switch behind which of its ports every host is. */
static int make_tables(struct lab *lab, struct cn_err *err)
{
	static char *const argv[] = { "bridge", "-batch", "-", NULL };
	const struct cn_topo *t = lab->topo;
	uint32_t i, h, v, link, *down = calloc(t->nvertices, sizeof(*down));
	char port[IFNAMSIZ];
	struct lab_batch b;
	int rc;

	if (down == NULL) {
		return refused("the switches' tables", err);
	}
	rc = lab_batch_open(&b, err);
	for (h = 0; rc == COLLNET_OK && h < lab->nhosts; h++) {
		for (v = 0; v < t->nvertices; v++) {
			down[v] = t->vertices[v].parent_link;
		}
		/* from the host up to the root, the other ports lead down */
		for (v = lab->hosts[h].vertex; v != t->root; v = t->vertices[v].parent) {
			down[t->vertices[v].parent] = t->vertices[v].parent_link;
		}
		for (i = 0; i < t->nvertices; i++) {
			link = down[i];
			if (t->vertices[i].is_switch && link != CN_TOPO_NONE) {
				lab_port_name(lab, i, link, port, sizeof(port));
				fputs("fdb replace ", b.f);
				write_mac(b.f, t->vertices[lab->hosts[h].vertex].mac);
				fprintf(b.f, " dev %s master static\n", port);
			}
		}
	}
	free(down);
	return rc != COLLNET_OK ? rc : lab_batch_run(&b, argv, err);
}

/* ---- rates, buffers -------------------------------------------------------------------- */

static void rate_commands(const struct lab *lab, const char *dev, uint64_t rate, uint32_t frames,
			  FILE *f)
{
	uint64_t frame = lab->o->mtu + ETH_HEADER;
	uint64_t burst = 2 * frame + rate / 8 / 4000;
	uint64_t limit = frames * frame;

	fprintf(f,
		"qdisc add dev %s root handle 1: tbf rate %llubit burst %llu limit %llu mpu %u\n",
		dev, (unsigned long long)rate, (unsigned long long)burst,
		(unsigned long long)(limit < 0x7fffffff ? limit : 0x7fffffff), ETH_MIN);
	fprintf(f, "qdisc add dev %s parent 1:1 handle 10: pfifo limit %u\n", dev, frames);
}

static int limit_ports(struct lab *lab, struct cn_err *err)
{
	static char *const argv[] = { "tc", "-batch", "-", NULL };
	const struct cn_topo *t = lab->topo;
	char port[IFNAMSIZ];
	struct lab_batch b;
	uint32_t i, end, v;
	int rc = lab_batch_open(&b, err);

	for (i = 0; rc == COLLNET_OK && i < t->nlinks; i++) {
		for (end = 0; end < 2; end++) {
			const struct cn_topo_link *l = &t->links[i];

			v = end == 0 ? l->a : l->b;
			if (t->vertices[v].is_switch && l->rate != 0) {
				lab_port_name(lab, v, i, port, sizeof(port));
				/* all channels are one emulated cable */
				rate_commands(lab, port, l->rate * l->channels,
					      l->buffer != 0
						      ? cn_topo_port_frames(l->buffer, l->channels)
						      : LAB_NIC_QUEUE,
					      b.f);
			}
		}
	}
	return rc != COLLNET_OK ? rc : lab_batch_run(&b, argv, err);
}

/* ---- hosts ---------------------------------------------------------------------------- */

static void set_ifreq_name(struct ifreq *ifr, const char *name)
{
	memset(ifr, 0, sizeof(*ifr));
	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", name);
}

static int bring_up(int s, const char *name)
{
	struct ifreq ifr;

	set_ifreq_name(&ifr, name);
	if (ioctl(s, SIOCGIFFLAGS, &ifr) < 0) {
		return -1;
	}
	ifr.ifr_flags |= IFF_UP;
	return ioctl(s, SIOCSIFFLAGS, &ifr);
}

static int set_address(int s, uint32_t index)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct ifreq ifr;

	set_ifreq_name(&ifr, "eth0");
	sin.sin_addr.s_addr = htonl(0x0a4d0000u + index + 1);
	memcpy(&ifr.ifr_addr, &sin, sizeof(sin));
	if (ioctl(s, SIOCSIFADDR, &ifr) < 0) {
		return -1;
	}
	sin.sin_addr.s_addr = htonl(0xffff0000u);
	memcpy(&ifr.ifr_netmask, &sin, sizeof(sin));
	return ioctl(s, SIOCSIFNETMASK, &ifr);
}

/* A kernel that hands over segments of 64 KiB would be a strange network card at this speed. */
static void no_offload(int s)
{
	static const uint32_t features[] = { ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO };
	struct ethtool_value value;
	struct ifreq ifr;
	size_t i;

	for (i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
		value.cmd = features[i];
		value.data = 0;
		set_ifreq_name(&ifr, "eth0");
		ifr.ifr_data = (void *)&value;
		(void)ioctl(s, SIOCETHTOOL, &ifr); /* not every kernel lets all be set */
	}
}

/* In the host's namespace. */
static int make_host(struct lab *lab, uint32_t i, struct cn_err *err)
{
	static char *const argv[] = { "tc", "-batch", "-", NULL };
	const struct lab_host *h = &lab->hosts[i];
	const struct cn_topo_link *l = &lab->topo
						->links[lab->topo->vertices[h->vertex].parent_link];
	const uint64_t rate = l->rate * l->channels;
	struct lab_batch b;
	int rc = COLLNET_OK, s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (s < 0 || bring_up(s, "lo") < 0 || bring_up(s, "eth0") < 0 ||
	    (lab->o->ip && set_address(s, i) < 0)) {
		rc = refused(h->name, err);
	}
	if (rc == COLLNET_OK && rate != 0) {
		no_offload(s);
		rc = lab_batch_open(&b, err);
		if (rc == COLLNET_OK) {
			rate_commands(lab, "eth0", rate, LAB_NIC_QUEUE, b.f);
			rc = lab_batch_run(&b, argv, err);
		}
	}
	if (rc == COLLNET_OK && lab->o->reorder_ppm != 0) {
		rc = lab_reorder_frames(lab, rate, err);
	}
	if (s >= 0) {
		close(s);
	}
	return rc;
}

static int make_hosts(struct lab *lab, struct cn_err *err)
{
	int rc = COLLNET_OK;
	uint32_t i;

	for (i = 0; rc == COLLNET_OK && i < lab->nhosts; i++) {
		rc = lab_enter(lab->hosts[i].name, err);
		if (rc == COLLNET_OK) {
			rc = make_host(lab, i, err);
		}
	}
	return rc != COLLNET_OK ? rc : lab_enter(NULL, err);
}

/* Waits until the port has a carrier. The last call takes the kernel's network lock, so that
 * the bridge has seen the change too. */
static bool wait_running(int s, const char *port, cn_time deadline)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct ifreq ifr;

	for (;;) {
		set_ifreq_name(&ifr, port);
		if (ioctl(s, SIOCGIFFLAGS, &ifr) < 0) {
			return false;
		}
		if (ifr.ifr_flags & IFF_RUNNING) {
			return ioctl(s, SIOCSIFFLAGS, &ifr) == 0;
		}
		if (cn_now() > deadline) {
			errno = ETIMEDOUT;
			return false;
		}
		nanosleep(&pause, NULL);
	}
}

static int wait_carriers(struct lab *lab, struct cn_err *err)
{
	const struct cn_topo *t = lab->topo;
	int rc = COLLNET_OK, s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const cn_time deadline = cn_now() + READY_MS * CN_MS;
	char port[IFNAMSIZ];
	uint32_t i, end, v;

	for (i = 0; rc == COLLNET_OK && i < 2 * t->nlinks; i++) {
		end = i % 2;
		v = end == 0 ? t->links[i / 2].a : t->links[i / 2].b;
		if (t->vertices[v].is_switch) {
			lab_port_name(lab, v, i / 2, port, sizeof(port));
			if (s < 0 || !wait_running(s, port, deadline)) {
				rc = refused(port, err);
			}
		}
	}
	if (s >= 0) {
		close(s);
	}
	return rc;
}

int lab_make_network(struct lab *lab, struct cn_err *err)
{
	int rc = make_namespaces(lab, err);

	if (rc == COLLNET_OK) {
		rc = make_links(lab, err);
	}
	if (rc == COLLNET_OK) {
		rc = make_tables(lab, err);
	}
	if (rc == COLLNET_OK) {
		rc = limit_ports(lab, err);
	}
	if (rc == COLLNET_OK && lab->o->loss_ppm != 0) {
		rc = lab_lose_frames(lab, err);
	}
	if (rc == COLLNET_OK && lab->o->duplicate_ppm != 0) {
		rc = lab_duplicate_frames(lab, err);
	}
	if (rc == COLLNET_OK) {
		rc = make_hosts(lab, err);
	}
	return rc != COLLNET_OK ? rc : wait_carriers(lab, err);
}
