/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/auth.c: what a host that does not know the cluster's key can do to a session. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"
#include "proto/auth.h"
#include "proto/goodbye_list.h"
#include "util/byteorder.h"

#define SEED 20261128u

static const uint8_t key[CN_SIPHASH_KEY] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

static void with_key(struct cn_node_config *c)
{
	c->authenticated = true;
	memcpy(c->cluster_key, key, sizeof(key));
}

static void b_has_none(struct cn_node_config *c)
{
	if (c->name[0] != 'b') {
		with_key(c);
	}
}

static void b_has_another(struct cn_node_config *c)
{
	with_key(c);
	c->cluster_key[15] ^= c->name[0] == 'b';
}

static struct pair *up(uint32_t nodes)
{
	struct pair *p = pair_new(nodes, SEED, with_key);

	assert_true(pair_run_up(p, 2000 * CN_MS));
	pair_run(p, 50 * CN_MS);
	return p;
}

/* ---- the tag ---------------------------------------------------------------------------- */

/* Values computed by another implementation of SipHash-2-4 (`openssl mac SIPHASH`), so that nodes
 * of another byte order or a later version make the same. */
static void auth__values(void **state)
{
	static const uint8_t hello[] = { 0x98, 0x16, 0x35, 0x5c, 0x69, 0x47, 0xb7, 0xe3,
					 0xaa, 0x9b, 0x1c, 0x5b, 0x50, 0xf7, 0xa0, 0x4a };
	static const uint8_t session[] = { 0x7d, 0xc4, 0x49, 0x71, 0xf8, 0xe7, 0x07, 0x4e,
					   0x14, 0x32, 0x8c, 0xf4, 0x15, 0x56, 0x19, 0xc7 };
	static const uint8_t tag[] = { 0x27, 0xfe, 0x61, 0xa8, 0x9d, 0xcc, 0xdf, 0x14,
				       0xfe, 0xdb, 0x91, 0xf3, 0x05, 0x4c, 0xf5, 0xb8 };
	uint8_t out[CN_SIPHASH_KEY], frame[CN_HEAD + CN_WIRE_AUTH] = { [6] = 2, [11] = 1 };
	const struct cn_wire w = { .type = CN_TYPE_COLL,
				   .flags = 0x20,
				   .authenticated = true,
				   .length = 5,
				   .port_to = 4097,
				   .session = 0x11223344,
				   .seq = 7,
				   .ack = 9,
				   .stream = 0xabcdef01 };
	struct cn_auth a;

	(void)state;
	cn_auth_hello_key(key, out);
	assert_memory_equal(out, hello, sizeof(out));
	cn_auth_begin(&a, key, &(struct cn_end){ 1, 2 }, &(struct cn_end){ 3, 4 });
	assert_memory_equal(a.key_out, session, sizeof(a.key_out));
	cn_wire_put(frame + CN_ETH_HEADER, &w);
	cn_auth_seal(key, frame, 0x102, (const uint8_t *)"hello", 5);
	assert_int_equal(cn_get_be64(frame + CN_HEAD), 0x102);
	assert_memory_equal(frame + CN_HEAD + 8, tag, sizeof(tag));
}

/* Each direction has a key of its own, which both ends know, and so has each session. */
static void auth__keys(void **state)
{
	const struct cn_end us = { 1, 2 }, it = { 3, 4 }, again = { 1, 5 };
	struct cn_auth a, b, c;

	(void)state;
	cn_auth_begin(&a, key, &us, &it);
	cn_auth_begin(&b, key, &it, &us);
	cn_auth_begin(&c, key, &again, &it);
	assert_memory_equal(a.key_out, b.key_in, sizeof(key));
	assert_memory_equal(a.key_in, b.key_out, sizeof(key));
	assert_memory_not_equal(a.key_out, a.key_in, sizeof(key));
	assert_memory_not_equal(a.key_out, c.key_out, sizeof(key));
	assert_memory_not_equal(a.key_in, c.key_in, sizeof(key));
}

static bool accepts(struct cn_auth *a, uint64_t counter)
{
	uint8_t frame[CN_HEAD + CN_WIRE_AUTH] = { [6] = 2 };

	cn_auth_seal(a->key_in, frame, counter, NULL, 0);
	return cn_auth_accept(a, frame + 6, frame + CN_ETH_HEADER, NULL, 0);
}

