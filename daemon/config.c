/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration: one table of keys (that of the limits is in quota.c), used by the command line
 * ("--key value") and by the configuration file (one "key value" or "key = value" per line, '#'
 * begins a comment). Options on the command line override the file, which overrides the defaults.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/file.h"

#define FILE_MAX       ((size_t)64 << 10)
#define LINE_MAX_BYTES 1024

static const char help_text[] =
	"usage: collnetd [-i INTERFACE] [OPTION...]\n"
	"Sends and receives the frames of this node's programs on an Ethernet interface.\n"
	"\n"
	"  -i, --interface NAME    Ethernet interface; required if more than one is up\n"
	"      --link KIND         packet (default), udp or pcap\n"
	"      --peers PEERS       link udp: a multicast group, list or file of hosts\n"
	"                          (default: 239.192.136.181)\n"
	"      --encapsulation E   udp (default), tcp or raw, the same on all nodes\n"
	"      --node NAME         name of this node (default: the host name)\n"
	"      --topology FILE     topology file: switches, links, rates, buffers\n"
	"      --socket PATH       Unix domain socket for programs\n"
	"                          (default: " CN_MSG_SOCKET ")\n"
	"      --socket-mode MODE  permissions of the socket, octal (default: 0660)\n"
	"      --key FILE          key of the cluster, which authenticates all frames; the same on all\n"
	"                          nodes (default: none)\n"
	"      --cluster N         cluster ID, 0 to 65535, the same on all nodes (default: 0)\n"
	"      --ethertype N       EtherType, or UDP or TCP port, the same on all nodes\n"
	"                          (default: 0x88B5)\n"
	"      --window W          global window: auto (default), off, or a number of frames\n"
	"      --peer-timeout MS   time without a frame after which a node that an operation waits\n"
	"                          for is lost: 300 to 60000 milliseconds (default: 1500)\n"
	"      --user NAME         user to run as once the sockets are open, if started as root\n"
	"                          (default: collnet if it exists, else nobody); none stays root\n"
	"      --group NAME        group of the process and the socket (default: collnet if it\n"
	"                          exists, else the group of the user)\n"
	"      --max-connections N, --max-teams N, --max-endpoints N, --max-requests N,\n"
	"      --max-regions N, --max-memory SIZE\n"
	"                          limits per user (defaults: 256, 1024, 128, 16384, 16384, half of\n"
	"                          the memory)\n"
	"      --config FILE       read options from a file, one 'key value' per line\n"
	"      --log-level LEVEL   error, warning, info (default) or debug\n"
	"      --ready-fd FD       write READY to this descriptor when ready\n"
	"  -h, --help              show this help\n"
	"  -V, --version           show the version\n";

static const char version_text[] = "collnetd %s\n";

void cn_config_init(struct cn_config *c)
{
	memset(c, 0, sizeof(*c));
	snprintf(c->socket, sizeof(c->socket), "%s", CN_MSG_SOCKET);
	c->socket_mode = 0660;
	c->ethertype = 0x88B5;
	c->encapsulation = CN_ENCAPSULATION_DEFAULT;
	c->window = COLLNET_WINDOW_AUTO;
	c->peer_timeout_ms = CN_MSG_PEER_TIMEOUT;
	c->log_level = COLLNET_LOG_INFO;
	c->ready_fd = -1;
}

/* ---- setters: NULL, or the expected value ---------------------------------------------- */

static bool copy(char *out, size_t size, const char *v)
{
	if (v[0] == '\0' || strlen(v) >= size) {
		return false;
	}
	memcpy(out, v, strlen(v) + 1);
	return true;
}

static const char *set_interface(struct cn_config *c, const char *v)
{
	/* The daemon would wait for an interface of a name that none can have. */
	return strlen(v) <= 15 && v[strcspn(v, " \t\n\v\f\r,/:\"")] == '\0' &&
			       copy(c->interface, sizeof(c->interface), v)
		       ? NULL
		       : "the name of one Ethernet interface (of several, make a bond)";
}

static const char *set_link(struct cn_config *c, const char *v)
{
	return (strcmp(v, "packet") == 0 || strcmp(v, "udp") == 0 || strcmp(v, "pcap") == 0) &&
			       copy(c->link, sizeof(c->link), v)
		       ? NULL
		       : "packet, udp or pcap";
}

static const char *set_peers(struct cn_config *c, const char *v)
{
	return copy(c->peers, sizeof(c->peers), v)
		       ? NULL
		       : "a multicast group, a list of hosts of at most 255 bytes, or a file";
}

