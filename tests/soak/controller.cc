#include "tests/soak/controller.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "base/testing/free_port.h"
#include "tests/soak/member.h"

namespace espalier::soak {
namespace {

using Milliseconds = std::chrono::milliseconds;

// So many ranks of eight can die at once, and the links of join() still connect the others
// (docs/communicator.md). The survivors of more may get different causes.
constexpr std::uint32_t kMaxKills = 4;
constexpr Milliseconds kHangTime{300'000};  // a member that says nothing for so long hangs

std::string text_of(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (const std::uint32_t number : numbers) text += ' ' + std::to_string(number);
  return text.empty() ? " none" : text;
}

void print(const Sample& sample, const std::string& job) {
  const auto text = [](const ProcessSample& of) {
    return std::to_string(of.resident_kib) + " KiB, " + std::to_string(of.descriptors) +
           " descriptors, " + std::to_string(of.threads) + " threads, " +
           std::to_string(of.mappings) + " mappings";
  };
  std::fprintf(
      stderr, "%.1f s: %s; spared: heap %.0f KiB, %s; controller: %s; files: %s\n", sample.time_s,
      job.c_str(), sample.spared_heap_kib, text(sample.spared).c_str(),
      text(sample.controller).c_str(),
      (std::to_string(sample.files.temporary) + ' ' + std::to_string(sample.files.cache)).c_str());
}

}  // namespace

Controller::Controller(std::uint64_t seed, std::string folder)
    : random_(seed), folder_(std::move(folder)) {
  for (const char* name : {"", "/tmp", "/tmp/job", "/cache"}) {
    std::filesystem::create_directories(folder_ + name);
  }
  const std::string secret = folder_ + "/secret";
  std::ofstream(secret) << std::string(32, 's') << seed;
  (void)chmod(secret.c_str(), 0600);
  setenv("TMPDIR", (folder_ + "/tmp").c_str(), 1);
  setenv("XDG_CACHE_HOME", (folder_ + "/cache").c_str(), 1);
  setenv("IPATH_NO_BACKTRACE", "1", 1);
  for (const char* name : {"FI_PROVIDER", "ESPALIER_RANK", "ESPALIER_SECRET_FILE"}) unsetenv(name);
  // A member that died does not end this process.
  (void)signal(SIGPIPE, SIG_IGN);
}

Controller::~Controller() {
  for (Member& member : members_) end_member(member);
}

void Controller::end_member(Member& member) {
  if (member.process < 0) return;
  (void)kill(member.process, SIGKILL);
  while (waitpid(member.process, nullptr, 0) < 0 && errno == EINTR) {
  }
  close(member.orders);
  close(member.lines);
  member = {};
}

// Without further orders a member exits, so that a sanitizer in it has the last word.
std::string Controller::end_members() {
  std::string errors;
  for (Member& member : members_) {
    close(std::exchange(member.orders, -1));
    int status = 0;
    while (waitpid(member.process, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) {
      errors += "process " + std::to_string(member.process) + " ended with status " +
                std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)) +
                "; ";
    }
    close(member.lines);
    member = {};
  }
  return errors;
}

std::string Controller::start_member(Member& member) {
  int orders[2], lines[2];
  if (pipe2(orders, O_CLOEXEC) != 0 || pipe2(lines, O_CLOEXEC) != 0) return "no pipe";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, orders[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, lines[1], STDOUT_FILENO);
  std::string name = "soak", word = "member";
  char* arguments[] = {name.data(), word.data(), nullptr};
  const int error =
      posix_spawn(&member.process, "/proc/self/exe", &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(orders[0]);
  close(lines[1]);
  member.orders = orders[1];
  member.lines = lines[0];
  if (error != 0) return std::string("cannot start a member: ") + std::strerror(error);
  return "";
}

// A new process takes the place of each that was killed.
std::string Controller::start_members() {
  std::string error;
  for (Member& member : members_) {
    if (member.process < 0 && error.empty()) error = start_member(member);
  }
  return error;
}

std::optional<std::string> Controller::next_line(Member& member, Clock::time_point until) {
  while (true) {
    const std::size_t end = member.text.find('\n');
    if (end != std::string::npos) {
      std::string line = member.text.substr(0, end);
      member.text.erase(0, end + 1);
      return line;
    }
    const auto left = std::chrono::duration_cast<Milliseconds>(until - Clock::now()).count();
    if (left <= 0) return {};
    pollfd waiting{member.lines, POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(left)) != 1) continue;
    char bytes[4096];
    const ssize_t size = read(member.lines, bytes, sizeof bytes);
    if (size == 0) return "error: the process has ended";
    if (size > 0) member.text.append(bytes, static_cast<std::size_t>(size));
  }
}

std::string Controller::await(const std::string& word, std::vector<std::string>& rests) {
  const Clock::time_point until = Clock::now() + kHangTime;
  std::string errors;
  rests.clear();
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const auto line = next_line(*ranks_[rank], until);
    if (line && (*line == word || line->starts_with(word + ' '))) {
      rests.push_back(line->size() > word.size() ? line->substr(word.size() + 1) : "");
      continue;
    }
    errors += "rank " + std::to_string(rank) + ", process " +
              std::to_string(ranks_[rank]->process) + ": expected '" + word + "', " +
              (line ? "it said: " + *line : "and it hangs") + "; ";
  }
  return errors;
}

