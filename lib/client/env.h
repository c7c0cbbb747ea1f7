/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The environment: options of a context (options.c) and the rank in a team that a launcher assigned
 * (launcher.c). Pure functions of a getenv, so that tests can set anything.
 */
#ifndef CN_ENV_H
#define CN_ENV_H

#include "util/util.h"

/* The value of a variable, or NULL. */
typedef const char *(*cn_getenv_fn)(void *arg, const char *name);

/* The process's own environment. */
const char *cn_getenv(void *arg, const char *name);
/* The value of a variable; NULL where it is unset or empty, and of NULL. */
const char *cn_env_value(cn_getenv_fn get, void *arg, const char *name);

/*
 * Fills *o with the defaults and the values of the variables. COLLNET_EINVAL names the first
 * variable that is wrong; its field then has the default, and the others are still read.
 */
int cn_options_from(cn_getenv_fn get, void *arg, struct collnet_options *o, struct cn_err *err);

struct cn_launch_info {
	char job[COLLNET_NAME_MAX + 1]; /* "": not specified */
	uint32_t rank, ranks;
	const char *specified_by; /* the variable that specified `ranks`; NULL: none did */
	int pmi_fd; /* a PMI-1 server that knows the job's name, which `job` lacks; or -1 */
};

/*
 * Rank, size and job as set by the launcher. The innermost launcher takes precedence: COLLNET_...,
 * then torchrun, Open MPI, PMI, Slurm (an mpirun within a Slurm job inherits Slurm's variables of
 * another process). COLLNET_JOB overrides the job's name of any. COLLNET_EINVAL names the variable
 * that is wrong.
 */
int cn_launch_info_from(cn_getenv_fn get, void *arg, struct cn_launch_info *out,
			struct cn_err *err);

/*
 * The same for this process, with the job's name from the PMI server where only that one knows it;
 * COLLNET_EINVAL when it does not respond. A name that COLLNET_JOB gives needs no server.
 */
int cn_launch_info(struct cn_launch_info *out, struct cn_err *err);

/*
 * What the option `peers` means: `given` unless that is "launcher", which stands for the hosts that
 * the launcher or the batch system names: Slurm's list, or the file of PBS or LSF. *out, which the
 * caller frees, is as cn_udp_peers_read() takes it; NULL for NULL. COLLNET_EINVAL: none does.
 */
int cn_peers_from(cn_getenv_fn get, void *arg, const char *given, char **out, struct cn_err *err);

/*
 * Requests the job's name from the PMI-1 server at `fd`. False when `fd` is not a socketpair's end,
 * when there is no response within 5 s, or when the name needs `size` bytes or more.
 */
bool cn_pmi_job(int fd, char *out, size_t size);
/* The same for any request, a line, and what follows the key in the response, a line. */
bool cn_pmi_ask(int fd, const char *request, const char *key, char *out, size_t size);

/*
 * The owner that a secret names (with CN_OWNER_SECRET), of `given` or else COLLNET_SECRET; 0: there
 * is none. The secret is never logged. COLLNET_EINVAL: its length is not possible.
 */
int cn_secret(const char *given, uint64_t *out, struct cn_err *err);

#endif
