// The functions of espalier.h by the classes of communicator.h.

#include "communicator/c_interface.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/version.h"
#include "communicator/no_memory.h"
#include "hal/mem/host/shared_memory.h"

// The types of espalier.h.
struct espalier_comm {
  espalier::Communicator communicator;
};
struct espalier_request {
  const espalier_comm* comm;
  espalier::Request request = {};
};
struct espalier_plan {
  const espalier_comm* comm;
  std::optional<espalier::Plan> plan = {};  // always, once espalier_plan_call() has returned it
};

namespace espalier {
namespace {

// The reason of this thread's last failed call. C programs read it by espalier_error().
thread_local std::string last_error;

int fails(int status, std::string reason) {
  last_error = std::move(reason);
  return status;
}

// Calls `function`, which returns a status. C cannot catch: an exception (no memory) becomes
// a status.
template <typename Function>
int without_exceptions(Function function) {
  try {
    return function();
  } catch (const std::exception& exception) {
    return fails(ESPALIER_BACK_END, exception.what());
  } catch (...) {
    return fails(ESPALIER_BACK_END, "an exception that has no text");
  }
}

// A failed communicator's calls return the status of the failure. Without a failure the arguments
// were wrong.
int status_of(const espalier_comm& comm) {
  const Status status = comm.communicator.cause().status;
  return status == Status::kOk ? ESPALIER_BAD_ARGUMENT : static_cast<int>(status);
}
int fails(const espalier_comm& comm, const Error& error) {
  try {
    return fails(status_of(comm), error.message);
  } catch (const std::bad_alloc&) {
    return fails(status_of(comm), "no memory");  // a string of this length needs none
  }
}
// The status of what a call on `comm` returned.
template <typename Value>
int status_of(const espalier_comm& comm, const Result<Value>& done) {
  return done ? int{ESPALIER_OK} : fails(comm, done.error());
}
// As without_exceptions(), for a call on `comm`, or on null: all ranks learn that this one has no
// memory.
template <typename Function>
int on(const espalier_comm* comm, Function function) {
  return without_exceptions([&] {
    try {
      return function();
    } catch (const std::bad_alloc&) {
      if (comm == nullptr) throw;
      return fails(*comm, communicator::NoMemory::end(comm->communicator));
    }
  });
}

int missing(const char* name) {
  return fails(ESPALIER_BAD_ARGUMENT, std::string(name) + " is null; expected a pointer");
}

// Copies a struct of the caller, which may be of an older or a newer header. False: `given` sets
// members that this library does not have.
template <typename Struct>
bool take(const Struct& given, Struct& known) {
  const std::size_t size = given.struct_size;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&given);
  for (std::size_t i = sizeof(Struct); i < size; ++i) {
    if (bytes[i] != 0) return false;
  }
  std::memcpy(&known, bytes, std::min(size, sizeof(Struct)));
  return true;
}
template <typename Struct>
int take_or_fail(const Struct& given, Struct& known, const char* name) {
  if (given.struct_size < sizeof(std::size_t)) {
    return fails(ESPALIER_BAD_ARGUMENT, std::string(name) + ".struct_size is " +
                                            std::to_string(given.struct_size) +
                                            "; initialize it with espalier_default_" +
                                            (name + std::strlen("espalier_")) + "()");
  }
  if (take(given, known)) return ESPALIER_OK;
  return fails(ESPALIER_BAD_ARGUMENT, std::string(name) +
                                          " sets a member that this library, version " + kVersion +
                                          ", does not have; use a newer library");
}

int out_of_range(const char* name, unsigned value, unsigned largest) {
  return fails(ESPALIER_BAD_ARGUMENT, std::string(name) + " is " + std::to_string(value) +
                                          "; expected a number from 0 to " +
                                          std::to_string(largest));
}

// The number in an enumeration of C, which may hold any; one of C++ may not even be read then.
template <typename Enumeration>
unsigned number_of(const Enumeration& value) {
  unsigned number = 0;
  static_assert(sizeof(number) == sizeof(value));
  std::memcpy(&number, &value, sizeof(number));
  return number;
}

// Makes the C++ call of `given`.
int make_call(const espalier_call* given, const espalier_comm* comm, Call& made) {
  if (comm == nullptr) return missing("comm");
  if (given == nullptr) return missing("call");
  espalier_call call = espalier_default_call();
  if (const int status = take_or_fail(*given, call, "espalier_call")) return status;
  const unsigned collective = number_of(call.collective);
  const unsigned type = number_of(call.type);
  const unsigned op = number_of(call.op);
  if (collective > ESPALIER_BARRIER || collective == ESPALIER_NO_COLLECTIVE) {
    return fails(ESPALIER_BAD_ARGUMENT, "collective is " + std::to_string(collective) +
                                            "; expected a number from 1 to 11");
  }
  if (type > ESPALIER_CUSTOM_TYPE) return out_of_range("type", type, ESPALIER_CUSTOM_TYPE);
  if (op > ESPALIER_CUSTOM_OP) return out_of_range("op", op, ESPALIER_CUSTOM_OP);
  made.collective = Collective(static_cast<std::int64_t>(call.collective));
  made.send = call.collective == ESPALIER_BROADCAST ? call.receive : call.send;
  made.receive = call.receive;
  made.count = call.count;
  if (call.counts != nullptr) {
    const std::size_t size = comm->communicator.size();
    made.counts = {call.counts, call.collective == ESPALIER_ALL_TO_ALL ? size * size : size};
  }
  made.op = {.op = static_cast<Op>(call.op),
             .type = static_cast<Type>(call.type),
             .commutes = call.op != ESPALIER_CUSTOM_OP || call.commutes != 0,
             .element_bytes = call.element_bytes,
             .custom_id = call.custom_id,
             .custom = call.combine,
             .context = call.context};
  made.root = call.root;
  return ESPALIER_OK;
}

int make_options(const espalier_join_options* given, JoinOptions& made) {
  if (given == nullptr) return ESPALIER_OK;
  espalier_join_options options = espalier_default_join_options();
  if (const int status = take_or_fail(*given, options, "espalier_join_options")) return status;
  if (const unsigned method = number_of(options.method); method > ESPALIER_CABLES) {
    return out_of_range("method", method, ESPALIER_CABLES);
  }
  const auto text = [](const char* words) { return std::string(words == nullptr ? "" : words); };
  if (options.schedule_count > 0 && options.schedules == nullptr) return missing("schedules");
  made.provider = text(options.provider);
  made.local_address = text(options.local_address);
  if (options.deadline_ns > 0) made.deadline = std::chrono::nanoseconds(options.deadline_ns);
  for (std::size_t i = 0; i < options.schedule_count; ++i) {
    made.schedules.push_back(text(options.schedules[i]));
  }
  made.model = text(options.model);
  made.progress_thread = options.progress_thread != 0;
  made.authenticate_data = options.authenticate_data != 0;
  made.image = {.file = text(options.image),
                .flash = text(options.flash),
                .public_key = text(options.public_key),
                .takes_unsigned = options.takes_unsigned != 0};

  made.bootstrap.method = static_cast<bootstrap::Method>(options.method);
  if (options.join_deadline_ms > 0) {
    made.bootstrap.deadline = std::chrono::milliseconds(options.join_deadline_ms);
  }
  made.bootstrap.job = text(options.job);
  made.bootstrap.secret_file = text(options.secret_file);
  made.bootstrap.job_file = text(options.job_file);
  made.bootstrap.folder = text(options.folder);
  made.bootstrap.interfaces = text(options.interfaces);
  made.bootstrap.ports = text(options.ports);
  if (options.method == ESPALIER_FILE || options.method == ESPALIER_TABLE ||
      (options.method == ESPALIER_CABLES && options.size != 0)) {
    made.bootstrap.rank = options.rank;
    made.bootstrap.size = options.size;
  } else if (options.rank != 0 || options.size != 0) {
    return fails(ESPALIER_BAD_ARGUMENT,
                 "rank and size are set; only the methods ESPALIER_FILE, ESPALIER_TABLE and "
                 "ESPALIER_CABLES use them");
  }
  if (options.method == ESPALIER_TABLE) {
    if (options.table == nullptr) return missing("table");
    for (std::uint32_t i = 0; i < options.size; ++i) {
      made.bootstrap.table.push_back(text(options.table[i]));
    }
  } else if (options.table != nullptr) {
    return fails(ESPALIER_BAD_ARGUMENT, "table is set; only the method ESPALIER_TABLE uses it");
  }
  return ESPALIER_OK;
}

// The numbers of espalier.h are those of the C++ enumerations, which are append-only as well.
static_assert(static_cast<int>(Type::kCustom) == ESPALIER_CUSTOM_TYPE);
static_assert(static_cast<int>(Op::kCustom) == ESPALIER_CUSTOM_OP);
static_assert(static_cast<int>(Collective::kBarrier) == ESPALIER_BARRIER);
static_assert(static_cast<int>(Status::kBackEnd) == ESPALIER_BACK_END);
static_assert(static_cast<int>(bootstrap::Method::kAlone) == ESPALIER_ALONE);
static_assert(static_cast<int>(bootstrap::Method::kCables) == ESPALIER_CABLES);

// A call with the arguments of a blocking function.
espalier_call call_of(espalier_collective collective, const void* send, void* receive,
                      std::uint64_t count, espalier_type type, espalier_op op, std::uint32_t root) {
  espalier_call call = espalier_default_call();
  call.collective = collective;
  call.type = type;
  call.op = op;
  call.root = root;
  call.send = send;
  call.receive = receive;
  call.count = count;
  return call;
}

// Tests a request or a plan.
template <typename Tested>
int test(Tested& tested, const espalier_comm& comm, int* complete) {
  if (complete == nullptr) return missing("complete");
  const auto is_complete = tested.test();
  *complete = is_complete && *is_complete ? 1 : 0;
  return status_of(comm, is_complete);
}

// Runs a call with a count for each rank.
int run_unequal(espalier_call call, const std::uint64_t* counts, espalier_comm* comm) {
  if (counts == nullptr) return missing("counts");
  call.counts = counts;
  return espalier_run(&call, comm);
}

int run(const espalier_call& call, espalier_comm* comm) { return espalier_run(&call, comm); }

}  // namespace

