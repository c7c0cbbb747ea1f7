/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packet filter of all links: frames of our EtherType, and those of the encapsulations udp and
 * tcp with that number as the port, for this address or for all, from another address.
 */
#ifndef CN_LINK_FILTER_H
#define CN_LINK_FILTER_H

#include <linux/filter.h>
#include <stdint.h>

#define CN_LINK_FILTER 27 /* instructions */

void cn_link_filter(struct sock_filter out[CN_LINK_FILTER], uint16_t ethertype,
		    const uint8_t mac[6]);

#endif
