/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event loop, and the only file that knows epoll.
 *
 * One iteration: the poller moves frames (input before timers, so that a late wake-up is not
 * mistaken for lost frames) until there are none, at most POLLS times; then the daemon combines
 * waiting fragments and serves requests in clients' rings, whose frames the next iteration sends.
 * When there was nothing to do, the loop polls again for a while (util/spin.h), and then sleeps
 * until a descriptor is ready or the poller's deadline. Descriptors are polled at least every
 * SOCKETS_EVERY. At a real-time priority, where no other process would run meanwhile, it yields
 * after each burst of frames that it sends. Users are served in time slices (time_slice.c). Another
 * thread runs long tasks (node/helper.h).
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <linux/time_types.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/clock.h"

#define EVENTS	      64
#define POLLS	      8 /* of the link before clients are served, while there are frames */
#define SOCKETS_EVERY (500 * CN_US)
#define CLOSING	      (100 * CN_US) /* for closing clients: sending the frames takes longer */

/* The source of an event: a client, or one of these. */
static char link_mark, send_mark, listen_mark, signal_mark, netlink_mark, helper_mark, memory_mark;

static int watch(struct cn_daemon *d, int how, int fd, uint32_t events, void *about)
{
	struct epoll_event ev = { .events = events, .data = { .ptr = about } };

	return epoll_ctl(d->epoll_fd, how, fd, &ev) == 0 ? COLLNET_OK : COLLNET_ESYSTEM;
}

void cn_event_listen(struct cn_daemon *d, bool on)
{
	watch(d, EPOLL_CTL_MOD, d->listen_fd, on ? EPOLLIN : 0, &listen_mark);
}

int cn_event_add_client(struct cn_daemon *d, struct cn_client *c)
{
	return watch(d, EPOLL_CTL_ADD, c->fd, EPOLLIN, c);
}

void cn_event_client_waits(struct cn_daemon *d, struct cn_client *c, bool waits)
{
	watch(d, EPOLL_CTL_MOD, c->fd, waits ? EPOLLIN | EPOLLET : EPOLLIN, c);
}

void cn_event_remove_client(struct cn_daemon *d, struct cn_client *c)
{
	watch(d, EPOLL_CTL_DEL, c->fd, 0, NULL);
}

int cn_event_add_link(struct cn_daemon *d, struct cn_err *err)
{
	const struct cn_link *l = d->runtime.link;
	int rc = watch(d, EPOLL_CTL_ADD, l->recv_fd, EPOLLIN, &link_mark);

	d->link_events = EPOLLIN;
	cn_poller_set_event_driven(d->runtime.poller);
	if (rc == COLLNET_OK && l->send_fd != l->recv_fd) {
		rc = watch(d, EPOLL_CTL_ADD, l->send_fd, 0, &send_mark);
	}
	return rc == COLLNET_OK ? rc : cn_fail(err, rc, "the event loop: %s", cn_strerror(errno));
}

int cn_event_add_memory(struct cn_daemon *d)
{
	return watch(d, EPOLL_CTL_ADD, d->inotify_fd, EPOLLIN, &memory_mark);
}

void cn_event_remove_link(struct cn_daemon *d)
{
	const struct cn_link *l = d->runtime.link;

	watch(d, EPOLL_CTL_DEL, l->recv_fd, 0, NULL);
	if (l->send_fd != l->recv_fd) {
		watch(d, EPOLL_CTL_DEL, l->send_fd, 0, NULL);
	}
}

int cn_event_open(struct cn_daemon *d, struct cn_err *err)
{
	sigset_t set;
	int rc;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	d->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	d->now = cn_now();
	if (d->signal_fd < 0 || d->epoll_fd < 0) {
		return cn_fail(err, COLLNET_ESYSTEM, "the event loop: %s", cn_strerror(errno));
	}
	rc = watch(d, EPOLL_CTL_ADD, d->iface.netlink_fd, EPOLLIN, &netlink_mark);
	if (rc == COLLNET_OK) {
		rc = watch(d, EPOLL_CTL_ADD, d->listen_fd, EPOLLIN, &listen_mark);
	}
	if (rc == COLLNET_OK) {
		rc = watch(d, EPOLL_CTL_ADD, d->signal_fd, EPOLLIN, &signal_mark);
	}
	if (rc == COLLNET_OK && d->helper != NULL) {
		rc = watch(d, EPOLL_CTL_ADD, cn_helper_fd(d->helper), EPOLLIN, &helper_mark);
	}
	if (rc != COLLNET_OK) {
		return cn_fail(err, rc, "the event loop: %s", cn_strerror(errno));
	}
	return d->runtime.link != NULL ? cn_event_add_link(d, err) : COLLNET_OK;
}

