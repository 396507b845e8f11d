#include "bridge/state.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <set>
#include <utility>

#include "bridge/library_below.h"
#include "bridge/membership.h"
#include "communicator/job_part.h"
#include "communicator/own_counts.h"

namespace espalier::bridge {
namespace {

struct Started {
  std::unique_ptr<Work> work;
  Request request;
  MPI_Comm comm;
  std::shared_ptr<std::mutex> mutex;  // of its communicator, which may be freed before
  int tag = 0;                        // of a persistent request's message; 0: a generalized request
  std::shared_ptr<Attached> own = {};  // of a persistent request
};

int key = MPI_KEYVAL_INVALID;  // under which an MPI communicator has its Attached
// A receive of a message that never comes, on a communicator of this process alone. A test of it
// makes MPI's progress; a probe would not with MPICH 4, which looks only at the process itself.
MPI_Comm poked = MPI_COMM_NULL;
MPI_Request pending = MPI_REQUEST_NULL;
std::map<MPI_Request, Started> started;
std::mutex mutex;                  // of `started`; no other is taken meanwhile
bool has_threads = false;          // several may be in MPI calls at once
std::set<Attached*> all_attached;  // with `mutex`

using Lock = std::unique_lock<std::mutex>;
Lock lock_of(std::mutex& of) { return has_threads ? Lock(of) : Lock(of, std::defer_lock); }

void end_attached(Attached* gone) {
  {
    const std::lock_guard lock(mutex);
    all_attached.erase(gone);
  }
  const std::shared_ptr<std::mutex> its = gone->mutex;  // another thread may wait for a request
  const Lock lock = lock_of(*its);
  delete gone;
}

// `value`: null if the communicator has none.
int delete_attached(MPI_Comm, int, void* value, void*) {
  if (value != nullptr) end_attached(static_cast<Attached*>(value));
  return MPI_SUCCESS;
}

// Ranks of `comm` in MPI_COMM_WORLD, if all are of that; otherwise none.
std::vector<std::uint32_t> ranks_in_world(MPI_Comm comm) {
  MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &group);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  int size = 0;
  PMPI_Group_size(group, &size);
  std::vector<int> ranks(static_cast<std::size_t>(size)), found(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  PMPI_Group_translate_ranks(group, size, ranks.data(), world, found.data());
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  if (std::find(found.begin(), found.end(), MPI_UNDEFINED) != found.end()) return {};
  return {found.begin(), found.end()};
}

Result<Communicator> make_communicator(MPI_Comm comm) {
  const Attached* const world = attached(MPI_COMM_WORLD);  // null: this is for it
  if (world != nullptr) {
    // The job of MPI_COMM_WORLD serves: its progress thread, its secret, what its network costs.
    const std::vector<std::uint32_t> ranks = ranks_in_world(comm);
    Membership exchange(comm, Membership::Use::kExchange);
    if (!ranks.empty()) return communicator::JobPart::make(world->communicator, ranks, exchange);
  }
  JoinOptions options{.membership = std::make_shared<Membership>(comm)};
  // An MPI program may be outside of Espalier's calls for any time.
  options.progress_thread = options.membership->size() > 1;
  return join(options);
}

// Makes a communicator for the processes of `comm`, which all call it. Null on all of them if one
// cannot.
Attached* make_attached(MPI_Comm comm) {
  auto joined = make_communicator(comm);
  if (!joined) std::fprintf(stderr, "espalier: %s\n", joined.error().message.c_str());
  int all_joined = joined ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &all_joined, 1, MPI_INT, MPI_MIN, comm);
  if (all_joined == 0) return nullptr;
  auto* made = new Attached{*std::move(joined)};
  made->rank = made->communicator.rank();
  made->size = made->communicator.size();
  const std::lock_guard lock(mutex);
  all_attached.insert(made);
  return made;
}

// Whether `comm` has gone through attach(); `value` is then what it has, which may be null.
bool has_value(MPI_Comm comm, void*& value) {
  value = nullptr;
  if (comm == MPI_COMM_NULL || key == MPI_KEYVAL_INVALID) return false;
  int is_there = 0;
  PMPI_Comm_get_attr(comm, key, &value, &is_there);
  if (is_there == 0) value = nullptr;
  return is_there != 0;
}

// The failure is the communicator's error, as one of MPI's own. Ranks that call with different
// lengths have MPI's error for that.
int report(MPI_Comm comm, const std::string& message, const Attached* to = nullptr) {
  std::fprintf(stderr, "espalier: %s\n", message.c_str());
  bool is_mismatch = false;
  if (to != nullptr) {
    const Lock lock = lock_of(*to->mutex);
    is_mismatch = to->communicator.cause().status == Status::kMismatch;
  }
  const int error = is_mismatch ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER;
  PMPI_Comm_call_errhandler(comm, error);
  return error;
}

Result<Request> begin(Attached& to, const Work& work) {
  const Lock lock = lock_of(*to.mutex);
  return work.has_own_counts ? communicator::OwnCounts::start(to.communicator, work.call)
                             : to.communicator.start(work.call);
}

void complete(const Started& started, MPI_Request request) {
  if (started.tag == 0) {
    PMPI_Grequest_complete(request);
  } else {
    PMPI_Send(nullptr, 0, MPI_BYTE, 0, started.tag, poked);
  }
}

int query(void*, MPI_Status* status) {
  PMPI_Status_set_elements(status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
int release(void*) { return MPI_SUCCESS; }
int cancel(void*, int) { return MPI_SUCCESS; }

}  // namespace

MPI_Comm own_comm() { return poked; }

void attach_first() {
  if (key != MPI_KEYVAL_INVALID) return;
  if (const std::string wrong = wrong_library(); !wrong.empty()) {
    std::fprintf(stderr, "espalier: %s\n", wrong.c_str());
    std::_Exit(2);
  }
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  has_threads = level == MPI_THREAD_MULTIPLE;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_attached, &key, nullptr);
  PMPI_Comm_dup(MPI_COMM_SELF, &poked);
  PMPI_Comm_set_errhandler(poked, MPI_ERRORS_RETURN);
  PMPI_Irecv(nullptr, 0, MPI_BYTE, 0, 0, poked, &pending);
  list_types();
  attach(MPI_COMM_WORLD);
  attach(MPI_COMM_SELF);
}

void detach_first() {
  if (key == MPI_KEYVAL_INVALID) return;
  std::map<MPI_Request, Started> unfinished;
  {
    const std::lock_guard lock(mutex);
    unfinished.swap(started);
  }
  unfinished.clear();
  // Until all have come, each process makes MPI's progress, too.
  PMPI_Barrier(MPI_COMM_WORLD);
  const Attached* const world = attached(MPI_COMM_WORLD);
  for (Attached* const each : all_attached) {
    // The program need not have freed it. Parts end in any order.
    if (each != world) const Communicator ended = std::move(each->communicator);
  }
  for (MPI_Comm comm : {MPI_COMM_SELF, MPI_COMM_WORLD}) {
    if (attached(comm) != nullptr) PMPI_Comm_delete_attr(comm, key);
  }
  PMPI_Cancel(&pending);
  PMPI_Wait(&pending, MPI_STATUS_IGNORE);
  PMPI_Comm_free(&poked);
  PMPI_Comm_free_keyval(&key);
}

void attach(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL || key == MPI_KEYVAL_INVALID) return;
  int is_inter = 0;
  PMPI_Comm_test_inter(comm, &is_inter);
  if (is_inter != 0) return;
  PMPI_Comm_set_attr(comm, key, make_attached(comm));
}

