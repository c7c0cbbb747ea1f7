/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes the fields of control messages: network byte order, bounds-checked. A cursor
 * that ran past the end stays bad and reads 0.
 */
#ifndef CN_CURSOR_H
#define CN_CURSOR_H

#include "util/util.h"

struct cn_cursor {
	uint8_t *at, *end;
	bool bad;
};

/* A cursor that only reads. */
struct cn_cursor cn_cursor_of(const uint8_t *data, size_t len);

void cn_put8(struct cn_cursor *c, uint8_t v);
void cn_put16(struct cn_cursor *c, uint16_t v);
void cn_put32(struct cn_cursor *c, uint32_t v);
void cn_put64(struct cn_cursor *c, uint64_t v);
void cn_put_text(struct cn_cursor *c, const char *text); /* length (1 byte), bytes; cut at 255 */
uint8_t cn_get8(struct cn_cursor *c);
uint16_t cn_get16(struct cn_cursor *c);
uint32_t cn_get32(struct cn_cursor *c);
uint64_t cn_get64(struct cn_cursor *c);
/* False, and the cursor is bad: longer than cap - 1 bytes, or with a NUL inside. */
bool cn_get_text(struct cn_cursor *c, char *out, size_t cap);

#endif
