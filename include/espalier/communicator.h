#pragma once
// A program's view of Espalier: join a job, call collectives, leave. This header is all that a
// program needs. Host only. espalier.h has the same calls for C.
//
//     auto world = espalier::join();                            // MPI_Init, ncclCommInitRank
//     if (!world) return report(world.error().message);
//     auto summed = world->allreduce(gradients, espalier::Op::kSum);  // a vector, in place
//
// Every function that can fail returns a Result: a value, or an Error with one line.
//
//  * All ranks of a communicator start the same collectives in the same order.
//  * Elements are a contiguous range (a vector, an array, a span) or a scalar variable. A range
//    that only the root uses may be empty elsewhere: `{}`.
//  * `send` has exactly the elements that the collective needs, and `receive` at least as many; the
//    rest of `receive` stays as it was. In place `send` may have more, too.
//  * In place: pass the same memory as `send` and `receive` (MPI_IN_PLACE). Otherwise the two must
//    not overlap. Scatter and gather: the root's part is at its place in the root's whole message,
//    and so are an allgather's and a reduce-scatter's own parts.
//  * After a failure every surviving rank gets the same cause, within twice the deadline. The
//    communicator is then of no more use, except for rejoin(), leave() and its destructor. The
//    process lives on.
//  * A rank may compute between two calls for as long as it wants: a thread of the library replies
//    to the other ranks, and wakes at most 10 times a second if D is 1.6 s or more. It also goes on
//    with collectives that were started; so custom operators may run in it.
//  * An exception of a custom operator is such a failure, with cause kBadOperator: it does not
//    leave the library. All ranks get its text. No rank gets a result of that operator.
//  * A rank that has no memory for a call is such a failure, too, with cause kBackEnd: all ranks
//    get its reason. No function throws std::bad_alloc, except allocate() and its allocator.
//  * Threads: at most one thread uses a communicator at any time; the call of another thread
//    is an error, and changes nothing. Different threads may use different communicators.
//  * Forks: a forked child is no rank. There, every call fails, and the end of an object does
//    nothing. The child may exit, run programs, and join() a job of its own.
//  * Once all ranks have ended all their communicators, they may join() the job again.
//  * An object that was moved from, or has left, is empty: its calls are errors, its rank() and
//    size() are 0.

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/bootstrap/bootstrap.h"
#include "espalier/collectives/machine/operators.h"
#include "espalier/hal/endpoint.h"
#include "espalier/internal/collectives/schedule/collective.h"
#include "espalier/internal/hal/mem/allocate.h"

