! The collectives of Fortran: their constants, handles and requests, operators of the program's own, and an end in C.
!
!   fortran FOLDER
!
! Compiled with -DOPERATORS=NAME of the module three times: for mpif.h, with -DUSE_MPI for the module mpi, and with -DUSE_F08 for mpi_f08.
! -DHAS_DIST_GRAPH: MPI_Dist_graph_create works.
#ifdef USE_F08
#define COMMUNICATOR type(MPI_Comm)
#define REQUEST type(MPI_Request)
#define DATATYPE type(MPI_Datatype)
#define OPERATION type(MPI_Op)
#define STATUS_OF(N) type(MPI_Status) :: statuses(N)
#else
#define COMMUNICATOR integer
#define REQUEST integer
#define DATATYPE integer
#define OPERATION integer
#define STATUS_OF(N) integer :: statuses(MPI_STATUS_SIZE, N)
#endif

module OPERATORS
contains
#ifdef USE_F08
  subroutine compose(left, right, length, kind)
    use mpi_f08
    use, intrinsic :: iso_c_binding
    type(c_ptr), value :: left, right
    integer :: length
    DATATYPE :: kind
    integer, pointer :: a(:), b(:)
    integer :: i
    call c_f_pointer(left, a, [2 * length])
    call c_f_pointer(right, b, [2 * length])
    if (kind == MPI_2INTEGER) then
      do i = 1, 2 * length, 2
        b(i + 1) = mod(a(i + 1) * b(i) + b(i + 1), 1009)
        b(i) = mod(a(i) * b(i), 1009)
      end do
    end if
  end subroutine
#else
  subroutine compose(a, b, length, kind)
#ifdef USE_MPI
    use mpi
#else
    include 'mpif.h'
#endif
    integer :: length, kind, i
    integer :: a(2 * length), b(2 * length)
    if (kind == MPI_2INTEGER) then
      do i = 1, 2 * length, 2
        b(i + 1) = mod(a(i + 1) * b(i) + b(i + 1), 1009)
        b(i) = mod(a(i) * b(i), 1009)
      end do
    end if
  end subroutine
#endif
end module

program fortran
#if defined(USE_F08)
  use mpi_f08
#elif defined(USE_MPI)
  use mpi
#endif
  use OPERATORS
  implicit none
#if !defined(USE_F08) && !defined(USE_MPI)
  include 'mpif.h'