void detach(MPI_Comm comm) {
  if (comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF) return;
  if (attached(comm) != nullptr) PMPI_Comm_delete_attr(comm, key);
}

Attached* attached(MPI_Comm comm) {
  void* value = nullptr;
  return has_value(comm, value) ? static_cast<Attached*>(value) : nullptr;
}

Attached* attached_at_last(MPI_Comm comm) {
  void* value = nullptr;
  if (!has_value(comm, value)) attach(comm);
  return value != nullptr ? static_cast<Attached*>(value) : attached(comm);
}

std::shared_ptr<Attached> reserve_for_persistent(MPI_Comm comm, Attached& to) {
  std::vector<std::uint8_t> is_free;
  for (const auto& each : to.for_persistent) {
    const Lock lock = lock_of(*each->mutex);
    const bool has_failed = each->communicator.cause().status != Status::kOk;
    is_free.push_back(each.use_count() == 1 && !has_failed ? 1 : 0);
  }
  // Each process frees its requests when it likes: one that is free on all of them serves.
  if (!is_free.empty()) {
    PMPI_Allreduce(MPI_IN_PLACE, is_free.data(), static_cast<int>(is_free.size()), MPI_UINT8_T,
                   MPI_MIN, comm);
  }
  const auto found = std::find(is_free.begin(), is_free.end(), 1);
  if (found != is_free.end()) return to.for_persistent[found - is_free.begin()];
  Attached* const made = make_attached(comm);
  if (made == nullptr) return nullptr;
  return to.for_persistent.emplace_back(made, end_attached);
}

