/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parent process: tasks that must outlive the worker, or need a privilege after the worker has
 * dropped its own. It parses nothing from the network or from clients, allocates nothing, and keeps
 * only CAP_NET_RAW.
 *
 * When the worker dies, whatever the reason, the parent notifies the other nodes: it builds a
 * goodbye for every node of the goodbye list (proto/goodbye_list.h), memory that the worker's
 * transport keeps current, and sends it by a packet socket that the worker has bound to its
 * interface, or, with link udp, by the worker's own socket, which the parent has opened. An orderly
 * shutdown has sent the goodbyes already and leaves an empty list.
 *
 * The worker sends requests of fixed size over a socket pair, and gets a socket by SCM_RIGHTS. When
 * the worker ends, the parent ends too: with the worker's exit status, or with a failure if a
 * signal ended it. Starting it again is the service manager's task: a new pair has the privileges
 * that a start needs, and no state of the old one.
 */
#include "daemon/daemon.h"
#include "link/encapsulation.h"
#include "link/udp_address.h"
#include "node/key.h"
#include "util/clock.h"

#include <errno.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <net/ethernet.h>
#include <netpacket/packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GOODBYE_ROUNDS 3       /* a frame may be lost */
#define GOODBYE_BURST  16      /* frames per millisecond: 0.5 ms of a link of 20 Mbit/s */
#define PAUSE	       1000000 /* nanoseconds */
#define FORWARD_RETRY  10      /* milliseconds */

/*
 * A request, and its response, which repeats it, so that a late response is not mistaken for that
 * to the next request. The response to a successful request carries the descriptor.
 */
enum { REQUEST_LINK = 1, REQUEST_GOODBYE, REQUEST_UDP };
struct message {
	uint32_t what;
	uint32_t number;
	int32_t error; /* 0 or an errno */
};

union control {
	struct cmsghdr align;
	char space[CMSG_SPACE(sizeof(int))];
};

/* ---- the parent ----------------------------------------------------------------------- */

/* The socket for goodbyes. */
struct goodbye_socket {
	int fd;	  /* -1: none yet */
	bool udp; /* of link udp, else a packet socket */
};

static void respond(int fd, const struct message *request, int error, int opened)
{
	struct message m = { .what = request->what, .number = request->number, .error = error };
	union control control;
	struct iovec iov = { .iov_base = &m, .iov_len = sizeof(m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (opened >= 0) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control.space);
		CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &opened, sizeof(opened));
	}
	if (sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		return; /* the worker is gone, or does not read */
	}
}

/* False: the worker has closed its end. The socket is kept, too, unless it is for REQUEST_LINK. */
static bool serve(int fd, struct goodbye_socket *goodbye)
{
	const int flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
	struct message m;
	ssize_t n = recv(fd, &m, sizeof(m), MSG_DONTWAIT);
	int opened;

	if (n < 0) {
		return errno == EAGAIN || errno == EINTR;
	}
	if (n != (ssize_t)sizeof(m) || m.what < REQUEST_LINK || m.what > REQUEST_UDP) {
		return false;
	}
	if (m.what != REQUEST_LINK && goodbye->fd >= 0) {
		close(goodbye->fd); /* first, since it has the port that the new one is to have */
		goodbye->fd = -1;
	}
	opened = m.what == REQUEST_UDP ? socket(AF_INET, SOCK_DGRAM | flags, 0)
				       : socket(AF_PACKET, SOCK_RAW | flags, 0);
	respond(fd, &m, opened < 0 ? errno : 0, opened);
	if (m.what != REQUEST_LINK) {
		*goodbye = (struct goodbye_socket){ opened, m.what == REQUEST_UDP };
	} else if (opened >= 0) {
		close(opened);
	}
	return true;
}

static void pause_for(long ns)
{
	const struct timespec ts = { .tv_nsec = ns };

	nanosleep(&ts, NULL);
}

/* From the address that is in the frame, as the link sends (link/udp_send.c): the route may have
 * another one, and a goodbye counts only if it comes from the node's own. */
