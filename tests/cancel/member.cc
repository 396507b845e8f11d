#include "tests/cancel/member.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "communicator/testing/random_call.h"
#include "espalier/bootstrap/bootstrap.h"
#include "espalier/communicator.h"

namespace espalier::cancel_test {
namespace {

using communicator::testing::RandomCall;

// D. A rank that is killed is found after at most so long.
constexpr std::chrono::milliseconds kDeadline(1600);
// Ranks of an emulated host over mem+tcp.
constexpr std::uint32_t kHostRanks = 2;

std::atomic<std::sig_atomic_t> interrupted = 0;
void interrupt(int /*signal*/) { interrupted = 1; }

template <std::size_t Size>
void copy(const std::string& text, std::array<char, Size>& into) {
  const std::size_t size = std::min(text.size(), Size - 1);
  std::copy_n(text.begin(), size, into.begin());
  into[size] = 0;
}

void sleep_until(std::uint64_t time_ns) {
  const std::uint64_t now = monotonic_ns();
  if (now < time_ns) std::this_thread::sleep_for(std::chrono::nanoseconds(time_ns - now));
}

class Member {
 public:
  Member(const Plan& plan, std::uint32_t rank, Board& board)
      : plan_(plan), job_rank_(rank), board_(board) {}

  void run(const std::string& address) {
    (void)std::signal(SIGUSR1, interrupt);
    bootstrap::Options place{.method = bootstrap::Method::kTable, .rank = job_rank_};
    place.table.assign(plan_.ranks, address);
    JoinOptions options{.bootstrap = place, .provider = plan_.provider, .deadline = kDeadline};
    if (options.provider == "mem+tcp") options.host = std::to_string(job_rank_ / kHostRanks);
    auto joined = join(options);
    if (!joined) return report("join: " + joined.error().message);
    std::optional<Communicator> world(*std::move(joined));
    for (std::uint32_t round = 0; round < plan_.rounds; ++round) {
      if (!run_round(round, *world)) return;
      if (is_in_part_) continue;
      auto again = world->rejoin();
      if (!again) return report("rejoin: " + again.error().message);
      world.reset();
      world.emplace(*std::move(again));
    }
    const auto left = world->leave();
    if (!left) report("leave: " + left.error().message);
  }

 private:
  void report(const std::string& error) { copy(error, board_.errors[job_rank_]); }

  // Returns whether the round went well here.
  bool run_round(std::uint32_t number, Communicator& world) {
    const Round round = draw_round(plan_, number, world.size());
    is_in_part_ = round.in_part;
    Seen& seen = board_.seen[number][world.rank()];
    interrupted = 0;
    std::optional<Communicator> part;
    if (round.in_part) {
      auto made = world.split(0);
      if (!made) return report("split: " + made.error().message), false;
      part = *std::move(made);
    }
    Communicator& used = part ? *part : world;
    // Then no rank is in join(), rejoin() or split() any more.
    ++board_.arrived[number];
    while (board_.arrived[number] < world.size()) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    const std::uint64_t begin = monotonic_ns();
    std::vector<std::thread> threads;
    const Cancel* own = nullptr;
    for (const Cancel& cancel : round.cancels) {
      if (cancel.rank == used.rank()) own = &cancel;
    }
    if (own != nullptr) prepare(*own, used, begin, seen, threads);
    if (round.victim == used.rank()) {
      threads.emplace_back([begin, &round] {
        sleep_until(begin + round.kill_after_ns);
        (void)kill(getpid(), SIGKILL);
      });
    }
    const bool is_right = call_until_failure(number, own, begin, used, seen);
    for (std::thread& thread : threads) thread.join();
    if (own != nullptr) (void)used.cancel_on(nullptr);
    return is_right && check_afterwards(used, world, seen);
  }