static const char *set_encapsulation(struct cn_config *c, const char *v)
{
	return cn_parse_encapsulation(v, &c->encapsulation) ? NULL : "raw, udp or tcp";
}

static const char *set_node(struct cn_config *c, const char *v)
{
	return cn_valid_name(v) && copy(c->node, sizeof(c->node), v)
		       ? NULL
		       : "1 to 63 characters of A-Z a-z 0-9 . _ : @ / -";
}

static const char path_expected[] = "the path of a file, of at most 255 bytes";

static const char *set_topology(struct cn_config *c, const char *v)
{
	return copy(c->topology, sizeof(c->topology), v) ? NULL : path_expected;
}

static const char *set_cluster_key(struct cn_config *c, const char *v)
{
	return copy(c->key, sizeof(c->key), v) ? NULL : path_expected;
}

static const char *set_socket(struct cn_config *c, const char *v)
{
	return copy(c->socket, sizeof(c->socket), v) ? NULL : "a path of at most 107 bytes";
}

static const char *set_socket_mode(struct cn_config *c, const char *v)
{
	uint32_t mode = 0;
	size_t n = strlen(v);

	if (n < 3 || n > 4 || strspn(v, "01234567") != n) {
		return "an octal mode such as 0660";
	}
	for (; *v != '\0'; v++) {
		mode = mode * 8 + (uint32_t)(*v - '0');
	}
	if ((mode & ~0777u) != 0) {
		return "an octal mode such as 0660";
	}
	c->socket_mode = mode;
	return NULL;
}

static const char *set_cluster(struct cn_config *c, const char *v)
{
	uint64_t n;

	if (!cn_parse_uint(v, 0, 65535, &n)) {
		return "a number from 0 to 65535";
	}
	c->cluster = (uint16_t)n;
	return NULL;
}

static const char *set_ethertype(struct cn_config *c, const char *v)
{
	uint64_t n;

	if (!cn_parse_ethertype(v, &n)) {
		return "a number from 0x0600 to 0xFFFF";
	}
	if (cn_link_ethertype_owner((uint16_t)n) != NULL) {
		return "one that no other protocol uses, such as 0x88b5";
	}
	c->ethertype = (uint16_t)n;
	return NULL;
}

static const char *set_peer_timeout(struct cn_config *c, const char *v)
{
	uint64_t n;

	if (!cn_parse_uint(v, CN_MSG_PEER_TIMEOUT_MIN, CN_MSG_PEER_TIMEOUT_MAX, &n)) {
		return "milliseconds from 300 to 60000";
	}
	c->peer_timeout_ms = (uint16_t)n;
	return NULL;
}

static const char *set_window(struct cn_config *c, const char *v)
{
	uint64_t n;

	if (strcmp(v, "auto") == 0) {
		c->window = COLLNET_WINDOW_AUTO;
	} else if (strcmp(v, "off") == 0) {
		c->window = COLLNET_WINDOW_OFF;
	} else if (cn_parse_uint(v, 1, 65535, &n)) {
		c->window = (uint32_t)n;
	} else {
		return "auto, off, or a number of frames from 1 to 65535";
	}
	return NULL;
}

static const char *set_user(struct cn_config *c, const char *v)
{
	return copy(c->user, sizeof(c->user), v)
		       ? NULL
		       : "the name of a user, of at most 63 bytes, or none";
}

static const char *set_group(struct cn_config *c, const char *v)
{
	return copy(c->group, sizeof(c->group), v) ? NULL
						   : "the name of a group, of at most 63 bytes";
}

static const char *set_limit(struct cn_config *c, enum cn_quota q, const char *v)
{
	const struct cn_quota_kind *k = &cn_quota_kinds[q];
	uint64_t n;
	const bool valid = q == CN_QUOTA_MEMORY ? cn_parse_size(v, &n) && n > 0
						: cn_parse_uint(v, 1, k->max, &n);

	if (!valid) {
		return k->expected;
	}
	c->limits[q] = n;
	return NULL;
}

static const char *set_log_level(struct cn_config *c, const char *v)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };

	for (int i = 0; i < 4; i++) {
		if (strcmp(v, names[i]) == 0) {
			c->log_level = (enum collnet_log_level)i;
			return NULL;
		}
	}
	return "error, warning, info or debug";
}

