/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Included before everything else where the transport is compiled to be broken on purpose:
 * lib/proto asks CN_BREAK(n) in three places, and only where it is defined. The library is built
 * without.
 */
#ifndef TESTS_BROKEN_H
#define TESTS_BROKEN_H

/* 0: nothing; 1: one frame more than W_g; 2: acknowledges frames beyond a gap that it holds;
 * 3: frames that are not acknowledged when their operation ends stay in eta */
extern int broken;
#define CN_BREAK(n) (broken == (n))

#endif
