/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Discovery and the handshake.
 *
 * A broadcast hello advertises a node, and any host can send one in any name: it causes a reply and
 * changes nothing. A unicast hello has a nonce for its receiver and echoes the receiver's. The echo
 * validates the address, that is, its sender receives what is sent to it; only a hello with it
 * establishes a session, gives the peer a name, or ends the session because the peer restarted.
 * This is a three-way handshake that keeps no state before the echo, as with SYN cookies:
 *
 *   B to all   HELLO
 *   A to B     HELLO nonce A                  A keeps nothing of B
 *   B to A     HELLO nonce B, echo A          the session is established at A
 *   A to B     HELLO nonce A, echo B          and at B
 *
 * A node has one nonce per peer at a time, which changes when the session ends. So an echo is good
 * for one session, and old hellos validate nothing. A hello without a valid echo that does not fit
 * the session (the peer restarted, or another host claims so) causes a challenge: the peer is sent
 * the nonce of the session, and whichever incarnation is at that address echoes it. That nonce is
 * older than the session, so a withheld echo of it may be, too. It does not end the session but
 * causes a challenge with a fresh nonce. An echo of the fresh nonce proves that the peer is present
 * and has another session or none: the session ends, and the next one uses the fresh nonce. If no
 * answer arrives, the peer may have another session all the same: its broadcast hellos cause
 * challenges until a frame or a hello shows that it has this one.
 */
#include <stdio.h>
#include <string.h>

#include "proto/hello.h"

#include "proto/goodbye_list.h"
#include "proto/node_impl.h"

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

/* The nonce for an address without an entry (SYN cookie); differs from those of an evicted
 * entry. */
static uint64_t cookie(const struct cn_node *n, const uint8_t mac[6])
{
	return cn_nonce(n, mac, n->evicted << 32);
}

/* A nonce that is not sent before this session, which its echo ends. */
static uint64_t fresh_nonce(const struct cn_peer *p)
{
	return cn_nonce(p->node, p->mac, ~p->generation);
}

uint64_t cn_hello_nonce(const struct cn_peer *p)
{
	return p->hello.fresh ? fresh_nonce(p) : p->nonce_out;
}

static void send_now(struct cn_peer *p, uint8_t flags, uint64_t echo)
{
	p->hello.flags = p->hello.due ? p->hello.flags | flags : flags;
	p->hello.later_at = CN_NEVER;
	p->hello.due = true;
	if (!p->hello.fresh) { /* a pending challenge keeps its echo */
		p->hello.echo = echo;
	}
	cn_peer_reschedule(p);
	cn_peer_ready(p);
}

static void send_later(struct cn_peer *p, cn_time at, uint8_t flags, uint64_t echo)
{
	p->hello.later_flags = flags;
	p->hello.later_echo = echo;
	if (p->hello.later_at == CN_NEVER) {
		p->hello.later_at = at;
		cn_peer_reschedule(p);
	}
}

/* Sends a unicast hello with these flags, now or when the limit allows it. */
static void send_hello(struct cn_peer *p, enum cn_hello_why why, uint8_t flags, uint64_t echo)
{
	struct cn_node *n = p->node;

	if (why != CN_HELLO_PROOF && !p->hello.due) {
		cn_time *last = &p->hello.last[why];

		if (*last != 0 && n->now - *last < CN_HELLO_SPACING) {
			send_later(p, *last + CN_HELLO_SPACING, flags, echo);
			return;
		}
		*last = n->now;
	}
	send_now(p, flags, echo);
}

/* Challenges an established peer, whose echo may be old. */
static void challenge(struct cn_peer *p, uint64_t echo)
{
	cn_time *last = &p->hello.last[CN_HELLO_CHALLENGE];

	if (*last == 0 || p->node->now - *last >= CN_HELLO_SPACING) {
		*last = p->node->now;
		send_now(p, CN_FLAG_ACKREQ, echo);
		p->hello.fresh = p->hello.challenged = true;
	}
}

/* Replies to a broadcast with jitter, because many nodes reply. */
static void send_with_jitter(struct cn_peer *p, uint8_t flags)
{
	cn_time wait = cn_node_jitter(p->node, p->mac);

	if (wait == 0) {
		send_hello(p, CN_HELLO_BEGIN, flags, p->nonce_in);
	} else if (!p->hello.due) {
		send_later(p, p->node->now + wait, flags, p->nonce_in);
	}
}

void cn_hello_later(struct cn_peer *p)
{
	p->hello.later_at = CN_NEVER;
	p->hello.last[CN_HELLO_BEGIN] = p->node->now;
	if (p->state != CN_PEER_UP) {
		send_now(p, CN_FLAG_SOLICIT, p->nonce_in);
	} else if ((p->hello.later_flags & CN_FLAG_ACKREQ) != 0) {
		send_now(p, p->hello.later_flags, p->hello.later_echo);
	} else if (!p->validated) {
		send_now(p, 0, p->nonce_in);
	}
}

