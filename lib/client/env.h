/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the environment says: options of a context (options.c) and the place in a team that a
 * launcher gave (launcher.c). Pure functions of a getenv, so that tests can say anything.
 */
#ifndef CN_ENV_H
#define CN_ENV_H

#include "util/util.h"

/* The value of a variable, or NULL. */
typedef const char *(*cn_getenv_fn)(void *arg, const char *name);

/* The process's own environment. */
const char *cn_getenv(void *arg, const char *name);

/*
 * Fills *o with the defaults and what the variables say. COLLNET_EINVAL names the first variable
 * that is wrong; its field then has the default, and the others are still read.
 */
int cn_options_from(cn_getenv_fn get, void *arg, struct collnet_options *o, struct cn_err *err);

/* 1536 .. 65535, decimal or hexadecimal with 0x. */
bool cn_parse_ethertype(const char *text, uint64_t *out);

struct cn_place {
	char job[COLLNET_NAME_MAX + 1]; /* "": nobody says */
	uint32_t rank, ranks;
};

/*
 * The place that the launcher gave. The innermost launcher counts: COLLNET_..., then Open MPI,
 * PMI, Slurm (an mpirun within a Slurm job inherits Slurm's variables of another process).
 * COLLNET_JOB overrides the job's name of any. COLLNET_EINVAL names the variable that is wrong.
 */
int cn_place_from(cn_getenv_fn get, void *arg, struct cn_place *out, struct cn_err *err);

#endif
