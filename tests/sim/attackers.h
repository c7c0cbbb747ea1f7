/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attackers in the simulated network, which send to any host in any name. Off-path attackers
 * receive nothing except everything that is broadcast (addresses, names, epochs, MTU):
 *
 *   FORGER    hellos, goodbyes and session frames in the names of the hosts
 *   REPLAYER  every hello that was ever sent, unicast ones too, again and again
 *   FLOODER   hellos and session frames from a new address each
 *   INVENTOR  hellos of a few thousand nonexistent nodes
 *
 * An on-path attacker reads every frame, and hosts withstand it only with a key:
 *
 *   ON_PATH   frames that were just sent, as they are or changed: another byte, number, type, flag
 *             or length
 *
 * They begin before the nodes discover each other. All jobs must succeed, no peer may go down, and
 * no node may know of others than the hosts.
 */
#ifndef TESTS_ATTACKERS_H
#define TESTS_ATTACKERS_H

#include "fixture.h"

enum attacker {
	ATTACKER_FORGER = 1,
	ATTACKER_REPLAYER = 2,
	ATTACKER_FLOODER = 4,
	ATTACKER_INVENTOR = 8,
	ATTACKER_ON_PATH = 16,
};

struct attackers;

/* Begins, and takes the trace instead of the wire oracle, to which it passes every record. NULL: no
 * memory. */
struct attackers *attackers_new(struct fixture *fx, uint32_t kinds);
void attackers_free(struct attackers *a);
/* Checks at the end that they had no effect. */
void attackers_check(struct attackers *a);

#endif