/* Each counter is accepted once, in any order within the window; none that is older. */
static void auth__each_counter_once(void **state)
{
	struct cn_auth a;
	bool taken[2000] = { false };
	uint64_t random = SEED, newest = 0;

	(void)state;
	cn_auth_begin(&a, key, &(struct cn_end){ 1, 2 }, &(struct cn_end){ 3, 4 });
	assert_false(accepts(&a, 0)); /* of no frame of a session */
	for (uint32_t i = 0; i < 20000; i++) {
		const uint64_t around = i / 10 < 300 ? 300 : i / 10;
		const uint64_t c = around - 300 + cn_random(&random) % 301 + (i == 12345 ? 500 : 0);
		const bool fits = c > newest || newest - c < CN_REPLAY_WINDOW;

		if (c == 0 || c >= 2000) {
			continue;
		}
		assert_int_equal(accepts(&a, c), fits && !taken[c]);
		taken[c] |= fits;
		newest = c > newest ? c : newest;
	}
	assert_true(accepts(&a, UINT64_MAX - 1));
	assert_false(accepts(&a, UINT64_MAX - 1));
	assert_true(accepts(&a, UINT64_MAX));
	assert_false(accepts(&a, UINT64_MAX));
	assert_true(accepts(&a, UINT64_MAX - CN_REPLAY_WINDOW + 1));
	assert_false(accepts(&a, UINT64_MAX - CN_REPLAY_WINDOW));
}

/* ---- sessions --------------------------------------------------------------------------- */

static uint32_t frames, plain, changed;

static bool look(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f, size_t len)
{
	struct cn_wire w;

	(void)from;
	(void)to;
	frames++;
	plain += cn_wire_get(f + CN_ETH_HEADER, len - CN_ETH_HEADER, &w) != CN_WIRE_OK ||
		 !w.authenticated;
	assert_uint_in_range(len, CN_HEAD + CN_WIRE_AUTH, CN_ETH_HEADER + p->nodes[0].config.mtu);
	return true;
}

/* Every frame of nodes with a key has a tag, and is no longer than the MTU. */
static void auth__of_every_frame(void **state)
{
	struct pair *p = pair_new(3, SEED, with_key);

	(void)state;
	frames = plain = 0;
	p->filter = look;
	p->loss = 20000;
	assert_true(pair_run_up(p, 3000 * CN_MS));
	assert_int_equal(cn_node_payload(p->nodes[0].node), 1500 - 24 - 24);
	pair_send(p, 0, 1, 500, 0);
	pair_send(p, 1, 0, 500, 0);
	pair_send(p, 2, 1, 500, (uint16_t)cn_node_payload(p->nodes[2].node));
	assert_true(pair_run_flows(p, 10000 * CN_MS));
	assert_true(frames > 1500);
	assert_int_equal(plain, 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(pair_stats(p, i).bad_frames, 0);
		assert_int_equal(pair_stats(p, i).version_frames, 0);
	}
	pair_free(p);
}

/* A message may change while it is sent: what is sent is a copy, so that its tag is right. */
static void auth__messages_are_copied(void **state)
{
	struct pair *p = up(2);
	const size_t bytes = (size_t)PAIR_SLOTS * cn_node_payload(p->nodes[0].node);
	const struct pair_flow *flow = &p->flows[0][1];
	uint8_t frame[2000];
	struct cn_frame out;

	(void)state;
	pair_send(p, 0, 1, 1, 500);
	do {
		assert_true(cn_node_output(p->nodes[0].node, p->now, &out));
	} while ((out.head[CN_ETH_HEADER + 2] & 7) != CN_TYPE_MESSAGE);
	assert_int_equal(out.payload_len, 500);
	assert_false(out.payload >= flow->slots && out.payload < flow->slots + bytes);
	memset(flow->slots, 0x5a, bytes);
	memcpy(frame, out.head, out.head_len);
	memcpy(frame + out.head_len, out.payload, out.payload_len);
	pair_input(p, 1, frame, (size_t)out.head_len + out.payload_len);
	assert_int_equal(pair_stats(p, 1).bad_frames, 0);
	assert_int_equal(flow->received, 1);
	pair_free(p);
}