void Controller::pause(std::uint64_t max_ms) {
  std::this_thread::sleep_for(std::chrono::microseconds(random_() % (1000 * max_ms)));
}

Controller::Job Controller::draw_job() {
  Job job;
  job.seed = random_() % 1'000'000'000;
  constexpr const char* kProviders[] = {"tcp", "mem", "mem+tcp"};
  // A process keeps one descriptor for the memory of mem from its first use on. The first job
  // makes it, before the first sample.
  job.provider = kProviders[record_.jobs == 0 ? 2 : random_() % 3];
  if (job.provider == "mem+tcp") job.ranks_per_host = 2 + static_cast<std::uint32_t>(random_() % 3);
  job.has_secret = random_() % 2 == 0;
  job.has_thread = random_() % 3 == 0;
  const std::uint64_t method = record_.jobs == 0 ? 7 : random_() % 8;
  job.method = method == 0 ? "folder" : method < 3 ? "first" : "server";
  // Without a server that counts survivors there is nothing to rejoin.
  const std::uint64_t kills = job.method == "folder" ? 0 : random_() % 16;
  // The first job has a kill, so that a short run has one.
  if (kills >= 6 || record_.jobs == 0) job.kills = {1};
  if (kills >= 12) job.kills = {1, 1};
  if (kills == 14) job.kills = {2};
  if (kills == 15) job.kills = {random_() % 2 == 0 ? kMaxKills : 3};
  job.dies_in_rejoin = job.kills.size() == 1 && random_() % 4 == 0;
  job.dies_at_end = job.method == "server" && random_() % 8 == 0;
  return job;
}

std::string Controller::give_order(const Job& job) {
  ranks_.clear();
  for (Member& member : members_) ranks_.push_back(&member);
  std::shuffle(ranks_.begin(), ranks_.end(), random_);
  // The spared member takes the server with it only if it is rank 0.
  if (job.method == "first" && !job.kills.empty()) {
    std::iter_swap(ranks_.begin(), std::find(ranks_.begin(), ranks_.end(), members_.data()));
  }
  std::string place = folder_ + "/tmp/job";
  const std::string secret = job.has_secret && job.method != "folder" ? folder_ + "/secret" : "-";
  if (job.method == "first") place = "127.0.0.1:" + std::to_string(free_port());
  server_.reset();
  if (job.method == "server") {
    bootstrap::JobSecret key = {};
    if (secret != "-") {
      std::ifstream file(secret);
      key = bootstrap::secret_of(std::string(std::istreambuf_iterator<char>(file), {}));
    }
    auto server = bootstrap::Server::start("127.0.0.1:0", kMembers, key);
    if (!server) return server.error().message;
    server_ = *std::move(server);
    place = server_->address();
  }
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const std::string order = "job " + std::to_string(job.seed) + ' ' + std::to_string(rank) + ' ' +
                              std::to_string(kMembers) + ' ' + job.method + ' ' + place + ' ' +
                              secret + ' ' + job.provider + ' ' +
                              std::to_string(job.ranks_per_host) +
                              (job.has_thread ? " 1\n" : " 0\n");
    if (write(ranks_[rank]->orders, order.data(), order.size()) < 0)
      return "a member takes no order";
  }
  return "";
}

