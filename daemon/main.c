/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collnetd's main(); everything else is in a library that the tests link, too.
 */
#include "daemon/daemon.h"

int main(int argc, char **argv)
{
	return cn_daemon_run(argc, argv);
}
