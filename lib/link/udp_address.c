/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/udp_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "util/byteorder.h"
#include "util/file.h"
#include "util/hostlist.h"
#include "util/vector.h"

#define FILE_MAX  ((size_t)256 << 10)
#define NAME_SIZE 272 /* of a host's name and a port, and its end */

void cn_udp_address_put(uint8_t mac[6], const struct sockaddr_in *a)
{
	uint16_t port = ntohs(a->sin_port);

	mac[0] = (uint8_t)(port << 1);
	mac[1] = (uint8_t)(port >> 7);
	cn_put_be32(mac + 2, ntohl(a->sin_addr.s_addr));
}

bool cn_udp_address_get(const uint8_t mac[6], struct sockaddr_in *out)
{
	uint32_t address = cn_get_be32(mac + 2);
	uint16_t port = (uint16_t)(CN_UDP_PORT_MIN | mac[0] >> 1 | mac[1] << 7);

	if ((mac[0] & 1) != 0 || address == 0 || IN_MULTICAST(address) ||
	    IN_EXPERIMENTAL(address)) {
		return false;
	}
	*out = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(address),
	};
	return true;
}

int cn_udp_address_order(const void *a, const void *b)
{
	const struct sockaddr_in *x = a, *y = b;

	return x->sin_addr.s_addr != y->sin_addr.s_addr
		       ? (x->sin_addr.s_addr < y->sin_addr.s_addr ? -1 : 1)
		       : (int)x->sin_port - (int)y->sin_port;
}

int cn_udp_own_address(int fd, const char *interface, const struct sockaddr_in *former,
		       struct sockaddr_in *out, struct cn_err *err)
{
	struct ifreq r = { .ifr_addr.sa_family = AF_INET };

	if (former != NULL) { /* the kernel looks for that one first */
		memcpy(&r.ifr_addr, former, sizeof(*former));
	}
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", interface);
	if (ioctl(fd, SIOCGIFADDR, &r) < 0) {
		return cn_fail(err, COLLNET_EIFACE,
			       "interface %s has no IPv4 address, which link udp needs: %s",
			       interface, cn_strerror(errno));
	}
	memcpy(out, &r.ifr_addr, sizeof(*out));
	return COLLNET_OK;
}

static int add(struct cn_udp_peers *p, uint32_t *room, const struct sockaddr_in *a,
	       struct cn_err *err)
{
	struct sockaddr_in *list;

	for (uint32_t i = 0; i < p->n; i++) {
		if (p->list[i].sin_addr.s_addr == a->sin_addr.s_addr &&
		    p->list[i].sin_port == a->sin_port) {
			return COLLNET_OK;
		}
	}
	if (p->n == CN_UDP_PEERS_MAX) {
		return cn_fail(err, COLLNET_ELIMIT, "more than %u nodes", CN_UDP_PEERS_MAX);
	}
	list = cn_vector_grow(p->list, p->n, room, sizeof(*list));
	if (list == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "out of memory for the list of nodes");
	}
	p->list = list;
	p->list[p->n++] = *a;
	return COLLNET_OK;
}

/* A host's name or address. */
static int resolve(const char *host, struct sockaddr_in *out, struct cn_err *err)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_DGRAM }, *found;
	int e;

	if (inet_pton(AF_INET, host, &out->sin_addr) == 1) {
		return COLLNET_OK;
	}
	e = getaddrinfo(host, NULL, &hints, &found);
	if (e != 0) {
		/* Not EINVAL: the name service may be up later. */
		return cn_fail(err, COLLNET_ESYSTEM, "host '%.80s': %s", host,
			       e == EAI_SYSTEM ? cn_strerror(errno) : gai_strerror(e));
	}
	out->sin_addr = ((const struct sockaddr_in *)(const void *)found->ai_addr)->sin_addr;
	freeaddrinfo(found);
	return COLLNET_OK;
}

/* A word of a file or a list: HOST or HOST:PORT. */
static int read_peer(char *word, uint16_t port, struct sockaddr_in *out, struct cn_err *err)
{
	char *colon = strchr(word, ':');
	uint64_t number = port;
	int rc;

	if (colon != NULL) {
		*colon = '\0';
		if (!cn_parse_uint(colon + 1, CN_UDP_PORT_MIN, 65535, &number)) {
			return cn_fail(err, COLLNET_EINVAL,
				       "host '%.80s': '%.20s' is not a port from %u to 65535", word,
				       colon + 1, CN_UDP_PORT_MIN);
		}
	}
	*out = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)number) };
	rc = resolve(word, out, err);
	if (rc == COLLNET_OK &&
	    (ntohl(out->sin_addr.s_addr) == 0 || ntohl(out->sin_addr.s_addr) >= 0xe0000000u)) {
		rc = cn_fail(err, COLLNET_EINVAL, "'%.80s' is not the address of a host", word);
	}
	return rc;
}