/* Cuts probes of the path MTU; what is cut arrives before the probe. */
static bool cut_probes(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f, size_t len)
{
	struct cn_wire w;

	(void)from;
	if (cn_wire_get(f + CN_ETH_HEADER, len - CN_ETH_HEADER, &w) == CN_WIRE_OK &&
	    w.type == CN_TYPE_ACK && (w.flags & CN_FLAG_MTU_PROBE) != 0 && len > 1000) {
		pair_inject(p, to, f, CN_HEAD + CN_WIRE_AUTH, p->now + CN_US);
		changed++;
	}
	return true;
}

/* Nobody can make a path look narrower by cutting the padding off a probe. */
static void auth__padding_of_probes(void **state)
{
	struct pair *p = up(2);
	struct cn_peer *peer = pair_peer(p, 0, 1);

	(void)state;
	changed = 0;
	p->filter = cut_probes;
	cn_peer_validate(p->nodes[0].node, p->now, peer);
	pair_poke(p);
	pair_run(p, 2000 * CN_MS);
	assert_true(changed > 0);
	assert_int_equal(peer->path.state, CN_PATH_VALID);
	assert_true(pair_is_up(p, 0, 1));
	pair_free(p);
}

/* What the key takes of a frame is beyond the smallest MTU, which control messages fill. */
static void auth__smallest_mtu(void **state)
{
	static const struct cn_node_ops none = { .pull = NULL };
	struct cn_node_config c;
	struct cn_node *n;
	struct cn_err err;

	(void)state;
	cn_node_config_init(&c);
	c.epoch = 1;
	strcpy(c.name, "a");
	c.encapsulation = CN_ENCAPSULATION_UDP;
	with_key(&c);
	c.mtu = CN_FRAME_MTU_MIN + CN_UDP_HEADER + CN_WIRE_AUTH - 1;
	assert_int_equal(cn_node_new(&c, &none, NULL, &n, &err), COLLNET_EINVAL);
	assert_string_equal(err.text,
			    "MTU 627: must be 628 .. 65000 with the encapsulation udp and "
			    "a key");
	c.mtu++;
	assert_int_equal(cn_node_new(&c, &none, NULL, &n, &err), COLLNET_OK);
	assert_int_equal(cn_node_payload(n), CN_FRAME_MTU_MIN - CN_WIRE_HEADER);
	cn_node_free(n);
}

/* Takes a quarter of the frames; one that was changed arrives in its place. */
static bool change(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f, size_t len)
{
	uint64_t *random = p->filter_arg;
	uint8_t other[2000];
	size_t at;

	(void)from;
	if (cn_random(random) % 4 != 0) {
		return true;
	}
	/* The receiver's address and the EtherType decide whether it is read at all. */
	at = 6 + cn_random(random) % (len - 6);
	if (at == 12 || at == 13) {
		return true;
	}
	memcpy(other, f, len);
	other[at] ^= (uint8_t)(1 << cn_random(random) % 8);
	pair_inject(p, to, other, len, p->now + CN_US);
	changed++;
	return false;
}

/* A frame that is changed on the way is dropped and retransmitted: every byte that arrives is
 * right, and no session ends. */
static void auth__changed_frames_are_lost(void **state)
{
	struct pair *p = up(3);
	uint64_t random = SEED;

	(void)state;
	changed = 0;
	p->filter = change;
	p->filter_arg = &random;
	for (uint32_t a = 0; a < 3; a++) {
		for (uint32_t b = 0; b < 3; b++) {
			pair_send(p, a, b, a == b ? 0 : 300, 0);
		}
	}
	assert_true(pair_run_flows(p, 60000 * CN_MS));
	assert_true(changed > 500);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(p->nodes[i].downs, 0);
		assert_int_equal(p->nodes[i].ups, 2);
	}
	pair_free(p);
}

/* Each frame comes three more times: right behind, a little later and much later. */
static bool repeat(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f, size_t len)
{
	static const cn_time later[] = { CN_US, 700 * CN_US, 30 * CN_MS };
	uint64_t *random = p->filter_arg;

	(void)from;
	for (size_t i = 0; i < 3; i++) {
		pair_inject(p, to, f, len,
			    p->now + p->delay + p->jitter + len * p->ns_per_byte + later[i] +
				    cn_random(random) % later[i]);
	}
	return true;
}

