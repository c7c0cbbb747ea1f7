/* SPDX-License-Identifier: BSD-2-Clause */
/* Topology files, written. */
#ifndef CN_WRITE_H
#define CN_WRITE_H

#include <stdio.h>

#include "topo/topo.h"

/*
 * Writes the text format that cn_topo_read() reads; 0, or COLLNET_ESYSTEM when the stream failed.
 */
int cn_topo_write(const struct cn_topo *t, FILE *f);

#endif