static int read_lines(char *text, const char *name, uint16_t port, struct cn_udp_peers *out,
		      struct cn_err *err)
{
	uint32_t room = 0, number = 0;
	char *line, *rest = text;
	int rc = COLLNET_OK;

	while (rc == COLLNET_OK && (line = strsep(&rest, "\n")) != NULL) {
		struct sockaddr_in a;
		struct cn_err why;
		char *more, *word;

		number++;
		line[strcspn(line, "#\r")] = '\0';
		word = strtok_r(line, " \t", &more);
		if (word == NULL) {
			continue;
		}
		rc = strtok_r(NULL, " \t", &more) != NULL
			     ? cn_fail(&why, COLLNET_EINVAL, "one HOST or HOST:PORT per line")
			     : read_peer(word, port, &a, &why);
		if (rc == COLLNET_OK) {
			rc = add(out, &room, &a, &why);
		}
		if (rc != COLLNET_OK) {
			rc = cn_fail(err, rc, "%s:%u: %s", name, number, why.text);
		}
	}
	if (rc == COLLNET_OK && out->n == 0) {
		rc = cn_fail(err, COLLNET_EINVAL, "%s: no host: write one per line", name);
	}
	return rc;
}

/* True if it is a list of hosts. A name with a slash is a file's. */
static bool is_list(const char *text)
{
	return strchr(text, '/') == NULL && strpbrk(text, ",[") != NULL;
}

static int read_list(const char *text, uint16_t port, struct cn_udp_peers *out, struct cn_err *err)
{
	size_t len = strlen(text);
	char *copy = strndup(text, text[len - 1] == ',' ? len - 1 : len);
	char name[NAME_SIZE], found[CN_HOSTLIST_FOUND];
	struct cn_hostlist h;
	uint32_t room = 0;
	int more = 1, rc = COLLNET_OK;

	if (copy == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "out of memory for the list of nodes");
	}
	cn_hostlist_begin(&h, copy);
	while (rc == COLLNET_OK && (more = cn_hostlist_next(&h, name, sizeof(name))) == 1) {
		struct sockaddr_in a;

		rc = read_peer(name, port, &a, err);
		if (rc == COLLNET_OK) {
			rc = add(out, &room, &a, err);
		}
	}
	if (rc == COLLNET_OK && more < 0) {
		rc = cn_fail(err, COLLNET_EINVAL,
			     "expected a list of hosts like node[01-12],login, found %s",
			     cn_hostlist_found(&h, found));
	}
	free(copy);
	return rc;
}

static int read_file(const char *name, uint16_t port, struct cn_udp_peers *out, struct cn_err *err)
{
	size_t len = 0;
	FILE *f = fopen(name, "re");
	char *lines = f != NULL ? cn_read_all(f, FILE_MAX, &len) : NULL;
	const int e = errno;
	int rc;

	if (lines == NULL) {
		rc = cn_fail(err, COLLNET_ESYSTEM, "the file of hosts %s: %s%s", name,
			     cn_strerror(e),
			     e == ENOENT && strchr(name, '/') == NULL
				     ? "; a list of one host ends with a comma"
				     : "");
	} else if (len > FILE_MAX) {
		rc = cn_fail(err, COLLNET_ELIMIT, "the file of hosts %s is too long", name);
	} else {
		rc = read_lines(lines, name, port, out, err);
	}
	if (f != NULL) {
		fclose(f);
	}
	free(lines);
	return rc;
}

int cn_udp_peers_read(const char *text, uint16_t port, struct cn_udp_peers *out, struct cn_err *err)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	uint32_t room = 0;
	int rc;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, text, &a.sin_addr) == 1) {
		if (!IN_MULTICAST(ntohl(a.sin_addr.s_addr))) {
			return cn_fail(err, COLLNET_EINVAL,
				       "'%s' is not a multicast group (224.0.0.0 to "
				       "239.255.255.255), a list of hosts (%s,), nor the name of a "
				       "file with hosts",
				       text, text);
		}
		out->group = true;
		return add(out, &room, &a, err);
	}
	rc = is_list(text) ? read_list(text, port, out, err) : read_file(text, port, out, err);
	if (rc != COLLNET_OK) {
		free(out->list);
		memset(out, 0, sizeof(*out));
	}
	return rc;
}
