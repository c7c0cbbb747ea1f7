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
/* Must have no task: cn_helper_wait(). NULL is ignored. */
void cn_helper_free(struct cn_helper *h);
/* Readable when cn_helper_reap() has a completed task. */
int cn_helper_fd(const struct cn_helper *h);
/* True if it has a task, or a completed one that is not reaped. */
bool cn_helper_busy(const struct cn_helper *h);
/* Submits the next task of the engine, if it has none. Without a thread, the task runs at once. */
void cn_helper_submit(struct cn_helper *h, struct cn_engine *e);
/* Reaps the task, if it has run. True: repeat the calls that wait for tasks, before the next
 * submission. */
bool cn_helper_reap(struct cn_helper *h, struct cn_engine *e);
/* Cancels its task and waits for its end: the engine is about to end. */
void cn_helper_wait(struct cn_helper *h, struct cn_engine *e);

#endif