void cn_hello_stray(struct cn_node *n, const uint8_t mac[6], struct cn_peer *p)
{
	if (p == NULL) {
		/* Such a frame is not authenticated: replies to it have a limit of their own, so
		 * that they do not exhaust that of genuine hellos. */
		if (n->config.authenticated &&
		    !cn_bucket_take(&n->stray_replies, n->now, CN_HELLO_STRAYS,
				    1000 * CN_MS / CN_HELLO_STRAYS)) {
			return;
		}
		cn_unvalidated_reply(n, mac, CN_HELLO_BEGIN, 0, 0);
	} else if (p->state == CN_PEER_UP) {
		send_hello(p, CN_HELLO_BEGIN, CN_FLAG_ACKREQ, p->nonce_in);
	} else {
		send_hello(p, CN_HELLO_BEGIN, CN_FLAG_SOLICIT, p->nonce_in);
	}
}

/* Nodes of different MTUs exchange short frames, so that their jobs can fail with the reason. */
static void check_mtu(struct cn_peer *p)
{
	if (p->mtu != p->node->config.mtu && !p->mtu_logged) {
		cn_peer_log(p, COLLNET_LOG_ERROR,
			    "node %s has MTU %u and this node %u: set them "
			    "alike",
			    p->name, p->mtu, p->node->config.mtu);
		p->mtu_logged = true;
	}
}

static bool is_taken(const struct cn_node *n, const char *name)
{
	return strcmp(name, n->config.name) == 0 || cn_node_find(n, name) != NULL;
}

/* Two nodes have the same name. */
static void record_name_conflict(struct cn_node *n, const uint8_t mac[6], const char *name)
{
	struct cn_mismatch what = { .version = CN_WIRE_VERSION,
				    .encapsulation = n->config.encapsulation,
				    .authenticated = n->config.authenticated };

	snprintf(what.name, sizeof(what.name), "%s", name);
	cn_foreign_version_record(n, mac, &what);
}

/*
 * The first node established under a name keeps it while it answers probes. Without the probes, a
 * host with a new network card would be refused for ever. Until the first node answers, the new one
 * may be the same host.
 */
static bool name_is_free(struct cn_peer *p)
{
	struct cn_node *n = p->node;
	struct cn_peer *holder = cn_node_find(n, p->name);

	if (!is_taken(n, p->name)) {
		p->refused_at = 0;
		return true;
	}
	if (p->refused_at == 0) {
		p->refused_at = n->now;
	}
	if (holder != NULL) {
		if (holder->live.last_node_rx > p->refused_at) {
			record_name_conflict(n, p->mac, p->name);
		}
		cn_liveness_contest(holder);
	}
	return false;
}

/* Removes its name from peers that are down. */
static void clear_name_of_others(const struct cn_peer *p)
{
	const struct cn_node *n = p->node;
	const uint32_t down = cn_name_hash(p->name) - 1;

	for (uint32_t i = 0; i < n->npeers; i++) {
		if (n->names[i] == down && strcmp(n->peers[i]->name, p->name) == 0) {
			n->names[i] = 0;
		}
	}
}

/* Fields of a hello. */
struct contents {
	struct cn_hello body;
	uint64_t nonce, echo;
	uint8_t flags;
};

/* The address is validated, and there is no session. */
static void establish(struct cn_peer *p, const struct contents *s)
{
	p->mtu_logged = p->mtu_logged && p->epoch == s->body.epoch;
	p->epoch = s->body.epoch;
	p->nonce_in = s->nonce;
	p->mtu = s->body.mtu;
	memcpy(p->name, s->body.name, sizeof(p->name));
	if (!name_is_free(p)) {
		p->node->names[p->index] = 0;
		p->nonce_in = 0; /* without an echo it establishes no session, either */
		return;
	}
	check_mtu(p);
	clear_name_of_others(p);
	cn_foreign_version_forget(p->node, p->mac);
	cn_peer_up(p);
	if ((s->flags & (CN_FLAG_SOLICIT | CN_FLAG_ACKREQ)) != 0) {
		send_hello(p, CN_HELLO_PROOF, 0, s->nonce);
	}
}

/* Processes a hello of another incarnation or session than the established one. */
static void process_other(struct cn_peer *p, const struct contents *s)
{
	const uint64_t fresh = fresh_nonce(p);

	if (s->echo != fresh) {
		p->node->counters.stale_frames++;
		challenge(p, s->nonce);
		return;
	}
	cn_peer_down(p, s->body.epoch != p->epoch ? CN_PEER_RESTARTED : CN_PEER_RESET);
	p->live.last_rx = p->node->now;
	p->nonce_out = fresh;
	establish(p, s);
}

/* Processes a unicast hello that echoes our nonce. */
static void process_validated(struct cn_peer *p, const struct contents *s)
{
	if (p->state == CN_PEER_UP && (s->body.epoch != p->epoch || s->nonce != p->nonce_in)) {
		process_other(p, s);
		return;
	}
	p->live.last_rx = p->node->now;
	p->hello.challenged = p->hello.challenged && s->echo != fresh_nonce(p);
	if (p->state != CN_PEER_UP) {
		establish(p, s);
	} else if ((s->flags & (CN_FLAG_SOLICIT | CN_FLAG_ACKREQ)) != 0) {
		send_hello(p, CN_HELLO_REPLY, 0, s->nonce);
	}
}