// All survivors have one cause: a victim, found by a survivor or by a victim before it died.
std::string Controller::judge(const std::vector<Failure>& failures,
                              const std::set<std::uint32_t>& victims) const {
  std::string wrong;
  for (const Failure& one : failures) {
    const Failure& first = failures.front();
    const bool is_same =
        one.status == first.status && one.detector == first.detector && one.peer == first.peer;
    if (is_same && one.status != 0 && victims.contains(one.peer)) continue;
    wrong += one.message + "; ";
  }
  if (wrong.empty()) return "";
  return "killed:" + text_of({victims.begin(), victims.end()}) +
         "; causes: " + failures.front().message + " | " + wrong;
}

std::set<std::uint32_t> Controller::draw_victims(std::uint32_t count) {
  std::set<std::uint32_t> victims;
  while (victims.size() < std::min<std::size_t>(count, ranks_.size() - 1)) {
    const auto rank = static_cast<std::uint32_t>(random_() % ranks_.size());
    if (ranks_[rank] != members_.data()) victims.insert(rank);
  }
  return victims;
}

void Controller::end_victims(const std::set<std::uint32_t>& victims) {
  for (const std::uint32_t rank : victims) (void)kill(ranks_[rank]->process, SIGKILL);
  std::vector<Member*> survivors;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (victims.contains(rank)) {
      end_member(*ranks_[rank]);
    } else {
      survivors.push_back(ranks_[rank]);
    }
  }
  ranks_ = survivors;
}

// A member that rejoined before the last one of the killed members died fails once more.
std::string Controller::await_rejoined(Member& member, Clock::time_point until) {
  const std::string rejoined = "rejoined " + std::to_string(ranks_.size());
  while (true) {
    const auto line = next_line(member, until);
    if (line && *line == rejoined) return "";
    if (line && (line->starts_with("failed ") || line->starts_with("rejoined "))) continue;
    return "process " + std::to_string(member.process) + ", expected '" + rejoined +
           "': " + (line ? *line : "it hangs");
  }
}

std::string Controller::kill_some(std::uint32_t victims, bool one_more) {
  pause(1500);
  const std::set<std::uint32_t> killed = draw_victims(victims);
  end_victims(killed);
  std::vector<std::string> lines;
  if (std::string error = await("failed", lines); !error.empty()) return error;
  std::vector<Failure> failures;
  for (const std::string& line : lines) {
    Failure failure;
    int length = 0;
    if (std::sscanf(line.c_str(), "%u %u %u %n", &failure.status, &failure.detector, &failure.peer,
                    &length) != 3) {
      return "not a cause: " + line;
    }
    failure.message = line.substr(static_cast<std::size_t>(length));
    failures.push_back(failure);
  }
  if (std::string wrong = judge(failures, killed); !wrong.empty()) return wrong;
  if (one_more && ranks_.size() > 1) {
    pause(300);
    end_victims(draw_victims(1));
    ++record_.kills;
  }
  for (Member* member : ranks_) {
    const std::string error = await_rejoined(*member, Clock::now() + kHangTime);
    if (!error.empty()) return error;
  }
  record_.kills += killed.size();
  record_.max_kills_at_once = std::max<std::uint64_t>(record_.max_kills_at_once, killed.size());
  record_.rejoined += ranks_.size();
  return "";
}

// `counts`: collectives, and bytes of the heap.
void Controller::note_end(Member& member, const std::string& counts) {
  char* end = nullptr;
  record_.collectives += std::strtoull(counts.c_str(), &end, 10);
  member.heap_kib = std::strtod(end, nullptr) / 1024;
  ++member.jobs;
}

