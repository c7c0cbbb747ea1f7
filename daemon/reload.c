/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIGHUP: the command line and the configuration file are read again, and the topology file. All of
 * it is checked before any of it counts; an error leaves everything as it was. What needs another
 * start is named and stays as it was. Teams that are ready keep the topology that they began with.
 *
 * Users and groups do not change: to look up a name may mean to wait for a server, and the loop
 * must not.
 */
#include "daemon/daemon.h"

#include <stdio.h>
#include <string.h>

static void add_name(char *list, size_t size, const char *name)
{
	size_t at = strlen(list);

	snprintf(list + at, size - at, "%s%s", at > 0 ? ", " : "", name);
}

static void keep_text(char *fresh, const char *running, size_t size, const char *name, char *stays,
		      size_t cap)
{
	if (strcmp(fresh, running) != 0) {
		add_name(stays, cap, name);
		memcpy(fresh, running, size);
	}
}

static uint16_t keep_number(uint16_t fresh, uint16_t running, const char *name, char *stays,
			    size_t cap)
{
	if (fresh != running) {
		add_name(stays, cap, name);
	}
	return running;
}

void cn_reload_keep(struct cn_config *fresh, const struct cn_config *running, char *stays,
		    size_t cap)
{
	stays[0] = '\0';
	keep_text(fresh->interface, running->interface, sizeof(fresh->interface), "interface",
		  stays, cap);
	keep_text(fresh->link, running->link, sizeof(fresh->link), "link", stays, cap);
	keep_text(fresh->peers, running->peers, sizeof(fresh->peers), "peers", stays, cap);
	if (fresh->encapsulation != running->encapsulation) {
		add_name(stays, cap, "encapsulation");
		fresh->encapsulation = running->encapsulation;
	}
	keep_text(fresh->node, running->node, sizeof(fresh->node), "node", stays, cap);
	keep_text(fresh->key, running->key, sizeof(fresh->key), "key", stays, cap);
	keep_text(fresh->socket, running->socket, sizeof(fresh->socket), "socket", stays, cap);
	keep_text(fresh->user, running->user, sizeof(fresh->user), "user", stays, cap);
	keep_text(fresh->group, running->group, sizeof(fresh->group), "group", stays, cap);
	fresh->cluster = keep_number(fresh->cluster, running->cluster, "cluster", stays, cap);
	fresh->ethertype = keep_number(fresh->ethertype, running->ethertype, "ethertype", stays,
				       cap);
	fresh->peer_timeout_ms = keep_number(fresh->peer_timeout_ms, running->peer_timeout_ms,
					     "peer-timeout", stays, cap);
	fresh->ready_fd = running->ready_fd;
}

/* Of the socket; a mode that this process may not give stays as it was. */
static void set_mode(struct cn_daemon *d, const struct cn_config *running, char *stays, size_t cap)
{
	if (d->config.socket_mode != running->socket_mode &&
	    !cn_listen_set_mode(d, d->config.socket_mode)) {
		add_name(stays, cap, "socket-mode");
		d->config.socket_mode = running->socket_mode;
	}
}

static int reload(struct cn_daemon *d, char *stays, size_t cap, struct cn_err *err)
{
	const struct cn_config running = d->config;
	struct cn_config fresh;
	struct cn_runtime_config sc;
	const char *text = NULL;
	int rc;

	cn_config_init(&fresh);
	rc = cn_config_args(&fresh, d->argc, d->argv, &text, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	cn_reload_keep(&fresh, &running, stays, cap);
	d->config = fresh;
	cn_iface_config(d, &sc);
	rc = cn_runtime_reload(&sc, &d->runtime, err);
	if (rc != COLLNET_OK) {
		d->config = running;
		return rc;
	}
	set_mode(d, &running, stays, cap);
	cn_log_set_level(d->config.log_level);
	return COLLNET_OK;
}

void cn_reload(struct cn_daemon *d)
{
	char stays[160];
	struct cn_err err;

	cn_notify("RELOADING=1");
	if (reload(d, stays, sizeof(stays), &err) != COLLNET_OK) {
		cn_log(COLLNET_LOG_ERROR, "configuration not reloaded: %s", err.text);
	} else if (stays[0] != '\0') {
		cn_log(COLLNET_LOG_WARNING, "configuration reloaded; restart to change: %s", stays);
	} else {
		cn_log(COLLNET_LOG_INFO, "configuration reloaded");
	}
	cn_notify("READY=1");
}