espalier_comm* communicator::make_handle(Communicator communicator) {
  return new espalier_comm{std::move(communicator)};
}

}  // namespace espalier

using namespace espalier;

const char* espalier_error(void) { return last_error.c_str(); }
const char* espalier_version(void) { return kVersion; }

int espalier_join(const espalier_join_options* options, espalier_comm** comm) {
  return without_exceptions([&] {
    if (comm == nullptr) return missing("comm");
    *comm = nullptr;
    JoinOptions made;
    if (const int status = make_options(options, made)) return status;
    auto joined = join(made);
    if (!joined) return fails(ESPALIER_BACK_END, joined.error().message);
    *comm = new espalier_comm{std::move(*joined)};
    return int{ESPALIER_OK};
  });
}
int espalier_leave(espalier_comm* comm) {
  return without_exceptions([&] {
    if (comm == nullptr) return int{ESPALIER_OK};
    std::unique_ptr<espalier_comm> ends(comm);
    const Status failed = comm->communicator.cause().status;  // it has none once it has left
    const auto left = comm->communicator.leave();
    if (left) return int{ESPALIER_OK};
    if (comm->communicator.size() != 0) {  // another thread uses it
      (void)ends.release();
      return fails(ESPALIER_BAD_ARGUMENT, left.error().message);
    }
    const int status = failed == Status::kOk ? ESPALIER_BACK_END : static_cast<int>(failed);
    return fails(status, left.error().message);
  });
}
void* espalier_allocate(std::size_t bytes) { return espalier::allocate(bytes); }
void espalier_deallocate(void* bytes) {
  (void)without_exceptions([&] {
    const auto given = mem::give_back(bytes);
    if (given) return int{ESPALIER_OK};
    std::fprintf(stderr, "espalier: %s\n", given.error().message.c_str());
    return fails(ESPALIER_BAD_ARGUMENT, given.error().message);
  });
}

