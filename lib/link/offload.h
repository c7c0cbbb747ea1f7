/* SPDX-License-Identifier: BSD-2-Clause */
/* What a network card does with segments, as `ethtool -k` reports it. */
#ifndef CN_LINK_OFFLOAD_H
#define CN_LINK_OFFLOAD_H

#include "proto/frame.h"

struct cn_offload {
	bool tcp;   /* tcp-segmentation-offload */
	bool udp;   /* tx-udp-segmentation */
	bool merge; /* large-receive-offload, which loses the lengths of what it merges */
};

/* False: the interface does not say. */
bool cn_offload_read(const char *interface, struct cn_offload *out);
/* Logs what a user of this encapsulation should change. */
void cn_offload_advise(const char *interface, enum cn_encapsulation e);

#endif
