/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of the programs that run one seed after another. */
#ifndef TESTS_SEEDS_H
#define TESTS_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

struct seed_options {
	uint64_t first, seeds; /* `seeds` of them, from `first` on; --seed: one */
	uint64_t seconds;      /* as many as that takes instead; 0: not given */
	uint64_t loss;	       /* parts per million of the frames; 0: as each seed draws */
	bool verbose;
};

/* Over the defaults in *o. lossy: whether there is --loss. False: no such options. */
bool seed_options_parse(int argc, char **argv, bool lossy, struct seed_options *o);

#endif
