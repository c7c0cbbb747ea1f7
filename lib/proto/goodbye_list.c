/* SPDX-License-Identifier: BSD-2-Clause */
#include "proto/goodbye_list.h"

#include <string.h>

size_t cn_goodbye_list_size(uint32_t max_peers)
{
	return sizeof(struct cn_goodbye_list) + (size_t)max_peers * sizeof(struct cn_goodbye);
}

void cn_goodbye_list_init(struct cn_goodbye_list *w, const struct cn_node_config *c)
{
	memset(w, 0, sizeof(*w));
	w->max_peers = c->max_peers;
	w->ethertype = c->ethertype;
	w->cluster = c->cluster;
	memcpy(w->mac, c->mac, sizeof(w->mac));
	w->mtu = c->mtu;
	w->epoch = c->epoch;
	memcpy(w->name, c->name, sizeof(w->name));
	for (uint32_t i = 0; i < c->max_peers; i++) {
		atomic_init(&w->peers[i].to, 0);
		atomic_init(&w->peers[i].session, 0);
	}
}

/* The address goes last, and is taken back first: while it stands, the session is its own. */
void cn_goodbye_list_set(struct cn_goodbye_list *w, uint32_t i, const uint8_t mac[6],
			 uint32_t session, uint32_t token)
{
	uint64_t to = 0;

	for (int k = 0; k < 6; k++) {
		to = to << 8 | mac[k];
	}
	cn_goodbye_list_clear(w, i);
	atomic_store(&w->peers[i].session, (uint64_t)session << 32 | token);
	atomic_store(&w->peers[i].to, to);
}

void cn_goodbye_list_clear(struct cn_goodbye_list *w, uint32_t i)
{
	atomic_store(&w->peers[i].to, 0);
}

size_t cn_goodbye_list_frame(const struct cn_goodbye_list *w, uint32_t i,
			     uint8_t out[CN_FRAME_HEAD])
{
	struct cn_hello h = { .epoch = w->epoch, .mtu = w->mtu };
	struct cn_wire wire = {
		.type = CN_TYPE_HELLO,
		.flags = CN_FLAG_BYE | CN_FLAG_UNICAST,
		.cluster = w->cluster,
	};
	uint64_t to, session;

	if (i >= w->max_peers) {
		return 0;
	}
	to = atomic_load(&w->peers[i].to);
	session = atomic_load(&w->peers[i].session);
	if (to == 0 || atomic_load(&w->peers[i].to) != to) {
		return 0;
	}
	for (int k = 0; k < 6; k++) {
		out[k] = (uint8_t)(to >> (40 - 8 * k));
	}
	memcpy(out + 6, w->mac, 6);
	out[12] = (uint8_t)(w->ethertype >> 8);
	out[13] = (uint8_t)w->ethertype;
	memcpy(h.name, w->name, sizeof(h.name));
	wire.length = (uint16_t)cn_hello_put(out + CN_HEAD, &h);
	wire.session = (uint32_t)(session >> 32);
	wire.seq = (uint32_t)session;
	cn_wire_put(out + CN_ETH_HEADER, &wire);
	return CN_HEAD + (size_t)wire.length;
}
