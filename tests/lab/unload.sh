# SPDX-License-Identifier: BSD-2-Clause
# A program that loads the library with dlopen() and unloads it, with a context open, too.
# concurrent: yes
# run: asan
# beside: others
. "$(dirname "$0")/lib.sh"
need_lab
need unload

library=$(dirname "$(command -v collnet)")/../lib/libcollnet.so.0
[ -e "$library" ] || skip "the shared library is not installed"

every_rank 3 "unload $library" --shape 3
every_rank 3 "unload $library" --shape 3 --no-daemons
