/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Libraries that are loaded only when they are needed, so that programs do not map them, and
 * what they depend on, for a link that they never open. A library stays loaded.
 */
#ifndef CN_LINK_LOAD_H
#define CN_LINK_LOAD_H

#include "util/util.h"

struct cn_load_symbol {
	const char *name;
	void **function; /* where its address goes */
};

/*
 * Loads the library for `user` and looks up its functions. COLLNET_EUNSUPPORTED: it is not
 * installed, and the message names the Debian package that has it, or it lacks a function.
 */
int cn_load(const char *user, const char *library, const char *package,
	    const struct cn_load_symbol *symbols, size_t count, struct cn_err *err);

#endif