void cn_event_close(struct cn_daemon *d)
{
	if (d->epoll_fd >= 0) {
		close(d->epoll_fd);
	}
	if (d->signal_fd >= 0) {
		close(d->signal_fd);
	}
	d->epoll_fd = d->signal_fd = -1;
}

/* Room in the link's queue is watched for only while frames wait for it: usually there is some. */
static void watch_link(struct cn_daemon *d)
{
	const struct cn_link *l = d->runtime.link;
	uint32_t want = EPOLLIN;

	if (l == NULL) {
		return;
	}
	if (cn_poller_blocked(d->runtime.poller)) {
		want |= EPOLLOUT;
	}
	if (want == d->link_events) {
		return;
	}
	d->link_events = want;
	if (l->send_fd == l->recv_fd) {
		watch(d, EPOLL_CTL_MOD, l->recv_fd, want, &link_mark);
	} else {
		watch(d, EPOLL_CTL_MOD, l->send_fd, want & EPOLLOUT, &send_mark);
	}
}

/* epoll_wait() until a time, to the nanosecond where the kernel can. Not every C library has
 * epoll_pwait2() (musl 1.2.3). */
static int sleep_until(struct cn_daemon *d, struct epoll_event *events, cn_time now, cn_time until)
{
	static bool old_kernel;
	cn_time wait = until > now ? until - now : 0;
	const struct timespec t = cn_timespec(wait);
	struct __kernel_timespec ts = { .tv_sec = t.tv_sec, .tv_nsec = t.tv_nsec };
	int n;

	if (!old_kernel) {
		n = (int)syscall(SYS_epoll_pwait2, d->epoll_fd, events, EVENTS,
				 until == CN_NEVER ? NULL : &ts, NULL, 0);
		if (n >= 0 || (errno != ENOSYS && errno != EPERM)) {
			return n;
		}
		old_kernel = true;
	}
	wait = (wait + CN_MS - 1) / CN_MS;
	return epoll_wait(d->epoll_fd, events, EVENTS,
			  until == CN_NEVER ? -1 : (int)(wait < 60000 ? wait : 60000));
}