void let_mpi_progress() {
  int is_complete = 0;
  PMPI_Test(&pending, &is_complete, MPI_STATUS_IGNORE);
  sched_yield();
}

int run(MPI_Comm comm, Attached& to, Work& work) {
  auto request = begin(to, work);
  if (!request) return report(comm, request.error().message, &to);
  while (true) {
    const auto is_complete = [&] {
      const Lock lock = lock_of(*to.mutex);
      return request->test();
    }();
    if (!is_complete) return report(comm, is_complete.error().message, &to);
    if (*is_complete) break;
    // Another process may need a message that this one's MPI library still has to send.
    let_mpi_progress();
  }
  if (work.finish) work.finish();
  return MPI_SUCCESS;
}

int start(MPI_Comm comm, Attached& to, std::unique_ptr<Work> work, MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  auto made = begin(to, *work);
  if (!made) return report(comm, made.error().message, &to);
  const int error = PMPI_Grequest_start(query, release, cancel, nullptr, request);
  if (error != MPI_SUCCESS) return error;
  const std::lock_guard lock(mutex);
  started.insert_or_assign(*request, Started{std::move(work), *std::move(made), comm, to.mutex});
  return MPI_SUCCESS;
}

int start_persistent(MPI_Comm comm, const std::shared_ptr<Attached>& to, std::unique_ptr<Work> work,
                     MPI_Request request, int tag) {
  auto made = begin(*to, *work);
  if (!made) return report(comm, made.error().message, to.get());
  const int error = PMPI_Start(&request);
  if (error != MPI_SUCCESS) return error;
  const std::lock_guard lock(mutex);
  started.insert_or_assign(request,
                           Started{std::move(work), *std::move(made), comm, to->mutex, tag, to});
  return MPI_SUCCESS;
}

bool has_ours(const MPI_Request* requests, int count) {
  const std::lock_guard lock(mutex);
  if (started.empty()) return false;
  for (int i = 0; i < count; ++i) {
    if (started.contains(requests[i])) return true;
  }
  return false;
}

std::size_t progress(const MPI_Request* requests, int count) {
  std::size_t waiting = 0;
  for (int i = 0; i < count; ++i) {
    // No other thread may use the request, so this thread takes the request out while testing it.
    std::map<MPI_Request, Started>::node_type taken;
    {
      const std::lock_guard lock(mutex);
      taken = started.extract(requests[i]);
    }
    if (taken.empty()) continue;
    Started& one = taken.mapped();
    const auto is_complete = [&] {
      const Lock lock = lock_of(*one.mutex);
      return one.request.test();
    }();
    if (is_complete && !*is_complete) {
      ++waiting;
      const std::lock_guard lock(mutex);
      started.insert(std::move(taken));
      continue;
    }
    if (!is_complete) {
      (void)report(one.comm, is_complete.error().message,
                   one.own != nullptr ? one.own.get() : attached(one.comm));
    } else if (one.work->finish) {
      one.work->finish();
    }
    complete(one, requests[i]);
  }
  return waiting;
}

MPI_Comm comm_of(MPI_Request request) {
  const std::lock_guard lock(mutex);
  const auto found = started.find(request);
  return found == started.end() ? MPI_COMM_NULL : found->second.comm;
}

}  // namespace espalier::bridge
