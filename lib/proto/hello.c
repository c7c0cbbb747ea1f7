/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hellos: how nodes find each other, and whom they believe.
 *
 * A broadcast hello says who is there, and anybody can send one in anybody's name: it causes an
 * answer and changes nothing. A unicast hello carries a nonce for its receiver and echoes the one
 * that the receiver sent. The echo proves that its sender receives what is sent to its address;
 * only a hello with it brings a peer up, gives it a name, or ends a session because the peer has
 * begun anew:
 *
 *   B to all   HELLO
 *   A to B     HELLO nonce A                  A keeps nothing of B
 *   B to A     HELLO nonce B, echo A          A has B up
 *   A to B     HELLO nonce A, echo B          B has A up
 *
 * A node has one nonce for each peer at a time, which changes when the peer goes down. So an echo
 * is good for one session, and hellos of the past prove nothing. Where a hello without proof says
 * what does not fit an established peer (it restarted, or somebody says so), the peer is
 * challenged: it is sent the nonce of the session, and whichever incarnation is at that address
 * echoes it.
 */
#include <string.h>

#include "proto/peer.h"

uint64_t cn_nonce(const struct cn_node *n, const uint8_t mac[6], uint64_t generation)
{
	struct {
		uint64_t epoch, generation;
		uint8_t mac[8];
	} what = { .epoch = n->config.epoch, .generation = generation };
	uint64_t nonce;

	memcpy(what.mac, mac, 6);
	nonce = cn_siphash(n->config.key, &what, sizeof(what));
	return nonce != 0 ? nonce : 1; /* 0: none */
}

/* The nonce for an address without an entry; other ones than those of an entry that was evicted. */
static uint64_t cookie(const struct cn_node *n, const uint8_t mac[6])
{
	return cn_nonce(n, mac, n->evicted << 32);
}

static void send_hello(struct cn_peer *p, uint8_t flags, uint64_t echo)
{
	p->hello_flags = p->hello_due ? p->hello_flags | flags : flags;
	p->hello_at = CN_NEVER;
	p->hello_due = true;
	p->echo = echo;
	cn_peer_reschedule(p);
	cn_peer_ready(p);
}

static void send_later(struct cn_peer *p, cn_time at, uint8_t flags, uint64_t echo)
{
	p->later_flags = flags;
	p->later_echo = echo;
	if (p->hello_at == CN_NEVER) {
		p->hello_at = at;
		cn_peer_reschedule(p);
	}
}

void cn_hello_ask(struct cn_peer *p, enum cn_hello_why why, uint8_t flags, uint64_t echo)
{
	struct cn_node *n = p->node;

	if (why != CN_HELLO_PROOF && !p->hello_due) {
		cn_time *last = &p->hello_last[why];

		if (*last != 0 && n->now - *last < CN_HELLO_SPACING) {
			send_later(p, *last + CN_HELLO_SPACING, flags, echo);
			return;
		}
		*last = n->now;
	}
	send_hello(p, flags, echo);
}

/* As an answer to a broadcast, which many nodes answer. */
static void ask_later(struct cn_peer *p, uint8_t flags)
{
	cn_time wait = cn_node_spread(p->node, p->mac);

	if (wait == 0) {
		cn_hello_ask(p, CN_HELLO_BEGIN, flags, p->nonce_in);
	} else if (!p->hello_due) {
		send_later(p, p->node->now + wait, flags, p->nonce_in);
	}
}

void cn_hello_later(struct cn_peer *p)
{
	p->hello_at = CN_NEVER;
	p->hello_last[CN_HELLO_BEGIN] = p->node->now;
	if (p->state != CN_PEER_UP) {
		send_hello(p, CN_FLAG_SOLICIT, p->nonce_in);
	} else if ((p->later_flags & CN_FLAG_ACKREQ) != 0) {
		send_hello(p, p->later_flags, p->later_echo);
	} else if (!p->proven) {
		send_hello(p, 0, p->nonce_in);
	}
}

