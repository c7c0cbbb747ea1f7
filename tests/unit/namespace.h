/* SPDX-License-Identifier: BSD-2-Clause */
/* A network namespace without root, for tests that need interfaces. */
#ifndef CN_TEST_NAMESPACE_H
#define CN_TEST_NAMESPACE_H

#include <stdbool.h>

/*
 * Moves this process into a new user and network namespace; it goes away with the process.
 * NULL, or why it is refused: then the test exits with 77.
 */
const char *enter_namespace(void);

/* Runs a command in the shell, silently; true when it succeeds. */
bool run_command(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Makes the pair of interfaces a0 and b0; true when frames pass. Until a kernel thread has noticed
 * that the other end is up, the kernel silently drops frames.
 */
bool add_pair(void);

#endif