static bool send_datagram(int fd, uint8_t *frame, size_t len)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(struct in_pktinfo))];
	} control = { .space = { 0 } };
	struct sockaddr_in to, self;
	struct iovec iov = { .iov_base = frame + CN_ETH_HEADER, .iov_len = len - CN_ETH_HEADER };
	struct msghdr m = {
		.msg_name = &to,
		.msg_namelen = sizeof(to),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.space),
	};
	struct in_pktinfo from = { 0 };

	if (!cn_udp_address_get(frame, &to) || !cn_udp_address_get(frame + 6, &self)) {
		return false;
	}
	from.ipi_spec_dst = self.sin_addr;
	control.align.cmsg_level = IPPROTO_IP;
	control.align.cmsg_type = IP_PKTINFO;
	control.align.cmsg_len = CMSG_LEN(sizeof(from));
	memcpy(CMSG_DATA(&control.align), &from, sizeof(from));
	return sendmsg(fd, &m, MSG_DONTWAIT) >= 0 || errno == EAGAIN; /* a pause helps */
}

static bool send_goodbye(const struct goodbye_socket *s, const struct cn_goodbye_list *w,
			 uint32_t i)
{
	uint8_t frame[CN_FRAME_HEAD > CN_ETH_MIN ? CN_FRAME_HEAD : CN_ETH_MIN] = { 0 };
	uint8_t out[sizeof(frame) + CN_TCP_HEADER] = { 0 };
	size_t len = cn_goodbye_list_frame(w, i, frame);

	if (len == 0) {
		return false;
	}
	if (s->udp) {
		return send_datagram(s->fd, frame, len);
	}
	len = cn_encapsulate(out, cn_goodbye_list_encapsulation(w), frame, len, w->ethertype);
	len = len < CN_ETH_MIN ? CN_ETH_MIN : len;
	/* The first attempt may fetch the error of an interface that was down meanwhile. */
	if (send(s->fd, out, len, MSG_DONTWAIT) < 0 && send(s->fd, out, len, MSG_DONTWAIT) < 0) {
		return errno == EAGAIN || errno == ENOBUFS; /* a pause helps */
	}
	return true;
}

/* Paced, so that ports are not flooded. Returns how many nodes there are. */
static uint32_t send_goodbyes(const struct goodbye_socket *s, const struct cn_goodbye_list *w)
{
	uint32_t nodes = 0;

	for (int round = 0; s->fd >= 0 && round < GOODBYE_ROUNDS; round++) {
		nodes = 0;
		for (uint32_t i = 0; i < w->max_peers && i < CN_PARENT_NODES; i++) {
			if (send_goodbye(s, w, i) && ++nodes % GOODBYE_BURST == 0) {
				pause_for(PAUSE);
			}
		}
		if (nodes == 0) {
			break;
		}
		pause_for(5 * PAUSE);
	}
	return nodes;
}

/* CAP_NET_RAW stays if it was there; a user who is unprivileged has nothing to drop. */
static int keep_net_raw(const struct cn_identity *id, struct cn_err *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
	const uint32_t raw = (uint32_t)1 << CAP_NET_RAW;

	int rc;

	prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
	rc = cn_priv_become(id, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	memset(caps, 0, sizeof(caps));
	rc = (int)syscall(SYS_capget, &head, caps);
	caps[0].permitted &= raw;
	caps[0].effective = caps[0].permitted;
	caps[0].inheritable = 0;
	caps[1].permitted = caps[1].effective = caps[1].inheritable = 0;
	if (rc != 0 || syscall(SYS_capset, &head, caps) != 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
		return cn_fail(err, COLLNET_EPERM, "the parent process cannot drop privileges: %s",
			       cn_strerror(errno));
	}
	return cn_seccomp_install(err);
}

/* Forwards signals. Not permitted while the worker starts: it is still root. */
static void forward_signals(pid_t worker, sigset_t *waiting)
{
	static const int all[] = { SIGHUP, SIGINT, SIGTERM };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (sigismember(waiting, all[i]) == 1 &&
		    (kill(worker, all[i]) == 0 || errno != EPERM)) {
			sigdelset(waiting, all[i]);
		}
	}
}