/* Processes a unicast hello without our nonce: the sender has no session with this node, or it is
 * late or forged. */
static void process_unvalidated(struct cn_peer *p, const struct contents *s)
{
	if (p->state != CN_PEER_UP) {
		p->nonce_in = is_taken(p->node, s->body.name) ? 0 : s->nonce;
		send_hello(p, CN_HELLO_REPLY, CN_FLAG_SOLICIT, p->nonce_in);
	} else if (s->body.epoch == p->epoch && s->nonce == p->nonce_in) {
		send_hello(p, CN_HELLO_REPLY, 0, s->nonce);
	} else {
		/* Echoes the nonce of a challenge only. If another hello's were echoed, a restarted
		 * node would establish a session that ends with our next hello. */
		p->node->counters.stale_frames++;
		send_hello(p, CN_HELLO_REPLY, CN_FLAG_ACKREQ,
			   (s->flags & CN_FLAG_ACKREQ) != 0 ? s->nonce : p->nonce_in);
	}
}

static void process_broadcast(struct cn_peer *p, const struct contents *s)
{
	if (p->state != CN_PEER_UP) {
		p->live.last_rx = p->node->now;
		send_with_jitter(p, CN_FLAG_SOLICIT);
	} else if (s->body.epoch != p->epoch || p->hello.challenged) {
		p->node->counters.stale_frames += s->body.epoch != p->epoch;
		send_with_jitter(p, CN_FLAG_ACKREQ);
	} else {
		p->live.last_rx = p->node->now;
		if ((s->flags & CN_FLAG_SOLICIT) != 0 && !p->validated) {
			/* A session established at both ends needs no reply; simultaneous replies
			 * of all nodes can overflow the peer's port. */
			send_with_jitter(p, 0);
		}
	}
}

static void reply_unvalidated(struct cn_node *n, const uint8_t mac[6], const struct contents *s)
{
	struct cn_peer *p;

	if ((s->flags & CN_FLAG_UNICAST) == 0) {
		cn_unvalidated_reply(n, mac, CN_HELLO_BEGIN, 0, cn_node_jitter(n, mac));
	} else if (s->echo != cookie(n, mac)) {
		cn_unvalidated_reply(n, mac, CN_HELLO_REPLY,
				     is_taken(n, s->body.name) ? 0 : s->nonce, 0);
	} else {
		p = cn_peer_add(n, mac, is_taken(n, s->body.name) ? NULL : s->body.name);
		if (p == NULL) {
			n->counters.stale_frames++;
			return;
		}
		cn_unvalidated_forget(n, mac);
		p->generation = n->evicted << 32;
		p->nonce_out = cookie(n, mac);
		process_validated(p, s);
	}
}

/* A goodbye is valid only in its session. */
static void process_bye(struct cn_node *n, struct cn_peer *p, const struct cn_wire *w,
			uint32_t reason)
{
	static const enum cn_peer_loss loss[] = {
		[CN_BYE_DAEMON] = CN_PEER_BYE,	    [CN_BYE_MOVED] = CN_PEER_MOVED,
		[CN_BYE_PROCESS] = CN_PEER_PROCESS, [CN_BYE_ADDRESS] = CN_PEER_ADDRESS,
		[CN_BYE_MTU] = CN_PEER_MTU,
	};

	if (p == NULL || p->state != CN_PEER_UP || w->session != p->session_in ||
	    w->seq != p->bye_in) {
		n->counters.stale_frames++;
		return;
	}
	cn_peer_down(p, reason < sizeof(loss) / sizeof(loss[0]) ? loss[reason] : CN_PEER_BYE);
}

void cn_hello_input(struct cn_node *n, const uint8_t mac[6], const struct cn_wire *w,
		    const uint8_t *body)
{
	struct cn_peer *p = cn_peer_by_mac(n, mac);
	struct contents s = { .flags = w->flags, .echo = (uint64_t)w->seq << 32 | w->ack };
	bool own_name;

	if (!cn_hello_get(body, w->length, &s.body)) {
		n->counters.bad_frames++;
		return;
	}
	s.nonce = (uint64_t)w->stream << 32 | s.body.nonce;
	own_name = strcmp(s.body.name, n->config.name) == 0;
	if (own_name && (w->flags & CN_FLAG_BYE) == 0) {
		record_name_conflict(n, mac, s.body.name);
	}
	if ((w->flags & CN_FLAG_BYE) != 0) {
		process_bye(n, p, w, s.body.nonce);
	} else if ((w->flags & CN_FLAG_UNICAST) != 0 && s.nonce == 0) {
		n->counters.bad_frames++;
	} else if (p == NULL && own_name) {
		return; /* no session is possible, and the replies would never end */
	} else if (p == NULL) {
		reply_unvalidated(n, mac, &s);
	} else if ((w->flags & CN_FLAG_UNICAST) == 0) {
		process_broadcast(p, &s);
	} else if (s.echo == p->nonce_out || (p->state == CN_PEER_UP && s.echo == fresh_nonce(p))) {
		process_validated(p, &s);
	} else {
		process_unvalidated(p, &s);
	}
}
