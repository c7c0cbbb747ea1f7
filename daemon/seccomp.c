/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The filter of system calls, after the start: what the daemon uses is allowed, files are opened
 * for reading only, another program is never run. What is not allowed fails with EPERM, so that a C
 * library that tries something newer first falls back; execve(), execveat() and ptrace(), and calls
 * of another architecture, end the process.
 *
 * The kernel logs both (SECCOMP_FILTER_FLAG_LOG). The sanitizers need more, and have no filter.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__) && !defined(__ILP32__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && defined(__AARCH64EL__)
#define ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCH AUDIT_ARCH_RISCV64
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
#define ARCH AUDIT_ARCH_PPC64LE
#elif defined(__s390x__)
#define ARCH AUDIT_ARCH_S390X
#elif defined(__arm__) && defined(__ARM_EABI__) && defined(__ARMEL__)
#define ARCH AUDIT_ARCH_ARM
#elif defined(__i386__)
#define ARCH AUDIT_ARCH_I386
#endif

#if !defined(ARCH) || defined(CN_SANITIZED)

bool cn_seccomp_available(void)
{
	return false;
}

int cn_seccomp_install(struct cn_err *err)
{
	(void)err;
	cn_log(COLLNET_LOG_DEBUG, "this build has no system call filter");
	return COLLNET_OK;
}

#else

#ifndef SECCOMP_FILTER_FLAG_LOG
#define SECCOMP_FILTER_FLAG_LOG 2u
#endif
#ifndef SECCOMP_RET_KILL_PROCESS
#define SECCOMP_RET_KILL_PROCESS 0x80000000u
#endif

#define X32 0x40000000u /* x86-64: the other calling convention */

static const int fatal[] = { SYS_execve, SYS_execveat, SYS_ptrace };

/* Grouped by what they are for; older names where the architecture has them. */
/* clang-format off */
static const int allowed[] = {
	/* the loop, the link, clients */
	SYS_epoll_pwait, SYS_epoll_pwait2, SYS_epoll_ctl, SYS_recvmsg, SYS_sendmsg, SYS_recvfrom,
	SYS_sendto, SYS_sendmmsg, SYS_recvmmsg, SYS_read, SYS_write, SYS_readv, SYS_writev,
	SYS_pread64, SYS_ppoll, SYS_accept4, SYS_close, SYS_clock_gettime, SYS_getsockopt,
	SYS_setsockopt, SYS_shutdown, SYS_ioctl, SYS_fcntl, SYS_signalfd4, SYS_epoll_create1,
#ifdef SYS_send /* of some C libraries on ppc64, s390 and ARM */
	SYS_send, SYS_recv,
#endif
#ifdef SYS_socketcall
	SYS_socketcall,
#endif
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
#ifdef SYS_poll
	SYS_poll,
#endif
	/* memory */
#ifdef SYS_mmap
	SYS_mmap,
#endif
	SYS_memfd_create, SYS_ftruncate, SYS_munmap, SYS_mremap, SYS_mprotect,
	SYS_madvise, SYS_brk, SYS_mlock, SYS_munlock, SYS_inotify_init1, SYS_inotify_add_watch,
	/* sockets that are opened again, and the service manager's */
	SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_getsockname,
	SYS_getpeername,
	/* files: the configuration at a reload, the socket's mode and end */
#ifdef SYS_newfstatat
	SYS_newfstatat,
#endif
	SYS_fstat, SYS_statx, SYS_fstatfs, SYS_lseek, SYS_readlinkat, SYS_faccessat,
	SYS_faccessat2, SYS_fchmodat, SYS_fchmod, SYS_fchownat, SYS_fchown, SYS_unlinkat,
	SYS_getdents64, SYS_flock, SYS_getcwd, SYS_umask,
#ifdef SYS_stat
	SYS_stat, SYS_lstat, SYS_readlink, SYS_access, SYS_chmod, SYS_chown, SYS_unlink,
#endif
	/* this process, its thread for tasks, its child that closes sockets, and its parent */
	SYS_clone, SYS_clone3, SYS_wait4, SYS_waitid, SYS_pipe2, SYS_dup, SYS_dup3, SYS_close_range,
	SYS_exit, SYS_exit_group, SYS_kill, SYS_tgkill, SYS_getpid, SYS_getppid, SYS_gettid,
	SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getresuid, SYS_getresgid,
	SYS_getgroups, SYS_capget, SYS_prctl, SYS_prlimit64, SYS_getrusage, SYS_sysinfo, SYS_uname,
	SYS_times,
#ifdef SYS_fork
	SYS_fork, SYS_pipe, SYS_dup2,
#endif
#ifdef SYS_getrlimit
	SYS_getrlimit,
#endif
	/* the C library */
	SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigtimedwait,
	SYS_sigaltstack,
	SYS_futex, SYS_set_robust_list, SYS_set_tid_address, SYS_rseq, SYS_restart_syscall,
	SYS_getrandom, SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_getres, SYS_gettimeofday,
	SYS_sched_yield, SYS_sched_getaffinity, SYS_sched_getscheduler, SYS_sched_getparam,
	SYS_sched_setscheduler, SYS_getcpu, SYS_membarrier,
#ifdef SYS_time
	SYS_time,
#endif
	/* the same on 32 bits: wider files, users and times, and older ways to do it */
#ifdef SYS_mmap2
	SYS_mmap2, SYS_fcntl64, SYS__llseek, SYS_ftruncate64, SYS_fstat64, SYS_stat64, SYS_lstat64,
	SYS_fstatat64, SYS_fstatfs64, SYS_chown32, SYS_fchown32, SYS_getuid32, SYS_geteuid32,
	SYS_getgid32, SYS_getegid32, SYS_getresuid32, SYS_getresgid32, SYS_getgroups32,
	SYS_ugetrlimit, SYS_sigreturn,
#endif
#ifdef SYS_clock_gettime64
	SYS_clock_gettime64, SYS_clock_getres_time64, SYS_clock_nanosleep_time64,
	SYS_futex_time64, SYS_ppoll_time64, SYS_recvmmsg_time64, SYS_rt_sigtimedwait_time64,
#endif
#ifdef SYS_waitpid
	SYS_waitpid,
#endif
};
/* clang-format on */

#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))
/* Each call two instructions; openat() and open() nine together; the rest around them. */
#define LENGTH_MAX (2 * COUNT(allowed) + 2 * COUNT(fatal) + 32)

static const uint32_t dead = SECCOMP_RET_KILL_PROCESS;
static const uint32_t refused = SECCOMP_RET_ERRNO | EPERM;

struct program {
	struct sock_filter code[LENGTH_MAX];
	unsigned short n;
};

static void add(struct program *p, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
	p->code[p->n++] = (struct sock_filter){ code, jt, jf, k };
}

static void load(struct program *p, size_t offset)
{
	add(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

/* Call `nr` ends with this verdict. */
static void verdict(struct program *p, int nr, uint32_t action)
{
	add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)nr);
	add(p, BPF_RET | BPF_K, 0, 0, action);
}

/* The flags are an argument's lower half, which is first on little-endian machines. */
static size_t argument(unsigned i)
{
	const uint16_t one = 1;
	const bool little = *(const uint8_t *)&one == 1;

	return offsetof(struct seccomp_data, args) + 8 * (size_t)i + (little ? 0 : 4);
}

/* An open() whose flags are in argument i is for reading only. */
static void reading(struct program *p, int nr, unsigned i)
{
	add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, (uint32_t)nr);
	load(p, argument(i));
	add(p, BPF_JMP | BPF_JSET | BPF_K, 0, 1, O_ACCMODE | O_CREAT | O_TRUNC);
	add(p, BPF_RET | BPF_K, 0, 0, refused);
	add(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
}

static void build(struct program *p)
{
	p->n = 0;
	load(p, offsetof(struct seccomp_data, arch));
	add(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCH);
	add(p, BPF_RET | BPF_K, 0, 0, dead);
	load(p, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
	add(p, BPF_JMP | BPF_JGE | BPF_K, 0, 1, X32);
	add(p, BPF_RET | BPF_K, 0, 0, dead);
#endif
	for (size_t i = 0; i < COUNT(allowed); i++) {
		verdict(p, allowed[i], SECCOMP_RET_ALLOW);
	}
	reading(p, SYS_openat, 2);
#ifdef SYS_open
	reading(p, SYS_open, 1);
#endif
	for (size_t i = 0; i < COUNT(fatal); i++) {
		verdict(p, fatal[i], dead);
	}
	add(p, BPF_RET | BPF_K, 0, 0, refused);
}

bool cn_seccomp_available(void)
{
	return true;
}

int cn_seccomp_install(struct cn_err *err)
{
	struct program p;
	struct sock_fprog program;

	build(&p);
	program.len = p.n;
	program.filter = p.code;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
		return cn_fail(err, COLLNET_EPERM, "no_new_privs: %s", strerror(errno));
	}
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_LOG, &program) == 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0 ||
	    /* A service's filter may refuse seccomp(). */
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0) {
		return COLLNET_OK;
	}
	if (errno == ENOSYS || errno == EINVAL) {
		cn_log(COLLNET_LOG_WARNING, "this kernel has no system call filter (seccomp)");
		return COLLNET_OK;
	}
	return cn_fail(err, COLLNET_EPERM, "system call filter: %s", strerror(errno));
}

#endif
