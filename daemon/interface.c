/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of the interface: it goes down, comes up, loses its carrier, is removed and recreated, or
 * its MTU changes.
 */
#include "daemon/daemon.h"

#include <netpacket/packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/interface.h"
#include "link/kinds.h"
#include "link/netlink.h"

#define CHECK_INTERVAL (500 * CN_MS)
/* Bytes of the schedules of a user's operations. To plan one takes up to half a second then. */
#define SCHEDULES_MAX ((uint64_t)512 << 20)
/* Log lines about an interface that flaps, per LOG_WHILE; more go to the debug level, and the last
 * of them, the state that it is in, is logged at the end. */
#define LOG_LINES 8
#define LOG_WHILE (10000 * CN_MS)

static const char *or_null(const char *s)
{
	return s[0] != '\0' ? s : NULL;
}

void cn_iface_config(struct cn_daemon *d, struct cn_runtime_config *out)
{
	const struct cn_config *c = &d->config;
	const uint64_t memory = cn_quota_limit(d, CN_QUOTA_MEMORY) / 4;

	*out = (struct cn_runtime_config){
		.interface = or_null(d->iface.name),
		.link = or_null(c->link),
		.peers = or_null(c->peers),
		.encapsulation = c->encapsulation,
		.node = or_null(c->node),
		.topology = or_null(c->topology),
		.key = or_null(c->key),
		.cluster = c->cluster,
		.ethertype = c->ethertype,
		.window = c->window,
		.max_schedules = memory < SCHEDULES_MAX ? memory : SCHEDULES_MAX,
		.peer_timeout = c->peer_timeout_ms * CN_MS,
		.open_socket = d->parent.fd >= 0 ? cn_parent_socket : NULL,
		.open_arg = &d->parent,
		.goodbyes = d->parent.goodbyes,
		.goodbye_nodes = CN_PARENT_NODES,
		.helper = d->helper,
	};
}

static void log_suppressed(struct cn_daemon *d)
{
	struct cn_iface *f = &d->iface;
	char others[48] = "";

	if (f->logged > LOG_LINES + 1) {
		snprintf(others, sizeof(others), " (%u earlier lines were suppressed)",
			 f->logged - LOG_LINES - 1);
	}
	if (f->logged > LOG_LINES) {
		cn_log(f->suppressed_level, "%s%s", f->suppressed, others);
	}
	f->logged = 0;
	f->log_until = CN_NEVER;
}

static void log_change(struct cn_daemon *d, enum collnet_log_level level, const char *text)
{
	struct cn_iface *f = &d->iface;
	char status[CN_ERR_TEXT + 8];

	snprintf(status, sizeof(status), "STATUS=%s", text);
	cn_notify(status);
	if (d->now >= f->log_until) {
		log_suppressed(d);
	}
	if (f->logged == 0) {
		f->log_until = d->now + LOG_WHILE;
	}
	if (++f->logged > LOG_LINES) {
		f->suppressed_level = level;
		snprintf(f->suppressed, sizeof(f->suppressed), "%s", text);
		level = COLLNET_LOG_DEBUG;
	}
	cn_log(level, "%s", text);
}

static void log_wait(struct cn_daemon *d, const char *for_what)
{
	char text[CN_ERR_TEXT];

	snprintf(text, sizeof(text), "%.220s: waiting for it", for_what);
	log_change(d, COLLNET_LOG_WARNING, text);
}

static void log_carrier(struct cn_daemon *d)
{
	const struct cn_iface *f = &d->iface;
	char text[CN_ERR_TEXT];

	snprintf(text, sizeof(text),
		 f->no_carrier ? "interface %s has no carrier on node %s: is its cable plugged in?"
			       : "interface %s has a carrier again on node %s",
		 f->name, d->runtime.node);
	log_change(d, f->no_carrier ? COLLNET_LOG_WARNING : COLLNET_LOG_INFO, text);
}

void cn_iface_log_start(struct cn_daemon *d)
{
	struct cn_interface now;
	struct cn_err err;

	if (d->iface.down && cn_interface_find(d->iface.name, &now, NULL) == 0 &&
	    cn_interface_choose(d->iface.name, true, &now, &err) == COLLNET_EIFACE) {
		log_wait(d, err.text); /* the name may be wrong: it has those that there are */
	} else if (d->iface.down) {
		log_wait(d, d->iface.text);
	} else if (d->iface.no_carrier) {
		log_carrier(d);
	}
}

void cn_iface_advise(struct cn_daemon *d)
{
	if (!d->iface.advised) {
		cn_link_advise(d->runtime.link);
	}
	d->iface.advised = true;
}

/* Refuses requests from now on, for this reason, and checks again later. */
static void wait_because(struct cn_daemon *d, const char *why)
{
	struct cn_iface *f = &d->iface;
	const bool news = !f->down || strcmp(why, f->text) != 0;

	f->check_at = d->now + CHECK_INTERVAL;
	f->down = true;
	f->no_carrier = false;
	if (d->runtime.engine != NULL) {
		cn_engine_set_carrier(d->runtime.engine, true);
	}
	if (news) {
		snprintf(f->text, sizeof(f->text), "%s", why);
	}
	if (news &&
	    d->epoll_fd >= 0) { /* else the daemon starts, and may fail for another reason */
		log_wait(d, f->text);
	}
}

