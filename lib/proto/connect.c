/* SPDX-License-Identifier: BSD-2-Clause */
#include "proto/connect.h"

#include <string.h>

#include "proto/node_impl.h"

static uint64_t derive(uint64_t nonce, uint16_t port, uint32_t id)
{
	uint64_t derived = cn_mix64(nonce ^ cn_mix64((uint64_t)id << 16 | port));

	return derived != 0 ? derived : 1;
}

struct cn_peer *cn_node_connect(struct cn_node *n, cn_time now, struct cn_peer *with, uint32_t id,
				const struct cn_port *to)
{
	struct cn_peer *p = cn_peer_by_mac(n, with->mac);
	uint64_t nonce_out = derive(with->nonce_out, n->config.port, id);
	uint64_t nonce_in = derive(with->nonce_in, to->port, to->id);

	n->now = now;
	if (p != NULL && p->nonce_out == nonce_out && p->nonce_in == nonce_in) {
		/* One that has ended had these ids and sequence numbers, too. */
		return p->state == CN_PEER_UP ? p : NULL;
	}
	if (p != NULL) {
		cn_peer_down(p, CN_PEER_RESET);
	} else {
		p = cn_peer_add(n, with->mac, NULL);
	}
	if (p == NULL) {
		return NULL;
	}
	p->port = to->port;
	p->epoch = with->epoch;
	p->mtu = with->mtu;
	p->nonce_out = nonce_out;
	p->nonce_in = nonce_in;
	p->live.last_rx = now;
	p->live.own = &with->live;
	memcpy(p->name, with->name, sizeof(p->name));
	cn_peer_up(p);
	p->validated = true;
	p->path.state = CN_PATH_VALID; /* validated by the session of port 0 */
	p->tx.rtt = with->tx.rtt;      /* same path (RFC 9040) */
	return p;
}

struct cn_peer *cn_node_connected(struct cn_node *n, const struct cn_peer *with)
{
	struct cn_peer *p = cn_peer_by_mac(n, with->mac);

	return p != NULL && p->state == CN_PEER_UP ? p : NULL;
}

void cn_node_disconnect(struct cn_node *n, cn_time now, const struct cn_peer *with,
			enum cn_peer_loss why)
{
	struct cn_peer *p = cn_node_connected(n, with);

	n->now = now;
	if (p != NULL) {
		p->unheard = with->unheard;
		cn_peer_down(p, why);
	}
}

void cn_node_add_counters(struct cn_node *n, const struct cn_node *from)
{
	for (uint32_t i = 0; i < from->npeers; i++) {
		const struct cn_peer *q = from->peers[i];
		struct cn_peer *p = cn_peer_by_mac(n, q->mac);

		if (p != NULL) {
			p->data_sent += q->data_sent;
			p->data_resent += q->data_resent;
			p->data_received += q->data_received;
			p->tx.rtt = p->tx.rtt.srtt == 0 ? q->tx.rtt : p->tx.rtt;
		}
	}
}