  void prepare(const Cancel& cancel, Communicator& used, std::uint64_t begin, Seen& seen,
               std::vector<std::thread>& threads) {
    const std::uint64_t time_ns = begin + cancel.after_ns;
    if (cancel.way == Way::kThread) {
      threads.emplace_back([this, &used, &seen, time_ns] {
        sleep_until(time_ns);
        seen.cancelled_ns = monotonic_ns();
        (void)used.cancel(reason());
      });
    } else if (cancel.way == Way::kSignal) {
      (void)used.cancel_on(&interrupted, reason());
      threads.emplace_back([&seen, time_ns] {
        sleep_until(time_ns);
        seen.cancelled_ns = monotonic_ns();
        (void)kill(getpid(), SIGUSR1);
      });
    }
  }
  [[nodiscard]] std::string reason() const {
    return "seed " + std::to_string(plan_.seed) + ", process " + std::to_string(job_rank_);
  }

  // Whether all results were right.
  bool call_until_failure(std::uint32_t round, const Cancel* own, std::uint64_t begin,
                          Communicator& used, Seen& seen) {
    for (std::uint64_t number = 0;; ++number) {
      if (own != nullptr && own->way == Way::kCaller && seen.cancelled_ns == 0 &&
          monotonic_ns() >= begin + own->after_ns) {
        seen.cancelled_ns = monotonic_ns();
        (void)used.cancel(reason());
      }
      const std::string line = call(round, number, used, seen);
      if (line.empty()) continue;
      seen.returned_ns = monotonic_ns();
      copy(line, seen.line);
      const Cause cause = used.cause();
      seen.status = static_cast<std::uint32_t>(cause.status);
      seen.detector = cause.detector;
      seen.peer = cause.peer;
      return cause.status != Status::kOk || (report("no cause: " + line), false);
    }
  }

  // Runs a collective, every third time two that are started, every fifth time planned. Returns the
  // line of the failure.
  std::string call(std::uint32_t round, std::uint64_t number, Communicator& used, Seen& seen) {
    RandomCall first(plan_.seed + round, 2 * number, used.size(), used.rank());
    RandomCall second(plan_.seed + round, 2 * number + 1, used.size(), used.rank());
    std::vector<RandomCall*> complete;
    const auto keep = [&](RandomCall& call, const Result<void>& done) -> std::string {
      if (!done) return done.error().message;
      complete.push_back(&call);
      return "";
    };
    std::string line;
    if (number % 3 == 0) {
      auto a = used.start(first.call()), b = used.start(second.call());
      line = a ? keep(first, a->wait()) : a.error().message;
      const std::string other = b ? keep(second, b->wait()) : b.error().message;
      if (line.empty()) line = other;
    } else if (number % 5 == 0) {
      auto plan = used.plan(first.call());
      if (!plan) {
        line = plan.error().message;
      } else if (const auto started = plan->start(); !started) {
        line = started.error().message;
      } else {
        line = keep(first, plan->wait());
      }
    } else {
      line = keep(first, used.run(first.call()));
    }
    for (const RandomCall* each : complete) {
      const std::string difference = each->check();
      if (!difference.empty()) report(each->text() + ": " + difference);
      ++seen.completed;
    }
    return line;
  }

  // Every later call has the cause; the communicator of the whole job goes on if it was not it.
  bool check_afterwards(Communicator& used, Communicator& world, Seen& seen) {
    const auto later = used.barrier();
    if (later || used.cause().detector != seen.detector) {
      return report("a later call has no cause, or another one"), false;
    }
    if (is_in_part_) {
      std::uint32_t ranks = 1;
      const auto done = world.allreduce(ranks, Op::kSum);
      if (!done || ranks != world.size()) return report("the whole job does not go on"), false;
    }
    seen.has_ended = true;
    return true;
  }

  const Plan& plan_;
  std::uint32_t job_rank_;
  Board& board_;
  bool is_in_part_ = false;
};

}  // namespace

void run_member(const Plan& plan, const std::string& address, std::uint32_t rank, Board& board) {
  Member(plan, rank, board).run(address);
}

}  // namespace espalier::cancel_test
