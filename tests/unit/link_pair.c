/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <string.h>

#include <cmocka.h>

#include "link_pair.h"
#include "namespace.h"

#define WAKES_MAX 200

const uint8_t link_everyone[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

const char *link_kind;
enum cn_encapsulation link_encapsulation;

struct cn_link *link_a, *link_b;

uint8_t link_bytes[70000];

struct cn_link *link_open(const char *interface, uint32_t ring_frames)
{
	struct cn_link_config c = { .kind = link_kind,
				    .interface = interface,
				    .ethertype = ETHERTYPE,
				    .encapsulation = link_encapsulation,
				    .ring_frames = ring_frames };
	struct cn_link *l = NULL;
	struct cn_err err = { 0 };

	if (cn_link_open(&c, &l, &err) != 0) {
		fail_msg("%s", err.text);
	}
	return l;
}

/* A pair of interfaces, and a link on each. */
int link_set_up(void **state)
{
	link_kind = *state;
	link_encapsulation = CN_ENCAPSULATION_RAW;
	if (cn_parse_encapsulation(*state, &link_encapsulation)) {
		link_kind = "packet";
	}
	for (size_t i = 0; i < sizeof(link_bytes); i++) {
		link_bytes[i] = (uint8_t)cn_mix64(i);
	}
	if (!add_pair()) {
		return -1;
	}
	link_a = link_open("a0", 0);
	link_b = link_open("b0", 0);
	return 0;
}

int link_tear_down(void **state)
{
	(void)state;
	cn_link_close(link_a);
	cn_link_close(link_b);
	link_a = link_b = NULL;
	return run_command("ip link delete a0") ? 0 : -1;
}

/* As set_up(), but a test that deletes or opens things itself. */
int link_tear_down_gone(void **state)
{
	(void)state;
	cn_link_close(link_a);
	cn_link_close(link_b);
	link_a = link_b = NULL;
	(void)run_command("ip link delete a0");
	return 0;
}

/* Bytes of the longest collnet frame. */
uint32_t link_frame_max(const struct cn_link *l)
{
	return l->mtu - cn_encapsulation_bytes(link_encapsulation);
}

bool link_readable(const struct cn_link *l, int ms)
{
	struct pollfd p = { .fd = l->recv_fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

bool link_writable(const struct cn_link *l, int ms)
{
	struct pollfd p = { .fd = l->send_fd, .events = POLLOUT };

	return poll(&p, 1, ms) == 1 && (p.revents & POLLOUT) != 0;
}

/* The next frame, within the time. Waking up for nothing is allowed, but not for ever. */
bool link_next(struct cn_link *l, struct cn_rx_frame *f, int ms)
{
	for (int i = 0; i < WAKES_MAX; i++) {
		if (cn_link_recv(l, f, 1) == 1) {
			return true;
		}
		if (!link_readable(l, ms)) {
			return false;
		}
	}
	fail_msg("%s on %s: wakes up again and again for nothing", link_kind, l->interface);
	return false;
}

uint32_t link_number(const struct cn_rx_frame *f)
{
	return (uint32_t)f->data[0] << 24 | (uint32_t)f->data[1] << 16 | (uint32_t)f->data[2] << 8 |
	       f->data[3];
}

void link_assert_silent(struct cn_link *l)
{
	struct cn_rx_frame f;

	if (link_next(l, &f, SILENCE_MS)) {
		fail_msg("%s on %s: frame %u, %zu bytes, where silence should be", link_kind,
			 l->interface, link_number(&f), f.len);
	}
}

struct cn_frame link_frame(const uint8_t from[6], const uint8_t to[6], uint16_t type,
			   uint32_t number, size_t payload)
{
	struct cn_frame f = { .head_len = CN_ETH_HEADER + 4,
			      .payload_len = (uint16_t)payload,
			      .payload = link_bytes };

	memcpy(f.head, to, 6);
	memcpy(f.head + 6, from, 6);
	f.head[12] = (uint8_t)(type >> 8);
	f.head[13] = (uint8_t)type;
	for (int i = 0; i < 4; i++) {
		f.head[14 + i] = (uint8_t)(number >> (24 - 8 * i));
	}
	return f;
}

void link_send_from(struct cn_link *l, const uint8_t from[6], const uint8_t to[6], uint16_t type,
		    uint32_t number, size_t payload)
{
	struct cn_frame f = link_frame(from, to, type, number, payload);

	assert_int_equal(cn_link_send(l, &f, 1), 1);
}

void link_expect(struct cn_link *l, uint32_t number)
{
	struct cn_rx_frame f;

	assert_true(link_next(l, &f, WAIT_MS));
	assert_int_equal(link_number(&f), number);
	cn_link_release(l);
}

/* Sends `count` numbered full frames in batches, waiting for room when there is none. */
void link_send_burst(struct cn_link *l, const uint8_t to[6], uint32_t count)
{
	static struct cn_frame f[BATCH];

	for (uint32_t sent = 0; sent < count;) {
		size_t n = count - sent < BATCH ? count - sent : BATCH;
		int r;

		for (size_t i = 0; i < n; i++) {
			f[i] = link_frame(l->mac, to, ETHERTYPE, sent + (uint32_t)i,
					  link_frame_max(l) - 4);
		}
		r = cn_link_send(l, f, n);
		assert_uint_in_range(r, 0, n);
		if ((size_t)r < n) {
			assert_true(link_writable(l, WAIT_MS));
		}
		sent += (uint32_t)r;
	}
}

uint32_t link_burst(const struct cn_link *l, uint32_t most)
{
	const uint32_t room = (uint32_t)l->receive_buffer / l->mtu;

	return l->receive_buffer == 0 || room > most ? most : room;
}

void link_expect_burst(struct cn_link *l, uint32_t count)
{
	struct cn_rx_frame f[BATCH];
	uint32_t next = 0, wakes = 0;
	size_t n;

	while ((n = cn_link_recv(l, f, BATCH)) > 0 ||
	       link_readable(l, next < count ? WAIT_MS : SILENCE_MS)) {
		wakes = n > 0 ? 0 : wakes + 1;
		assert_uint_in_range(wakes, 0, WAKES_MAX);
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(link_number(&f[i]), next++);
			assert_int_equal(f[i].len, link_frame_max(l));
			assert_memory_equal(f[i].data + 4, link_bytes, link_frame_max(l) - 4);
		}
		cn_link_release(l);
	}
	assert_int_equal(next, count);
}

uint32_t link_count_received(struct cn_link *l, uint32_t count)
{
	struct cn_link_counters counters = { 0 };
	struct cn_rx_frame f[BATCH];
	uint32_t came = 0;

	for (int waited = 0; came + counters.ring_drops < count; waited += SILENCE_MS) {
		size_t n;

		assert_uint_in_range(waited, 0, WAIT_MS);
		while ((n = cn_link_recv(l, f, BATCH)) > 0 || link_readable(l, SILENCE_MS)) {
			came += (uint32_t)n;
			cn_link_release(l);
		}
		cn_link_counters(l, &counters);
	}
	assert_int_equal(came + counters.ring_drops, count);
	return came;
}
