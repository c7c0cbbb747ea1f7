/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Startup, main loop and shutdown. The process forks a worker. The worker first opens what needs
 * privileges: the link, the lock of the interface, the socket. Then it drops its privileges, and
 * only then announces READY.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "node/key.h"
#include "util/descriptors.h"

#define LINGER (200 * CN_MS) /* for the last frames and goodbyes at shutdown */

static int announce_ready(struct cn_daemon *d, struct cn_err *err)
{
	static const char line[] = "READY\n";
	const int fd = d->config.ready_fd;

	cn_iface_log_start(d);
	if (d->iface.down) {
		cn_log(COLLNET_LOG_INFO,
		       "node %s without interface %s, cluster %u, socket %s: "
		       "ready",
		       d->runtime.node, d->iface.name, d->config.cluster, d->config.socket);
	} else {
		cn_log(COLLNET_LOG_INFO, "node %s on %s (%s, MTU %u), cluster %u, socket %s: ready",
		       d->runtime.node, d->runtime.link->interface, d->runtime.link->ops->name,
		       d->runtime.link->mtu, d->config.cluster, d->config.socket);
		cn_iface_advise(d);
	}
	cn_notify("READY=1");
	if (fd >= 0) {
		if (write(fd, line, sizeof(line) - 1) != (ssize_t)sizeof(line) - 1) {
			return cn_fail(err, COLLNET_ESYSTEM, "--ready-fd %d: %s", fd,
				       strerror(errno));
		}
		if (fd > STDERR_FILENO) {
			close(fd);
		}
	}
	return COLLNET_OK;
}

/* In the worker. */
static int start(struct cn_daemon *d, const struct cn_identity *id, struct cn_err *err)
{
	struct cn_runtime_config sc;
	int rc;

	d->group = id->gid;
	d->owner = id->keep ? geteuid() : id->uid;
	snprintf(d->iface.name, sizeof(d->iface.name), "%s", d->config.interface);
	cn_quota_open(d);
	cn_subuid_read(&d->subuids, CN_SUBUID_FILE);
	cn_subuid_read_map(&d->subuids, CN_UID_MAP);
	rc = cn_helper_new(&d->helper, err);
	if (rc == COLLNET_OK) {
		cn_iface_config(d, &sc);
		sc.key_owner = id->uid;
		rc = cn_runtime_prepare(&sc, &d->runtime, err);
	}
	if (rc == COLLNET_OK) {
		rc = cn_iface_open(d, err);
	}
	if (rc == COLLNET_OK) {
		rc = cn_listen_open(d, err);
	}
	if (rc == COLLNET_OK) {
		cn_client_open(d);
	}
	if (rc == COLLNET_OK) {
		rc = cn_event_open(d, err);
	}
	if (rc == COLLNET_OK) {
		rc = cn_priv_drop(id, err);
	}
	if (rc == COLLNET_OK && d->runtime.has_key) {
		cn_key_protect(); /* a change of user would undo it */
	}
	if (rc == COLLNET_OK) {
		rc = cn_parent_watch(&d->parent, err);
	}
	if (rc == COLLNET_OK) {
		rc = announce_ready(d, err);
	}
	if (rc == COLLNET_OK && id->lacks_group && (d->config.socket_mode & 02) == 0) {
		cn_log(COLLNET_LOG_WARNING,
		       "there is no group collnet, so users have no permission to use the socket: "
		       "create it with 'groupadd -r collnet' and restart collnetd, or choose another "
		       "with --group");
	}
	return rc;
}

/*
 * The clients' requests are completed first, with a reason, while their sockets are open; then no
 * new client is accepted; then the other nodes are notified.
 */
static void end(struct cn_daemon *d)
{
	cn_notify("STOPPING=1");
	if (d->runtime.poller != NULL && d->nclients == 0) {
		/* Other nodes may still need frames of jobs that ended here. */
		cn_runtime_drain(&d->runtime, d->now + LINGER);
	}
	if (d->runtime.engine != NULL) {
		cn_engine_shutdown(d->runtime.engine, d->runtime.bye);
	}
	cn_listen_close(d);
	cn_client_end(d);
	cn_runtime_close(&d->runtime, LINGER);
	d->parent.goodbyes->max_peers = 0; /* the goodbyes are sent */
	cn_mapping_end(d);
	cn_event_close(d);
	cn_iface_close(d);
	cn_helper_free(d->helper);
}

/* EX_CONFIG: another start would fail, too. A topology may become available later. */
static int start_status(int rc)
{
	return rc == COLLNET_EINVAL || rc == COLLNET_EUNSUPPORTED ? EX_CONFIG : EXIT_FAILURE;
}

static int run_worker(struct cn_daemon *d, const struct cn_identity *id)
{
	struct cn_err err;
	int rc = start(d, id, &err), status = EXIT_SUCCESS;

	if (rc != COLLNET_OK) {
		status = start_status(rc);
	} else {
		rc = cn_event_loop(d, &err);
		status = rc == COLLNET_OK ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	if (rc != COLLNET_OK) {
		cn_log(COLLNET_LOG_ERROR, "%s", err.text);
	}
	end(d);
	return status;
}

int cn_daemon_run(int argc, char **argv)
{
	struct cn_daemon *d = calloc(1, sizeof(*d));
	int status = EXIT_FAILURE, rc;
	struct cn_identity id;
	const char *text = NULL;
	struct cn_err err;

	cn_open_standard_descriptors(O_RDWR);
	cn_log_open();
	if (d == NULL) {
		cn_log(COLLNET_LOG_ERROR, "out of memory");
		return EXIT_FAILURE;
	}
	d->listen_fd = d->signal_fd = d->epoll_fd = d->reserve_fd = -1;
	d->iface.netlink_fd = d->parent.fd = -1;
	d->accept_at = d->iface.log_until = CN_NEVER;
	d->argc = argc;
	d->argv = argv;
	cn_config_init(&d->config);
	rc = cn_config_args(&d->config, argc, argv, &text, &err);
	if (rc == COLLNET_INPROGRESS) {
		free(d);
		return fputs(text, stdout) < 0 || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	if (rc == COLLNET_OK && d->config.ready_fd >= 0 && fcntl(d->config.ready_fd, F_GETFD) < 0) {
		rc = cn_fail(&err, COLLNET_EINVAL, "--ready-fd %d: it is not open",
			     d->config.ready_fd);
	}
	if (rc != COLLNET_OK) {
		status = EX_CONFIG;
	}
	cn_log_set_level(d->config.log_level);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGIO, SIG_IGN); /* of a lease (node/memfd.h) */
	if (rc == COLLNET_OK) {
		rc = cn_priv_find(&d->config, &id, &err);
		status = start_status(rc);
	}
	if (rc == COLLNET_OK) {
		d->parent.udp = cn_link_is_udp(d->config.link);
		d->parent.has_key = d->config.key[0] != '\0';
		rc = cn_parent_fork(&id, d->config.ready_fd, &d->parent, &status, &err);
	}
	if (rc == COLLNET_OK) {
		status = run_worker(d, &id);
	} else if (rc != COLLNET_INPROGRESS) {
		cn_log(COLLNET_LOG_ERROR, "%s", err.text);
	}
	free(d);
	return status;
}
