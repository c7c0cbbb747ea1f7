/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options of a context from the environment.
 */
#include "client/env.h"

#include <stdlib.h>
#include <string.h>

#include "ipc/msg.h"

#define DEFAULT_TIMEOUT	  30000u
#define DEFAULT_ETHERTYPE 0x88B5u

const char *cn_getenv(void *arg, const char *name)
{
	(void)arg;
	return getenv(name);
}

const char *cn_env_value(cn_getenv_fn get, void *arg, const char *name)
{
	const char *v = name == NULL ? NULL : get(arg, name);

	return v == NULL || v[0] == '\0' ? NULL : v;
}

static int bad(struct cn_err *err, const char *name, const char *v, const char *expected)
{
	return cn_fail(err, COLLNET_EINVAL, "%s is '%.40s' in the environment: expected %s", name,
		       v, expected);
}

/* Records the first error. */
static void record(int *rc, struct cn_err *err, const char *name, const char *v,
		   const char *expected)
{
	if (*rc == COLLNET_OK) {
		*rc = bad(err, name, v, expected);
	}
}

int cn_options_from(cn_getenv_fn get, void *arg, struct collnet_options *o, struct cn_err *err)
{
	int rc = COLLNET_OK;
	const char *v;
	uint64_t n;

	memset(o, 0, sizeof(*o));
	o->size = sizeof(*o);
	o->ethertype = DEFAULT_ETHERTYPE;
	o->timeout_ms = DEFAULT_TIMEOUT;
	o->socket = cn_env_value(get, arg, "COLLNET_SOCKET");
	o->interface = cn_env_value(get, arg, "COLLNET_INTERFACE");
	o->link = cn_env_value(get, arg, "COLLNET_LINK");
	o->encapsulation = cn_env_value(get, arg, "COLLNET_ENCAPSULATION");
	o->peers = cn_env_value(get, arg, "COLLNET_PEERS");
	o->node = cn_env_value(get, arg, "COLLNET_NODE");
	o->topology = cn_env_value(get, arg, "COLLNET_TOPOLOGY");
	o->key = cn_env_value(get, arg, "COLLNET_KEY");

	v = cn_env_value(get, arg, "COLLNET_MODE");
	if (v != NULL && strcmp(v, "daemon") == 0) {
		o->mode = COLLNET_MODE_DAEMON;
	} else if (v != NULL && strcmp(v, "direct") == 0) {
		o->mode = COLLNET_MODE_DIRECT;
	} else if (v != NULL) {
		record(&rc, err, "COLLNET_MODE", v, "'daemon' or 'direct'");
	}
	v = cn_env_value(get, arg, "COLLNET_CLUSTER");
	if (v != NULL && cn_parse_uint(v, 0, 65535, &n)) {
		o->cluster = (uint16_t)n;
	} else if (v != NULL) {
		record(&rc, err, "COLLNET_CLUSTER", v, "a number from 0 to 65535");
	}
	v = cn_env_value(get, arg, "COLLNET_ETHERTYPE");
	if (v != NULL && cn_parse_ethertype(v, &n)) {
		o->ethertype = (uint16_t)n;
	} else if (v != NULL) {
		record(&rc, err, "COLLNET_ETHERTYPE", v, "a number from 0x0600 to 0xFFFF");
	}
	v = cn_env_value(get, arg, "COLLNET_TIMEOUT");
	if (v != NULL && strcmp(v, "none") == 0) {
		o->timeout_ms = COLLNET_TIMEOUT_NONE;
	} else if (v != NULL && cn_parse_uint(v, 1, CN_MSG_TIMEOUT_MAX, &n)) {
		o->timeout_ms = (uint32_t)n;
	} else if (v != NULL) {
		record(&rc, err, "COLLNET_TIMEOUT", v,
		       "milliseconds from 1 to 86400000, or 'none'");
	}
	v = cn_env_value(get, arg, "COLLNET_PEER_TIMEOUT");
	if (v != NULL && cn_parse_uint(v, CN_MSG_PEER_TIMEOUT_MIN, CN_MSG_PEER_TIMEOUT_MAX, &n)) {
		o->peer_timeout_ms = (uint32_t)n;
	} else if (v != NULL) {
		record(&rc, err, "COLLNET_PEER_TIMEOUT", v, "milliseconds from 300 to 60000");
	}
	v = cn_env_value(get, arg, "COLLNET_SPIN");
	if (v != NULL && cn_parse_uint(v, 0, 1, &n)) {
		o->spin = (int)n;
	} else if (v != NULL) {
		record(&rc, err, "COLLNET_SPIN", v, "0 or 1");
	}
	return rc;
}

void collnet_options_init(struct collnet_options *o)
{
	if (o != NULL) {
		/* collnet_open() reports an invalid variable. */
		cn_options_from(cn_getenv, NULL, o, NULL);
	}
}