/* Two nodes exchange frames, of which b refuses some; what each has counted at the end. */
static void exchange(bool repeated, struct collnet_stats out[2])
{
	struct pair *p = up(2);
	uint64_t random = SEED;

	p->filter = repeated ? repeat : NULL;
	p->filter_arg = &random;
	p->nodes[1].refuse = 20;
	pair_send(p, 0, 1, 2000, 0);
	pair_send(p, 1, 0, 2000, 0);
	assert_true(pair_run_flows(p, 5000 * CN_MS));
	for (uint32_t i = 0; i < 2; i++) {
		out[i] = pair_stats(p, i);
		assert_int_equal(p->nodes[i].downs, 0);
	}
	pair_free(p);
}

/* Frames that are repeated have no effect: none is taken for a retransmission, none makes a sender
 * stop, go back or go on. */
static void auth__repeated_frames_do_nothing(void **state)
{
	struct collnet_stats once[2], again[2];

	(void)state;
	exchange(false, once);
	exchange(true, again);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(once[i].bad_frames, 0);
		assert_true(again[i].bad_frames > 4000);
		assert_int_equal(again[i].data_received, once[i].data_received);
		assert_int_equal(again[i].data_sent, once[i].data_sent);
		assert_int_equal(again[i].data_resent, once[i].data_resent);
		assert_int_equal(again[i].duplicates, once[i].duplicates);
		assert_int_equal(again[i].naks_sent, once[i].naks_sent);
		assert_int_equal(again[i].acks_sent, once[i].acks_sent);
		assert_int_equal(again[i].busy, once[i].busy);
		assert_int_equal(again[i].timeouts, once[i].timeouts);
	}
}

/* Keeps b's first hello that echoes a's nonce, and lets nothing else of b arrive. */
static uint8_t kept[2000];
static size_t kept_bytes;

static bool withhold(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f, size_t len)
{
	struct cn_wire w;

	(void)p;
	(void)to;
	if (from == 1 && kept_bytes == 0 &&
	    cn_wire_get(f + CN_ETH_HEADER, len - CN_ETH_HEADER, &w) == CN_WIRE_OK &&
	    w.type == CN_TYPE_HELLO && (w.seq | w.ack) != 0) {
		memcpy(kept, f, len);
		kept_bytes = len;
	}
	return from != 1 || kept_bytes == 0;
}

/* A hello that was kept back ends no later session, however often it comes then. */
static void auth__withheld_hello(void **state)
{
	struct pair *p = pair_new(2, SEED, with_key);

	(void)state;
	kept_bytes = 0;
	p->filter = withhold;
	while (kept_bytes == 0) {
		pair_run(p, CN_MS);
	}
	pair_stop(p, 1);
	pair_start(p, 1);
	p->filter = NULL;
	assert_true(pair_run_up(p, 2000 * CN_MS));
	pair_exchange(p, 0, 1);
	for (uint32_t i = 0; i < 100; i++) {
		pair_input(p, 0, kept, kept_bytes);
		pair_run(p, 13 * CN_MS);
	}
	pair_exchange(p, 0, 1);
	assert_int_equal(p->nodes[0].downs, 0);
	assert_int_equal(p->nodes[1].downs, 0);
	pair_free(p);
}

/* ---- nodes without the key -------------------------------------------------------------- */

static void refused(void (*config)(struct cn_node_config *), const char *at_a, const char *at_b)
{
	struct pair *p = pair_new(3, SEED, config);
	struct cn_foreign_version s[CN_FOREIGN_VERSIONS];
	char text[CN_FOREIGN_VERSION_TEXT];

	pair_run(p, 3000 * CN_MS);
	assert_true(pair_is_up(p, 0, 2));
	assert_false(pair_is_up(p, 0, 1));
	assert_false(pair_is_up(p, 1, 0));
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(pair_stats(p, i).version_frames > 0);
		assert_int_equal(cn_node_foreign_versions(p->nodes[i].node, p->now, s),
				 i == 0 ? 1 : 2);
		cn_foreign_version_text(p->nodes[i].node, &s[0].what, text);
		assert_string_equal(text, i == 0 ? at_a : at_b);
	}
	pair_free(p);
}

/* It is refused, and each says of the other why. */
static void auth__another_key_or_none(void **state)
{
	(void)state;
	refused(b_has_none, "has no key, this node has one", "has a key, this node none");
	refused(b_has_another, "has another key than this node", "has another key than this node");
}

