/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of the options of `collnet sim`: times, and links by their two ends. */
#include "tools/sim/parse.h"

#include <string.h>

#define TIME_MAX (60000 * CN_MS)

static int bad_time(const char *text, struct cn_err *err)
{
	return cn_fail(err, COLLNET_EINVAL,
		       "'%.40s' is not a time of at most a minute, such as 500ns, 2.5us or 1ms",
		       text);
}

int sim_parse_time(const char *text, cn_time *out, struct cn_err *err)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "ns", 1 },
		{ "us", 1000 },
		{ "ms", 1000000 },
		{ "s", 1000000000 },
	};
	size_t digits = strspn(text, "0123456789"), more = 0, u = 0;
	const char *unit = text + digits;
	uint64_t whole = 0, scale, ns;

	if (strcmp(text, "0") == 0) {
		*out = 0;
		return COLLNET_OK;
	}
	if (*unit == '.') {
		more = strspn(unit + 1, "0123456789");
		unit += 1 + more;
	}
	while (u < sizeof(units) / sizeof(units[0]) && strcmp(unit, units[u].name) != 0) {
		u++;
	}
	if (digits == 0 || digits > 12 || (unit[-1] == '.') ||
	    u == sizeof(units) / sizeof(units[0])) {
		return bad_time(text, err);
	}
	for (size_t i = 0; i < digits; i++) {
		whole = whole * 10 + (uint64_t)(text[i] - '0');
	}
	if (whole > TIME_MAX / units[u].ns) {
		return bad_time(text, err);
	}
	ns = whole * units[u].ns;
	scale = units[u].ns;
	for (size_t i = 0; i < more; i++) {
		scale /= 10;
		ns += (uint64_t)(text[digits + 1 + i] - '0') * scale; /* finer than 1 ns: nothing */
	}
	if (ns > TIME_MAX) {
		return bad_time(text, err);
	}
	*out = ns;
	return COLLNET_OK;
}

int sim_find_port(const struct cn_topo *t, const char *text, uint32_t *link, struct cn_err *err)
{
	for (const char *dash = strchr(text, '-'); dash != NULL; dash = strchr(dash + 1, '-')) {
		char first[COLLNET_NAME_MAX + 1];
		size_t n = (size_t)(dash - text);
		uint32_t a, b;

		if (n > COLLNET_NAME_MAX) {
			break;
		}
		memcpy(first, text, n);
		first[n] = '\0';
		a = cn_topo_find(t, first);
		b = cn_topo_find(t, dash + 1);
		for (uint32_t i = 0; a != CN_TOPO_NONE && b != CN_TOPO_NONE && i < t->nlinks; i++) {
			const struct cn_topo_link *l = &t->links[i];

			if (cn_topo_in_tree(t, i) &&
			    ((l->a == a && l->b == b) || (l->a == b && l->b == a))) {
				*link = i;
				return COLLNET_OK;
			}
		}
	}
	return cn_fail(err, COLLNET_EINVAL,
		       "--port: '%.80s' is not a link that carries frames; name "
		       "its two ends, like s1-h0",
		       text);
}