static const struct {
	const char *name;
	const char *(*set)(struct cn_config *c, const char *v);
} keys[] = {
	{ "interface", set_interface }, /* the limits come after these: key_name() */
	{ "link", set_link },
	{ "peers", set_peers },
	{ "encapsulation", set_encapsulation },
	{ "node", set_node },
	{ "topology", set_topology },
	{ "key", set_cluster_key },
	{ "socket", set_socket },
	{ "socket-mode", set_socket_mode },
	{ "cluster", set_cluster },
	{ "ethertype", set_ethertype },
	{ "window", set_window },
	{ "peer-timeout", set_peer_timeout },
	{ "user", set_user },
	{ "group", set_group },
	{ "log-level", set_log_level },
};

#define FIRST_LIMIT (sizeof(keys) / sizeof(keys[0]))
#define NKEYS	    (FIRST_LIMIT + CN_QUOTAS)

static const char *key_name(size_t i)
{
	return i < FIRST_LIMIT ? keys[i].name : cn_quota_kinds[i - FIRST_LIMIT].key;
}

static const char *set_key(struct cn_config *c, size_t i, const char *v)
{
	return i < FIRST_LIMIT ? keys[i].set(c, v)
			       : set_limit(c, (enum cn_quota)(i - FIRST_LIMIT), v);
}

/* ---- the file ------------------------------------------------------------------------- */

/* Cuts white space off both ends. */
static char *trim(char *s)
{
	char *end = s + strlen(s);

	while (end > s && strchr(" \t\r", end[-1]) != NULL) {
		end--;
	}
	*end = '\0';
	return s + strspn(s, " \t");
}

/* line_of[]: of each key the number of its line, or 0. */
static int parse_line(struct cn_config *c, char *line, const char *name, unsigned number,
		      unsigned line_of[NKEYS], struct cn_err *err)
{
	char *key, *v;
	const char *expected;

	line[strcspn(line, "#")] = '\0';
	key = trim(line);
	if (*key == '\0') {
		return COLLNET_OK;
	}
	v = key + strcspn(key, " \t=");
	if (*v != '\0') {
		bool equals = *v == '=';

		*v++ = '\0';
		v += strspn(v, " \t");
		if (!equals && *v == '=') {
			v++;
		}
		v = trim(v);
	}
	if (*v == '\0') {
		return cn_fail(err, COLLNET_ETOPO, "%s:%u: '%.40s' has no value", name, number,
			       key);
	}
	for (size_t i = 0; i < NKEYS; i++) {
		if (strcmp(key, key_name(i)) != 0) {
			continue;
		}
		if (line_of[i] != 0) {
			return cn_fail(err, COLLNET_ETOPO,
				       "%s:%u: %s is specified twice, first in line %u: remove one "
				       "of the two lines",
				       name, number, key, line_of[i]);
		}
		line_of[i] = number;
		expected = set_key(c, i, v);
		if (expected != NULL) {
			return cn_fail(err, COLLNET_ETOPO, "%s:%u: %s is '%.60s': expected %s",
				       name, number, key, v, expected);
		}
		return COLLNET_OK;
	}
	return cn_fail(err, COLLNET_ETOPO,
		       "%s:%u: unknown key '%.40s' (collnetd --help lists the keys)", name, number,
		       key);
}

int cn_config_parse(struct cn_config *c, const char *text, size_t len, const char *name,
		    struct cn_err *err)
{
	const char *end = text + len;
	char line[LINE_MAX_BYTES];
	unsigned number = 0, line_of[NKEYS] = { 0 };
	int rc;

	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((stop != NULL ? stop : end) - text);

		number++;
		if (n >= sizeof(line)) {
			return cn_fail(err, COLLNET_ETOPO,
				       "%s:%u: the line is longer than %zu bytes", name, number,
				       sizeof(line) - 1);
		}
		if (memchr(text, '\0', n) != NULL) {
			return cn_fail(err, COLLNET_ETOPO, "%s:%u: not a text file", name, number);
		}
		memcpy(line, text, n);
		line[n] = '\0';
		rc = parse_line(c, line, name, number, line_of, err);
		if (rc != COLLNET_OK) {
			return rc;
		}
		text = stop != NULL ? stop + 1 : end;
	}
	return COLLNET_OK;
}

