/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of messages in shared memory, for one producer and one consumer in different processes.
 *
 * Shared are the slots and two counters, each in a cache line that only one side writes: `tail`,
 * the messages ever put in, is the producer's; `head`, those ever taken out, is the consumer's, and
 * so are `consumed_oob`, `blocked_on`, `processor` and `asleep`, except that a producer clears
 * `asleep`. The counters wrap around at 2^32. A side works with a copy of its own counter, so that
 * nothing it has written is read back.
 *
 * The other side is not trusted. A counter that it cannot have makes the ring broken, which the
 * caller ends; a slot's index is masked. A slot that the consumer looks at can change at any time
 * until it is popped and after: copy it once, and use the copy.
 *
 * To sleep, the consumer announces it and looks once more; a producer puts a message in and then
 * looks whether the consumer is asleep. One of the two sees the other. How the consumer is woken it
 * announces, too.
 *
 * A consumer that takes no messages for a while says what holds it up. A producer knows which of
 * its messages have been taken; it can rely on one that it has found not to be taken while the
 * consumer was held up: whatever the consumer does after it has taken it is later.
 *
 * A consumer says on which processor it runs. For a producer on the same one, to poll for what the
 * consumer will do is in vain: the consumer runs only while the producer does not.
 */
#ifndef CN_SHM_RING_H
#define CN_SHM_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CN_SHM_RING_LINE 64u /* bytes of a cache line, and at least so many of a slot */

struct cn_shm_ring_shared {
	_Alignas(CN_SHM_RING_LINE) uint32_t tail;
	_Alignas(CN_SHM_RING_LINE) uint32_t head;
	uint32_t asleep;     /* enum cn_shm_ring_sleep */
	uint32_t processor;  /* the consumer's, as last reported, + 1; 0: not known */
	uint32_t blocked_on; /* what the consumer is blocked on, in its own encoding; 0: nothing */
	uint32_t consumed_oob; /* out-of-band messages consumed so far */
	_Alignas(CN_SHM_RING_LINE) uint8_t slots[];
};

/* Whether the consumer sleeps, and on what. */
enum cn_shm_ring_sleep {
	CN_SHM_RING_AWAKE = 0,
	CN_SHM_RING_ON_MESSAGE = 1, /* out-of-band */
	CN_SHM_RING_ON_FUTEX = 2,   /* on `asleep` itself, until it changes */
	CN_SHM_RING_FOR_ALL = 4,    /* in addition: also wake it for messages that are not urgent */
};

enum cn_shm_ring_status {
	CN_SHM_RING_BROKEN = -1, /* the other side's counter is impossible */
	CN_SHM_RING_NONE = 0,	 /* empty, or full */
	CN_SHM_RING_OK = 1,
};

/* One side of a ring. */
struct cn_shm_ring {
	struct cn_shm_ring_shared *shared; /* NULL: there is no ring */
	uint32_t at;			   /* this side's counter */
	uint32_t slots;			   /* a power of two */
	uint32_t slot_bytes;		   /* a multiple of CN_SHM_RING_LINE */
};

/* Bytes of memory that a ring needs. */
#define CN_SHM_RING_BYTES(slots, slot_bytes)                                                       \
	(sizeof(struct cn_shm_ring_shared) + (size_t)(slots) * (slot_bytes))

/* One side of a new ring on zeroed memory, which is aligned to CN_SHM_RING_LINE and stays the
 * caller's.
 */
void cn_shm_ring_init(struct cn_shm_ring *r, void *memory, uint32_t slots, uint32_t slot_bytes);

/* Producer: puts a message of at most slot_bytes in. CN_SHM_RING_NONE: the ring is full. */
enum cn_shm_ring_status cn_shm_ring_put(struct cn_shm_ring *r, const void *m, size_t len);
/* Producer, after a message was put in: what to wake the consumer on, once per sleep. An untrusted
 * consumer may have written any number. */
uint32_t cn_shm_ring_wake(struct cn_shm_ring *r);
/* Producer, after a message was put in that is not urgent: whether to wake the consumer for it. A
 * consumer that sleeps for urgent ones finds it when woken for them. */
bool cn_shm_ring_wants_all(const struct cn_shm_ring *r);
/* Producer: whether the consumer runs on this processor (-1: not known), as last reported. */
bool cn_shm_ring_shares_processor(const struct cn_shm_ring *r, int processor);
/* Producer: what the consumer is blocked on; 0: nothing. */
uint32_t cn_shm_ring_blocked_on(const struct cn_shm_ring *r);
/* Producer: whether the message was consumed after which its counter was `at`. Call it after
 * cn_shm_ring_blocked_on(). */
bool cn_shm_ring_has_consumed(const struct cn_shm_ring *r, uint32_t at);
/* Likewise, whether the n-th out-of-band message was consumed. */
bool cn_shm_ring_has_consumed_oob(const struct cn_shm_ring *r, uint32_t n);
/* Producer: messages not consumed yet. */
uint32_t cn_shm_ring_used(const struct cn_shm_ring *r);

/* Consumer: the next message, which stays until cn_shm_ring_pop(). CN_SHM_RING_NONE: the ring is
 * empty. */
enum cn_shm_ring_status cn_shm_ring_front(const struct cn_shm_ring *r, const void **slot);
void cn_shm_ring_pop(struct cn_shm_ring *r);
/* Consumer: is blocked on this, until it sets 0. */
void cn_shm_ring_set_blocked_on(struct cn_shm_ring *r, uint32_t by);
/* Consumer: has consumed n out-of-band messages. */
void cn_shm_ring_set_consumed_oob(struct cn_shm_ring *r, uint32_t n);
/* Consumer: orders later actions after the consumption of messages (memory fence). */
void cn_shm_ring_fence(void);
/* Consumer: runs on this processor, as sched_getcpu() numbers them (-1: not known). */
void cn_shm_ring_set_processor(struct cn_shm_ring *r, int processor);
/*
 * Consumer: announces that it sleeps. False: there is a message, or the ring is broken, and it must
 * not sleep.
 */
bool cn_shm_ring_sleep(struct cn_shm_ring *r, uint32_t on);
/* Consumer: it need not be woken any more. */
void cn_shm_ring_awake(struct cn_shm_ring *r);

#endif
