/* SPDX-License-Identifier: BSD-2-Clause */
/* See threads_pthreads_mutex.h. */
#ifndef COLLNET_THREADS_PTHREADS_TSD_H
#define COLLNET_THREADS_PTHREADS_TSD_H

#include <pthread.h>

typedef pthread_key_t opal_tsd_key_t;

#endif
