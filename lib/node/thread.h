/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of the library. */
#ifndef CN_THREAD_H
#define CN_THREAD_H

#include <pthread.h>

/* pthread_create(), of a thread that blocks all signals: it runs no handlers of the program. */
int cn_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

#endif
