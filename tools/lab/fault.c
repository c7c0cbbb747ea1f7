/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames that are lost, duplicated and reordered: rules of nftables, and netem. */
#include <net/if.h>

#include "tools/lab/command.h"

/* Writes a rule for a host's port, the one on its switch that leads to it. */
typedef void port_fn(FILE *f, const struct lab *lab, uint32_t host, const char *port);

/* Loads `head`, what `each` writes for every host, and `tail`. */
static int load_rules(struct lab *lab, const char *head, port_fn *each, const char *tail,
		      struct cn_err *err)
{
	static char *const argv[] = { "nft", "-f", "-", NULL };
	char port[IFNAMSIZ];
	struct lab_batch b;
	int rc = lab_batch_open(&b, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	fputs(head, b.f);
	for (uint32_t i = 0; i < lab->nhosts; i++) {
		const struct cn_vertex *v = &lab->topo->vertices[lab->hosts[i].vertex];

		lab_port_name(lab, v->parent, v->parent_link, port, sizeof(port));
		each(b.f, lab, i, port);
	}
	fputs(tail, b.f);
	return lab_batch_run(&b, argv, err);
}

static void name_port(FILE *f, const struct lab *lab, uint32_t host, const char *port)
{
	(void)lab;
	fprintf(f, "%s \"%s\"", host == 0 ? "" : ",", port);
}

/* Frames that enter the fabric from a host are lost with the given probability. */
int lab_lose_frames(struct lab *lab, struct cn_err *err)
{
	char tail[256];

	snprintf(tail, sizeof(tail),
		 " } }\n chain enter {\n type filter hook prerouting priority -300;"
		 " policy accept;\n iifname @hosts numgen random mod 1000000 < %u"
		 " counter name \"lost\" drop\n }\n}\n",
		 lab->o->loss_ppm);
	return load_rules(lab,
			  "table bridge lab {\n counter lost { }\n"
			  " set hosts { type ifname; elements = {",
			  name_port, tail, err);
}

/* A `dup` names its interface: a chain per port, and one counter for all. */
static void duplicate_at(FILE *f, const struct lab *lab, uint32_t host, const char *port)
{
	fprintf(f,
		" chain port%u {\n type filter hook egress device \"%s\" priority 0;"
		" policy accept;\n numgen random mod 1000000 < %u counter name \"copies\""
		" dup to \"%s\"\n }\n",
		host, port, lab->o->duplicate_ppm, port);
}

/*
 * Frames that leave a switch for a host are sent twice with the given probability. A copy passes
 * the rule again, so that a frame can arrive three times or more.
 */
int lab_duplicate_frames(struct lab *lab, struct cn_err *err)
{
	int rc = load_rules(lab, "table netdev lab {\n counter copies { }\n", duplicate_at, "}\n",
			    err);

	if (rc == COLLNET_OK) {
		return COLLNET_OK;
	}
	return cn_fail(err, COLLNET_EPERM,
		       "--duplicate requires a kernel whose nftables can duplicate frames that "
		       "leave an interface (CONFIG_NFT_DUP_NETDEV, CONFIG_NETFILTER_EGRESS)");
}

/* In the host's namespace: netem delays a share of its frames, behind the bucket of its rate. */
int lab_reorder_frames(const struct lab *lab, uint64_t rate, struct cn_err *err)
{
	static char *const argv[] = { "tc", "-batch", "-", NULL };
	const double passes = 100.0 - (double)lab->o->reorder_ppm / 1e4;
	struct lab_batch b;
	int rc = lab_batch_open(&b, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	fprintf(b.f, "qdisc replace dev eth0 %s netem delay 10ms reorder %.4f%% limit %u\n",
		rate != 0 ? "parent 1:1 handle 10:" : "root handle 10:", passes, LAB_NIC_QUEUE);
	rc = lab_batch_run(&b, argv, err);
	return rc == COLLNET_OK ? rc
				: cn_fail(err, COLLNET_EPERM,
					  "--reorder needs netem, and this kernel "
					  "has none (CONFIG_NET_SCH_NETEM)");
}