void cn_hello_stray(struct cn_node *n, const uint8_t mac[6], struct cn_peer *p)
{
	if (p == NULL) {
		cn_unvalidated_answer(n, mac, CN_HELLO_BEGIN, 0, 0);
	} else if (p->state == CN_PEER_UP) {
		cn_hello_ask(p, CN_HELLO_BEGIN, CN_FLAG_ACKREQ, p->nonce_in);
	} else {
		cn_hello_ask(p, CN_HELLO_BEGIN, CN_FLAG_SOLICIT, p->nonce_in);
	}
}

/* Nodes of different MTUs reach each other with short frames, so that their jobs can say why they
 * do not run. */
static void check_mtu(struct cn_peer *p)
{
	if (p->mtu != p->node->config.mtu && !p->mtu_told) {
		cn_peer_log(p, COLLNET_LOG_ERROR,
			    "node %s has MTU %u and this node %u: set them "
			    "alike",
			    p->name, p->mtu, p->node->config.mtu);
		p->mtu_told = true;
	}
}

static bool is_taken(const struct cn_node *n, const char *name)
{
	return strcmp(name, n->config.name) == 0 || cn_node_find(n, name) != NULL;
}

/* The first that is established under a name keeps it while it is there; whether it is, is found
 * out: else a machine with another card would be refused for ever. */
static bool name_is_free(struct cn_peer *p)
{
	struct cn_peer *holder = cn_node_find(p->node, p->name);

	if (!is_taken(p->node, p->name)) {
		return true;
	}
	if (holder != NULL) {
		cn_peer_contest(holder);
	}
	cn_peer_log(p, COLLNET_LOG_WARNING,
		    "another node is called %s too "
		    "(%02x:%02x:%02x:%02x:%02x:%02x) and is refused: give every node a name of its "
		    "own by --node",
		    p->name, p->mac[0], p->mac[1], p->mac[2], p->mac[3], p->mac[4], p->mac[5]);
	return false;
}

/* What a hello says of its sender. */
struct said {
	struct cn_hello body;
	uint64_t nonce, echo;
	uint8_t flags;
};

/* It is there, receives, and is not up. */
static void establish(struct cn_peer *p, const struct said *s)
{
	p->mtu_told = p->mtu_told && p->epoch == s->body.epoch;
	p->epoch = s->body.epoch;
	p->nonce_in = s->nonce;
	p->mtu = s->body.mtu;
	memcpy(p->name, s->body.name, sizeof(p->name));
	if (!name_is_free(p)) {
		p->nonce_in = 0; /* without an echo it has not us up, either */
		return;
	}
	check_mtu(p);
	cn_peer_up(p);
	if ((s->flags & (CN_FLAG_SOLICIT | CN_FLAG_ACKREQ)) != 0) {
		cn_hello_ask(p, CN_HELLO_PROOF, 0, s->nonce);
	}
}

/* A unicast hello that echoes our nonce. */
static void proof_taken(struct cn_peer *p, const struct said *s)
{
	p->heard = p->node->now;
	if (p->state != CN_PEER_UP) {
		establish(p, s);
	} else if (s->body.epoch == p->epoch && s->nonce == p->nonce_in) {
		if ((s->flags & (CN_FLAG_SOLICIT | CN_FLAG_ACKREQ)) != 0) {
			cn_hello_ask(p, CN_HELLO_REPLY, 0, s->nonce);
		}
	} else {
		cn_peer_down(p, s->body.epoch != p->epoch ? CN_PEER_RESTARTED : CN_PEER_RESET);
		p->nonce_in = s->nonce;
		cn_hello_ask(p, CN_HELLO_PROOF, CN_FLAG_SOLICIT, s->nonce);
	}
}

