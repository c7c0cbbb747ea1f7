/* SPDX-License-Identifier: BSD-2-Clause */
/* Networks from texts, for tests: good ones, refused ones, and damaged ones. */
#ifndef TESTS_TOPO_TEXT_H
#define TESTS_TOPO_TEXT_H

#include "topo/topo.h"

/* cn_topo_parse() or cn_topo_parse_slurm(). */
typedef int topo_parser(const char *text, size_t len, const char *name, struct cn_topo **out,
			struct cn_err *err);

struct topo_refusal {
	const char *text;
	const char *error; /* how the message begins */
};

/* The network of a topology file; the test fails where it is refused. */
struct cn_topo *topo_text(const char *text);
struct cn_topo *topo_bytes(const char *text, size_t len);

/* Every text is refused, with its message; `name` is what the file is called. */
void topo_refused(topo_parser *parse, const char *name, const struct topo_refusal *bad, size_t n);

/*
 * Random damage to a good text, 20,000 times: an error that begins with name and line, or a
 * topology; never a crash. How many were refused.
 */
uint32_t topo_damaged(topo_parser *parse, const char *name, const char *good, uint64_t seed);

#endif
