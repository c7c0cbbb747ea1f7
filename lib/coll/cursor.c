/* SPDX-License-Identifier: BSD-2-Clause */
/* Control messages byte by byte: network byte order, bounds-checked. */
#include <string.h>

#include "coll/cursor.h"
#include "util/byteorder.h"

struct cn_cursor cn_cursor_of(const uint8_t *data, size_t len)
{
	/* The type serves writing, too. */
	uint8_t *at = (uint8_t *)(uintptr_t)data;

	return (struct cn_cursor){ at, at + len, false };
}

static bool cursor_has(struct cn_cursor *c, size_t n)
{
	if (c->bad || (size_t)(c->end - c->at) < n) {
		c->bad = true;
		return false;
	}
	return true;
}

void cn_put8(struct cn_cursor *c, uint8_t v)
{
	if (cursor_has(c, 1)) {
		*c->at++ = v;
	}
}

void cn_put16(struct cn_cursor *c, uint16_t v)
{
	if (cursor_has(c, 2)) {
		cn_put_be16(c->at, v);
		c->at += 2;
	}
}

void cn_put32(struct cn_cursor *c, uint32_t v)
{
	if (cursor_has(c, 4)) {
		cn_put_be32(c->at, v);
		c->at += 4;
	}
}

void cn_put64(struct cn_cursor *c, uint64_t v)
{
	if (cursor_has(c, 8)) {
		cn_put_be64(c->at, v);
		c->at += 8;
	}
}

void cn_put_text(struct cn_cursor *c, const char *text)
{
	size_t n = strlen(text);

	if (n > 255) {
		n = 255;
	}
	cn_put8(c, (uint8_t)n);
	if (cursor_has(c, n)) {
		memcpy(c->at, text, n);
		c->at += n;
	}
}

uint8_t cn_get8(struct cn_cursor *c)
{
	return cursor_has(c, 1) ? *c->at++ : 0;
}

/* The next n bytes; NULL: there are fewer. */
static const uint8_t *next_bytes(struct cn_cursor *c, size_t n)
{
	const uint8_t *at = c->at;

	if (!cursor_has(c, n)) {
		return NULL;
	}
	c->at += n;
	return at;
}

uint16_t cn_get16(struct cn_cursor *c)
{
	const uint8_t *at = next_bytes(c, 2);

	return at != NULL ? cn_get_be16(at) : 0;
}

uint32_t cn_get32(struct cn_cursor *c)
{
	const uint8_t *at = next_bytes(c, 4);

	return at != NULL ? cn_get_be32(at) : 0;
}

uint64_t cn_get64(struct cn_cursor *c)
{
	const uint8_t *at = next_bytes(c, 8);

	return at != NULL ? cn_get_be64(at) : 0;
}

bool cn_get_text(struct cn_cursor *c, char *out, size_t cap)
{
	size_t n = cn_get8(c);

	if (!cursor_has(c, n) || n >= cap || memchr(c->at, '\0', n) != NULL) {
		c->bad = true;
		return false;
	}
	memcpy(out, c->at, n);
	out[n] = '\0';
	c->at += n;
	return true;
}
