/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the ports of the switches counted, from the kernel by netlink: frames and bytes from the
 * interface, drops from the interface and from the queue of the port together.
 */
#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/lab/command.h"

#define ANSWER_MAX 65536

/* The attribute of that type among `len` bytes at `a`; its payload has at least `min` bytes. */
static const void *attribute(const struct rtattr *a, size_t len, unsigned short type, size_t min)
{
	int left = (int)len;

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if ((a->rta_type & NLA_TYPE_MASK) == type && RTA_PAYLOAD(a) >= min) {
			return RTA_DATA(a);
		}
	}
	return NULL;
}

/* Frames and bytes sent, and frames that the interface itself dropped. */
static void parse_link(const struct nlmsghdr *n, struct lab_port_count *c)
{
	const struct ifinfomsg *i = NLMSG_DATA(n);
	struct rtnl_link_stats64 st;
	const void *p;

	/* older kernels' statistics are shorter; only their beginning is used */
	p = attribute(IFLA_RTA(i), n->nlmsg_len - NLMSG_LENGTH(sizeof(*i)), IFLA_STATS64,
		      offsetof(struct rtnl_link_stats64, multicast));
	if (p == NULL) {
		return;
	}
	memset(&st, 0, sizeof(st));
	memcpy(&st, p, offsetof(struct rtnl_link_stats64, multicast));
	c->frames += st.tx_packets;
	c->bytes += st.tx_bytes;
	c->drops += st.tx_dropped;
}

/* Frames that found the queue full; the outermost queue counts those of the inner one too. */
static void parse_qdisc(const struct nlmsghdr *n, uint32_t index, struct lab_port_count *c)
{
	const struct tcmsg *t = NLMSG_DATA(n);
	struct gnet_stats_queue q;
	const struct rtattr *stats;
	const void *p;

	if (t->tcm_parent != TC_H_ROOT || (uint32_t)t->tcm_ifindex != index) {
		return;
	}
	stats = attribute(TCA_RTA(t), n->nlmsg_len - NLMSG_LENGTH(sizeof(*t)), TCA_STATS2, 0);
	if (stats == NULL) {
		return;
	}
	/* step back to the header for the length of the nest */
	p = attribute(stats,
		      RTA_PAYLOAD((const struct rtattr *)((const char *)stats - RTA_LENGTH(0))),
		      TCA_STATS_QUEUE, sizeof(q));
	if (p != NULL) {
		memcpy(&q, p, sizeof(q));
		c->drops += q.drops;
	}
}

/* One answer. 1: the last of it, 0: more to come, -1: an error (errno). */
static int parse_answer(const char *buf, size_t len, uint32_t index, struct lab_port_count *c)
{
	const struct nlmsghdr *n = (const void *)buf;
	const struct nlmsgerr *e;
	size_t left = len;

	for (; NLMSG_OK(n, left); n = NLMSG_NEXT(n, left)) {
		switch (n->nlmsg_type) {
		case NLMSG_DONE:
			return 1;
		case NLMSG_ERROR:
			e = NLMSG_DATA(n);
			errno = -e->error;
			return -1;
		case RTM_NEWLINK:
			parse_link(n, c);
			return 1;
		case RTM_NEWQDISC:
			parse_qdisc(n, index, c);
			break;
		default:
			break;
		}
	}
	return 0;
}

static int ask(int s, const void *request, size_t len, uint32_t index, struct lab_port_count *c)
{
	static _Alignas(struct nlmsghdr) char buf[ANSWER_MAX];
	ssize_t n;
	int rc = 0;

	if (send(s, request, len, 0) < 0) {
		return -1;
	}
	while (rc == 0) {
		n = recv(s, buf, sizeof(buf), 0);
		if (n < 0) {
			return -1;
		}
		rc = parse_answer(buf, (size_t)n, index, c);
	}
	return rc < 0 ? -1 : 0;
}

