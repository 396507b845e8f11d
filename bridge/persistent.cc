#include "bridge/persistent.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "bridge/prepare.h"
#include "bridge/take.h"

namespace espalier::bridge {
namespace {

struct Persistent {
  Routine routine = Routine::kBarrier;
  Arguments arguments;
  std::shared_ptr<Attached> own;
  std::vector<MPI_Count> send_counts, send_offsets, receive_counts, receive_offsets;
  KeptTypes kept;
  int tag = 0;
};

// Never destroyed: a process may exit with requests, and Espalier's communicators end before.
auto& persistent_requests = *new std::map<MPI_Request, std::shared_ptr<Persistent>>;
std::mutex persistent_mutex;

// Copies a vector, which the program may change after the call.
void copy_vector(Numbers& numbers, std::vector<MPI_Count>& values, std::size_t size) {
  if (!numbers.is_given()) return;
  for (std::size_t i = 0; i < size; ++i) values.push_back(numbers[i]);
  numbers = values.data();
}

// The first tag that no request has. Requires the lock.
int find_tag() {
  std::vector<int> tags;
  tags.reserve(persistent_requests.size());
  for (const auto& [request, one] : persistent_requests) tags.push_back(one->tag);
  std::sort(tags.begin(), tags.end());
  int tag = kFirstPersistentTag;
  for (const int taken : tags) tag += taken == tag ? 1 : 0;
  return tag;
}

std::shared_ptr<Persistent> find_persistent(MPI_Request request) {
  const std::lock_guard lock(persistent_mutex);
  const auto found = persistent_requests.find(request);
  return found == persistent_requests.end() ? nullptr : found->second;
}

}  // namespace

int make_persistent(Routine routine, std::shared_ptr<Attached> own, const Arguments& arguments,
                    MPI_Request* request) {
  const Attached& to = *own;
  auto one = std::make_shared<Persistent>();
  one->own = std::move(own);
  one->routine = routine;
  one->arguments = arguments;
  // Only the root has the vectors of MPI_Gatherv() and MPI_Scatterv().
  const bool is_root = !has_root(routine) || static_cast<std::uint32_t>(arguments.root) == to.rank;
  const bool has_sent = is_root && arguments.send != MPI_IN_PLACE;
  if (has_sent) {
    copy_vector(one->arguments.send_counts, one->send_counts, to.size);
    copy_vector(one->arguments.send_offsets, one->send_offsets, to.size);
  }
  if (is_root) {
    copy_vector(one->arguments.receive_counts, one->receive_counts, to.size);
    copy_vector(one->arguments.receive_offsets, one->receive_offsets, to.size);
  }
  if (is_root || routine == Routine::kGather || routine == Routine::kGatherv) {
    if (arguments.send != MPI_IN_PLACE) one->kept.keep(arguments.send_type);
  }
  const bool is_gather = routine == Routine::kGather || routine == Routine::kGatherv;
  if ((is_root || !is_gather) && arguments.receive != MPI_IN_PLACE) {
    one->kept.keep(arguments.receive_type);
  }
  const std::lock_guard lock(persistent_mutex);
  one->tag = find_tag();
  const int error = PMPI_Recv_init(nullptr, 0, MPI_BYTE, 0, one->tag, own_comm(), request);
  if (error != MPI_SUCCESS) return raise(arguments.comm, error);
  persistent_requests.insert_or_assign(*request, std::move(one));
  return MPI_SUCCESS;
}

bool is_persistent_start(MPI_Request* request, int& result) {
  if (request == nullptr) return false;
  const auto one = find_persistent(*request);
  if (one == nullptr) return false;
  const MPI_Comm comm = one->arguments.comm;
  if (has_ours(request, 1)) {
    result = raise(comm, MPI_ERR_REQUEST);
    return true;
  }
  auto work = std::make_unique<Work>();
  prepare(one->routine, *one->own, one->arguments, *work);
  result = start_persistent(comm, one->own, std::move(work), *request, one->tag);
  return true;
}

void forget_persistent(MPI_Request request) {
  // The end of its communicator may take other locks.
  const auto gone = [request] {
    const std::lock_guard lock(persistent_mutex);
    return persistent_requests.extract(request);
  }();
}

}  // namespace espalier::bridge