std::uint32_t espalier_rank(const espalier_comm* comm) {
  if (comm != nullptr) return comm->communicator.rank();
  (void)without_exceptions([] { return missing("comm"); });
  return UINT32_MAX;
}
std::uint32_t espalier_size(const espalier_comm* comm) {
  if (comm != nullptr) return comm->communicator.size();
  (void)without_exceptions([] { return missing("comm"); });
  return 0;
}

int espalier_broadcast(void* data, std::uint64_t count, espalier_type type, std::uint32_t root,
                       espalier_comm* comm) {
  return run(call_of(ESPALIER_BROADCAST, data, data, count, type, ESPALIER_NO_OP, root), comm);
}
int espalier_reduce(const void* send, void* receive, std::uint64_t count, espalier_type type,
                    espalier_op op, std::uint32_t root, espalier_comm* comm) {
  return run(call_of(ESPALIER_REDUCE, send, receive, count, type, op, root), comm);
}
int espalier_allreduce(const void* send, void* receive, std::uint64_t count, espalier_type type,
                       espalier_op op, espalier_comm* comm) {
  return run(call_of(ESPALIER_ALLREDUCE, send, receive, count, type, op, 0), comm);
}
int espalier_scan(const void* send, void* receive, std::uint64_t count, espalier_type type,
                  espalier_op op, espalier_comm* comm) {
  return run(call_of(ESPALIER_SCAN, send, receive, count, type, op, 0), comm);
}
int espalier_exscan(const void* send, void* receive, std::uint64_t count, espalier_type type,
                    espalier_op op, espalier_comm* comm) {
  return run(call_of(ESPALIER_EXSCAN, send, receive, count, type, op, 0), comm);
}
int espalier_scatter(const void* send, void* receive, std::uint64_t count, espalier_type type,
                     std::uint32_t root, espalier_comm* comm) {
  return run(call_of(ESPALIER_SCATTER, send, receive, count, type, ESPALIER_NO_OP, root), comm);
}
int espalier_gather(const void* send, void* receive, std::uint64_t count, espalier_type type,
                    std::uint32_t root, espalier_comm* comm) {
  return run(call_of(ESPALIER_GATHER, send, receive, count, type, ESPALIER_NO_OP, root), comm);
}
int espalier_allgather(const void* send, void* receive, std::uint64_t count, espalier_type type,
                       espalier_comm* comm) {
  return run(call_of(ESPALIER_ALLGATHER, send, receive, count, type, ESPALIER_NO_OP, 0), comm);
}
int espalier_reduce_scatter(const void* send, void* receive, std::uint64_t count,
                            espalier_type type, espalier_op op, espalier_comm* comm) {
  return run(call_of(ESPALIER_REDUCE_SCATTER, send, receive, count, type, op, 0), comm);
}
int espalier_all_to_all(const void* send, void* receive, std::uint64_t count, espalier_type type,
                        espalier_comm* comm) {
  return run(call_of(ESPALIER_ALL_TO_ALL, send, receive, count, type, ESPALIER_NO_OP, 0), comm);
}
int espalier_barrier(espalier_comm* comm) {
  return run(call_of(ESPALIER_BARRIER, nullptr, nullptr, 0, ESPALIER_BYTES, ESPALIER_NO_OP, 0),
             comm);
}

