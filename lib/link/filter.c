/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/filter.h"

#include "link/encapsulation.h"
#include "util/byteorder.h"

/* Offsets in the Ethernet header, and in an IPv4 and a UDP or TCP header behind it. */
#define DESTINATION 0
#define SOURCE	    6
#define TYPE	    12
#define IP_LENGTH   14
#define IP_FRAGMENT 20
#define IP_PROTOCOL 23
#define IP_TO	    30
#define PORT_TO	    36

#define LOAD8(offset)  (struct sock_filter) BPF_STMT(BPF_LD | BPF_B | BPF_ABS, offset)
#define LOAD16(offset) (struct sock_filter) BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offset)
#define LOAD32(offset) (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)
#define IF_EQUAL(value, then, otherwise)                                                           \
	(struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then, otherwise)
#define IF_SET(bits, then, otherwise)                                                              \
	(struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, then, otherwise)
#define RETURN(bytes) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, bytes)

/* Distance of a jump in the instruction `at` to the instruction `to`. */
#define TO(at, to) (uint8_t)((to) - (at)-1)

void cn_link_filter(struct sock_filter out[CN_LINK_FILTER], uint16_t ethertype,
		    const uint8_t mac[6])
{
	enum { ADDRESS = 14, BROADCAST = 18, FROM = 21, DROP = 25, ACCEPT = 26 };
	const uint32_t high = cn_get_be16(mac), low = cn_get_be32(mac + 2);

	out[0] = LOAD16(TYPE);
	out[1] = IF_EQUAL(ethertype, TO(1, ADDRESS), 0);
	out[2] = IF_EQUAL(0x0800, 0, TO(2, DROP));
	/* A whole UDP datagram or TCP segment, without IP options, to our group and port. */
	out[3] = LOAD8(IP_LENGTH);
	out[4] = IF_EQUAL(0x45, 0, TO(4, DROP));
	out[5] = LOAD8(IP_PROTOCOL);
	out[6] = IF_EQUAL(17, TO(6, 8), 0);
	out[7] = IF_EQUAL(6, 0, TO(7, DROP));
	out[8] = LOAD32(IP_TO);
	out[9] = IF_EQUAL(CN_IP_GROUP, 0, TO(9, DROP));
	out[10] = LOAD16(IP_FRAGMENT);
	out[11] = IF_SET(0x3fff, TO(11, DROP), 0);
	out[12] = LOAD16(PORT_TO);
	out[13] = IF_EQUAL(ethertype, 0, TO(13, DROP));
	/* To us: no address of an interface begins with ff:ff, as broadcasts do. */
	out[ADDRESS] = LOAD16(DESTINATION);
	out[15] = IF_EQUAL(high, 0, TO(15, BROADCAST));
	out[16] = LOAD32(DESTINATION + 2);
	out[17] = IF_EQUAL(low, TO(17, FROM), TO(17, DROP));
	/* Or to all. */
	out[BROADCAST] = IF_EQUAL(0xffff, 0, TO(BROADCAST, DROP));
	out[19] = LOAD32(DESTINATION + 2);
	out[20] = IF_EQUAL(0xffffffff, 0, TO(20, DROP));
	/* From another. */
	out[FROM] = LOAD16(SOURCE);
	out[22] = IF_EQUAL(high, 0, TO(22, ACCEPT));
	out[23] = LOAD32(SOURCE + 2);
	out[24] = IF_EQUAL(low, 0, TO(24, ACCEPT));
	out[DROP] = RETURN(0);
	out[ACCEPT] = RETURN(UINT32_MAX);
}
