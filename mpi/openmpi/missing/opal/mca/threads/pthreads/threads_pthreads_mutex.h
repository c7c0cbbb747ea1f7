/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The headers of Open MPI 5 include three of its threads on POSIX threads that packages do not
 * install. These are in their place: the types, and the functions that inline functions of the
 * installed headers call. Where the real ones are installed, they are found first.
 */
#ifndef COLLNET_THREADS_PTHREADS_MUTEX_H
#define COLLNET_THREADS_PTHREADS_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;

#define OPAL_THREAD_INTERNAL_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#define OPAL_THREAD_INTERNAL_COND_INITIALIZER  PTHREAD_COND_INITIALIZER

/* Of the mutexes in static inline functions of requests none is recursive. */
static inline int opal_thread_internal_mutex_init(opal_thread_internal_mutex_t *m, bool recursive)
{
	(void)recursive;
	return pthread_mutex_init(m, NULL);
}

static inline void opal_thread_internal_mutex_lock(opal_thread_internal_mutex_t *m)
{
	pthread_mutex_lock(m);
}

static inline int opal_thread_internal_mutex_trylock(opal_thread_internal_mutex_t *m)
{
	return pthread_mutex_trylock(m) != 0;
}

static inline void opal_thread_internal_mutex_unlock(opal_thread_internal_mutex_t *m)
{
	pthread_mutex_unlock(m);
}

static inline void opal_thread_internal_mutex_destroy(opal_thread_internal_mutex_t *m)
{
	pthread_mutex_destroy(m);
}

static inline int opal_thread_internal_cond_init(opal_thread_internal_cond_t *c)
{
	return pthread_cond_init(c, NULL);
}

static inline void opal_thread_internal_cond_signal(opal_thread_internal_cond_t *c)
{
	pthread_cond_signal(c);
}

static inline void opal_thread_internal_cond_destroy(opal_thread_internal_cond_t *c)
{
	pthread_cond_destroy(c);
}

#endif