int espalier_scatterv(const void* send, void* receive, const std::uint64_t* counts,
                      espalier_type type, std::uint32_t root, espalier_comm* comm) {
  return run_unequal(call_of(ESPALIER_SCATTER, send, receive, 0, type, ESPALIER_NO_OP, root),
                     counts, comm);
}
int espalier_gatherv(const void* send, void* receive, const std::uint64_t* counts,
                     espalier_type type, std::uint32_t root, espalier_comm* comm) {
  return run_unequal(call_of(ESPALIER_GATHER, send, receive, 0, type, ESPALIER_NO_OP, root), counts,
                     comm);
}
int espalier_allgatherv(const void* send, void* receive, const std::uint64_t* counts,
                        espalier_type type, espalier_comm* comm) {
  return run_unequal(call_of(ESPALIER_ALLGATHER, send, receive, 0, type, ESPALIER_NO_OP, 0), counts,
                     comm);
}
int espalier_reduce_scatterv(const void* send, void* receive, const std::uint64_t* counts,
                             espalier_type type, espalier_op op, espalier_comm* comm) {
  return run_unequal(call_of(ESPALIER_REDUCE_SCATTER, send, receive, 0, type, op, 0), counts, comm);
}
int espalier_all_to_allv(const void* send, void* receive, const std::uint64_t* counts,
                         espalier_type type, espalier_comm* comm) {
  return run_unequal(call_of(ESPALIER_ALL_TO_ALL, send, receive, 0, type, ESPALIER_NO_OP, 0),
                     counts, comm);
}