/* Adds a signal to those to forward. True, with its wait status: the worker ended. */
static bool read_signal(int signals, pid_t worker, sigset_t *waiting, int *status)
{
	struct signalfd_siginfo info;

	if (read(signals, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
		return false;
	}
	if (info.ssi_signo == SIGCHLD) {
		return waitpid(worker, status, WNOHANG) == worker;
	}
	sigaddset(waiting, (int)info.ssi_signo);
	return false;
}

static void wait_for_worker(int signals, int fd, pid_t worker, struct goodbye_socket *goodbye,
			    int *status)
{
	struct pollfd p[2] = {
		{ .fd = signals, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};

	sigset_t waiting;

	sigemptyset(&waiting);
	for (;;) {
		if (poll(p, 2, sigisemptyset(&waiting) ? -1 : FORWARD_RETRY) < 0) {
			continue; /* EINTR */
		}
		if (p[0].revents != 0 && read_signal(signals, worker, &waiting, status)) {
			return;
		}
		forward_signals(worker, &waiting);
		if (p[1].revents != 0 && !serve(fd, goodbye)) {
			p[1].fd = -1; /* it is about to end */
		}
	}
}

static int run(const struct cn_identity *id, int signals, int fd, pid_t worker,
	       const struct cn_parent *p)
{
	struct goodbye_socket goodbye = { .fd = -1 };
	int status = 0;
	struct cn_err err;
	uint32_t nodes;

	if (keep_net_raw(id, &err) != COLLNET_OK) {
		/* The worker waits for its first socket, and has announced nothing. */
		kill(worker, SIGKILL);
		cn_log(COLLNET_LOG_ERROR, "%s", err.text);
		return EXIT_FAILURE;
	}
	if (p->has_key) {
		cn_key_protect(); /* a change of user would undo it */
	}
	wait_for_worker(signals, fd, worker, &goodbye, &status);
	nodes = send_goodbyes(&goodbye, p->goodbyes);
	if (WIFSIGNALED(status)) {
		cn_log(COLLNET_LOG_ERROR,
		       "the worker (process %ld) was killed by signal %d; %u nodes were notified",
		       (long)worker, WTERMSIG(status), nodes);
		return EXIT_FAILURE;
	}
	return WEXITSTATUS(status);
}

/* ---- the fork ------------------------------------------------------------------------- */

static int block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
		return -1;
	}
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int cn_parent_fork(const struct cn_identity *id, int ready_fd, struct cn_parent *p, int *status,
		   struct cn_err *err)
{
	int signals = block_signals(), pair[2];
	pid_t worker;

	if (signals < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		return cn_fail(err, COLLNET_ESYSTEM, "the parent process: %s", cn_strerror(errno));
	}
	p->goodbyes = mmap(NULL, cn_goodbye_list_size(CN_PARENT_NODES), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p->goodbyes == MAP_FAILED) {
		return cn_fail(err, COLLNET_ENOMEM, "the parent process: no memory");
	}
	p->pid = getpid();
	worker = fork();
	if (worker < 0) {
		return cn_fail(err, COLLNET_ESYSTEM, "fork: %s", cn_strerror(errno));
	}
	if (worker > 0) {
		close(pair[1]);
		if (ready_fd > STDERR_FILENO) {
			close(ready_fd);
		}
		*status = run(id, signals, pair[0], worker, p);
		return COLLNET_INPROGRESS;
	}
	close(signals);
	close(pair[0]);
	p->fd = pair[1];
	p->timeout_ms = CN_PARENT_TIMEOUT;
	return cn_parent_watch(p, err);
}

/* ---- the worker's side ---------------------------------------------------------------- */

bool cn_parent_died(const struct cn_parent *p)
{
	return p->fd >= 0 && getppid() != p->pid;
}

int cn_parent_watch(const struct cn_parent *p, struct cn_err *err)
{
	if (prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) != 0 || cn_parent_died(p)) {
		return cn_fail(err, COLLNET_ESYSTEM, "the parent process died");
	}
	return COLLNET_OK;
}

/* False: no response has arrived by then. */
static bool wait_for_response(int fd, cn_time until)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct timespec ts;
	cn_time now;
	int n;

	do {
		now = cn_now();
		ts = cn_timespec(now < until ? until - now : 0);
		n = ppoll(&p, 1, &ts, NULL);
	} while (n < 0 && errno == EINTR);
	return n > 0;
}