/* Frames with a wrong tag, from invented addresses, do not keep a node that starts from being
 * found: the replies to them are few. */
static void auth__strays(void **state)
{
	struct pair *p = pair_new(2, SEED, with_key);
	struct cn_wire w = { .type = CN_TYPE_CONTROL, .authenticated = true, .session = 77 };
	uint8_t f[CN_HEAD + CN_WIRE_AUTH] = { 0 };
	uint64_t random = SEED, sent;

	(void)state;
	pair_stop(p, 1);
	memcpy(f, p->nodes[0].config.mac, 6);
	cn_put_be16(f + 12, p->nodes[0].config.ethertype);
	cn_wire_put(f + CN_ETH_HEADER, &w);
	for (uint32_t i = 0; i < 2100; i++) {
		if (i == 1500) {
			pair_start(p, 1);
		}
		for (uint32_t k = 0; k < 16; k++) {
			cn_put_be32(f + 8, (uint32_t)cn_random(&random));
			f[6] = 2;
			pair_inject(p, 0, f, sizeof(f), p->now + cn_random(&random) % CN_MS);
		}
		pair_run(p, CN_MS);
	}
	sent = pair_stats(p, 0).frames_sent;
	assert_uint_in_range(sent, 1, 100);
	assert_true(pair_is_up(p, 0, 1) && pair_is_up(p, 1, 0));
	pair_free(p);
}

static struct cn_goodbye_list *list;

static void with_list(struct cn_node_config *c)
{
	with_key(c);
	if (c->name[0] == 'b') {
		list = calloc(1, cn_goodbye_list_size(c->max_peers));
		assert_non_null(list);
		c->goodbyes = list;
	}
}

/* Who has read a session's number and token, and makes a goodbye of them, is not believed; the
 * node's own goodbye is, also that of the process that outlives it. */
static void auth__goodbye(void **state)
{
	struct pair *p = pair_new(2, SEED, with_list);
	uint8_t f[CN_FRAME_HEAD], forged[CN_FRAME_HEAD];
	size_t len = 0;

	(void)state;
	assert_true(pair_run_up(p, 2000 * CN_MS));
	for (uint32_t i = 0; i < list->max_peers && len == 0; i++) {
		len = cn_goodbye_list_frame(list, i, f);
	}
	assert_true(len > CN_HEAD + CN_WIRE_AUTH);
	for (int tries = 0; tries < 2; tries++) {
		memcpy(forged, f, len);
		if (tries == 0) {
			memset(forged + CN_HEAD + 8, 0x5a, CN_SIPHASH_TAG);
		} else {
			forged[CN_HEAD + CN_WIRE_AUTH + 11] ^= 1; /* the reason */
		}
		pair_input(p, 0, forged, len);
		assert_true(pair_is_up(p, 0, 1));
	}
	pair_input(p, 0, f, len);
	assert_false(pair_is_up(p, 0, 1));
	pair_free(p);
	free(list);
	list = NULL;
}

/* A node that starts again, or says goodbye itself, is one with a key as before. */
static void auth__restart(void **state)
{
	struct pair *p = up(2);

	(void)state;
	pair_exchange(p, 0, 1);
	pair_stop(p, 1);
	pair_start(p, 1);
	pair_run(p, 2000 * CN_MS);
	assert_true(pair_is_up(p, 0, 1) && pair_is_up(p, 1, 0));
	pair_exchange(p, 0, 1);
	cn_node_bye(p->nodes[1].node, CN_BYE_DAEMON);
	pair_poke(p);
	pair_run(p, 10 * CN_MS);
	assert_false(pair_is_up(p, 0, 1));
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(auth__values),
		cmocka_unit_test(auth__keys),
		cmocka_unit_test(auth__each_counter_once),
		cmocka_unit_test(auth__of_every_frame),
		cmocka_unit_test(auth__messages_are_copied),
		cmocka_unit_test(auth__padding_of_probes),
		cmocka_unit_test(auth__smallest_mtu),
		cmocka_unit_test(auth__changed_frames_are_lost),
		cmocka_unit_test(auth__repeated_frames_do_nothing),
		cmocka_unit_test(auth__withheld_hello),
		cmocka_unit_test(auth__another_key_or_none),
		cmocka_unit_test(auth__strays),
		cmocka_unit_test(auth__goodbye),
		cmocka_unit_test(auth__restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
