# SPDX-License-Identifier: BSD-2-Clause
# Persistent operations, through the daemon and directly.
# run: asan-long
# timeout: 300
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab
need persistent

every_rank 3 persistent --rate none --shape 3
every_rank 6 persistent --rate none --shape 3 --ranks-per-node 2
every_rank 2 persistent --rate none --shape 1 --ranks-per-node 2
COLLNET_MODE=direct every_rank 3 persistent --rate none --shape 3 --no-daemons
