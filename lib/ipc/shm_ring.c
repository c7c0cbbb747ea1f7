/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings of messages in shared memory: see shm_ring.h. */
#include "ipc/shm_ring.h"

#include <string.h>

void cn_shm_ring_init(struct cn_shm_ring *r, void *memory, uint32_t slots, uint32_t slot_bytes)
{
	r->shared = memory;
	r->at = 0;
	r->slots = slots;
	r->slot_bytes = slot_bytes;
}

static uint8_t *slot_of(const struct cn_shm_ring *r)
{
	return r->shared->slots + (size_t)(r->at & (r->slots - 1)) * r->slot_bytes;
}

enum cn_shm_ring_status cn_shm_ring_put(struct cn_shm_ring *r, const void *m, size_t len)
{
	const uint32_t used = r->at - __atomic_load_n(&r->shared->head, __ATOMIC_ACQUIRE);

	if (used > r->slots) {
		return CN_SHM_RING_BROKEN;
	}
	if (used == r->slots) {
		return CN_SHM_RING_NONE;
	}
	memcpy(slot_of(r), m, len);
	__atomic_store_n(&r->shared->tail, ++r->at, __ATOMIC_RELEASE);
	return CN_SHM_RING_OK;
}

uint32_t cn_shm_ring_wake(struct cn_shm_ring *r)
{
	/* The message is visible before this looks at `asleep`. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&r->shared->asleep, __ATOMIC_RELAXED) == CN_SHM_RING_AWAKE) {
		return CN_SHM_RING_AWAKE;
	}
	return __atomic_exchange_n(&r->shared->asleep, CN_SHM_RING_AWAKE, __ATOMIC_RELAXED) &
	       ~(uint32_t)CN_SHM_RING_FOR_ALL;
}

bool cn_shm_ring_wants_all(const struct cn_shm_ring *r)
{
	/* The message is visible before this looks at `asleep`. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return (__atomic_load_n(&r->shared->asleep, __ATOMIC_RELAXED) & CN_SHM_RING_FOR_ALL) != 0;
}

bool cn_shm_ring_shares_processor(const struct cn_shm_ring *r, int processor)
{
	return processor >= 0 &&
	       __atomic_load_n(&r->shared->processor, __ATOMIC_RELAXED) == (uint32_t)processor + 1;
}

uint32_t cn_shm_ring_blocked_on(const struct cn_shm_ring *r)
{
	/* What the caller has read before, as the clock, and put in was read and put in before. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&r->shared->blocked_on, __ATOMIC_ACQUIRE); /* before `head` */
}

bool cn_shm_ring_has_consumed(const struct cn_shm_ring *r, uint32_t at)
{
	return (int32_t)(__atomic_load_n(&r->shared->head, __ATOMIC_ACQUIRE) - at) >= 0;
}

bool cn_shm_ring_has_consumed_oob(const struct cn_shm_ring *r, uint32_t n)
{
	return (int32_t)(__atomic_load_n(&r->shared->consumed_oob, __ATOMIC_ACQUIRE) - n) >= 0;
}

uint32_t cn_shm_ring_used(const struct cn_shm_ring *r)
{
	return r->at - __atomic_load_n(&r->shared->head, __ATOMIC_ACQUIRE);
}

enum cn_shm_ring_status cn_shm_ring_front(const struct cn_shm_ring *r, const void **slot)
{
	const uint32_t used = __atomic_load_n(&r->shared->tail, __ATOMIC_ACQUIRE) - r->at;

	if (used > r->slots) {
		return CN_SHM_RING_BROKEN;
	}
	*slot = slot_of(r);
	return used > 0 ? CN_SHM_RING_OK : CN_SHM_RING_NONE;
}

void cn_shm_ring_pop(struct cn_shm_ring *r)
{
	/* What was copied from the slot was read before this. */
	__atomic_store_n(&r->shared->head, ++r->at, __ATOMIC_RELEASE);
}

void cn_shm_ring_set_blocked_on(struct cn_shm_ring *r, uint32_t by)
{
	__atomic_store_n(&r->shared->blocked_on, by, __ATOMIC_RELEASE); /* after `head` */
	/* It is visible before this looks for a message. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void cn_shm_ring_set_consumed_oob(struct cn_shm_ring *r, uint32_t n)
{
	__atomic_store_n(&r->shared->consumed_oob, n, __ATOMIC_RELEASE);
}

void cn_shm_ring_fence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void cn_shm_ring_set_processor(struct cn_shm_ring *r, int processor)
{
	__atomic_store_n(&r->shared->processor, processor < 0 ? 0 : (uint32_t)processor + 1,
			 __ATOMIC_RELAXED);
}

bool cn_shm_ring_sleep(struct cn_shm_ring *r, uint32_t on)
{
	__atomic_store_n(&r->shared->asleep, on, __ATOMIC_RELAXED);
	/* `asleep` is visible before this looks for a message. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&r->shared->tail, __ATOMIC_ACQUIRE) == r->at;
}

void cn_shm_ring_awake(struct cn_shm_ring *r)
{
	__atomic_store_n(&r->shared->asleep, CN_SHM_RING_AWAKE, __ATOMIC_RELAXED);
}
