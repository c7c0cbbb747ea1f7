/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SipHash-2-4 (J.-P. Aumasson, D. J. Bernstein: SipHash: a fast short-input PRF, 2012): a keyed
 * hash of short inputs. Without the key, its values are indistinguishable from random ones; with a
 * public key it is only a good mixer.
 */
#ifndef CN_SIPHASH_H
#define CN_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define CN_SIPHASH_KEY 16

#define CN_SIPHASH_TAG 16

uint64_t cn_siphash(const uint8_t key[CN_SIPHASH_KEY], const void *data, size_t len);
/* The 128-bit variant, of two concatenated buffers; the first has a multiple of 8 bytes. */
void cn_siphash_tag(const uint8_t key[CN_SIPHASH_KEY], const void *first, size_t first_len,
		    const void *data, size_t len, uint8_t out[CN_SIPHASH_TAG]);

#endif