namespace espalier {

namespace communicator {
enum class Caller : std::uint8_t;
class Channel;
class Operation;
class OwnCounts;
class JobPart;
class NoMemory;
}  // namespace communicator

// The image of this node (`espalier image build`): an image file, or a flash with slots. In both
// names %r is the rank, which is the node's number.
struct NodeImage {
  std::string file = {}, flash = {};  // one of them, or none
  std::string public_key = {};        // file of the key of its signature
  bool takes_unsigned = false;        // takes any image; excludes public_key
};

// The parameters of join(). Whatever is set and cannot be used is an error of join().
struct JoinOptions {
  bootstrap::Options bootstrap = {};  // how the processes find each other
  // A membership in a job that the caller has, used in place of bootstrap::join(). Null: none. An
  // exception of its functions is an error of the call that needs them.
  std::shared_ptr<bootstrap::Bootstrap> membership = {};
  // What carries the messages: libfabric's "tcp" or another, except "shm"; "mem": memory that the
  // processes of one host share; "mem+tcp": mem between processes of one host, tcp between hosts.
  // Empty: mem within a host, and between hosts the provider that FI_PROVIDER names, otherwise tcp.
  std::string provider = {};
  // IP that the fabric binds to, "10.0.0.7" or "fe80::7%eth0". Empty: all processes agree on a
  // subnet that reaches them, among the interfaces of bootstrap.interfaces.
  std::string local_address = {};
  // Name of the host with whose other processes this one shares memory. Empty: processes share it
  // that see the same boot, user, and namespaces of processes, users and networks. For "mem+NAME".
  std::string host = {};
  // D: how long an awaited rank may stay silent before it is declared dead. A rank replies while
  // its process runs, also while the program computes. A process that ended is found as a silent
  // one is.
  std::chrono::nanoseconds deadline = std::chrono::seconds(60);
  // Schedule files for the whole job (`espalier compile`); each serves its collective and root.
  // All others are chosen by the model.
  std::vector<std::string> schedules = {};
  // Its programs serve their collectives and roots in the communicator of the whole job, as they
  // were proven when it was built. The image and its signature are checked; a flash gets no marks.
  NodeImage image = {};
  // File of a model (`espalier measure`) that chooses. Empty: join() measures the network between
  // hosts with some short collectives, or takes constants of memory within one.
  std::string model = {};
  // Goes on with non-blocking collectives every 200 us while the program does not call. Otherwise
  // the calls do, and between them the library's thread at most 10 times a second.
  bool progress_thread = false;
  // Authenticates the payload of long messages, too, with the job secret (docs/security.md): one
  // that another process changed is an error, not a result. All processes must set the same.
  // "mem" refuses it; with "mem+tcp" it holds between hosts.
  bool authenticate_data = false;
};

// A collective with its memory. Namespace `call` makes one for each collective.
struct Call {
  Collective collective = Collective::kNone;
  const void* send = nullptr;
  void* receive = nullptr;
  std::uint64_t count = 0;  // of the whole message, or of each rank's part (counts_per_rank())
  // The v-variants: the count of each rank's part, the same vector on all ranks, parts without gaps
  // in order of ranks. All-to-all: counts[o * size + d] elements go from rank o to rank d. Empty:
  // `count` holds for all. Must last until the collective is complete.
  std::span<const std::uint64_t> counts = {};
  Operator op = {};
  std::uint32_t root = 0;
  // Elements of `send` and `receive`, which are compared with the need of the collective.
  // kUnknownRoom: not compared.
  static constexpr std::uint64_t kUnknownRoom = UINT64_MAX;
  std::uint64_t send_room = kUnknownRoom, receive_room = kUnknownRoom;
  bool needs_counts = false;  // a v-variant: empty `counts` are an error
  bool is_bool = false;       // the elements are `bool`, which has no sum
};

// What a rank exchanges with another one, or with itself, in elements.
struct Neighbor {
  std::uint32_t rank = 0;
  std::uint64_t send = 0, receive = 0;
};

// A started collective. Its memory belongs to the collective until it is complete. Calls of an
// object that is empty (made without a collective, or moved from) are errors.
class Request {
 public:
  Request() = default;
  Request(Request&&) noexcept = default;
  Request& operator=(Request&&) noexcept = default;
  ~Request();  // waits
  // Whether the collective is complete; makes progress. Errors: the failure.
  [[nodiscard]] Result<bool> test();
  // Waits until the collective is complete. Errors: the failure.
  [[nodiscard]] Result<void> wait();

 private:
  friend class Communicator;
  friend class communicator::OwnCounts;
  explicit Request(std::shared_ptr<communicator::Operation> operation);
  std::shared_ptr<communicator::Operation> operation_;
};

// A collective that is planned once and started any number of times (MPI_Allreduce_init). start(),
// test() and wait() allocate no memory and make no system call except libfabric's; a wait() for
// other ranks also yields the core or blocks, and so does a call that meets the library's thread.
class Plan {
 public:
  Plan(Plan&&) noexcept = default;
  Plan& operator=(Plan&&) noexcept = default;
  ~Plan();  // waits
  // Starts the collective with the memory that plan() got. Errors: the last start is not complete;
  // the failure.
  [[nodiscard]] Result<void> start();
  // Whether the last start is complete; makes progress. Errors: the failure.
  [[nodiscard]] Result<bool> test();
  // Waits until the last start is complete. Errors: the failure.
  [[nodiscard]] Result<void> wait();
  // Returns the algorithm that serves it: "two-tree"; or, for a schedule of
  // JoinOptions::schedules, the path of its file. Empty for a plan that was moved from.
  [[nodiscard]] const std::string& algorithm() const;