// A member that has not left when another one dies may fail and rejoin, and then leaves.
std::string Controller::await_end(Member& member, Clock::time_point until) {
  while (true) {
    const auto line = next_line(member, until);
    if (line && (line->starts_with("failed ") || line->starts_with("rejoined "))) continue;
    if (line && line->starts_with("left ")) {
      note_end(member, line->substr(5));
      return "";
    }
    return "process " + std::to_string(member.process) +
           ", after a kill at the end: " + (line ? *line : "it hangs");
  }
}

std::string Controller::end_job(bool with_kill) {
  for (const Member* member : ranks_) {
    if (write(member->orders, "end\n", 4) < 0) return "a member takes no order";
  }
  if (with_kill) {
    pause(50);
    const std::set<std::uint32_t> victims = draw_victims(1);
    record_.kills += victims.size();
    record_.kills_at_end += victims.size();
    end_victims(victims);
    for (Member* member : ranks_) {
      if (std::string error = await_end(*member, Clock::now() + kHangTime); !error.empty()) {
        return error;
      }
    }
  } else {
    std::vector<std::string> counts;
    if (std::string error = await("left", counts); !error.empty()) return error;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      note_end(*ranks_[rank], counts[rank]);
    }
  }
  server_.reset();
  return "";
}

std::string Controller::run_job(const Job& job) {
  if (std::string error = give_order(job); !error.empty()) return error;
  std::vector<std::string> lines;
  if (std::string error = await("joined", lines); !error.empty()) return error;
  for (std::size_t i = 0; i < job.kills.size(); ++i) {
    const bool one_more = i == 0 && job.dies_in_rejoin;
    if (std::string error = kill_some(job.kills[i], one_more); !error.empty()) return error;
  }
  pause(1500);
  if (std::string error = end_job(job.dies_at_end); !error.empty()) return error;
  return start_members();
}

Sample Controller::take_sample() {
  Sample sample;
  sample.spared_heap_kib = members_[0].heap_kib;
  sample.time_s = std::chrono::duration<double>(Clock::now() - began_).count();
  sample.spared = sample_process(members_[0].process);
  sample.controller = sample_process(getpid());
  double sum_kib = 0, others = 0;
  for (std::size_t i = 1; i < members_.size(); ++i) {
    if (members_[i].jobs == 0) continue;  // it has just been started
    sum_kib += static_cast<double>(sample_process(members_[i].process).resident_kib);
    ++others;
  }
  sample.others_mib = others == 0 ? 0 : sum_kib / others / 1024;
  sample.files = {count_files(folder_ + "/tmp"), count_files(folder_ + "/cache")};
  return sample;
}

void Controller::count(const Job& job) {
  ++record_.jobs;
  ++(job.provider == "tcp" ? record_.tcp : job.provider == "mem" ? record_.mem : record_.mixed);
  ++(job.method == "server"  ? record_.by_server
     : job.method == "first" ? record_.by_first
                             : record_.by_folder);
  record_.with_secret += job.has_secret || job.method == "folder" ? 1 : 0;
  record_.with_thread += job.has_thread ? 1 : 0;
  record_.jobs_with_kills += job.kills.empty() && !job.dies_at_end ? 0 : 1;
}

Record Controller::run(std::chrono::seconds time, bool verbose) {
  began_ = Clock::now();
  record_.error = start_members();
  while (record_.error.empty() && Clock::now() - began_ < time) {
    const Job job = draw_job();
    const std::string text =
        "job " + std::to_string(record_.jobs) + " by " + job.method + " over " + job.provider +
        (job.has_secret ? ", secret" : "") + (job.has_thread ? ", thread" : "") + ", kills" +
        text_of(job.kills) + (job.dies_in_rejoin ? " and in the rejoin" : "") +
        (job.dies_at_end ? " and at the end" : "") + ", seed " + std::to_string(job.seed);
    if (const std::string error = run_job(job); !error.empty()) {
      record_.error = text + ": " + error;
      break;
    }
    count(job);
    record_.samples.push_back(take_sample());
    if (verbose) print(record_.samples.back(), text);
  }
  if (!record_.error.empty()) return record_;
  record_.error = end_members();
  return record_;
}

}  // namespace espalier::soak
