# SPDX-License-Identifier: BSD-2-Clause
"""
Data-parallel training with PyTorch: DistributedDataParallel averages the gradients of all ranks by
the backend of collnet. Every rank trains on its share of the samples; the model must become that of
one process that trains on all of them.

    torchrun --nnodes 4 --rdzv-backend c10d --rdzv-endpoint node0:29400 ddp.py

Rank and size come from the launcher. With an argument, the name of a file that all ranks can write,
the ranks find each other through it instead of MASTER_ADDR.
"""
import os
import sys

import torch
import torch.distributed as dist

import collnet.torch

STEPS = 20
SAMPLES = 24


def model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))


def train(net, x, y):
    """Returns the losses of the first and the last step."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[0], losses[-1]


def main():
    torch.set_num_threads(1)
    if len(sys.argv) > 1:
        dist.init_process_group("collnet", init_method="file://" + os.path.abspath(sys.argv[1]),
                                rank=int(os.environ["COLLNET_RANK"]),
                                world_size=int(os.environ["COLLNET_SIZE"]))
    else:
        dist.init_process_group("collnet")
    rank, size = dist.get_rank(), dist.get_world_size()

    # Equal shares, so that the average of the ranks' gradients is that of all samples.
    draw = torch.Generator().manual_seed(2)
    x = torch.randn(SAMPLES * size, 5, generator=draw)
    y = x.prod(1, keepdim=True).tanh()
    parallel = torch.nn.parallel.DistributedDataParallel(model())
    train(parallel, x[rank::size], y[rank::size])

    alone = model()
    first, last = train(alone, x, y)
    right = torch.tensor(all(torch.allclose(a, b, atol=1e-5) for a, b in
                             zip(parallel.module.parameters(), alone.parameters()))
                         and last < first)
    dist.all_reduce(right, dist.ReduceOp.MIN)
    if rank == 0:
        print(f"ddp: {STEPS} steps on {size} ranks, loss {first:.4f} to {last:.4f}:",
              "correct" if right else "WRONG")
    return 0 if right else 1


sys.exit(main())
