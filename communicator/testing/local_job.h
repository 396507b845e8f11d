#pragma once
// A job whose processes are threads of one process, for tests: put, fence, get and rejoin in
// memory. The program must link with gtest.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>

#include "base/testing/results.h"
#include "espalier/bootstrap/bootstrap.h"
#include "espalier/communicator.h"

namespace espalier::communicator::testing {

using Vector = std::vector<std::int64_t>;
using In = std::span<const std::int64_t>;
using Out = std::span<std::int64_t>;

class LocalJob {
 public:
  explicit LocalJob(std::uint32_t size) : size_(size), waiting_for_(size) {}
  // The membership of one rank; the job must outlive it.
  [[nodiscard]] std::shared_ptr<bootstrap::Bootstrap> member(std::uint32_t rank);
  // A rank that takes no further part.
  void end(std::uint32_t rank);
  [[nodiscard]] std::uint32_t size() const { return size_; }

 private:
  class Member;
  void fence();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint32_t size_;
  std::uint32_t waiting_for_;  // members that take part in fences
  std::uint32_t arrived_ = 0;
  std::uint64_t fences_ = 0;
  std::uint32_t generation_ = 0;
  std::set<std::uint32_t> ended_;
  std::set<std::uint32_t> rejoining_;
  std::map<std::pair<std::uint32_t, std::string>, std::string> values_;
};

// Returns the options of one rank of the job: over tcp, whatever FI_PROVIDER is.
[[nodiscard]] JoinOptions options_of(LocalJob& job, std::uint32_t rank);

using Change = std::function<void(JoinOptions& options, std::uint32_t rank)>;

// Returns the change to mem+tcp on emulated hosts: rank r is on the host with letter `hosts[r]`.
[[nodiscard]] Change on_hosts(std::string hosts);

// Returns the change of the deadline.
[[nodiscard]] Change with_deadline(std::chrono::nanoseconds deadline);

// Runs `body` on every rank of a job, each in a thread of its own; it may move the communicator
// away. `change` alters a rank's options; empty: nothing does.
void on_all(std::uint32_t ranks, const std::function<void(Communicator&)>& body,
            const Change& change = {});
void on_all(LocalJob& job, const std::function<void(Communicator&)>& body,
            const Change& change = {});

// A change: ranks that wait for another one fail soon.
void with_short_deadline(JoinOptions& options, std::uint32_t rank);

}  // namespace espalier::communicator::testing