 private:
  friend class Communicator;
  explicit Plan(std::shared_ptr<communicator::Operation> operation);
  std::shared_ptr<communicator::Operation> operation_;
};

// The element type of ranges of T. `char` and `bool` have one type on every processor. A sum of
// `bool` is refused: Op::kMax is "any of them", Op::kMin "all of them".
template <typename T>
[[nodiscard]] constexpr Type type_of() {
  if constexpr (std::is_same_v<T, float>) {
    return Type::kF32;
  } else if constexpr (std::is_same_v<T, double>) {
    return Type::kF64;
  } else if constexpr (std::is_integral_v<T> && sizeof(T) <= 8) {
    constexpr bool is_signed = std::is_signed_v<T> || std::is_same_v<T, char>;
    if constexpr (sizeof(T) == 1) return is_signed ? Type::kI8 : Type::kU8;
    if constexpr (sizeof(T) == 2) return is_signed ? Type::kI16 : Type::kU16;
    if constexpr (sizeof(T) == 4) return is_signed ? Type::kI32 : Type::kU32;
    if constexpr (sizeof(T) == 8) return is_signed ? Type::kI64 : Type::kU64;
  } else {
    static_assert(std::is_same_v<T, std::byte>,
                  "not an element type; to move it, pass std::as_writable_bytes(std::span(data)); "
                  "to reduce it, run() a Call whose `op` has Type::kCustom and Operator::custom");
    return Type::kBytes;
  }
}

namespace communicator {

template <typename T>
concept Scalar = std::is_arithmetic_v<std::remove_cvref_t<T>>;

// The elements of a scalar variable or of a range as a span.
template <typename T>
[[nodiscard]] constexpr auto span_of(T&& elements) {
  if constexpr (Scalar<T>) {
    return std::span(&elements, 1);
  } else {
    return std::span(std::ranges::data(elements), std::ranges::size(elements));
  }
}
// The span of the elements of T.
template <typename T>
using Span = decltype(span_of(std::declval<T>()));
// The type of the elements of T.
template <typename T>
using Element = typename Span<T>::value_type;

}  // namespace communicator

// What a call reads: a scalar variable, or a contiguous range that outlives the call.
template <typename T>
concept Elements = (communicator::Scalar<T> && std::is_lvalue_reference_v<T>) ||
                   (std::ranges::contiguous_range<T> && std::ranges::sized_range<T> &&
                    std::ranges::borrowed_range<T>);
// What a call writes, too.
template <typename T>
concept MutableElements =
    Elements<T> && !std::is_const_v<typename communicator::Span<T>::element_type>;

// Calls whose memory is ranges or scalars: their sizes are checked when the call starts.
namespace call {

// Returns a call of this collective; `count` is in elements.
template <Elements Send, MutableElements Receive>
[[nodiscard]] Call make(Collective collective, Send&& send, Receive&& receive, std::uint64_t count,
                        Op op, std::uint32_t root) {
  using T = communicator::Element<Receive>;
  static_assert(std::is_same_v<T, communicator::Element<Send>>,
                "`send` and `receive` must have the same type of elements");
  const auto from = communicator::span_of(send);
  const auto into = communicator::span_of(receive);
  return {.collective = collective,
          .send = from.data(),
          .receive = into.data(),
          .count = count,
          .op = {.op = op, .type = type_of<T>()},
          .root = root,
          .send_room = from.size(),
          .receive_room = into.size(),
          .is_bool = std::is_same_v<T, bool>};
}
// Returns a call of a v-variant: Call::counts, which must last until it is complete.
template <Elements Send, MutableElements Receive>
[[nodiscard]] Call make(Collective collective, Send&& send, Receive&& receive,
                        std::span<const std::uint64_t> counts, Op op, std::uint32_t root) {
  Call made = make(collective, send, receive, std::uint64_t{0}, op, root);
  made.counts = counts;
  made.needs_counts = true;
  return made;
}
// All ranks get the data of the root.
template <MutableElements Data>
[[nodiscard]] Call broadcast(Data&& data, std::uint32_t root) {
  return make(Collective::kBroadcast, data, data, communicator::span_of(data).size(), Op::kNone,
              root);
}
// receive at the root = send of rank 0 (+) send of rank 1 (+) ...
template <Elements Send, MutableElements Receive = std::span<communicator::Element<Send>>>
[[nodiscard]] Call reduce(Send&& send, Receive&& receive, Op op, std::uint32_t root) {
  return make(Collective::kReduce, send, receive, communicator::span_of(send).size(), op, root);
}
// As reduce, with the result on all ranks.
template <Elements Send, MutableElements Receive>
[[nodiscard]] Call allreduce(Send&& send, Receive&& receive, Op op) {
  return make(Collective::kAllreduce, send, receive, communicator::span_of(send).size(), op, 0);
}
// The same in place.
template <MutableElements Data>
[[nodiscard]] Call allreduce(Data&& data, Op op) {
  return allreduce(data, data, op);
}
// receive = the reduction of ranks 0 to this rank.
template <Elements Send, MutableElements Receive>
[[nodiscard]] Call scan(Send&& send, Receive&& receive, Op op) {
  return make(Collective::kScan, send, receive, communicator::span_of(send).size(), op, 0);
}
// The same in place.
template <MutableElements Data>
[[nodiscard]] Call scan(Data&& data, Op op) {
  return scan(data, data, op);
}
// receive = the reduction of the ranks below this rank; not set on rank 0.
template <Elements Send, MutableElements Receive>
[[nodiscard]] Call exscan(Send&& send, Receive&& receive, Op op) {
  return make(Collective::kExscan, send, receive, communicator::span_of(send).size(), op, 0);
}
// The same in place.
template <MutableElements Data>
[[nodiscard]] Call exscan(Data&& data, Op op) {
  return exscan(data, data, op);
}
// Rank r gets part r of the root. send: a part for each rank, at the root.
template <MutableElements Receive, Elements Send = std::span<const communicator::Element<Receive>>>
[[nodiscard]] Call scatter(Send&& send, Receive&& receive, std::uint32_t root) {
  return make(Collective::kScatter, send, receive, communicator::span_of(receive).size(), Op::kNone,
              root);
}
// The root gets part r from rank r. receive: a part for each rank, at the root.
template <Elements Send, MutableElements Receive = std::span<communicator::Element<Send>>>
[[nodiscard]] Call gather(Send&& send, Receive&& receive, std::uint32_t root) {
  return make(Collective::kGather, send, receive, communicator::span_of(send).size(), Op::kNone,
              root);
}
// As gather, with the result on all ranks.
template <Elements Send, MutableElements Receive>
[[nodiscard]] Call allgather(Send&& send, Receive&& receive) {
  return make(Collective::kAllgather, send, receive, communicator::span_of(send).size(), Op::kNone,
              0);
}
// As reduce, with part r of the result on rank r. send: a part for each rank.
template <Elements Send, MutableElements Receive>
[[nodiscard]] Call reduce_scatter(Send&& send, Receive&& receive, Op op) {
  return make(Collective::kReduceScatter, send, receive, communicator::span_of(receive).size(), op,
              0);
}
// Rank d gets part d of this rank's parts; `count`: the elements of each part.
template <Elements Send, MutableElements Receive>
[[nodiscard]] Call all_to_all(Send&& send, Receive&& receive, std::uint64_t count) {
  return make(Collective::kAllToAll, send, receive, count, Op::kNone, 0);
}
// The same with parts of `counts` elements (Call::counts).
template <MutableElements Receive, Elements Send = std::span<const communicator::Element<Receive>>>
[[nodiscard]] Call scatterv(Send&& send, Receive&& receive, std::span<const std::uint64_t> counts,
                            std::uint32_t root) {
  return make(Collective::kScatter, send, receive, counts, Op::kNone, root);
}
// As gather.
template <Elements Send, MutableElements Receive = std::span<communicator::Element<Send>>>
[[nodiscard]] Call gatherv(Send&& send, Receive&& receive, std::span<const std::uint64_t> counts,
                           std::uint32_t root) {
  return make(Collective::kGather, send, receive, counts, Op::kNone, root);
}
// As allgather.
template <Elements Send, MutableElements Receive>
[[nodiscard]] Call allgatherv(Send&& send, Receive&& receive,
                              std::span<const std::uint64_t> counts) {
  return make(Collective::kAllgather, send, receive, counts, Op::kNone, 0);
}
// As reduce_scatter.
template <Elements Send, MutableElements Receive>
[[nodiscard]] Call reduce_scatterv(Send&& send, Receive&& receive,
                                   std::span<const std::uint64_t> counts, Op op) {
  return make(Collective::kReduceScatter, send, receive, counts, op, 0);
}
// As all_to_all; counts[o * size + d] elements go from rank o to rank d.
template <Elements Send, MutableElements Receive>
[[nodiscard]] Call all_to_allv(Send&& send, Receive&& receive,
                               std::span<const std::uint64_t> counts) {
  return make(Collective::kAllToAll, send, receive, counts, Op::kNone, 0);
}
// Complete when every rank has entered it.
[[nodiscard]] inline Call barrier() { return {.collective = Collective::kBarrier}; }

}  // namespace call

// The ranks of a job, or some of them, that call collectives together.
class Communicator {
 public:
  Communicator(Communicator&&) noexcept = default;
  // Ends this communicator as the destructor does, and takes the other one.
  Communicator& operator=(Communicator&&) noexcept;
  // The communicator of join() and rejoin() waits for its collectives, and for the other ranks to
  // end theirs. A part that split() made waits for no other rank while that communicator lives:
  // parts may end in any order, and what was started on them goes on. The destructor waits for the
  // call of another thread; leave() refuses it.
  ~Communicator();
  // Ends this communicator as the destructor does, which then does nothing. Its requests keep their
  // results, and its plans no longer start. Errors: another thread uses this communicator, with
  // nothing changed; the failure, or that another rank did not end its communicator.
  Result<void> leave();

