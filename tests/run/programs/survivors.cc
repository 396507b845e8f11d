// Kill trials: one of eight processes, rank 0 included, ends by SIGKILL at a random moment of
// allreduces. All survivors must get the same cause, rejoin, and finish an allreduce among seven.
//
// survivors [--trials N] [--seed S] [--within MS] [--launch WORDS | --ranks-per-host R]
//
// Default: 4 trials of a random seed; 100 with ESPALIER_WHOLE=1. --within: the cause must be there
// so long after the kill. Twice the deadline, 4000, holds where nothing else keeps the cores busy;
// without the option only a hang is a failure. WORDS start the eight processes,
// e.g. 'espalier launch -n 8 --hosts a,b'; without them they find each other by the environment.
// The provider is the one of FI_PROVIDER, on one host, too; otherwise join()'s default. With
// --ranks-per-host it is mem+tcp, with R successive ranks on each of several emulated hosts. Exit
// status 1: a trial was bad.

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/server.h"
#include "espalier/communicator.h"
#include "tests/options.h"
#include "tests/whole.h"

namespace espalier {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr std::uint32_t kRanks = 8;
constexpr Milliseconds kDeadline{is_sanitized() ? 20'000 : 2'000};
constexpr Milliseconds kMaxMoment{500};     // between the first allreduce and the kill
constexpr Milliseconds kHangTime{120'000};  // a trial that takes longer never ends

// --- A member: joins, runs allreduces until one fails, rejoins.

// The value that every rank contributes to element i of allreduce `number`, except for its rank.
std::int64_t value(std::uint64_t number, std::uint64_t i) {
  return static_cast<std::int64_t>((number * 31 + i * 7) % 1009);
}

// An allreduce of a size that depends on its number; checks the result.
Result<void> allreduce(Communicator& communicator, std::uint64_t number) {
  constexpr std::uint64_t kCounts[] = {1, 100, 4000, 100'000};
  std::vector<std::int64_t> data(kCounts[number * 2'654'435'761 % 97 % std::size(kCounts)]);
  for (std::uint64_t i = 0; i < data.size(); ++i) {
    data[i] = value(number, i) + communicator.rank();
  }
  auto done = communicator.allreduce(data, Op::kSum);
  if (!done) return done;
  const std::int64_t ranks = communicator.size();
  for (std::uint64_t i = 0; i < data.size(); ++i) {
    if (data[i] == ranks * value(number, i) + ranks * (ranks - 1) / 2) continue;
    std::printf("incorrect: allreduce %llu, element %llu\n",
                static_cast<unsigned long long>(number), static_cast<unsigned long long>(i));
    std::exit(1);
  }
  return {};
}

// Lines on stdout go to the trial; each is one write. `host`: empty, or the name of the emulated
// host on which this member is.
int run_member(const std::string& host) {
  setvbuf(stdout, nullptr, _IOLBF, 4096);
  JoinOptions options;
  options.deadline = kDeadline;
  const char* const provider = std::getenv("FI_PROVIDER");
  if (provider != nullptr) options.provider = provider;
  if (!host.empty()) options.provider = "mem+tcp";
  options.host = host;
  auto world = join(options);
  if (!world) {
    std::printf("error: join: %s\n", world.error().message.c_str());
    return 1;
  }
  const std::uint32_t rank = world->rank();
  Result<void> done = allreduce(*world, 0);
  if (done) std::printf("ready %u %d\n", rank, getpid());
  for (std::uint64_t number = 1; done; ++number) done = allreduce(*world, number);
  const auto now = Clock::now().time_since_epoch();
  const Cause cause = world->cause();
  std::printf("failed %u %lld %u %u %u %s\n", rank,
              static_cast<long long>(std::chrono::duration_cast<Milliseconds>(now).count()),
              static_cast<unsigned>(cause.status), cause.detector, cause.peer,
              done.error().message.c_str());
  auto again = world->rejoin();
  if (!again) {
    std::printf("error: rank %u: rejoin: %s\n", rank, again.error().message.c_str());
    return 1;
  }
  if (auto last = allreduce(*again, 3); !last) {
    std::printf("error: rank %u: allreduce of %u survivors: %s\n", rank, again->size(),
                last.error().message.c_str());
    return 1;
  }
  std::printf("done %u %u\n", rank, again->size());
  return 0;
}

// --- A trial.

struct Failure {
  std::uint32_t rank = 0;
  long long time_ms = 0;
  unsigned status = 0, detector = 0, peer = 0;
  std::string line;
};

struct TrialOptions {
  Milliseconds limit = kHangTime;    // from the kill to a survivor's error
  std::string launcher = {};         // WORDS of --launch; empty: none
  std::uint64_t ranks_per_host = 0;  // 0: no hosts are emulated
};

class Trial {
 public:
  Trial(std::uint64_t seed, const TrialOptions& options) : random_(seed), options_(options) {}
  ~Trial() {
    for (const pid_t child : children_) kill(child, SIGKILL);
    for (const pid_t child : children_) (void)waitpid(child, nullptr, 0);
    close(lines_);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  // Returns what was wrong; empty: nothing.
  [[nodiscard]] std::string run();

  std::uint32_t victim = 0;
  Milliseconds moment{0};    // after the first allreduce
  long long slowest_ms = 0;  // from the kill to the last survivor's error
  std::string cause;         // a survivor's error

 private:
  [[nodiscard]] std::string start();
  [[nodiscard]] std::string start_by_environment(const posix_spawn_file_actions_t& actions);
  [[nodiscard]] std::string spawn(const posix_spawn_file_actions_t& actions, const char* program,
                                  std::vector<std::string> words);
  [[nodiscard]] std::optional<std::string> next_line(Clock::time_point until);
  [[nodiscard]] std::string await_ready(Clock::time_point until);
  [[nodiscard]] std::string read_ends(Clock::time_point until);
  [[nodiscard]] std::string judge(long long killed_ms) const;

  std::mt19937_64 random_;
  const TrialOptions& options_;
  std::unique_ptr<bootstrap::Server> server_;
  std::vector<pid_t> children_;             // the members, or their launcher
  std::array<pid_t, kRanks> members_ = {};  // as they say
  int lines_ = -1;                          // what members print
  std::string text_;
  std::vector<Failure> failures_;
  std::set<std::uint32_t> done_;
};

std::string Trial::spawn(const posix_spawn_file_actions_t& actions, const char* program,
                         std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawn(&child, program, &actions, nullptr, arguments.data(), environ);
  if (error != 0) return std::string("cannot start a process: ") + std::strerror(error);
  children_.push_back(child);
  return "";
}

// The server is in this process, so that any rank may be killed.
std::string Trial::start_by_environment(const posix_spawn_file_actions_t& actions) {
  auto server = bootstrap::Server::start("127.0.0.1:0", kRanks, {});
  if (!server) return server.error().message;
  server_ = *std::move(server);
  std::string error;
  for (std::uint32_t rank = 0; rank < kRanks && error.empty(); ++rank) {
    setenv("ESPALIER_RANK", std::to_string(rank).c_str(), 1);
    setenv("ESPALIER_SIZE", std::to_string(kRanks).c_str(), 1);
    setenv("ESPALIER_ADDRESS", server_->address().c_str(), 1);
    std::vector<std::string> words = {"survivors", "member"};
    if (options_.ranks_per_host != 0) {
      words.push_back("host" + std::to_string(rank / options_.ranks_per_host));
    }
    error = spawn(actions, "/proc/self/exe", std::move(words));
  }
  return error;
}

std::string Trial::start() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
  lines_ = ends[0];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::string error =
      options_.launcher.empty()
          ? start_by_environment(actions)
          : spawn(actions, "/bin/sh",
                  {"sh", "-c", "exec " + options_.launcher + " \"$0\" member", self});
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  return error;
}

// Nothing: all members have ended, or it is late.
std::optional<std::string> Trial::next_line(Clock::time_point until) {
  while (true) {
    const std::size_t end = text_.find('\n');
    if (end != std::string::npos) {
      std::string line = text_.substr(0, end);
      text_.erase(0, end + 1);
      // `espalier launch` puts the rank in front.
      return line.starts_with('[') ? line.substr(line.find(' ') + 1) : line;
    }
    const auto left = std::chrono::duration_cast<Milliseconds>(until - Clock::now()).count();
    if (left <= 0) return {};
    pollfd waiting{lines_, POLLIN, 0};
    (void)poll(&waiting, 1, static_cast<int>(left));
    if (waiting.revents == 0) continue;
    char bytes[4096];
    const ssize_t size = read(lines_, bytes, sizeof bytes);
    if (size == 0 || (size < 0 && errno != EINTR)) return {};
    if (size > 0) text_.append(bytes, static_cast<std::size_t>(size));
  }
}

std::string Trial::await_ready(Clock::time_point until) {
  for (std::uint32_t ready = 0; ready < kRanks; ++ready) {
    const auto line = next_line(until);
    if (!line) return "members did not get ready";
    std::uint32_t rank = 0;
    int process = 0;
    if (std::sscanf(line->c_str(), "ready %u %d", &rank, &process) != 2 || rank >= kRanks) {
      return "before the kill: " + *line;
    }
    members_[rank] = process;
  }
  return "";
}

// Reads the survivors' lines until all have ended.
std::string Trial::read_ends(Clock::time_point until) {
  while (const auto line = next_line(until)) {
    Failure failure;
    std::uint32_t rank = 0, size = 0;
    int length = 0;
    if (std::sscanf(line->c_str(), "failed %u %lld %u %u %u %n", &failure.rank, &failure.time_ms,
                    &failure.status, &failure.detector, &failure.peer, &length) == 5) {
      failure.line = line->substr(static_cast<std::size_t>(length));
      failures_.push_back(failure);
    } else if (std::sscanf(line->c_str(), "done %u %u", &rank, &size) == 2) {
      if (size != kRanks - 1) return *line + "; expected 7 ranks";
      done_.insert(rank);
    } else {
      return *line;
    }
  }
  return Clock::now() < until ? "" : "a survivor hangs";
}

std::string Trial::judge(long long killed_ms) const {
  std::string wrong;
  if (failures_.size() != kRanks - 1) {
    wrong += std::to_string(failures_.size()) + " survivors have failed; ";
  }
  if (done_.size() != kRanks - 1) {
    wrong += std::to_string(done_.size()) + " survivors have finished; ";
  }
  for (const Failure& one : failures_) {
    const Failure& first = failures_.front();
    const bool is_same = one.status == first.status && one.detector == first.detector &&
                         one.peer == first.peer && one.peer == victim;
    const long long time_ms = one.time_ms - killed_ms;
    if (is_same && one.status != 0 && time_ms <= options_.limit.count()) continue;
    wrong += "rank " + std::to_string(one.rank) + " after " + std::to_string(time_ms) +
             " ms: " + one.line + "; ";
  }
  return wrong;
}

std::string Trial::run() {
  const Clock::time_point until = Clock::now() + kHangTime;
  victim = static_cast<std::uint32_t>(random_() % kRanks);
  moment = Milliseconds(random_() % static_cast<std::uint64_t>(kMaxMoment.count()));
  if (const std::string error = start(); !error.empty()) return error;
  if (const std::string error = await_ready(until); !error.empty()) return error;
  std::this_thread::sleep_for(moment);
  const auto killed = Clock::now().time_since_epoch();
  const long long killed_ms = std::chrono::duration_cast<Milliseconds>(killed).count();
  kill(members_[victim], SIGKILL);
  std::string wrong = read_ends(until);
  if (wrong.empty()) wrong = judge(killed_ms);
  for (const Failure& one : failures_) slowest_ms = std::max(slowest_ms, one.time_ms - killed_ms);
  if (!failures_.empty()) cause = failures_.front().line;
  return wrong;
}

int run_trials(std::uint64_t trials, std::uint64_t seed, const TrialOptions& options) {
  std::printf("%llu trials, seed %llu\n", static_cast<unsigned long long>(trials),
              static_cast<unsigned long long>(seed));
  std::uint64_t bad = 0;
  long long slowest_ms = 0;
  std::array<std::uint64_t, kRanks> killed = {};
  for (std::uint64_t number = 0; number < trials; ++number) {
    Trial trial(seed + number, options);
    const std::string wrong = trial.run();
    ++killed[trial.victim];
    slowest_ms = std::max(slowest_ms, trial.slowest_ms);
    std::printf("seed %llu: rank %u killed after %lld ms: %s%s (%lld ms)\n",
                static_cast<unsigned long long>(seed + number), trial.victim,
                static_cast<long long>(trial.moment.count()),
                wrong.empty() ? "" : "BAD: ", wrong.empty() ? trial.cause.c_str() : wrong.c_str(),
                trial.slowest_ms);
    std::fflush(stdout);
    bad += wrong.empty() ? 0 : 1;
  }
  std::string by_rank;
  for (const std::uint64_t times : killed) by_rank += ' ' + std::to_string(times);
  std::printf(
      "%llu trials, %llu bad; the slowest error came %lld ms after the kill (limit %lld ms, twice "
      "the deadline %lld ms); kills by rank:%s\n",
      static_cast<unsigned long long>(trials), static_cast<unsigned long long>(bad), slowest_ms,
      static_cast<long long>(options.limit.count()), static_cast<long long>(2 * kDeadline.count()),
      by_rank.c_str());
  return bad == 0 ? 0 : 1;
}

int run(const std::vector<std::string>& arguments) {
  // A member ends with the trial.
  if (!arguments.empty() && arguments.size() <= 2 && arguments[0] == "member") {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    return run_member(arguments.size() == 2 ? arguments[1] : "");
  }
  std::uint64_t trials = whole() ? 100 : 4;
  std::uint64_t seed = std::random_device()() % 1'000'000;
  std::uint64_t within_ms = kHangTime.count();
  TrialOptions options;
  const testing::Options given("survivors", arguments,
                               {"--trials", "--seed", "--within", "--launch", "--ranks-per-host"});
  constexpr std::uint64_t kMost = 999'999'999;
  given.read("--trials", trials, 0, kMost);
  given.read("--seed", seed, 0, kMost);
  given.read("--within", within_ms, 0, kMost);
  given.read("--ranks-per-host", options.ranks_per_host, 0, kMost);
  options.launcher = given.text("--launch");
  if (options.ranks_per_host != 0 && !options.launcher.empty()) {
    given.refuse("--ranks-per-host with --launch; expected one of them");
  }
  options.limit = Milliseconds(within_ms);
  return run_trials(trials, seed, options);
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) { return espalier::run({argv + 1, argv + argc}); }
