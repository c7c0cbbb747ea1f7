/* SPDX-License-Identifier: BSD-2-Clause */
/* What a network card does with segments, as `ethtool -k` reports it. */
#ifndef CN_LINK_OFFLOAD_H
#define CN_LINK_OFFLOAD_H

#include "proto/frame.h"

struct cn_offload {
	bool tcp;   /* tcp-segmentation-offload */
	bool udp;   /* tx-udp-segmentation */
	bool merge; /* large-receive-offload, which loses the lengths of merged packets */
};

/* False: not reported by the interface. */
bool cn_offload_read(const char *interface, struct cn_offload *out);
/* Logs advice for users of this encapsulation. */
void cn_offload_advise(const char *interface, enum cn_encapsulation e);

#endif