  // Returns this process's rank in the communicator.
  [[nodiscard]] std::uint32_t rank() const;
  // Returns the number of ranks.
  [[nodiscard]] std::uint32_t size() const;

  // Blocking collectives, with the arguments of MPI's in the order of MPI's. Errors: arguments that
  // contradict each other, with nothing started; or the failure.
  template <MutableElements Data>
  [[nodiscard]] Result<void> broadcast(Data&& data, std::uint32_t root) {
    return run(call::broadcast(data, root));
  }
  // As call::reduce.
  template <Elements Send, MutableElements Receive = std::span<communicator::Element<Send>>>
  [[nodiscard]] Result<void> reduce(Send&& send, Receive&& receive, Op op, std::uint32_t root) {
    return run(call::reduce(send, receive, op, root));
  }
  // As call::allreduce.
  template <Elements Send, MutableElements Receive>
  [[nodiscard]] Result<void> allreduce(Send&& send, Receive&& receive, Op op) {
    return run(call::allreduce(send, receive, op));
  }
  // The same in place.
  template <MutableElements Data>
  [[nodiscard]] Result<void> allreduce(Data&& data, Op op) {
    return run(call::allreduce(data, op));
  }
  // As call::scan.
  template <Elements Send, MutableElements Receive>
  [[nodiscard]] Result<void> scan(Send&& send, Receive&& receive, Op op) {
    return run(call::scan(send, receive, op));
  }
  // The same in place.
  template <MutableElements Data>
  [[nodiscard]] Result<void> scan(Data&& data, Op op) {
    return run(call::scan(data, op));
  }
  // As call::exscan.
  template <Elements Send, MutableElements Receive>
  [[nodiscard]] Result<void> exscan(Send&& send, Receive&& receive, Op op) {
    return run(call::exscan(send, receive, op));
  }
  // The same in place.
  template <MutableElements Data>
  [[nodiscard]] Result<void> exscan(Data&& data, Op op) {
    return run(call::exscan(data, op));
  }
  // send: size() parts at the root; receive: one part.
  template <MutableElements Receive,
            Elements Send = std::span<const communicator::Element<Receive>>>
  [[nodiscard]] Result<void> scatter(Send&& send, Receive&& receive, std::uint32_t root) {
    return run(call::scatter(send, receive, root));
  }
  // send: one part; receive: size() parts at the root.
  template <Elements Send, MutableElements Receive = std::span<communicator::Element<Send>>>
  [[nodiscard]] Result<void> gather(Send&& send, Receive&& receive, std::uint32_t root) {
    return run(call::gather(send, receive, root));
  }
  // send: one part; receive: size() parts.
  template <Elements Send, MutableElements Receive>
  [[nodiscard]] Result<void> allgather(Send&& send, Receive&& receive) {
    return run(call::allgather(send, receive));
  }
  // send: size() parts; receive: this rank's part of the result.
  template <Elements Send, MutableElements Receive>
  [[nodiscard]] Result<void> reduce_scatter(Send&& send, Receive&& receive, Op op) {
    return run(call::reduce_scatter(send, receive, op));
  }
  // Both: size() parts. Error also: `send` has no multiple of size() elements.
  template <Elements Send, MutableElements Receive>
  [[nodiscard]] Result<void> all_to_all(Send&& send, Receive&& receive) {
    const std::uint32_t parts = size();
    const std::uint64_t elements = communicator::span_of(send).size();
    return run(call::all_to_all(send, receive, parts == 0 ? 0 : elements / parts));
  }
  // Complete when every rank has entered it.
  [[nodiscard]] Result<void> barrier() { return run(call::barrier()); }

