#include "tests/cancel/job.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <new>
#include <optional>
#include <thread>

#include "bootstrap/testing/server_process.h"
#include "espalier/base/status.h"
#include "tests/cancel/member.h"

namespace espalier::cancel_test {
namespace {

// A job that takes longer hangs: a round takes some deadlines.
constexpr std::chrono::seconds kMaxJob(120);

template <typename Body>
pid_t start_process(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  body();
  std::fflush(nullptr);
  _exit(0);
}

// Waits for all; kills those that hang. Returns how many did.
std::uint64_t await(std::vector<pid_t> processes) {
  const auto until = std::chrono::steady_clock::now() + kMaxJob;
  while (!processes.empty() && std::chrono::steady_clock::now() < until) {
    std::erase_if(processes, [](pid_t each) { return waitpid(each, nullptr, WNOHANG) == each; });
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (const pid_t each : processes) {
    (void)kill(each, SIGKILL);
    (void)waitpid(each, nullptr, 0);
  }
  return processes.size();
}

// The line without the name of the call.
std::string reason_of(const Seen& seen) {
  const std::string line = seen.line.data();
  const std::size_t found = line.find(" failed: ");
  return found == std::string::npos ? line : line.substr(found + 9);
}

class Judge {
 public:
  Judge(const Plan& plan, const Board& board, Record& record)
      : plan_(plan), board_(board), record_(record) {}

  void judge() {
    for (std::uint32_t rank = 0; rank < plan_.ranks; ++rank) {
      const char* const error = board_.errors[rank].data();
      if (*error != 0) find("process " + std::to_string(rank) + ": " + error);
    }
    std::uint32_t ranks = plan_.ranks;
    for (number_ = 0; number_ < plan_.rounds; ++number_) {
      const Round round = draw_round(plan_, number_, ranks);
      judge_round(round, ranks);
      if (round.victim) --ranks;
    }
  }

 private:
  void find(const std::string& text) {
    record_.findings.push_back("seed " + std::to_string(plan_.seed) + ", " + plan_.provider +
                               ", round " + std::to_string(number_) + ": " + text);
  }

  void judge_round(const Round& round, std::uint32_t ranks) {
    ++record_.rounds;
    record_.kills += round.victim ? 1 : 0;
    record_.doubles += round.cancels.size() > 1 ? 1 : 0;
    record_.in_parts += round.in_part ? 1 : 0;
    for (const Cancel& cancel : round.cancels) {
      ++(cancel.way == Way::kCaller   ? record_.by_caller
         : cancel.way == Way::kThread ? record_.by_thread
                                      : record_.by_signal);
    }
    const Seen* first = nullptr;
    bool has_all = true;
    std::uint64_t cancelled_ns = UINT64_MAX, returned_ns = 0;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const Seen& seen = board_.seen[number_][rank];
      record_.completed += seen.completed;
      if (seen.cancelled_ns != 0) cancelled_ns = std::min(cancelled_ns, seen.cancelled_ns);
      if (round.victim == rank) continue;
      if (!seen.has_ended) {
        has_all = false;
        continue;
      }
      returned_ns = std::max(returned_ns, seen.returned_ns);
      if (first == nullptr) first = &seen;
      judge_cause(round, seen, *first, rank);
    }
    if (!has_all) return find("not all ranks ended the round");
    ++record_.rejoined;
    const bool is_cancelled = first->status == static_cast<std::uint32_t>(Status::kCancelled);
    record_.dead_links += is_cancelled ? 0 : 1;
    if (!round.victim && cancelled_ns < returned_ns) {
      record_.latencies_ns[plan_.provider].push_back(returned_ns - cancelled_ns);
    }
  }

  void judge_cause(const Round& round, const Seen& seen, const Seen& first, std::uint32_t rank) {
    const std::string line = "rank " + std::to_string(rank) + ": " + seen.line.data();
    if (seen.status != first.status || seen.detector != first.detector || seen.peer != first.peer) {
      return find("another cause than the first rank has: " + line);
    }
    if (seen.status == static_cast<std::uint32_t>(Status::kDeadLink)) {
      if (round.victim != seen.peer) find("no dead rank: " + line);
      return;
    }
    const bool is_named =
        std::any_of(round.cancels.begin(), round.cancels.end(),
                    [&](const Cancel& cancel) { return cancel.rank == seen.detector; });
    if (seen.status != static_cast<std::uint32_t>(Status::kCancelled) || !is_named) {
      return find("no cancel: " + line);
    }
    const std::string bare = "cancelled by rank " + std::to_string(seen.detector);
    const std::string reason = reason_of(seen);
    const bool has_reason = reason.starts_with(bare + ": seed " + std::to_string(plan_.seed));
    // A killed rank may have told the cause, and not yet the reason.
    if (!has_reason && !(round.victim && reason == bare)) return find("no reason: " + line);
    if (!has_reason) {
      ++record_.without_reason;
    } else if (reason_of(first) != bare && reason != reason_of(first)) {
      find("another reason than the first rank has: " + line);
    }
  }

  const Plan& plan_;
  const Board& board_;
  Record& record_;
  std::uint32_t number_ = 0;
};

}  // namespace

void run_job(const Plan& plan, Record& record) {
  void* const memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    record.findings.emplace_back("no memory");
    return;
  }
  auto* const board = new (memory) Board;
  {
    const bootstrap::ServerProcess server(plan.ranks);
    std::vector<pid_t> processes;
    for (std::uint32_t rank = 0; rank < plan.ranks; ++rank) {
      processes.push_back(start_process([&] { run_member(plan, server.address(), rank, *board); }));
    }
    const std::uint64_t hangs = await(processes);
    record.hangs += hangs;
    if (hangs != 0) {
      record.findings.push_back("seed " + std::to_string(plan.seed) + ": " + std::to_string(hangs) +
                                " processes hang");
    }
  }
  Judge(plan, *board, record).judge();
  (void)munmap(memory, sizeof(Board));
}

}  // namespace espalier::cancel_test
