/* SPDX-License-Identifier: BSD-2-Clause */
/* A pair of veth interfaces, a0 and b0, and a link on each, for tests of links. */
#ifndef CN_TESTS_LINK_PAIR_H
#define CN_TESTS_LINK_PAIR_H

#include "link/link.h"

#define ETHERTYPE  0x88b5
#define WAIT_MS	   20000 /* timeout of receives; never reached */
#define SILENCE_MS 30
#define BATCH	   32

extern const uint8_t link_everyone[6];
extern const char *link_kind;
extern enum cn_encapsulation link_encapsulation;
extern struct cn_link *link_a, *link_b;
extern uint8_t link_bytes[70000]; /* contents of frames */

/* Makes all; *state is the kind of link, or an encapsulation: the packet link with it. */
int link_set_up(void **state);
int link_tear_down(void **state);
/* For a test that deletes or opens things itself. */
int link_tear_down_gone(void **state);
struct cn_link *link_open(const char *interface, uint32_t ring_frames);

uint32_t link_frame_max(const struct cn_link *l); /* bytes of the longest collnet frame */
bool link_readable(const struct cn_link *l, int ms);
bool link_writable(const struct cn_link *l, int ms);

/* A frame that begins with its number. */
struct cn_frame link_frame(const uint8_t from[6], const uint8_t to[6], uint16_t type,
			   uint32_t number, size_t payload);
uint32_t link_number(const struct cn_rx_frame *f);
void link_send_from(struct cn_link *l, const uint8_t from[6], const uint8_t to[6], uint16_t type,
		    uint32_t number, size_t payload);
/* Sends `count` full frames, numbered from 0, in batches, waiting for room when there is none. */
void link_send_burst(struct cn_link *l, const uint8_t to[6], uint32_t count);

/* How many full frames fit the link's buffers: `most`, or fewer for the receive buffer of
 * super-frames, which is small without CAP_NET_ADMIN. */
uint32_t link_burst(const struct cn_link *l, uint32_t most);

/* The next frame, within the time. Waking up for nothing is allowed, but not for ever. */
bool link_next(struct cn_link *l, struct cn_rx_frame *f, int ms);
void link_expect(struct cn_link *l, uint32_t number);
void link_assert_silent(struct cn_link *l);
/* Asserts that exactly `count` full frames are received, numbered from 0. */
void link_expect_burst(struct cn_link *l, uint32_t count);
/* Receives until `count` frames were received or dropped for want of room; returns the number
 * received. */
uint32_t link_count_received(struct cn_link *l, uint32_t count);

#endif