  // The v-variants: parts of `counts` elements, one for each rank, the same vector on all ranks;
  // for all_to_allv() size() * size() of them. Parts follow each other without gaps, in order of
  // ranks.
  template <MutableElements Receive,
            Elements Send = std::span<const communicator::Element<Receive>>>
  [[nodiscard]] Result<void> scatterv(Send&& send, Receive&& receive,
                                      std::span<const std::uint64_t> counts, std::uint32_t root) {
    return run(call::scatterv(send, receive, counts, root));
  }
  // As gather().
  template <Elements Send, MutableElements Receive = std::span<communicator::Element<Send>>>
  [[nodiscard]] Result<void> gatherv(Send&& send, Receive&& receive,
                                     std::span<const std::uint64_t> counts, std::uint32_t root) {
    return run(call::gatherv(send, receive, counts, root));
  }
  // As allgather().
  template <Elements Send, MutableElements Receive>
  [[nodiscard]] Result<void> allgatherv(Send&& send, Receive&& receive,
                                        std::span<const std::uint64_t> counts) {
    return run(call::allgatherv(send, receive, counts));
  }
  // As reduce_scatter().
  template <Elements Send, MutableElements Receive>
  [[nodiscard]] Result<void> reduce_scatterv(Send&& send, Receive&& receive,
                                             std::span<const std::uint64_t> counts, Op op) {
    return run(call::reduce_scatterv(send, receive, counts, op));
  }
  // As all_to_all(): counts[o * size() + d] elements go from rank o to rank d.
  template <Elements Send, MutableElements Receive>
  [[nodiscard]] Result<void> all_to_allv(Send&& send, Receive&& receive,
                                         std::span<const std::uint64_t> counts) {
    return run(call::all_to_allv(send, receive, counts));
  }

