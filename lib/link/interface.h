/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which Ethernet interface to use. A wrong guess shows later as a hang, so there is no guess:
 * the interface that was named, or the only one that can be meant, or a refusal that lists them.
 */
#ifndef CN_INTERFACE_H
#define CN_INTERFACE_H

#include "util/util.h"

#define CN_INTERFACE_NAME 16 /* IFNAMSIZ */
#define CN_INTERFACES_MAX 4096

struct cn_interface {
	char name[CN_INTERFACE_NAME];
	int index;
	uint32_t mtu;
	uint8_t mac[6];
	bool ethernet; /* ARPHRD_ETHER with an address of six bytes */
	bool loopback;
	bool up;       /* brought up by the administrator */
	bool running;  /* has a carrier, too */
	bool enslaved; /* port of a bridge, bond or the like: use its master */
};

/* The interfaces of this network namespace; *out is freed by the caller. */
int cn_interface_list(struct cn_interface **out, size_t *count, struct cn_err *err);

/*
 * Selects an interface of the list; `name` NULL or "": the only candidate. With `any`, a named one
 * need not be Ethernet. COLLNET_EIFACE with a message that names the remedy.
 */
int cn_interface_pick(const struct cn_interface *list, size_t count, const char *name, bool any,
		      struct cn_interface *out, struct cn_err *err);

/* The interface of this name, whatever its state. 1: *out is set; 0: there is none. */
int cn_interface_find(const char *name, struct cn_interface *out, struct cn_err *err);

/* The rate of the interface's link in bit/s, queried through any socket; 0: not known. */
uint64_t cn_interface_rate(int fd, const char *name);

/* Its MTU, queried through any socket; 0: not known. */
uint32_t cn_interface_mtu(int fd, const char *name);

/* Its address, in the same way. */
bool cn_interface_mac(int fd, const char *name, uint8_t out[6]);

bool cn_interface_is_up(int fd, const char *name);

/* False: it is up and has no carrier; the kernel may say so a second later. */
bool cn_interface_has_carrier(int fd, const char *name);

/* cn_interface_list() and cn_interface_pick(). */
int cn_interface_choose(const char *name, bool any, struct cn_interface *out, struct cn_err *err);

#endif
