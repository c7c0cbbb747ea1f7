# SPDX-License-Identifier: BSD-2-Clause
# Transforms of mpi4py-fft on a distributed array, forward and back: N TIMES. Prints "right: SECONDS".
import sys

import numpy
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray

n, times = int(sys.argv[1]), int(sys.argv[2])
fft = PFFT(MPI.COMM_WORLD, [n, n, n], axes=(0, 1, 2), dtype=complex)
a = newDistArray(fft, False)
numpy.random.seed(MPI.COMM_WORLD.Get_rank())
a[:] = numpy.random.random(a.shape)
before = a.copy()
MPI.COMM_WORLD.Barrier()
began = MPI.Wtime()
for i in range(times):
    b = fft.forward(a)
    a = fft.backward(b, a)
MPI.COMM_WORLD.Barrier()
seconds = MPI.Wtime() - began
right = MPI.COMM_WORLD.allreduce(bool(numpy.allclose(a, before)), op=MPI.LAND)
if MPI.COMM_WORLD.Get_rank() == 0:
    print("%s: %.3f s" % ("right" if right else "wrong", seconds))