  // The next three take any collective, also with Call::counts and custom operators. Their errors:
  // arguments that contradict each other, with nothing started; no schedule serves the call.
  // Runs the call and waits for it. Error also: the failure.
  [[nodiscard]] Result<void> run(const Call& call);
  // Starts the call. Calls that are started on one communicator run in the order of their starts;
  // those on different communicators run at once.
  [[nodiscard]] Result<Request> start(const Call& call);
  // Plans the call, which starts with Plan::start().
  [[nodiscard]] Result<Plan> plan(const Call& call);

  // Returns Call::counts of an all-to-all between neighbors in any graph, from what each rank knows
  // of its own (MPI_Neighbor_alltoallv): no message goes to other ranks. All ranks must call it.
  // `neighbors`: in any order, each rank at most once. The parts in `send` and `receive` follow
  // each other in order of ranks. Errors: a rank that does not exist or comes twice, with nothing
  // started; two ranks that do not expect the same of each other, on all ranks; the failure.
  [[nodiscard]] Result<std::vector<std::uint64_t>> neighbor_counts(
      std::span<const Neighbor> neighbors);

  // The communicator of the ranks with the same color, ordered by key, then by rank. All ranks must
  // call it. A rank of a negative color gets none. Errors: the failure.
  [[nodiscard]] Result<std::optional<Communicator>> split(std::int64_t color, std::int64_t key = 0);

