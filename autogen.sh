#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Makes ./configure. Needed once after a clone; `sh tools/deps` installs what it needs.
set -e
cd "$(dirname "$0")"
command -v autoreconf >/dev/null || {
	echo "autogen.sh: autoreconf is missing; run: sh tools/deps" >&2
	exit 1
}
mkdir -p build-aux m4
exec autoreconf -fi