#endif
  integer, parameter :: most = 16
  integer :: error, rank, ranks, i, turn, index, done, indices(3), provided
  integer :: values(6), sums(6), all(2 * most), counts(most), offsets(most)
  integer(kind=MPI_ADDRESS_KIND) :: addresses(2)
  logical :: flag
  character(len=1024) :: folder
  COMMUNICATOR :: copy, half
  REQUEST :: requests(3)
  DATATYPE :: both, spaced
  OPERATION :: op
  STATUS_OF(3)

  call MPI_Init_thread(MPI_THREAD_SINGLE, provided, error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call get_command_argument(1, folder)
  write (folder, '(A, A, I0)') trim(folder), '/', rank
  open (unit=10, file=trim(folder), action='write', status='replace')

  call check_reductions()
  call check_addresses()
  call check_parts()
  call check_operators()
  call check_requests()
  call check_communicators()
  close (10)
  call end_in_c()
contains
  subroutine check_reductions()
    values = [(10 * rank + i, i = 1, 6)]
    call MPI_Bcast(values, 6, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, error)
    write (10, *) 'broadcast', values, error
    sums = [(rank + i, i = 1, 6)]
    call MPI_Allreduce(MPI_IN_PLACE, sums, 6, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    write (10, *) 'in place', sums
    if (rank == 0) then
      call MPI_Reduce(MPI_IN_PLACE, values, 6, MPI_INTEGER, MPI_MAX, 0, MPI_COMM_WORLD, error)
      write (10, *) 'in place at the root', values
    else
      call MPI_Reduce(sums, values, 6, MPI_INTEGER, MPI_MAX, 0, MPI_COMM_WORLD, error)
    end if
  end subroutine

  ! Absolute addresses.
  subroutine check_addresses()
    sums = [(100 * rank + i, i = 1, 6)]
    call MPI_Get_address(values(2), addresses(1), error)
    call MPI_Get_address(sums(3), addresses(2), error)
    call MPI_Type_create_hindexed(2, [2, 3], addresses, MPI_INTEGER, both, error)
    call MPI_Type_commit(both, error)
    call MPI_Bcast(MPI_BOTTOM, 1, both, 0, MPI_COMM_WORLD, error)
    call MPI_Type_free(both, error)
    write (10, *) 'addresses', values(2:3), sums(3:5)
  end subroutine

  subroutine check_parts()
    do i = 1, ranks
      counts(i) = mod(i, 2) + 1
      offsets(i) = 2 * (ranks - i)
    end do
    all = -1
    call MPI_Gatherv(sums, counts(rank + 1), MPI_INTEGER, all, counts, offsets, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    if (rank == 0) write (10, *) 'gathered', all(1:2 * ranks)
    call MPI_Allgather(sums, 2, MPI_INTEGER, all, 2, MPI_INTEGER, MPI_COMM_WORLD, error)
    write (10, *) 'allgathered', all(1:2 * ranks)
  end subroutine

  ! An operator that does not commute, freed before it has done its work.
  subroutine check_operators()
    do turn = 1, 2
      values = [(rank + i, i = 1, 6)]
      call MPI_Op_create(compose, .false., op, error)
      if (turn == 1) then
        call MPI_Allreduce(values, sums, 3, MPI_2INTEGER, op, MPI_COMM_WORLD, error)
        call MPI_Op_free(op, error)
      else
        call MPI_Iallreduce(values, sums, 3, MPI_2INTEGER, op, MPI_COMM_WORLD, requests(1), error)
        call MPI_Op_free(op, error)
        call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
      end if
      write (10, *) 'composed', sums
    end do
  end subroutine

  ! Requests, in all ways.
  subroutine check_requests()
    call MPI_Comm_dup(MPI_COMM_WORLD, copy, error)
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, error)
    do turn = 1, 7
      all = 10 * rank + turn
      call MPI_Type_vector(3, 1, 2, MPI_INTEGER, spaced, error)
      call MPI_Type_commit(spaced, error)
      call MPI_Ibcast(all, 1, spaced, 0, MPI_COMM_WORLD, requests(1), error)
      call MPI_Type_free(spaced, error)
      call MPI_Iallreduce(rank + turn, values, 1, MPI_INTEGER, MPI_SUM, copy, requests(2), error)
      call MPI_Ibarrier(half, requests(3), error)
      call complete()
      write (10, *) 'requests', turn, all(1:6), values(1), requests(1) == MPI_REQUEST_NULL
    end do
    call MPI_Comm_free(half, error)
    call MPI_Comm_free(copy, error)
  end subroutine

  ! The three requests, in one way each turn.
  subroutine complete()
    select case (turn)
    case (1)
      call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE, error)
    case (2)
      call MPI_Waitall(3, requests, statuses, error)
    case (3)
      do i = 1, 3
        call MPI_Waitany(3, requests, index, MPI_STATUS_IGNORE, error)
      end do
    case (4)
      i = 0
      do while (i < 3)
        call MPI_Waitsome(3, requests, done, indices, MPI_STATUSES_IGNORE, error)
        i = i + done
      end do
    case (5)
      flag = .false.
      do while (.not. flag)
        call MPI_Testall(3, requests, flag, MPI_STATUSES_IGNORE, error)
      end do
    case (6)
      do i = 1, 3
        flag = .false.
        do while (.not. flag)
          call MPI_Test(requests(i), flag, MPI_STATUS_IGNORE, error)
        end do
      end do
    case (7)
      do i = 3, 1, -1
        call MPI_Wait(requests(i), MPI_STATUS_IGNORE, error)
      end do
    end select
  end subroutine

  ! Communicators of the other functions that make one.
  subroutine check_communicators()
    call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., copy, error)
    call MPI_Cart_sub(copy, [.true.], half, error)
    call add('cart_sub', half)
    call add('cart', copy)
    call MPI_Graph_create(MPI_COMM_WORLD, ranks, [(i, i = 1, ranks)], [(mod(i, ranks), i = 1, ranks)], .false., copy, error)
    call add('graph', copy)
#ifdef HAS_DIST_GRAPH
    call MPI_Dist_graph_create(MPI_COMM_WORLD, 1, [rank], [1], [mod(rank + 1, ranks)], MPI_UNWEIGHTED, MPI_INFO_NULL, &
                               .false., copy, error)
    call add('dist_graph', copy)
#endif
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [mod(rank + ranks - 1, ranks)], MPI_UNWEIGHTED, 1, &
                                        [mod(rank + 1, ranks)], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., copy, error)
    call add('dist_graph_adjacent', copy)
    call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, copy, error)
    call add('split_type', copy)
    call MPI_Comm_idup(MPI_COMM_WORLD, copy, requests(1), error)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
    ! Its first collective that may wait for others.
    call MPI_Barrier(copy, error)
    call add('idup', copy)
  end subroutine

  subroutine add(name, comm)
    character(len=*), intent(in) :: name
    COMMUNICATOR :: comm
    call MPI_Iallreduce(rank + 1, values, 1, MPI_INTEGER, MPI_SUM, comm, requests(1), error)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
    write (10, *) name, values(1), error
    call MPI_Comm_free(comm, error)
  end subroutine
end program