int espalier_run(const espalier_call* call, espalier_comm* comm) {
  return on(comm, [&] {
    Call made;
    if (const int status = make_call(call, comm, made)) return status;
    return status_of(*comm, comm->communicator.run(made));
  });
}

int espalier_start(const espalier_call* call, espalier_comm* comm, espalier_request** request) {
  return on(comm, [&] {
    if (request == nullptr) return missing("request");
    *request = nullptr;
    Call made;
    if (const int status = make_call(call, comm, made)) return status;
    std::unique_ptr<espalier_request> handle(new espalier_request{comm});  // before it starts
    auto started = comm->communicator.start(made);
    if (!started) return fails(*comm, started.error());
    handle->request = std::move(*started);
    *request = handle.release();
    return int{ESPALIER_OK};
  });
}
int espalier_test(espalier_request* request, int* complete) {
  return without_exceptions([&] {
    if (request == nullptr) return missing("request");
    return test(request->request, *request->comm, complete);
  });
}
int espalier_wait(espalier_request* request) {
  return without_exceptions([&] {
    if (request == nullptr) return int{ESPALIER_OK};
    const std::unique_ptr<espalier_request> owner(request);
    return status_of(*owner->comm, owner->request.wait());
  });
}

int espalier_plan_call(const espalier_call* call, espalier_comm* comm, espalier_plan** plan) {
  return on(comm, [&] {
    if (plan == nullptr) return missing("plan");
    *plan = nullptr;
    Call made;
    if (const int status = make_call(call, comm, made)) return status;
    std::unique_ptr<espalier_plan> handle(new espalier_plan{comm});
    auto planned = comm->communicator.plan(made);
    if (!planned) return fails(*comm, planned.error());
    handle->plan = std::move(*planned);
    *plan = handle.release();
    return int{ESPALIER_OK};
  });
}
int espalier_plan_start(espalier_plan* plan) {
  return without_exceptions([&] {
    if (plan == nullptr) return missing("plan");
    return status_of(*plan->comm, plan->plan->start());
  });
}
int espalier_plan_test(espalier_plan* plan, int* complete) {
  return without_exceptions([&] {
    if (plan == nullptr) return missing("plan");
    return test(*plan->plan, *plan->comm, complete);
  });
}
int espalier_plan_wait(espalier_plan* plan) {
  return without_exceptions([&] {
    if (plan == nullptr) return missing("plan");
    return status_of(*plan->comm, plan->plan->wait());
  });
}
const char* espalier_plan_algorithm(const espalier_plan* plan) {
  if (plan != nullptr) return plan->plan->algorithm().c_str();
  (void)without_exceptions([] { return missing("plan"); });
  return "";
}
void espalier_plan_free(espalier_plan* plan) { delete plan; }

