/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of transports' buffers, of which most are never used: pages of their own, which take
 * memory only when they are touched, and none once they are freed. In the heap, malloc() places
 * large pools among the remains of earlier ones, until the heap has been touched everywhere.
 */
#ifndef CN_PAGES_H
#define CN_PAGES_H

#include "util/pool.h"

extern const struct cn_pool_memory cn_pages;

#endif
