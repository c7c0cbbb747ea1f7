# SPDX-License-Identifier: BSD-2-Clause
# Calls that return before their operation has ended: what they sent arrives, and their errors are
# reported by the next call.
# timeout: 300
# concurrent: yes
# run: user asan-long
. "$(dirname "$0")/lib.sh"
need_lab
need buffered

every_rank 4 buffered --shape 2x2 --rate 100mbit
every_rank 3 buffered --shape 3 --rate none
every_rank 6 buffered --shape 3 --ranks-per-node 2 --rate none
every_rank 2 buffered --shape 2 --rate 100mbit --loss 2%
