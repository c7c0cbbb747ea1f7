/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/filter.h"

/* Offsets in the Ethernet header. */
#define DESTINATION 0
#define SOURCE	    6
#define TYPE	    12

#define LOAD16(offset) (struct sock_filter) BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offset)
#define LOAD32(offset) (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)
#define IF_EQUAL(value, then, otherwise)                                                           \
	(struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then, otherwise)
#define RETURN(bytes) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, bytes)

/* Distance of a jump in the instruction `at` to the instruction `to`. */
#define TO(at, to) (uint8_t)((to) - (at)-1)

void cn_link_filter(struct sock_filter out[CN_LINK_FILTER], uint16_t ethertype,
		    const uint8_t mac[6])
{
	enum { BROADCAST = 6, FROM = 9, DROP = 13, ACCEPT = 14 };
	const uint32_t high = (uint32_t)mac[0] << 8 | mac[1];
	const uint32_t low = (uint32_t)mac[2] << 24 | (uint32_t)mac[3] << 16 |
			     (uint32_t)mac[4] << 8 | mac[5];

	out[0] = LOAD16(TYPE);
	out[1] = IF_EQUAL(ethertype, 0, TO(1, DROP));
	/* To us: no address of an interface begins with ff:ff, as broadcasts do. */
	out[2] = LOAD16(DESTINATION);
	out[3] = IF_EQUAL(high, 0, TO(3, BROADCAST));
	out[4] = LOAD32(DESTINATION + 2);
	out[5] = IF_EQUAL(low, TO(5, FROM), TO(5, DROP));
	/* Or to all. */
	out[BROADCAST] = IF_EQUAL(0xffff, 0, TO(BROADCAST, DROP));
	out[7] = LOAD32(DESTINATION + 2);
	out[8] = IF_EQUAL(0xffffffff, 0, TO(8, DROP));
	/* From another. */
	out[FROM] = LOAD16(SOURCE);
	out[10] = IF_EQUAL(high, 0, TO(10, ACCEPT));
	out[11] = LOAD32(SOURCE + 2);
	out[12] = IF_EQUAL(low, 0, TO(12, ACCEPT));
	out[DROP] = RETURN(0);
	out[ACCEPT] = RETURN(UINT32_MAX);
}
