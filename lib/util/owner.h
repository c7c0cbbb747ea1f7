/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Owner of a team or an endpoint: a user id, or, of a job that has a secret, a hash of the secret
 * with CN_OWNER_SECRET set. The owner is the same on all nodes of a job.
 */
#ifndef CN_OWNER_H
#define CN_OWNER_H

#include <stdint.h>

#define CN_OWNER_SECRET ((uint64_t)1 << 63)
#define CN_OWNER_ROOT	((uint64_t)0) /* as a viewer: all owners' jobs */

#endif