static void wait_for_it(struct cn_daemon *d, bool found)
{
	char text[CN_ERR_TEXT];

	snprintf(text, sizeof(text),
		 found ? "interface %s is down on node %s" : "no interface %s on node %s",
		 d->iface.name, d->runtime.node);
	wait_because(d, text);
}

/* The carrier of an interface that is up. */
static void update_carrier(struct cn_daemon *d, bool carrier)
{
	struct cn_iface *f = &d->iface;
	const bool news = f->no_carrier == carrier;

	cn_engine_set_carrier(d->runtime.engine, carrier);
	f->no_carrier = !carrier;
	if (news && d->epoll_fd >= 0) {
		log_carrier(d);
	}
}

static int attach(struct cn_daemon *d, struct cn_err *err)
{
	struct cn_goodbye_list *left = cn_parent_copy_goodbyes(&d->parent);
	struct cn_runtime_config sc;
	struct cn_interface now;
	int rc;

	cn_iface_config(d, &sc);
	rc = cn_runtime_attach(&sc, &d->runtime, err);
	if (rc != COLLNET_OK) {
		free(left);
		return rc;
	}
	snprintf(d->iface.name, sizeof(d->iface.name), "%s", d->runtime.link->interface);
	rc = cn_interface_find(d->iface.name, &now, err);
	d->iface.index = rc == 1 ? now.index : 0;
	if (rc == 1) {
		memcpy(d->iface.mac, now.mac, sizeof(d->iface.mac));
		update_carrier(d, now.running);
	}
	if (left != NULL && left->max_peers > 0 && rc == 1) {
		left->reason = d->runtime.bye;
		(void)cn_parent_send_goodbyes(&d->parent, now.index, left);
	}
	free(left);
	if (rc == 1) {
		rc = cn_parent_announce(&d->parent, now.index, err);
	}
	d->runtime.bye = CN_BYE_DAEMON;
	if (rc != COLLNET_OK) {
		cn_runtime_detach(&d->runtime, 0);
	}
	return rc;
}