/* Counters of one interface of the present network namespace. */
static int count_port(int s, const char *name, struct lab_port_count *c)
{
	struct {
		struct nlmsghdr n;
		struct ifinfomsg i;
	} link = { .n = { .nlmsg_len = sizeof(link),
			  .nlmsg_type = RTM_GETLINK,
			  .nlmsg_flags = NLM_F_REQUEST } };
	struct {
		struct nlmsghdr n;
		struct tcmsg t;
	} qdisc = { .n = { .nlmsg_len = sizeof(qdisc),
			   .nlmsg_type = RTM_GETQDISC,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		    .t = { .tcm_family = AF_UNSPEC } };
	unsigned int index = if_nametoindex(name);

	memset(c, 0, sizeof(*c));
	if (index == 0) {
		return -1;
	}
	link.i.ifi_index = (int)index;
	qdisc.t.tcm_ifindex = (int)index;
	if (ask(s, &link, sizeof(link), index, c) < 0) {
		return -1;
	}
	return ask(s, &qdisc, sizeof(qdisc), index, c);
}

static int open_netlink(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
}

/* A counter of the lab's table: "bridge" "lost", frames that --loss took; "netdev" "copies". */
static int count_rule(char *family, char *name, uint64_t *lost, struct cn_err *err)
{
	char *const argv[] = { "nft", "list", "counter", family, "lab", name, NULL };
	char *text = NULL;
	const char *p;
	int rc = lab_tool(argv, NULL, 0, &text, err);

	if (rc == COLLNET_OK) {
		p = text == NULL ? NULL : strstr(text, "packets ");
		if (p == NULL) {
			rc = cn_fail(err, COLLNET_ESYSTEM, "nft does not report its counter");
		} else {
			*lost = strtoull(p + strlen("packets "), NULL, 10);
		}
	}
	free(text);
	return rc;
}

/* Frames that the hosts' own queues dropped: none, unless a program ignores that they are full. */
static int count_nics(const struct lab *lab, uint64_t *drops, struct cn_err *err)
{
	struct lab_port_count c;
	int rc = COLLNET_OK, s;
	uint32_t i;

	*drops = 0;
	for (i = 0; rc == COLLNET_OK && i < lab->nhosts; i++) {
		rc = lab_enter(lab->hosts[i].name, err);
		if (rc != COLLNET_OK) {
			break;
		}
		s = open_netlink();
		if (s < 0 || count_port(s, "eth0", &c) < 0) {
			rc = cn_fail(err, COLLNET_ESYSTEM, "counters of %s: %s", lab->hosts[i].name,
				     strerror(errno));
		} else {
			*drops += c.drops;
		}
		if (s >= 0) {
			close(s);
		}
	}
	return rc != COLLNET_OK ? rc : lab_enter(NULL, err);
}

/* Of the columns of names. */
static int name_width(const struct lab *lab)
{
	size_t len, width = strlen("port to");
	uint32_t i;

	for (i = 0; i < lab->topo->nvertices; i++) {
		len = strlen(lab->topo->vertices[i].name);
		width = len > width ? len : width;
	}
	return (int)width;
}

static void print_port(const struct lab *lab, uint32_t sw, uint32_t peer, bool first,
		       const struct lab_port_count *c)
{
	const char *s = lab->topo->vertices[sw].name, *p = lab->topo->vertices[peer].name;
	int width = name_width(lab);

	if (lab->o->json) {
		printf("%s{\"switch\":\"%s\",\"peer\":\"%s\",\"frames\":%llu,\"bytes\":%llu,"
		       "\"drops\":%llu}",
		       first ? "" : ",", s, p, (unsigned long long)c->frames,
		       (unsigned long long)c->bytes, (unsigned long long)c->drops);
	} else {
		printf("%-*s  %-*s %12llu %15llu %10llu\n", width, s, width, p,
		       (unsigned long long)c->frames, (unsigned long long)c->bytes,
		       (unsigned long long)c->drops);
	}
}

/* Every port of every switch, switch by switch; the sum of the drops. */
static int print_ports(const struct lab *lab, uint64_t *drops, struct cn_err *err)
{
	const struct cn_topo *t = lab->topo;
	int s = open_netlink(), rc = COLLNET_OK;
	struct lab_port_count c;
	char port[IFNAMSIZ];
	bool first = true;
	uint32_t v, i;

	*drops = 0;
	for (v = 0; rc == COLLNET_OK && v < t->nvertices; v++) {
		for (i = 0; t->vertices[v].is_switch && i < t->nlinks; i++) {
			if (t->links[i].a != v && t->links[i].b != v) {
				continue;
			}
			lab_port_name(lab, v, i, port, sizeof(port));
			if (s < 0 || count_port(s, port, &c) < 0) {
				rc = cn_fail(err, COLLNET_ESYSTEM, "counters of %s: %s", port,
					     strerror(errno));
				break;
			}
			*drops += c.drops;
			print_port(lab, v, t->links[i].a == v ? t->links[i].b : t->links[i].a,
				   first, &c);
			first = false;
		}
	}
	if (s >= 0) {
		close(s);
	}
	return rc;
}

int lab_report_ports(struct lab *lab, int status, struct cn_err *err)
{
	static char bridge[] = "bridge", netdev[] = "netdev";
	static char lost_name[] = "lost", copies_name[] = "copies";
	uint64_t drops = 0, lost = 0, copies = 0, nics = 0;
	int rc = COLLNET_OK;

	if (!lab->o->json && !lab->o->ports) {
		return COLLNET_OK;
	}
	if (lab->o->loss_ppm != 0) {
		rc = count_rule(bridge, lost_name, &lost, err);
	}
	if (rc == COLLNET_OK && lab->o->duplicate_ppm != 0) {
		rc = count_rule(netdev, copies_name, &copies, err);
	}
	if (rc == COLLNET_OK) {
		rc = count_nics(lab, &nics, err);
	}
	if (rc != COLLNET_OK) {
		return rc;
	}
	if (lab->o->json) {
		printf("{\"ports\":[");
	} else {
		printf("%-*s  %-*s %12s %15s %10s\n", name_width(lab), "switch", name_width(lab),
		       "port to", "frames", "bytes", "drops");
	}
	rc = print_ports(lab, &drops, err);
	if (lab->o->json) {
		printf("],\"drops_total\":%llu,\"nic_drops\":%llu,\"loss_dropped\":%llu,"
		       "\"duplicated\":%llu,\"status\":%d}\n",
		       (unsigned long long)drops, (unsigned long long)nics,
		       (unsigned long long)lost, (unsigned long long)copies, status);
	} else {
		printf("%llu frames dropped by full switch buffers, %llu by the hosts' own queues, "
		       "%llu by --loss; %llu duplicated\n",
		       (unsigned long long)drops, (unsigned long long)nics,
		       (unsigned long long)lost, (unsigned long long)copies);
	}
	if (fflush(stdout) != 0 && rc == COLLNET_OK) {
		rc = cn_fail(err, COLLNET_ESYSTEM, "standard output: %s", strerror(errno));
	}
	return rc;
}
