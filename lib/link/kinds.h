/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between link.c and the kinds of links that it opens. The configuration that a kind receives is
 * checked, its zeros replaced by the defaults, and the interface chosen.
 */
#ifndef CN_KINDS_H
#define CN_KINDS_H

#include "link/interface.h"
#include "link/link.h"
#include "link/super_frame.h"

#define CN_LINK_MTU_MAX 65000
#define CN_VLAN_ID	0x0fff /* in the two bytes of a VLAN tag; 0: the tag is for a priority */

/* After a refused super-frame, single frames are sent for this time. */
#define CN_SUPER_FRAME_RETRY (1000 * CN_MS)

typedef int (*cn_link_opener)(const struct cn_link_config *config, const struct cn_interface *i,
			      struct cn_link **out, struct cn_err *err);

int cn_link_open_packet(const struct cn_link_config *config, const struct cn_interface *i,
			struct cn_link **out, struct cn_err *err);
int cn_link_open_pcap(const struct cn_link_config *config, const struct cn_interface *i,
		      struct cn_link **out, struct cn_err *err);

int cn_link_open_udp(const struct cn_link_config *config, const struct cn_interface *i,
		     struct cn_link **out, struct cn_err *err);

/* Checks the encapsulation, and loads the libraries of the pcap link, once; cn_link_open_pcap()
 * does so, too. */
int cn_link_prepare_pcap(const struct cn_link_config *config, struct cn_err *err);

/* The value for SO_SNDBUF with which `frames` frames of this MTU wait in the kernel. */
int cn_link_send_buffer(uint32_t frames, uint32_t mtu);
/* A receive buffer for many super-frames, or as much as the system allows. False: refused, with
 * errno. */
bool cn_link_set_receive_buffer(struct cn_link *l);

/*
 * The collnet frames behind the headers of a received frame of either encapsulation; `size` of *out
 * is 0. False: none, or one that is damaged. trusted: its checksum needs no verification.
 */
bool cn_link_decapsulate(const uint8_t *frame, size_t len, uint16_t ethertype, bool trusted,
			 struct cn_super_frame *out);

/* True if a frame was refused with this errno for the first time, to be logged. Only the first
 * CN_REFUSALS errors are. */
bool cn_link_is_new_refusal(struct cn_link *l, int e);

/* The message for a refusal by the kernel, `e` being its errno. */
int cn_link_refused(const char *interface, const char *what, int e, struct cn_err *err);

#endif
