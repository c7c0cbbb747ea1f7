/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the link over UDP sockets computes: the addresses that stand for MAC addresses, and the
 * nodes that a broadcast reaches.
 *
 * The transport addresses nodes by six bytes. Those of this link are made of a port from 32768 on
 * (15 bits, so that the address is never that of a group) and an IPv4 address.
 */
#ifndef CN_LINK_UDP_ADDRESS_H
#define CN_LINK_UDP_ADDRESS_H

#include <netinet/in.h>

#include "util/util.h"

/* In the organisation's local scope (RFC 2365); its last bytes are the number of the EtherType. */
#define CN_UDP_PEERS_DEFAULT "239.192.136.181"
#define CN_UDP_PORT_MIN	     32768u
#define CN_UDP_PEERS_MAX     1024u /* that a list or a file may have */

void cn_udp_address_put(uint8_t mac[6], const struct sockaddr_in *a);
/* False: no address of this link. */
bool cn_udp_address_get(const uint8_t mac[6], struct sockaddr_in *out);
/* The order of two struct sockaddr_in, for qsort() and bsearch(). */
int cn_udp_address_order(const void *a, const void *b);

/* The former IPv4 address of an interface if it still has that one, or else (also NULL) its first,
 * asked for with any socket `fd`. COLLNET_EIFACE: none. */
int cn_udp_own_address(int fd, const char *interface, const struct sockaddr_in *former,
		       struct sockaddr_in *out, struct cn_err *err);

/* The destinations of a broadcast. */
struct cn_udp_peers {
	struct sockaddr_in *list; /* freed by the caller */
	uint32_t n;
	bool group; /* a single multicast group */
};

/*
 * Reads them: `text` is a multicast group, like 239.192.136.181, a list of hosts, like
 * node[01-16],10.0.0.7:40000 (one that has neither a comma nor a bracket ends with a comma), or the
 * name of a file with a host per line. A host is an IPv4 address or a name, and optionally ":PORT";
 * the port is otherwise `port`. Duplicate hosts are removed.
 */
int cn_udp_peers_read(const char *text, uint16_t port, struct cn_udp_peers *out,
		      struct cn_err *err);

#endif
