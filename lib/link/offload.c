/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/offload.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/util.h"

#define FEATURES_MAX 1024 /* far more than a kernel has */

/* An ethtool request: `data` begins with the command. */
static bool request(int fd, const char *interface, void *data)
{
	struct ifreq r = { 0 };

	memcpy(r.ifr_name, interface, strnlen(interface, IFNAMSIZ - 1));
	r.ifr_data = data;
	return ioctl(fd, SIOCETHTOOL, &r) == 0;
}

static bool get_value(int fd, const char *interface, uint32_t command, uint32_t *out)
{
	struct ethtool_value v = { .cmd = command };

	if (!request(fd, interface, &v)) {
		return false;
	}
	*out = v.data;
	return true;
}

static uint32_t count_features(int fd, const char *interface)
{
	struct ethtool_sset_info *r = calloc(1, sizeof(*r) + sizeof(r->data[0]));
	uint32_t n = 0;

	if (r == NULL) {
		return 0;
	}
	r->cmd = ETHTOOL_GSSET_INFO;
	r->sset_mask = 1u << ETH_SS_FEATURES;
	if (request(fd, interface, r) && r->sset_mask != 0 && r->data[0] <= FEATURES_MAX) {
		n = r->data[0];
	}
	free(r);
	return n;
}

/*
 * The number of the feature of that name, or n. The kernel writes the names of all features, also
 * where the request has room for fewer.
 */
static uint32_t find_feature(int fd, const char *interface, uint32_t n, const char *name)
{
	struct ethtool_gstrings *s = n > 0 ? calloc(1, sizeof(*s) + (size_t)n * ETH_GSTRING_LEN)
					   : NULL;
	uint32_t i = n;

	if (s == NULL) {
		return n;
	}
	s->cmd = ETHTOOL_GSTRINGS;
	s->string_set = ETH_SS_FEATURES;
	s->len = n;
	if (request(fd, interface, s)) {
		for (i = 0; i < n; i++) {
			if (strncmp((const char *)s->data + (size_t)i * ETH_GSTRING_LEN, name,
				    ETH_GSTRING_LEN) == 0) {
				break;
			}
		}
	}
	free(s);
	return i;
}

/* Features without an ioctl of their own. */
static bool has_feature(int fd, const char *interface, const char *name)
{
	const uint32_t n = count_features(fd, interface), words = (n + 31) / 32;
	const uint32_t i = find_feature(fd, interface, n, name);
	struct ethtool_gfeatures *f;
	bool active = false;

	if (i == n) {
		return false;
	}
	f = calloc(1, sizeof(*f) + words * sizeof(f->features[0]));
	if (f == NULL) {
		return false;
	}
	f->cmd = ETHTOOL_GFEATURES;
	f->size = words;
	if (request(fd, interface, f)) {
		active = (f->features[i / 32].active >> i % 32 & 1) != 0;
	}
	free(f);
	return active;
}

bool cn_offload_read(const char *interface, struct cn_offload *out)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint32_t tso, flags;
	bool known;

	if (fd < 0) {
		return false;
	}
	known = get_value(fd, interface, ETHTOOL_GTSO, &tso) &&
		get_value(fd, interface, ETHTOOL_GFLAGS, &flags);
	if (known) {
		out->tcp = tso != 0;
		out->merge = (flags & ETH_FLAG_LRO) != 0;
		out->udp = has_feature(fd, interface, "tx-udp-segmentation");
	}
	close(fd);
	return known;
}

void cn_offload_advise(const char *interface, enum cn_encapsulation e)
{
	struct cn_offload o;

	if (e == CN_ENCAPSULATION_RAW || !cn_offload_read(interface, &o)) {
		return;
	}
	if (e == CN_ENCAPSULATION_UDP && o.tcp && !o.udp) {
		cn_log(COLLNET_LOG_INFO,
		       "interface %s segments TCP, but not UDP: encapsulation tcp on all nodes "
		       "would make long messages cheaper",
		       interface);
	}
	if (e == CN_ENCAPSULATION_TCP && o.merge) {
		cn_log(COLLNET_LOG_WARNING,
		       "interface %s merges frames in a way that collnet cannot undo: use ethtool "
		       "-K %s lro off",
		       interface, interface);
	}
}
