# SPDX-License-Identifier: BSD-2-Clause
# Waits that begin after the deadline, and memory that is copied slowly: the context survives.
# timeout: 400
# concurrent: yes
. "$(dirname "$0")/lib.sh"
need_lab
need late

every_rank 2 late --shape 2 --rate 100mbit
every_rank 2 late --shape 1 --ranks-per-node 2
COLLNET_MODE=direct every_rank 2 "late direct" --shape 2 --rate 100mbit --no-daemons
