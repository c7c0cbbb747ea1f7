/* SPDX-License-Identifier: BSD-2-Clause */
/* Encoding and decoding of proto/wire.h, byte by byte: no casts, no alignment, every length
 * checked. */
#include <string.h>

#include "proto/wire.h"
#include "util/byteorder.h"

#define AUTHENTICATED 0x08 /* beside version and type */

void cn_wire_put(uint8_t out[CN_WIRE_HEADER], const struct cn_wire *w)
{
	cn_put_be16(out, CN_WIRE_MAGIC);
	out[2] = (uint8_t)(CN_WIRE_VERSION << 4 | (w->authenticated ? AUTHENTICATED : 0) |
			   (w->type & 0x07));
	out[3] = w->flags;
	cn_put_be16(out + 4, w->length);
	cn_put_be16(out + 6, w->port_to);
	cn_put_be32(out + 8, w->session);
	cn_put_be32(out + 12, w->seq);
	cn_put_be32(out + 16, w->ack);
	cn_put_be32(out + 20, w->stream);
}

enum cn_wire_fault cn_wire_get(const uint8_t *in, size_t len, struct cn_wire *w)
{
	if (len < 2 || cn_get_be16(in) != CN_WIRE_MAGIC) {
		return CN_WIRE_FOREIGN;
	}
	if (len < 3) {
		return CN_WIRE_BAD;
	}
	w->version = in[2] >> 4;
	w->authenticated = false;
	if (w->version != CN_WIRE_VERSION) {
		return CN_WIRE_FOREIGN_VERSION;
	}
	if (len < CN_WIRE_HEADER) {
		return CN_WIRE_BAD;
	}
	w->authenticated = (in[2] & AUTHENTICATED) != 0;
	w->type = in[2] & 0x07;
	w->flags = in[3];
	w->length = cn_get_be16(in + 4);
	w->port_to = cn_get_be16(in + 6);
	w->session = cn_get_be32(in + 8);
	w->seq = cn_get_be32(in + 12);
	w->ack = cn_get_be32(in + 16);
	w->stream = cn_get_be32(in + 20);
	if (len < cn_wire_header(w->authenticated) ||
	    w->length > len - cn_wire_header(w->authenticated) || w->type < CN_TYPE_HELLO ||
	    w->type > CN_TYPE_MESSAGE || (w->type == CN_TYPE_ACK && w->length != 0) ||
	    (w->type == CN_TYPE_HELLO && w->port_to != 0)) {
		return CN_WIRE_BAD;
	}
	return CN_WIRE_OK;
}

static bool is_ours(const uint8_t *in, size_t len)
{
	return len >= CN_WIRE_HEADER && cn_get_be16(in) == CN_WIRE_MAGIC &&
	       in[2] >> 4 == CN_WIRE_VERSION;
}

bool cn_wire_requests_ack(const uint8_t *in, size_t len)
{
	return is_ours(in, len) && (in[3] & CN_FLAG_ACKREQ) != 0;
}

uint16_t cn_wire_port(const uint8_t *in, size_t len)
{
	return is_ours(in, len) ? cn_get_be16(in + 6) : 0;
}

size_t cn_hello_put(uint8_t out[CN_HELLO_MAX], const struct cn_hello *h)
{
	size_t n = strlen(h->name);

	cn_put_be64(out, h->epoch);
	cn_put_be32(out + 8, h->nonce);
	cn_put_be32(out + 12, h->mtu);
	cn_put_be16(out + 16, h->cluster);
	out[18] = (uint8_t)n;
	memcpy(out + CN_HELLO_FIXED, h->name, n);
	return CN_HELLO_FIXED + n;
}

bool cn_hello_get(const uint8_t *in, size_t len, struct cn_hello *h)
{
	size_t n;

	if (len < CN_HELLO_FIXED) {
		return false;
	}
	n = in[18];
	if (n > COLLNET_NAME_MAX || len != CN_HELLO_FIXED + n) {
		return false;
	}
	h->epoch = cn_get_be64(in);
	h->nonce = cn_get_be32(in + 8);
	h->mtu = cn_get_be32(in + 12);
	h->cluster = cn_get_be16(in + 16);
	memcpy(h->name, in + CN_HELLO_FIXED, n);
	h->name[n] = '\0';
	return h->epoch != 0 && strlen(h->name) == n && cn_valid_name(h->name);
}

uint16_t cn_hello_cluster(const uint8_t *in)
{
	return cn_get_be16(in + 16);
}

bool cn_hello_is_foreign(const uint8_t *in, size_t len, uint16_t cluster)
{
	return len >= 18 && cn_hello_cluster(in) != cluster;
}

/* Public: only the nonces are secret. */
static const uint8_t session_key[CN_SIPHASH_KEY] = "collnet session";
static const uint8_t bye_key[CN_SIPHASH_KEY] = "collnet goodbye";

struct cn_session cn_session(const struct cn_end *from, const struct cn_end *to)
{
	const uint64_t ends[4] = { from->epoch, from->nonce, to->epoch, to->nonce };
	uint8_t what[32];
	struct cn_session s;
	uint64_t h;

	for (size_t i = 0; i < 4; i++) {
		cn_put_be64(what + 8 * i, ends[i]);
	}
	h = cn_siphash(session_key, what, sizeof(what));
	s.id = (uint32_t)(h >> 32);
	s.id += s.id == 0;
	s.first = (uint32_t)h;
	s.bye = (uint32_t)cn_siphash(bye_key, what, sizeof(what));
	return s;
}