int cn_iface_open(struct cn_daemon *d, struct cn_err *err)
{
	struct cn_iface *f = &d->iface;
	struct cn_interface now;
	int rc = cn_netlink_open(&f->netlink_fd, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	f->check_at = CN_NEVER;
	snprintf(f->name, sizeof(f->name), "%s", d->config.interface);
	if (f->name[0] != '\0') {
		rc = cn_interface_find(f->name, &now, err);
		if (rc < 0) {
			return rc;
		}
		if (rc == 0 || !now.up) {
			wait_for_it(d, rc == 1);
			return COLLNET_OK;
		}
	}
	rc = attach(d, err);
	if (rc != COLLNET_EIFACE || f->name[0] == '\0') {
		return rc;
	}
	if (cn_interface_find(f->name, &now, NULL) == 0) {
		wait_for_it(d, false); /* it went away meanwhile */
		return COLLNET_OK;
	}
	if (cn_link_lacks_address(d->config.link, f->name)) {
		wait_because(d, err->text);
		return COLLNET_OK;
	}
	return rc;
}

void cn_iface_close(struct cn_daemon *d)
{
	if (d->iface.netlink_fd >= 0) {
		close(d->iface.netlink_fd);
	}
	d->iface.netlink_fd = -1;
}

/* What happened to the interface, for users. */
static void compose(const struct cn_daemon *d, const char *what, char text[CN_ERR_TEXT])
{
	snprintf(text, CN_ERR_TEXT, "interface %s %s on node %s", d->iface.name, what,
		 d->runtime.node);
}

static void fail_all(struct cn_daemon *d, const char *what)
{
	char *text = d->iface.failed;

	compose(d, what, text);
	log_change(d, COLLNET_LOG_ERROR, text);
	cn_engine_fail(d->runtime.engine, d->now, COLLNET_EIFACE, text);
}

/* Frees the engine, with the clients' teams and endpoints; the clients stay connected. */
static void detach(struct cn_daemon *d, enum cn_bye why)
{
	d->runtime.bye = why;
	for (uint32_t i = 0; i < CN_CLIENTS_MAX; i++) {
		if (d->clients[i] != NULL) {
			cn_client_detach(d->clients[i]);
		}
	}
	cn_event_remove_link(d);
	cn_runtime_detach(&d->runtime, 0);
}

/* The interface is up: the open link continues, or another one is opened. */
static int interface_came_up(struct cn_daemon *d, struct cn_err *err)
{
	struct cn_iface *f = &d->iface;
	char text[CN_ERR_TEXT];
	int rc;

	if (d->runtime.engine == NULL) {
		rc = attach(d, err);
		if (rc == COLLNET_EIFACE) {
			/* It went down meanwhile, somebody else uses it, its MTU is too small, or
			 * it has no IPv4 address. */
			wait_because(d, err->text);
			return COLLNET_OK;
		}
		if (rc == COLLNET_OK) {
			rc = cn_event_add_link(d, err);
		}
		if (rc != COLLNET_OK) {
			return rc;
		}
	}
	f->down = false;
	f->check_at = CN_NEVER;
	snprintf(text, sizeof(text), "interface %s is up on node %s (MTU %u)", f->name,
		 d->runtime.node, d->runtime.link->mtu);
	log_change(d, COLLNET_LOG_INFO, text);
	cn_iface_advise(d);
	return COLLNET_OK;
}

/*
 * The interface refuses the frames of the open link. Operations fail at once; the link is replaced
 * at the next check, when the other nodes have been notified of the reason.
 */
static void mtu_lowered(struct cn_daemon *d, uint32_t mtu)
{
	struct cn_iface *f = &d->iface;
	char what[64];

	snprintf(what, sizeof(what), "was given an MTU of %u instead of %u", mtu,
		 d->runtime.link->mtu);
	fail_all(d, what);
	cn_engine_abandon_longer(d->runtime.engine, mtu);
	memcpy(f->text, f->failed, sizeof(f->text));
	f->down = true;
	f->check_at = d->now + CHECK_INTERVAL;
}

/* The interface matches the open link, except for an MTU that was raised: the link is replaced when
 * nobody uses it. */
static int mtu_raised(struct cn_daemon *d, uint32_t mtu, struct cn_err *err)
{
	struct cn_iface *f = &d->iface;

	f->check_at = CN_NEVER;
	if (mtu <= d->runtime.link->mtu || d->nclients > 0) {
		return COLLNET_OK;
	}
	detach(d, CN_BYE_MTU);
	return interface_came_up(d, err);
}

/* A packet socket is bound to an interface until that is removed, even if it is recreated with the
 * same properties. */
static bool is_bound(const struct cn_link *l, int index)
{
	struct sockaddr_ll a;
	socklen_t len = sizeof(a);

	return getsockname(l->recv_fd, (struct sockaddr *)&a, &len) != 0 ||
	       a.sll_family != AF_PACKET || a.sll_ifindex == index;
}

int cn_iface_check(struct cn_daemon *d, bool went_down, struct cn_err *err)
{
	struct cn_iface *f = &d->iface;
	struct cn_interface now;
	int found = cn_interface_find(f->name, &now, err);
	uint32_t mtu;
	bool same, shrunk, other_address;
	const char *what;
	int rc;

	if (found < 0) {
		cn_log(COLLNET_LOG_WARNING, "%s", err->text);
		f->check_at = d->now + CHECK_INTERVAL;
		return COLLNET_OK;
	}
	same = found == 1 && d->runtime.engine != NULL && !d->runtime.link->moved &&
	       is_bound(d->runtime.link, f->index) && now.index == f->index &&
	       memcmp(now.mac, f->mac, sizeof(now.mac)) == 0;
	other_address = found == 1 && d->runtime.engine != NULL && now.index == f->index &&
			(d->runtime.link->moved || memcmp(now.mac, f->mac, sizeof(now.mac)) != 0);
	mtu = found == 0 ? 0 : now.mtu < CN_LINK_MTU_MAX ? now.mtu : CN_LINK_MTU_MAX;
	shrunk = same && mtu < d->runtime.link->mtu;
	if (shrunk && now.up && !went_down && !f->down) {
		mtu_lowered(d, mtu);
		return COLLNET_OK;
	}
	what = found == 0	? "was removed"
	       : same		? "went down"
	       : !other_address ? "was replaced"
				: cn_link_address_changed(d->runtime.link);
	if (d->runtime.engine != NULL && !f->down && (!same || !now.up || went_down)) {
		fail_all(d, what);
		went_down = true;
	}
	if (d->runtime.engine != NULL && (!same || shrunk)) {
		if (!same) {
			compose(d, what, f->failed);
		}
		memcpy(f->lost, f->failed, sizeof(f->lost));
		detach(d, same ? CN_BYE_MTU : other_address ? CN_BYE_ADDRESS : CN_BYE_MOVED);
	}
	if (found == 0 || !now.up) {
		wait_for_it(d, found == 1);
		return COLLNET_OK;
	}
	rc = f->down || went_down || d->runtime.engine == NULL ? interface_came_up(d, err)
							       : mtu_raised(d, mtu, err);
	if (rc == COLLNET_OK && !f->down) {
		update_carrier(d, now.running);
		if (mtu > d->runtime.link->mtu) {
			f->check_at = d->now +
				      CHECK_INTERVAL; /* it was raised while the link waited */
		}
	}
	return rc;
}

void cn_iface_log(struct cn_daemon *d)
{
	if (d->now >= d->iface.log_until) {
		log_suppressed(d);
	}
}

int cn_iface_readable(struct cn_daemon *d, struct cn_err *err)
{
	struct cn_link_change c;

	cn_netlink_read(d->iface.netlink_fd, d->iface.name, &c);
	return c.changed ? cn_iface_check(d, c.went_down, err) : COLLNET_OK;
}
