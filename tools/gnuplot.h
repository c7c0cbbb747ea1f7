/* SPDX-License-Identifier: BSD-2-Clause */
/* Pictures by gnuplot, where it is installed. */
#ifndef COLLNET_TOOLS_GNUPLOT_H
#define COLLNET_TOOLS_GNUPLOT_H

#include <stdbool.h>

/* Runs gnuplot on a script in a directory; false: it is not installed, or failed. */
bool tool_gnuplot(const char *dir, const char *script);

#endif
