! SPDX-License-Identifier: BSD-2-Clause
! A Fortran program with mpif.h that knows nothing of collnet: the addresses that Fortran has for
! MPI_IN_PLACE and MPI_BOTTOM, Fortran's types and an operation of its own. Prints "right: fortran".
      program main
      implicit none
      include 'mpif.h'
      integer n
      parameter (n = 1000)
      integer rank, ranks, i, op, type, ierror, lengths(1), mine
      integer(kind=MPI_ADDRESS_KIND) places(1)
      integer a(n), b(n*64), c(n*64)
      double precision x(n), y(n)
      external combine

      call MPI_Init(ierror)
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
      call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)

      do i = 1, n
         x(i) = rank + i
      end do
      call MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_DOUBLE_PRECISION,
     &                   MPI_SUM, MPI_COMM_WORLD, ierror)
      do i = 1, n
         call check(x(i) .eq. ranks * i + ranks * (ranks - 1) / 2,
     &              'allreduce')
      end do

      do i = 1, n * ranks
         b(i) = rank * 100000 + i
      end do
      call MPI_Alltoall(b, n, MPI_INTEGER, c, n, MPI_INTEGER,
     &                  MPI_COMM_WORLD, ierror)
      do i = 1, n * ranks
         call check(c(i) .eq. (i - 1) / n * 100000 + rank * n + 1
     &              + mod(i - 1, n), 'alltoall')
      end do
      do i = 1, n
         c(rank * n + i) = rank * 100000 + i
      end do
      call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, c, n,
     &                   MPI_INTEGER, MPI_COMM_WORLD, ierror)
      do i = 1, n * ranks
         call check(c(i) .eq. (i - 1) / n * 100000
     &              + mod(i - 1, n) + 1, 'allgather')
      end do

      do i = 1, n
         a(i) = rank * 7 + i
      end do
      lengths(1) = n
      call MPI_Get_address(a, places(1), ierror)
      call MPI_Type_create_hindexed(1, lengths, places, MPI_INTEGER,
     &                              type, ierror)
      call MPI_Type_commit(type, ierror)
      call MPI_Bcast(MPI_BOTTOM, 1, type, 1, MPI_COMM_WORLD, ierror)
      call MPI_Get_address(a, places(1), ierror)
      do i = 1, n
         call check(a(i) .eq. 7 + i, 'bcast')
      end do
      call MPI_Type_free(type, ierror)

      call MPI_Op_create(combine, .true., op, ierror)
      do i = 1, n
         y(i) = mod(i * (rank + 3), 17)
         x(i) = 0
      end do
      call MPI_Allreduce(y, x, n, MPI_DOUBLE_PRECISION, op,
     &                   MPI_COMM_WORLD, ierror)
      do i = 1, n
         mine = 0
         do op = 0, ranks - 1
            mine = max(mine, mod(i * (op + 3), 17))
         end do
         call check(x(i) .eq. mine, 'an operation of its own')
      end do

      call MPI_Barrier(MPI_COMM_WORLD, ierror)
      if (rank .eq. 0) print *, 'right: fortran'
      call MPI_Finalize(ierror)
      end

      subroutine combine(in, inout, length, type)
      implicit none
      integer length, type, i
      double precision in(length), inout(length)
      do i = 1, length
         inout(i) = max(in(i), inout(i))
      end do
      end

      subroutine check(right, what)
      implicit none
      include 'mpif.h'
      logical right
      character*(*) what
      integer ierror
      if (.not. right) then
         print *, 'wrong: ', what
         call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
      end if
      end