/* A unicast hello that does not: of a node that does not know us, late, or somebody else's. */
static void claim_taken(struct cn_peer *p, const struct said *s)
{
	if (p->state != CN_PEER_UP) {
		p->nonce_in = is_taken(p->node, s->body.name) ? 0 : s->nonce;
		cn_hello_ask(p, CN_HELLO_REPLY, CN_FLAG_SOLICIT, p->nonce_in);
	} else if (s->body.epoch == p->epoch && s->nonce == p->nonce_in) {
		cn_hello_ask(p, CN_HELLO_REPLY, 0, s->nonce);
	} else {
		/* Any challenge is answered with its nonce. Other claims are not: a node
		 * that has begun anew would come up in a session that ends with our next hello. */
		p->node->stats.stale_frames++;
		cn_hello_ask(p, CN_HELLO_REPLY, CN_FLAG_ACKREQ,
			     (s->flags & CN_FLAG_ACKREQ) != 0 ? s->nonce : p->nonce_in);
	}
}

static void broadcast_taken(struct cn_peer *p, const struct said *s)
{
	if (p->state != CN_PEER_UP) {
		p->heard = p->node->now;
		ask_later(p, CN_FLAG_SOLICIT);
	} else if (s->body.epoch != p->epoch) {
		p->node->stats.stale_frames++;
		ask_later(p, CN_FLAG_ACKREQ);
	} else {
		p->heard = p->node->now;
		if ((s->flags & CN_FLAG_SOLICIT) != 0 && !p->proven) {
			/* One whose frames come knows us: all answers at once can be too many for
			 * its port. */
			ask_later(p, 0);
		}
	}
}

static void stranger_taken(struct cn_node *n, const uint8_t mac[6], const struct said *s)
{
	struct cn_peer *p;

	if ((s->flags & CN_FLAG_UNICAST) == 0) {
		cn_unvalidated_answer(n, mac, CN_HELLO_BEGIN, 0, cn_node_spread(n, mac));
	} else if (s->echo != cookie(n, mac)) {
		cn_unvalidated_answer(n, mac, CN_HELLO_REPLY,
				      is_taken(n, s->body.name) ? 0 : s->nonce, 0);
	} else {
		p = cn_peer_add(n, mac);
		if (p == NULL) {
			n->stats.stale_frames++;
			return;
		}
		cn_unvalidated_forget(n, mac);
		p->generation = n->evicted << 32;
		p->nonce_out = cookie(n, mac);
		proof_taken(p, s);
	}
}

/* A goodbye is believed inside the session alone. */
static void bye_taken(struct cn_node *n, struct cn_peer *p, const struct cn_wire *w)
{
	if (p == NULL || p->state != CN_PEER_UP || w->session != p->session_in ||
	    w->seq != p->bye_in) {
		n->stats.stale_frames++;
		return;
	}
	cn_peer_down(p, CN_PEER_BYE);
}

void cn_hello_take(struct cn_node *n, const uint8_t mac[6], const struct cn_wire *w,
		   const uint8_t *body)
{
	struct cn_peer *p = cn_peer_by_mac(n, mac);
	struct said s = { .flags = w->flags, .echo = (uint64_t)w->seq << 32 | w->ack };

	if (!cn_hello_get(body, w->length, &s.body)) {
		n->stats.bad_frames++;
		return;
	}
	s.nonce = (uint64_t)w->stream << 32 | s.body.nonce;
	if ((w->flags & CN_FLAG_BYE) != 0) {
		bye_taken(n, p, w);
	} else if ((w->flags & CN_FLAG_UNICAST) != 0 && s.nonce == 0) {
		n->stats.bad_frames++;
	} else if (p == NULL) {
		stranger_taken(n, mac, &s);
	} else if ((w->flags & CN_FLAG_UNICAST) == 0) {
		broadcast_taken(p, &s);
	} else if (s.echo == p->nonce_out) {
		proof_taken(p, &s);
	} else {
		claim_taken(p, &s);
	}
}
