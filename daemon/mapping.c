/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The regions that clients share: made, mapped and sent to the client, and used by its requests
 * once it has sealed them (node/memfd.h). unmap.c ends them.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int cn_mapping_charge(struct cn_daemon *d, struct cn_user *u, uint64_t bytes, struct cn_err *err)
{
	int rc = cn_quota_charge(d, u, CN_QUOTA_REGIONS, 1, err);

	if (rc == COLLNET_OK) {
		rc = cn_quota_charge(d, u, CN_QUOTA_MEMORY, bytes, err);
		if (rc != COLLNET_OK) {
			cn_quota_uncharge(d, u, CN_QUOTA_REGIONS, 1);
		}
	}
	return rc;
}

void cn_mapping_uncharge(struct cn_daemon *d, struct cn_user *u, uint64_t bytes)
{
	cn_quota_uncharge(d, u, CN_QUOTA_REGIONS, 1);
	cn_quota_uncharge(d, u, CN_QUOTA_MEMORY, bytes);
}

bool cn_mapping_create(struct cn_client *c, const struct cn_msg_region *m)
{
	const int flags = m->region == CN_MSG_RINGS ? MAP_POPULATE : 0;
	struct cn_memfd memory;
	struct cn_mapping *s;
	struct cn_err err;

	if (c->regions[m->region] != NULL) {
		cn_client_mark(c, "region number in use");
		return false;
	}
	if (m->bytes > CN_MSG_BYTES - c->bytes) {
		cn_client_mark(c, "its regions exceed the limit");
		return false;
	}
	if (cn_mapping_charge(c->daemon, c->user, m->bytes, &err) != COLLNET_OK) {
		cn_client_reply(c, m->head.tag, err.code, 0, err.text);
		return true;
	}
	s = calloc(1, sizeof(*s));
	if (s == NULL || !cn_memfd_new(&memory, m->bytes, flags)) {
		cn_fail(&err, COLLNET_ENOMEM,
			"collnetd cannot allocate %llu bytes of shared memory: %s",
			(unsigned long long)m->bytes, strerror(errno));
		cn_mapping_uncharge(c->daemon, c->user, m->bytes);
		free(s);
		cn_client_reply(c, m->head.tag, err.code, 0, err.text);
		return true;
	}
	s->p = memory.p;
	s->bytes = m->bytes;
	s->fd = memory.own;
	s->refs = 1;
	s->user = c->user;
	c->regions[m->region] = s;
	c->bytes += m->bytes;
	if (m->region == CN_MSG_RINGS) {
		cn_client_rings_prepare(c, s->p);
	}
	cn_client_send_descriptor(c, m->head.tag, memory.client);
	close(memory.client);
	return true;
}

bool cn_mapping_drop(struct cn_client *c, uint32_t number)
{
	struct cn_mapping *s = c->regions[number];

	if (s == NULL) {
		return false;
	}
	if (number == CN_MSG_RINGS) {
		cn_client_rings_close(c);
	}
	c->regions[number] = NULL;
	c->bytes -= s->bytes;
	cn_mapping_put(c->daemon, s);
	return true;
}

bool cn_mapping_is_sealed(struct cn_mapping *s)
{
	s->sealed = s->sealed || cn_memfd_is_sealed(s->fd);
	return s->sealed;
}

void *cn_mapping_resolve(struct cn_client *c, const struct cn_msg_buffer_ref *place, uint64_t len,
			 struct cn_mapping **ref, bool *ok)
{
	struct cn_mapping *s;

	*ok = len == 0;
	*ref = NULL;
	if (len == 0 || place->region >= CN_MSG_REGIONS) {
		return NULL;
	}
	s = c->regions[place->region];
	if (s == NULL || place->offset > s->bytes || len > s->bytes - place->offset ||
	    !cn_mapping_is_sealed(s)) {
		return NULL;
	}
	*ok = true;
	*ref = s;
	s->refs++;
	return s->p + place->offset;
}
