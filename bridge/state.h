#pragma once
// The communicators of Espalier that belong to communicators of MPI, and the collectives on them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "bridge/mpi_below.h"
#include "bridge/operators.h"
#include "bridge/types.h"
#include "espalier/communicator.h"

namespace espalier::bridge {

// What belongs to an intracommunicator of MPI.
struct Attached {
  Communicator communicator;
  std::uint32_t rank = 0, size = 0;
  // Held in each call of the communicator, if MPI has MPI_THREAD_MULTIPLE. A thread that waits
  // gives it up between two tests, so other threads may start and wait meanwhile.
  std::shared_ptr<std::mutex> mutex = std::make_shared<std::mutex>();
  // Communicators of the same processes, each for one persistent request at a time, in the order in
  // which all processes made them.
  std::vector<std::shared_ptr<Attached>> for_persistent = {};
};

// After MPI_Init: the communicators of all processes, and of this one alone.
void attach_first();
// Before MPI_Finalize. Does nothing without attach_first().
void detach_first();
// A communicator of this process alone, whose errors are returned. Its tags: 0 for progress.
[[nodiscard]] MPI_Comm own_comm();
constexpr int kCopyTag = 1, kFirstPersistentTag = 2;
// Makes a communicator of Espalier for a new intracommunicator. All its processes must call it.
// Does nothing for MPI_COMM_NULL. If one process cannot, none has one.
void attach(MPI_Comm comm);
// Before `comm` is freed. Waits for no other process. Does nothing for MPI_COMM_WORLD and
// MPI_COMM_SELF, which keep their collectives if MPI refuses to free them.
void detach(MPI_Comm comm);
// Returns what belongs to `comm`; null: the MPI library takes its collectives.
[[nodiscard]] Attached* attached(MPI_Comm comm);
// The same, and first attach(comm) for a communicator that a function made without waiting for the
// other processes (MPI_Comm_idup). All processes of `comm` must call it.
[[nodiscard]] Attached* attached_at_last(MPI_Comm comm);
// Returns a communicator of the processes of `comm` for one persistent request, which keeps it.
// Requests may then be started in any order. All processes must call it, in the same order. Null on
// all of them if one cannot have it.
[[nodiscard]] std::shared_ptr<Attached> reserve_for_persistent(MPI_Comm comm, Attached& to);

// A collective as Espalier runs it, with the memory that it needs beside the caller's.
struct Work {
  Call call;
  std::vector<std::uint64_t> counts;
  std::vector<std::uint8_t> send_copy, receive_copy;
  UserOperator user;
  KeptTypes kept;                // those that `user` and `finish` need
  bool has_own_counts = false;   // call.counts: this rank knows only its own
  std::function<void()> finish;  // moves the result into the caller's buffer; may be empty
};

// Runs the work to its end; meanwhile the MPI library makes progress, too. Returns an MPI error.
[[nodiscard]] int run(MPI_Comm comm, Attached& to, Work& work);
// Starts it, and makes a request of MPI for it.
[[nodiscard]] int start(MPI_Comm comm, Attached& to, std::unique_ptr<Work> work,
                        MPI_Request* request);
// Starts it with a persistent receive for a message with this tag from this process to itself,
// which completes with it.
[[nodiscard]] int start_persistent(MPI_Comm comm, const std::shared_ptr<Attached>& to,
                                   std::unique_ptr<Work> work, MPI_Request request, int tag);

// Makes progress with those of the requests that are Espalier's. Returns how many of them are not
// complete; those that are complete are so for the MPI library as well.
std::size_t progress(const MPI_Request* requests, int count);
// Whether one of them is Espalier's.
[[nodiscard]] bool has_ours(const MPI_Request* requests, int count);
// Gives the MPI library time for its own messages, and other processes the processor.
void let_mpi_progress();
// Returns the communicator of Espalier's collective that the active request is for; otherwise
// MPI_COMM_NULL.
[[nodiscard]] MPI_Comm comm_of(MPI_Request request);

}  // namespace espalier::bridge
