! SPDX-License-Identifier: BSD-2-Clause
! The module mpi_f08: collective operations with and without buffers, and in place.
program main
  use mpi_f08
  implicit none
  integer :: rank, ranks, i, provided, root
  integer :: one(100), all(6400), part(100)
  type(MPI_Comm) :: comm

  call MPI_Init_thread(MPI_THREAD_SINGLE, provided)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_rank(comm, rank)
  call MPI_Comm_size(comm, ranks)
  do i = 1, 100
    call MPI_Barrier(comm)
  end do
  one = rank + 1
  call MPI_Allreduce(MPI_IN_PLACE, one, 100, MPI_INTEGER, MPI_SUM, comm)
  call check(all_are(one, ranks * (ranks + 1) / 2))
  do root = 0, ranks - 1
    one = rank
    call MPI_Bcast(one, 100, MPI_INTEGER, root, comm)
    call check(all_are(one, root))
    all(100 * rank + 1:100 * rank + 100) = rank
    if (rank == root) then
      call MPI_Gather(MPI_IN_PLACE, 0, MPI_INTEGER, all, 100, MPI_INTEGER, root, comm)
      do i = 0, ranks - 1
        call check(all_are(all(100 * i + 1:100 * i + 100), i))
      end do
      call MPI_Scatter(all, 100, MPI_INTEGER, MPI_IN_PLACE, 0, MPI_INTEGER, root, comm)
    else
      call MPI_Gather(all(100 * rank + 1), 100, MPI_INTEGER, part, 0, MPI_INTEGER, root, comm)
      call MPI_Scatter(all, 100, MPI_INTEGER, part, 100, MPI_INTEGER, root, comm)
      call check(all_are(part, rank))
    end if
  end do
  do i = 0, ranks - 1
    all(100 * i + 1:100 * i + 100) = rank * 100 + i
  end do
  call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INTEGER, all, 100, MPI_INTEGER, comm)
  do i = 0, ranks - 1
    call check(all_are(all(100 * i + 1:100 * i + 100), i * 100 + rank))
  end do
  call MPI_Comm_free(comm)
  if (rank == 0) print *, 'right: f08'
  call MPI_Finalize()

contains

  logical function all_are(values, expected)
    integer, intent(in) :: values(100), expected

    all_are = count(values == expected) == 100
  end function

  subroutine check(right)
    logical, intent(in) :: right

    if (.not. right) then
      print *, 'wrong: rank', rank
      call MPI_Abort(MPI_COMM_WORLD, 1)
    end if
  end subroutine
end program