/* A response, and its descriptor; -1: none. */
static bool receive_response(int fd, struct message *m, int *opened)
{
	union control control;
	struct iovec iov = { .iov_base = m, .iov_len = sizeof(*m) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.space),
	};
	const struct cmsghdr *h;

	*opened = -1;
	if (recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != (ssize_t)sizeof(*m)) {
		return false;
	}
	h = CMSG_FIRSTHDR(&msg);
	if (h != NULL && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS) {
		memcpy(opened, CMSG_DATA(h), sizeof(*opened));
	}
	/* A descriptor that had no room here was left out. */
	if (m->error == 0 && (msg.msg_flags & MSG_CTRUNC) != 0) {
		m->error = EMFILE;
	}
	return true;
}

/* The descriptor that the parent responds with, or -1 with errno. */
static int request(const struct cn_parent *p, uint32_t what)
{
	static uint32_t number;
	const struct message m = { .what = what, .number = ++number };
	const cn_time until = cn_now() + p->timeout_ms * CN_MS;
	struct message response;
	int opened;

	if (send(p->fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof(m)) {
		return -1;
	}
	while (wait_for_response(p->fd, until)) {
		if (!receive_response(p->fd, &response, &opened)) {
			return -1;
		}
		if (response.number == m.number) {
			errno = response.error != 0 ? response.error : EPROTO;
			return opened;
		}
		if (opened >= 0) {
			close(opened); /* for a request that was given up */
		}
	}
	cn_log(COLLNET_LOG_ERROR,
	       "the parent process, %d, has not opened a socket within %.1f s: it is stopped, or the "
	       "machine is overloaded",
	       (int)p->pid, (double)p->timeout_ms / 1000);
	errno = ETIMEDOUT;
	return -1;
}

int cn_parent_socket(void *arg)
{
	const struct cn_parent *p = arg;

	return request(p, p->udp ? REQUEST_UDP : REQUEST_LINK);
}

static int bind_to(int fd, int interface)
{
	const struct sockaddr_ll a = { .sll_family = AF_PACKET, .sll_ifindex = interface };

	return bind(fd, (const struct sockaddr *)&a, sizeof(a));
}

struct cn_goodbye_list *cn_parent_copy_goodbyes(const struct cn_parent *p)
{
	size_t bytes = cn_goodbye_list_size(CN_PARENT_NODES);
	struct cn_goodbye_list *copy = p->fd >= 0 ? malloc(bytes) : NULL;

	if (copy != NULL) {
		memcpy(copy, p->goodbyes, bytes);
	}
	return copy;
}

uint32_t cn_parent_send_goodbyes(const struct cn_parent *p, int interface,
				 struct cn_goodbye_list *left)
{
	/* A UDP socket cannot send from the former address, which other nodes give up as silent. */
	struct goodbye_socket s = { .fd = p->udp ? -1 : request(p, REQUEST_LINK) };
	uint32_t nodes = 0;

	if (s.fd < 0) {
		return 0;
	}
	if (bind_to(s.fd, interface) == 0) {
		nodes = send_goodbyes(&s, left);
	}
	close(s.fd);
	return nodes;
}

int cn_parent_announce(const struct cn_parent *p, int interface, struct cn_err *err)
{
	int fd, rc;

	if (p->fd < 0 || p->udp) { /* it has kept that of the link */
		return COLLNET_OK;
	}
	fd = request(p, REQUEST_GOODBYE);
	if (fd < 0) {
		return cn_fail(err, errno == EPERM ? COLLNET_EPERM : COLLNET_ESYSTEM,
			       "a packet socket for the parent process: %s", cn_strerror(errno));
	}
	/* The socket is shared, and so is what it is bound to. */
	rc = bind_to(fd, interface);
	if (rc != 0) {
		rc = cn_fail(err,
			     errno == ENODEV || errno == ENXIO ? COLLNET_EIFACE : COLLNET_ESYSTEM,
			     "a packet socket for the parent process: %s", cn_strerror(errno));
	}
	close(fd);
	return rc;
}
