/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread that runs the engine's tasks (coll/task.h), one at a time, while its owner uses the
 * engine. It starts with the first task, and takes no signals. It touches nothing but the task.
 */
#ifndef CN_HELPER_H
#define CN_HELPER_H

#include "coll/engine.h"

struct cn_helper;

int cn_helper_new(struct cn_helper **out, struct cn_err *err);
/* Not with a task: cn_helper_wait(). NULL is ignored. */
void cn_helper_free(struct cn_helper *h);
/* Readable when cn_helper_reap() has something to take. */
int cn_helper_fd(const struct cn_helper *h);
/* It has a task, or has run one that is not taken back. */
bool cn_helper_busy(const struct cn_helper *h);
/* Gives it the next task of the engine, if it has none. Where no thread can be made, the task is
 * run at once. */
void cn_helper_submit(struct cn_helper *h, struct cn_engine *e);
/* Takes the task back, if it was run. True: the calls that wait for tasks are to be made again,
 * before it is given the next one. */
bool cn_helper_reap(struct cn_helper *h, struct cn_engine *e);
/* Waits until it has no task, which is cancelled: the engine is about to end. */
void cn_helper_wait(struct cn_helper *h, struct cn_engine *e);

#endif