  // After a failure: a communicator of the processes of the job that are still there, in the order
  // of their ranks. Every survivor must call it, on the communicator that join() returned. A cancel
  // of this communicator does not end it: the bootstrap's deadline does. Errors: a launcher that
  // cannot count survivors; a deadline.
  [[nodiscard]] Result<Communicator> rejoin();

  // Takes processes into the job that have joined through its job file (bootstrap::Options): all
  // that wait, once there are `least`. Every rank must call it with the same `least`, on the last
  // communicator of join(), rejoin() or accept(). Newcomers get the numbers of ranks that ended,
  // then those after the last one; their join() returns the same communicator. This communicator
  // goes on, and may be left.
  // `time`: how long to wait for newcomers, once all ranks have called. `least` 0: newcomers are
  // welcome and not needed.
  // Errors, the same on all ranks, with nothing changed: too few newcomers; a rank that ended, or
  // did not call it within the bootstrap's deadline; a process that cannot connect; a cancel of
  // this communicator, unless all have the larger one already; a launcher or a membership without
  // this service. After a failure: rejoin() comes first. Not at the same time as split() of any
  // communicator of the job in another thread.
  [[nodiscard]] Result<Communicator> accept(
      std::uint32_t least = 1, std::chrono::milliseconds time = std::chrono::seconds(60));

  // Ends this communicator early on all ranks, as MPIX_Comm_revoke and ncclCommRevoke do. Every
  // call that runs or starts afterwards returns "cancelled by rank R: REASON", the same on all
  // ranks; a call that is complete keeps its result. Waits for no rank. Any thread may call it
  // while another thread is in a call of this communicator, its requests or its plans, but not at
  // the same time as leave(), the destructor or a move. `reason`: one line of at most 119 bytes;
  // the rest is cut off, and control characters become spaces. Without effect if the communicator
  // has failed. Errors: this object is empty; a forked child.
  Result<void> cancel(std::string_view reason = {});
  // As cancel(), once *flag is not 0. A signal handler may set the flag, on any thread. While a
  // call waits, the library reads the flag at least every 50 ms; between two calls its thread does,
  // with every look; a job of one rank reads it when a call starts. The flag must last until
  // leave(), the destructor or the next cancel_on(). Null: no flag is watched any more. Errors: as
  // cancel(); another thread uses this communicator.
  Result<void> cancel_on(const std::atomic<std::sig_atomic_t>* flag, std::string_view reason = {});

  // The cause of the failure, the same on all survivors; its status is kOk if there is none, and
  // while another thread uses this communicator. `detector` and `peer` are ranks.
  [[nodiscard]] Cause cause() const;

 private:
  [[nodiscard]] static Result<Communicator> of_job(std::shared_ptr<communicator::Channel> channel,
                                                   communicator::Caller caller);
  friend class communicator::JobPart;
  friend Result<Communicator> join(const JoinOptions& options);
  friend class communicator::OwnCounts;
  friend class communicator::NoMemory;
  Communicator(std::shared_ptr<communicator::Channel> channel, bool is_world);
  [[nodiscard]] Result<std::vector<std::uint64_t>> exchange_counts(
      std::span<const Neighbor> neighbors);
  [[nodiscard]] Result<std::optional<Communicator>> make_part(std::int64_t color, std::int64_t key);
  [[nodiscard]] Result<Communicator> join_survivors();
  // Errors: this is not the last communicator of the whole job.
  [[nodiscard]] Result<void> check_whole(const char* function) const;
  [[nodiscard]] Result<Communicator> take_newcomers(std::uint32_t least,
                                                    std::chrono::milliseconds time);
  Result<void> end();
  std::shared_ptr<communicator::Channel> channel_;
  bool is_world_ = false;  // of the whole job
};

// Joins the job that the launcher started: one communicator of all its processes. Without a
// launcher: of this process alone. Errors: those of bootstrap::join(); an option that cannot be
// used; a provider that is not installed; a rank that does not answer.
[[nodiscard]] Result<Communicator> join(const JoinOptions& options = {});

}  // namespace espalier