int cn_config_read(struct cn_config *c, const char *path, struct cn_err *err)
{
	size_t n = 0;
	FILE *f = fopen(path, "re");
	char *text = f != NULL ? cn_read_all(f, FILE_MAX, &n) : NULL;
	int rc;

	if (text == NULL) {
		rc = cn_fail(err, COLLNET_ETOPO, "cannot read the configuration %s: %s", path,
			     cn_strerror(errno));
	} else if (n > FILE_MAX) {
		rc = cn_fail(err, COLLNET_ETOPO, "%s: longer than %zu bytes", path, FILE_MAX);
	} else {
		rc = cn_config_parse(c, text, n, path, err);
	}
	if (f != NULL) {
		fclose(f);
	}
	free(text);
	return rc;
}

/* ---- the command line ----------------------------------------------------------------- */

enum { OPT_CONFIG = 1000, OPT_READY_FD, OPT_KEY /* + index of the key */ };

static int check_value(const char *name, const char *v, const char *expected, struct cn_err *err)
{
	return expected == NULL ? COLLNET_OK
				: cn_fail(err, COLLNET_EINVAL, "--%s is '%.60s': expected %s", name,
					  v, expected);
}

static int parse_option(struct cn_config *c, int opt, const char *v, const char **print,
			struct cn_err *err)
{
	static char version[64];
	uint64_t n;

	switch (opt) {
	case 'h':
		*print = help_text;
		return COLLNET_INPROGRESS;
	case 'V':
		snprintf(version, sizeof(version), version_text, collnet_version());
		*print = version;
		return COLLNET_INPROGRESS;
	case 'i':
		return check_value("interface", v, set_interface(c, v), err);
	case OPT_CONFIG:
		return COLLNET_OK;
	case OPT_READY_FD:
		if (!cn_parse_uint(v, 0, 1 << 20, &n)) {
			return check_value("ready-fd", v, "the number of an open descriptor", err);
		}
		c->ready_fd = (int)n;
		return COLLNET_OK;
	default:
		return check_value(key_name((size_t)opt - OPT_KEY), v,
				   set_key(c, (size_t)opt - OPT_KEY, v), err);
	}
}

static void long_options(struct option *out)
{
	static const struct option fixed[] = {
		{ "config", required_argument, NULL, OPT_CONFIG },
		{ "ready-fd", required_argument, NULL, OPT_READY_FD },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
	};
	size_t n = sizeof(fixed) / sizeof(fixed[0]);

	memcpy(out, fixed, sizeof(fixed));
	for (size_t i = 0; i < NKEYS; i++) {
		out[n].name = key_name(i);
		out[n].has_arg = required_argument;
		out[n].val = OPT_KEY + (int)i;
		n++;
	}
}

/* At an unknown letter in a word of several letters, getopt_long() has not advanced beyond the
 * word. -h and -V are known: then their long names were given a value. */
static int wrong_option(int opt, const char *word, struct cn_err *err)
{
	const char letter[] = { '-', (char)optopt, '\0' };
	const bool is_letter = optopt > ' ' && optopt < 0x7f && optopt != 'h' && optopt != 'V';

	return cn_fail(err, COLLNET_EINVAL, "%s '%.60s': see collnetd --help",
		       opt == ':' ? "missing value for option" : "unknown or ambiguous option",
		       is_letter ? letter : word);
}

int cn_config_args(struct cn_config *c, int argc, char **argv, const char **print,
		   struct cn_err *err)
{
	struct option options[NKEYS + 5];
	const char *file = NULL;
	int opt, rc;

	memset(options, 0, sizeof(options));
	long_options(options);
	/* Two passes: the file that the command line names is read before the other options. */
	for (int pass = 0; pass < 2; pass++) {
		optind = 0;
		opterr = 0;
		while ((opt = getopt_long(argc, argv, ":i:hV", options, NULL)) != -1) {
			if (opt == '?' || opt == ':') {
				return wrong_option(opt, argv[optind - 1], err);
			}
			if (pass == 0 && opt == OPT_CONFIG) {
				file = optarg;
			}
			rc = pass == 0 ? COLLNET_OK : parse_option(c, opt, optarg, print, err);
			if (rc != COLLNET_OK) {
				return rc;
			}
		}
		if (optind < argc) {
			return cn_fail(err, COLLNET_EINVAL,
				       "unexpected argument '%.60s': see collnetd --help",
				       argv[optind]);
		}
		if (pass == 0 && file != NULL) {
			rc = cn_config_read(c, file, err);
			if (rc != COLLNET_OK) {
				return rc;
			}
		}
	}
	return COLLNET_OK;
}
