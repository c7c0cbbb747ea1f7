# SPDX-License-Identifier: BSD-2-Clause
# collnetd: main.c over a convenience library, which tests and fuzzers link too.
