#include "communicator/bench/measurement.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <optional>
#include <thread>

#include "base/counted.h"
#include "base/try.h"
#include "espalier/collectives/algorithms/algorithms.h"

namespace espalier::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPause{3};  // longer than any wait spins
constexpr std::uint8_t kUntouched = 0x5a;

// Memory of allocate(), or the program's own.
class Buffer {
 public:
  Buffer(std::uint64_t size, bool shared)
      : shared_(shared ? size : 0), private_(shared ? 0 : size), size_(size) {}
  [[nodiscard]] std::uint8_t* data() { return shared_.empty() ? private_.data() : shared_.data(); }
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  std::vector<std::uint8_t, SharedAllocator<std::uint8_t>> shared_;
  std::vector<std::uint8_t> private_;
  std::uint64_t size_;
};

// A rank's memory of one row, and its call.
class Trial {
 public:
  Trial(Communicator& world, const reference::ReferenceInput& what, bool shared)
      : world_(world),
        what_(what),
        input_(reference::input_bytes(what, world.rank()), shared),
        output_(is_in_place() ? what.bytes : reference::result_bytes(what, world.rank()), shared) {
    call_.collective = what.collective;
    call_.send = is_in_place() ? output_.data() : input_.data();
    call_.receive = output_.data();
    call_.count = reference::count(what);
    call_.op = what.op;
    call_.root = what.root;
  }

  [[nodiscard]] Result<void> plan() {
    ESPALIER_TRY_TO(auto plan, world_.plan(call_));
    plan_.emplace(std::move(plan));
    return {};
  }
  [[nodiscard]] const std::string& algorithm() const { return plan_->algorithm(); }

  // Gives the repetition its own input and clears the result.
  void fill(std::uint32_t repetition) {
    if (output_.size() != 0) std::memset(output_.data(), kUntouched, output_.size());
    reference::fill_input(what_, world_.rank(), repetition, input_.data());
    if (is_in_place() && input_.size() != 0) {
      std::memcpy(output_.data(), input_.data(), input_.size());
    }
  }
  // Runs the collective; returns its seconds on this rank.
  [[nodiscard]] Result<double> run(bool persistent) {
    const Clock::time_point start = Clock::now();
    Result<void> done;
    if (persistent) {
      done = plan_->start();
      if (done) done = plan_->wait();
    } else {
      done = world_.run(call_);
    }
    const Clock::time_point end = Clock::now();
    if (!done) return fail(done.error());
    return std::chrono::duration<double>(end - start).count();
  }
  [[nodiscard]] bool is_right(std::uint32_t repetition) {
    if (!reference::has_result(what_, world_.rank())) return true;
    reference::Results results(what_, repetition);
    const std::vector<std::uint8_t>& right = results.of(world_.rank());
    return std::equal(right.begin(), right.end(), output_.data(), output_.data() + output_.size());
  }

 private:
  // A broadcast's root sends from where the others receive.
  [[nodiscard]] bool is_in_place() const { return what_.collective == Collective::kBroadcast; }

  Communicator& world_;
  const reference::ReferenceInput& what_;
  Buffer input_, output_;
  Call call_;
  std::optional<Plan> plan_;
};

Result<void> repeat(Communicator& world, Trial& trial, Start start, const Repetitions& repetitions,
                    std::vector<double>& seconds, std::uint64_t& wrong) {
  for (std::uint32_t i = 0; i < repetitions.warm_up + repetitions.timed; ++i) {
    if (repetitions.checked || i == 0) trial.fill(i);
    ESPALIER_TRY(world.barrier());
    if (start == Start::kCold) std::this_thread::sleep_for(kPause);
    ESPALIER_TRY_TO(const auto took, trial.run(repetitions.persistent));
    // A rank that compares would take the processor of one that is not done.
    ESPALIER_TRY(world.barrier());
    if (repetitions.checked && !trial.is_right(i)) ++wrong;
    if (i >= repetitions.warm_up) seconds.push_back(took);
  }
  return world.allreduce(seconds, Op::kMax);
}

Result<Row> measure_all(Communicator& world, const reference::ReferenceInput& what,
                        const std::vector<Start>& starts, const Repetitions& repetitions) {
  Row row;
  row.what = what;
  Trial trial(world, what, repetitions.shared);
  ESPALIER_TRY(trial.plan());
  row.algorithm = trial.algorithm();
  for (const Start start : starts) {
    std::vector<double>& seconds = start == Start::kWarm ? row.warm : row.cold;
    ESPALIER_TRY(repeat(world, trial, start, repetitions, seconds, row.wrong));
  }
  std::vector<std::uint64_t> wrong = {row.wrong};
  ESPALIER_TRY(world.allreduce(wrong, Op::kSum));
  row.wrong = wrong[0];
  return row;
}

}  // namespace

Result<Row> measure(Communicator& world, const reference::ReferenceInput& what,
                    const std::vector<Start>& starts, const Repetitions& repetitions) {
  try {
    return measure_all(world, what, starts, repetitions);
  } catch (const std::bad_alloc&) {
    return fail("no memory for " + counted(what.bytes, "byte"));
  }
}

std::uint64_t moved_bytes(const reference::ReferenceInput& what) {
  return counts_per_rank(what.collective) ? what.bytes * what.ranks : what.bytes;
}

double bus_share(Collective collective, std::uint32_t ranks) {
  const double others = (static_cast<double>(ranks) - 1) / ranks;
  switch (collective.value()) {
    case Collective::kAllreduce: return 2 * others;
    case Collective::kAllgather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
    case Collective::kScatter:
    case Collective::kGather: return others;
    default: return 1;
  }
}

}  // namespace espalier::bench
