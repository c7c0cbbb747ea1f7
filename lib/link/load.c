/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/load.h"

#include <dlfcn.h>

int cn_load(const char *user, const char *library, const char *package,
	    const struct cn_load_symbol *symbols, size_t count, struct cn_err *err)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	if (handle == NULL) {
		const char *why = dlerror();

		cn_log(COLLNET_LOG_DEBUG, "%s", why != NULL ? why : library);
		return cn_fail(err, COLLNET_EUNSUPPORTED,
			       "%s needs %s: install the Debian package %s", user, library,
			       package);
	}
	for (size_t i = 0; i < count; i++) {
		*symbols[i].function = dlsym(handle, symbols[i].name);
		if (*symbols[i].function == NULL) {
			dlclose(handle);
			return cn_fail(err, COLLNET_EUNSUPPORTED,
				       "%s needs %s() of %s: install a newer version of "
				       "the Debian package %s",
				       user, symbols[i].name, library, package);
		}
	}
	return COLLNET_OK;
}
