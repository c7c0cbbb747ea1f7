# SPDX-License-Identifier: BSD-2-Clause
# Tests. `sh tests/run` runs all of them; `make check` the unit tests and the fuzz corpus.

EXTRA_DIST += tests/run
