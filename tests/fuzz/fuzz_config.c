/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any text as collnetd's configuration: refused with a message that names file and line, or read
 * into settings that are within their bounds.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
	if (!ok) {
		abort();
	}
}

static bool ends(const char *s, size_t size)
{
	return memchr(s, '\0', size) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cn_err err = { .code = 0 };
	struct cn_config c;

	cn_config_init(&c);
	if (cn_config_parse(&c, (const char *)data, size, "input", &err) != COLLNET_OK) {
		check(err.code == COLLNET_ETOPO && strncmp(err.text, "input:", 6) == 0);
	}
	/* What was read before a wrong line is as sound as the rest. */
	check(ends(c.interface, 16) && ends(c.link, sizeof(c.link)) &&
	      ends(c.node, sizeof(c.node)));
	check(ends(c.topology, sizeof(c.topology)) && ends(c.socket, sizeof(c.socket)));
	check(ends(c.user, sizeof(c.user)) && ends(c.group, sizeof(c.group)));
	check(c.node[0] == '\0' || cn_valid_name(c.node));
	check(c.socket_mode <= 0777 && c.ethertype >= 0x0600);
	check(c.window <= 65535 || c.window == COLLNET_WINDOW_OFF);
	check(c.log_level <= COLLNET_LOG_DEBUG && c.ready_fd == -1);
	return 0;
}
