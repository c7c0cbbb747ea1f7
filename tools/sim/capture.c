/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/capture.h"

#define MAGIC_NANOSECONDS 0xa1b23c4du /* tells the reader our byte order, too */
#define LINK_ETHERNET	  1u

void sim_capture_begin(FILE *f)
{
	const struct {
		uint32_t magic;
		uint16_t major, minor;
		uint32_t zone, accuracy; /* always 0 */
		uint32_t longest, link;
	} header = { MAGIC_NANOSECONDS, 2, 4, 0, 0, SIM_CAPTURE_MAX, LINK_ETHERNET };

	fwrite(&header, sizeof(header), 1, f);
}

void sim_capture_frame(FILE *f, cn_time at, const void *frame, size_t len)
{
	const struct {
		uint32_t seconds, nanoseconds, captured, len;
	} header = { (uint32_t)(at / 1000000000u), (uint32_t)(at % 1000000000u), (uint32_t)len,
		     (uint32_t)len };

	fwrite(&header, sizeof(header), 1, f);
	fwrite(frame, len, 1, f);
}
