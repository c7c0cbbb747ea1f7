# SPDX-License-Identifier: BSD-2-Clause
"""
Sample sort in Python: every rank has random numbers, and in the end rank 0 has the least of all of
them, sorted, and the last rank the greatest. The ranks agree on the limits between them by samples,
and send each other what belongs to them by alltoallv, whose counts they have exchanged before.

    collnet lab run --shape 4x2 -- python3 sort.py [NUMBERS-PER-RANK]
"""
import bisect
import random
import sys
from array import array

import collnet

SAMPLES = 32


def main(per_rank):
    with collnet.Context() as context, context.team() as team:
        draw = random.Random(team.rank)
        own = array("d", sorted(draw.random() for _ in range(per_rank)))

        # The limits between the ranks.
        samples = array("d", bytes(8 * SAMPLES * team.size))
        team.allgather(array("d", draw.choices(own, k=SAMPLES)), samples)
        limits = sorted(samples)[SAMPLES::SAMPLES]

        # The counts to and from each rank.
        ends = [0] + [bisect.bisect(own, limit) for limit in limits] + [per_rank]
        counts = array("i", [end - begin for begin, end in zip(ends, ends[1:])])
        from_ranks = array("i", bytes(4 * team.size))
        team.alltoall(counts, from_ranks)
        received = array("d", bytes(8 * sum(from_ranks)))
        team.alltoallv(own, counts, None, received, from_ranks, None)
        received = array("d", sorted(received))

        # No number is lost, and all ranks are in order.
        total = array("q", [0])
        team.allreduce(array("q", [len(received)]), total)
        edges = array("d", bytes(16 * team.size))
        team.allgather(array("d", [min(received, default=0), max(received, default=0)]), edges)
        right = total[0] == per_rank * team.size and (0 in edges or list(edges) == sorted(edges))
        if team.rank == 0:
            print(f"sort: {total[0]} numbers on {team.size} ranks:",
                  "correct" if right else "WRONG")
        return 0 if right else 1


numbers = sys.argv[1] if len(sys.argv) > 1 else "10000"
if not numbers.isdecimal() or int(numbers) == 0:
    sys.exit("usage: sort.py [NUMBERS-PER-RANK], 1 at least")
sys.exit(main(int(numbers)))
