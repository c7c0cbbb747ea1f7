/* SPDX-License-Identifier: BSD-2-Clause */
/* The secret of a job names its owner where the nodes have no common user ids. */
#include <stdlib.h>
#include <string.h>

#include "client/env.h"
#include "util/owner.h"
#include "util/siphash.h"

#define SECRET_LEAST 8u
#define SECRET_MOST  255u

/* Public: it keeps this use apart from others. The secret is what nobody else knows. */
static const uint8_t key[CN_SIPHASH_KEY + 1] = "collnet secret 1";

int cn_secret(const char *given, uint64_t *out, struct cn_err *err)
{
	const char *s = given != NULL ? given : cn_getenv(NULL, "COLLNET_SECRET");
	size_t n = s != NULL ? strlen(s) : 0;

	if (n == 0) {
		*out = 0;
		return COLLNET_OK;
	}
	if (n < SECRET_LEAST || n > SECRET_MOST) {
		return cn_fail(
			err, COLLNET_EINVAL,
			"the secret of the job (COLLNET_SECRET) is too %s: expected %u to %u "
			"characters",
			n < SECRET_LEAST ? "short" : "long", SECRET_LEAST, SECRET_MOST);
	}
	*out = cn_siphash(key, s, n) | CN_OWNER_SECRET;
	return COLLNET_OK;
}