int espalier_neighbor_counts(const espalier_neighbor* neighbors, std::size_t neighbors_count,
                             std::uint64_t* counts, espalier_comm* comm) {
  return on(comm, [&] {
    if (comm == nullptr) return missing("comm");
    if (counts == nullptr) return missing("counts");
    if (neighbors == nullptr && neighbors_count > 0) return missing("neighbors");
    std::vector<espalier::Neighbor> all;
    for (std::size_t k = 0; k < neighbors_count; ++k) {
      all.push_back({neighbors[k].rank, neighbors[k].send, neighbors[k].receive});
    }
    auto known = comm->communicator.neighbor_counts(all);
    if (!known) return fails(*comm, known.error());
    std::copy(known->begin(), known->end(), counts);
    return int{ESPALIER_OK};
  });
}
int espalier_split(espalier_comm* comm, std::int64_t color, std::int64_t key,
                   espalier_comm** part) {
  return on(comm, [&] {
    if (comm == nullptr) return missing("comm");
    if (part == nullptr) return missing("part");
    *part = nullptr;
    auto made = comm->communicator.split(color, key);
    if (!made) return fails(*comm, made.error());
    if (*made) *part = new espalier_comm{**std::move(made)};
    return int{ESPALIER_OK};
  });
}
int espalier_rejoin(espalier_comm* comm, espalier_comm** rest) {
  return on(comm, [&] {
    if (comm == nullptr) return missing("comm");
    if (rest == nullptr) return missing("rest");
    *rest = nullptr;
    auto joined = comm->communicator.rejoin();
    if (!joined) return fails(ESPALIER_BACK_END, joined.error().message);
    *rest = new espalier_comm{std::move(*joined)};
    return int{ESPALIER_OK};
  });
}

int espalier_cancel(espalier_comm* comm, const char* reason) {
  return without_exceptions([&] {
    if (comm == nullptr) return missing("comm");
    const auto cancelled = comm->communicator.cancel(reason == nullptr ? "" : reason);
    if (!cancelled) return fails(ESPALIER_BAD_ARGUMENT, cancelled.error().message);
    return int{ESPALIER_OK};
  });
}
int espalier_cancel_on(espalier_comm* comm, const volatile sig_atomic_t* flag, const char* reason) {
  using Flag = std::atomic<std::sig_atomic_t>;
  static_assert(sizeof(Flag) == sizeof(sig_atomic_t) && Flag::is_always_lock_free);
  return without_exceptions([&] {
    if (comm == nullptr) return missing("comm");
    // C has no other type for it that both a C11 and a C++ compiler know.
    const auto* const watched =
        reinterpret_cast<const Flag*>(const_cast<const sig_atomic_t*>(flag));
    const auto watches = comm->communicator.cancel_on(watched, reason == nullptr ? "" : reason);
    if (!watches) return fails(ESPALIER_BAD_ARGUMENT, watches.error().message);
    return int{ESPALIER_OK};
  });
}

int espalier_accept(espalier_comm* comm, std::uint32_t least, std::uint64_t time_ms,
                    espalier_comm** grown) {
  return on(comm, [&] {
    if (comm == nullptr) return missing("comm");
    if (grown == nullptr) return missing("grown");
    *grown = nullptr;
    const auto time = std::min<std::uint64_t>(time_ms, INT32_MAX);
    auto accepted = comm->communicator.accept(least, std::chrono::milliseconds(time));
    if (!accepted) {
      const bool is_cancelled = comm->communicator.cause().status == Status::kCancelled;
      return fails(is_cancelled ? ESPALIER_CANCELLED : ESPALIER_BACK_END, accepted.error().message);
    }
    *grown = new espalier_comm{std::move(*accepted)};
    return int{ESPALIER_OK};
  });
}

espalier_cause espalier_cause_of(const espalier_comm* comm) {
  if (comm == nullptr) return {missing("comm"), 0, 0};
  const Cause cause = comm->communicator.cause();
  return {static_cast<int>(cause.status), cause.detector, cause.peer};
}
