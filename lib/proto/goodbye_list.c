/* SPDX-License-Identifier: BSD-2-Clause */
#include "proto/goodbye_list.h"

#include <string.h>

#include "proto/auth.h"
#include "util/byteorder.h"

size_t cn_goodbye_list_size(uint32_t max_peers)
{
	return sizeof(struct cn_goodbye_list) + (size_t)max_peers * sizeof(struct cn_goodbye);
}

void cn_goodbye_list_init(struct cn_goodbye_list *l, const struct cn_node_config *c)
{
	memset(l, 0, sizeof(*l));
	l->max_peers = c->max_peers;
	l->ethertype = c->ethertype;
	l->cluster = c->cluster;
	l->encapsulation = c->encapsulation;
	memcpy(l->mac, c->mac, sizeof(l->mac));
	l->mtu = c->mtu;
	l->epoch = c->epoch;
	memcpy(l->name, c->name, sizeof(l->name));
	l->authenticated = c->authenticated;
	if (c->authenticated) {
		cn_auth_hello_key(c->cluster_key, l->hello_key);
	}
	for (uint32_t i = 0; i < c->max_peers; i++) {
		atomic_init(&l->peers[i].to, 0);
		atomic_init(&l->peers[i].session, 0);
	}
}

/* The address is written last and cleared first: while it is set, the session belongs to it. */
void cn_goodbye_list_set(struct cn_goodbye_list *l, uint32_t i, const uint8_t mac[6],
			 uint32_t session, uint32_t token)
{
	uint64_t to = 0;

	for (int k = 0; k < 6; k++) {
		to = to << 8 | mac[k];
	}
	cn_goodbye_list_clear(l, i);
	atomic_store(&l->peers[i].session, (uint64_t)session << 32 | token);
	atomic_store(&l->peers[i].to, to);
}

void cn_goodbye_list_clear(struct cn_goodbye_list *l, uint32_t i)
{
	atomic_store(&l->peers[i].to, 0);
}

enum cn_encapsulation cn_goodbye_list_encapsulation(const struct cn_goodbye_list *l)
{
	const enum cn_encapsulation e = __atomic_load_n(&l->encapsulation, __ATOMIC_RELAXED);

	return (unsigned int)e < CN_ENCAPSULATIONS ? e : CN_ENCAPSULATION_RAW;
}

size_t cn_goodbye_list_frame(const struct cn_goodbye_list *l, uint32_t i,
			     uint8_t out[CN_FRAME_HEAD])
{
	struct cn_hello h = {
		.epoch = l->epoch, .nonce = l->reason, .mtu = l->mtu, .cluster = l->cluster
	};
	struct cn_wire wire = {
		.type = CN_TYPE_HELLO,
		.flags = CN_FLAG_BYE | CN_FLAG_UNICAST,
		.authenticated = l->authenticated != 0,
	};
	uint8_t *body = out + CN_ETH_HEADER + cn_wire_header(wire.authenticated);
	uint64_t to, session;

	if (i >= l->max_peers) {
		return 0;
	}
	to = atomic_load(&l->peers[i].to);
	session = atomic_load(&l->peers[i].session);
	if (to == 0 || atomic_load(&l->peers[i].to) != to) {
		return 0;
	}
	for (int k = 0; k < 6; k++) {
		out[k] = (uint8_t)(to >> (40 - 8 * k));
	}
	memcpy(out + 6, l->mac, 6);
	cn_put_be16(out + 12, l->ethertype);
	memcpy(h.name, l->name, sizeof(h.name) - 1);
	wire.length = (uint16_t)cn_hello_put(body, &h);
	wire.session = (uint32_t)(session >> 32);
	wire.seq = (uint32_t)session;
	cn_wire_put(out + CN_ETH_HEADER, &wire);
	if (wire.authenticated) {
		cn_auth_seal(l->hello_key, out, 0, body, wire.length);
	}
	return (size_t)(body - out) + wire.length;
}