static void read_signal(struct cn_daemon *d)
{
	struct signalfd_siginfo info;

	if (read(d->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
		return;
	}
	if (info.ssi_signo == SIGHUP) {
		cn_reload(d);
		return;
	}
	if (!cn_parent_died(&d->parent)) {
		cn_log(COLLNET_LOG_INFO, "shutting down (%s)",
		       info.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT");
	}
	d->stop = true;
}

/* True: there were clients to close, or memory to unmap. */
static bool reap(struct cn_daemon *d)
{
	if (d->marked_clients) {
		d->closing_ends = cn_now() + CLOSING;
	}
	return cn_client_reap(d);
}

static int serve(struct cn_daemon *d, const struct epoll_event *events, int n, struct cn_err *err)
{
	int rc = COLLNET_OK;

	d->first++; /* the slice may end before the last event */
	for (int i = 0; i < n; i++) {
		const struct epoll_event *event = &events[(d->first + (uint32_t)i) % (uint32_t)n];
		void *about = event->data.ptr;

		if (about == &listen_mark) {
			cn_client_accept(d);
		} else if (about == &signal_mark) {
			read_signal(d);
		} else if (about == &helper_mark) {
			cn_call_collect_task(d);
		} else if (about == &memory_mark) {
			cn_mapping_collect(d);
		} else if (about == &netlink_mark) {
			rc = cn_iface_readable(d, err);
		} else if (about != &link_mark && about != &send_mark) {
			cn_client_readable(about);
		} else if ((event->events & EPOLLOUT) != 0 && d->runtime.poller != NULL) {
			cn_poller_writable(d->runtime.poller);
		}
	}
	/* After the last event: none of them may be of a client that is closed by then. */
	reap(d);
	return rc;
}

/* Frames move until there are none, or for a while. More than 0: there may be more. */
static int move_frames(struct cn_daemon *d, struct cn_err *err)
{
	int work;

	d->now = cn_now();
	if (d->runtime.poller == NULL) {
		return 0;
	}
	work = cn_poller_poll(d->runtime.poller, d->now);
	cn_rings_wake(d);
	for (int i = 1; i < POLLS && work > 0; i++) {
		if (cn_poller_has_more(d->runtime.poller)) {
			sched_yield(); /* to ranks and daemons of the same priority */
		}
		d->now = cn_now();
		work = cn_poller_poll_input(d->runtime.poller, d->now);
		cn_rings_wake(d);
	}
	if (work < 0) {
		/* The notification may not have arrived yet. */
		return d->iface.down ? 0 : cn_iface_check(d, false, err);
	}
	return work;
}

/* Sleeps until a descriptor is ready, or until then, and serves the ready ones. */
static int poll_descriptors(struct cn_daemon *d, cn_time until, struct cn_err *err)
{
	struct epoll_event events[EVENTS];
	const int n = sleep_until(d, events, d->now, until);

	if (n < 0 && errno != EINTR) {
		return cn_fail(err, COLLNET_ESYSTEM, "the event loop: %s", cn_strerror(errno));
	}
	d->sockets_at = d->now = cn_now();
	if (n > 0) {
		cn_slice_new_round(d);
		cn_spin_over(&d->spin, d->now);
		return serve(d, events, n, err);
	}
	return COLLNET_OK;
}

/* There may be more to do, or a short wait is spent polling: descriptors are polled occasionally.
 */
static int keep_polling(struct cn_daemon *d, bool yield, struct cn_err *err)
{
	if (yield) {
		sched_yield();
	}
	return d->now - d->sockets_at < SOCKETS_EVERY ? COLLNET_OK
						      : poll_descriptors(d, d->now, err);
}

static int sleep_and_serve(struct cn_daemon *d, struct cn_err *err)
{
	const cn_time frames = d->runtime.poller != NULL ? cn_poller_deadline(d->runtime.poller)
							 : CN_NEVER;
	const cn_time deadline = cn_min_time(cn_min_time(frames, cn_mapping_deadline(d)),
					     cn_min_time(d->accept_at, cn_call_deadline(d)));
	const struct cn_iface *f = &d->iface;
	cn_time until;
	int rc;

	cn_rings_wake(d);
	until = cn_rings_sleep(d);
	if (until == 0) {
		return COLLNET_OK;
	}
	until = cn_min_time(until, deadline);
	rc = poll_descriptors(d, cn_min_time(until, cn_min_time(f->check_at, f->log_until)), err);
	cn_rings_awake(d);
	return rc;
}

int cn_event_loop(struct cn_daemon *d, struct cn_err *err)
{
	int work, rc = COLLNET_OK;

	while (!d->stop && rc == COLLNET_OK) {
		work = move_frames(d, err);
		if (work < 0) {
			return work;
		}
		if (d->iface.check_at <= d->now) {
			rc = cn_iface_check(d, false, err);
		}
		cn_iface_log(d);
		if (reap(d)) {
			work = 1; /* their ends must be announced */
		}
		if (cn_combine_pending(d)) {
			work = 1; /* the results must be sent */
		}
		watch_link(d);
		if (rc != COLLNET_OK) {
			break;
		}
		cn_slice_new_round(d);
		work = cn_rings_poll(d) || work > 0;
		cn_call_submit_task(d);
		if (work > 0) {
			cn_spin_over(&d->spin, d->now);
			rc = keep_polling(d, false, err);
		} else if (cn_spin_wait(&d->spin, d->now)) {
			rc = keep_polling(d, true, err);
		} else {
			rc = sleep_and_serve(d, err);
		}
	}
	return d->stop && cn_parent_died(&d->parent)
		       ? cn_fail(err, COLLNET_ESYSTEM, "the parent process died")
		       : rc;
}
