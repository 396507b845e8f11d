// Asks other hosts for their records, through the remote shell.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/one_line.h"
#include "base/version.h"
#include "communicator/record/view.h"
#include "tools/common/find_program.h"
#include "tools/launch/frames.h"
#include "tools/status/gather.h"

namespace espalier::status {
namespace {

constexpr char kGreeting[] =
    "\n\x01"
    "espalier-records\x02";
constexpr std::uint64_t kNsPerS = 1'000'000'000;

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? "'\\''" : std::string(1, letter);
  return text + "'";
}

// One host that is asked.
struct Asked {
  std::string name = {};
  pid_t process = -1;
  int pipe = -1;
  launch::Reader reader{kGreeting};
  bool has_ended = false;  // the last message came
  std::string refusal = {};
};

void start(const launch::Host& host, const std::string& shell, const std::string& command,
           Asked& asked) {
  asked.name = host.name;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    asked.refusal = std::string("no pipe: ") + std::strerror(errno);
    return;
  }
  const std::string words =
      "exec " + shell + (host.port == 0 ? "" : " -p " + std::to_string(host.port)) + " \"$@\"";
  asked.process = fork();
  if (asked.process == 0) {
    (void)setpgid(0, 0);
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", words.c_str(), "sh", host.name.c_str(), command.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  asked.pipe = ends[0];
  if (asked.process < 0) asked.refusal = std::string("no process: ") + std::strerror(errno);
}

// Returns why the message is none of a record; nothing: its rank was added.
std::string take(const launch::Fields& message, std::vector<record::RankView>& ranks) {
  if (message.size() != 4 || message[0] != "record") return "a malformed answer";
  auto view = record::decode(message[3], "a record of another host");
  if (!view) return view.error().message;
  const auto life = launch::read_number(message[1]);
  if (!life || *life > static_cast<std::uint32_t>(record::Life::kEnded))
    return "a malformed answer";
  record::RankView rank{.view = *std::move(view)};
  rank.life = static_cast<record::Life>(*life);
  rank.quiet_s = std::strtod(message[2].c_str(), nullptr);
  ranks.push_back(std::move(rank));
  return "";
}

void read(Asked& asked, Answers& answers) {
  const bool goes_on = asked.reader.fill(asked.pipe);
  launch::Fields message;
  while (!asked.has_ended && asked.refusal.empty() && asked.reader.take(message)) {
    if (message[0] == "hello") {
      if (message.size() != 2 || message[1] != kVersion) {
        asked.refusal = "another version of espalier; expected " + std::string(kVersion);
      }
    } else if (message[0] == "end") {
      asked.has_ended = true;
    } else {
      asked.refusal = take(message, answers.ranks);
    }
  }
  if (!goes_on && !asked.has_ended && asked.refusal.empty()) {
    asked.refusal =
        "no answer; expected espalier at the same path, and a remote shell that runs it";
  }
}

void end(Asked& asked) {
  if (asked.pipe >= 0) close(asked.pipe);
  if (asked.process <= 0) return;
  // A process group of its own: the shell and what it started.
  (void)kill(-asked.process, SIGKILL);
  (void)waitpid(asked.process, nullptr, 0);
}

}  // namespace

Answers ask(const std::vector<launch::Host>& hosts, const Asking& asking) {
  Answers answers;
  const auto own = tools::own_program();
  const std::string command = "exec " + quoted(own ? *own : "espalier") + " status-records";
  std::vector<Asked> all(hosts.size());
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    start(hosts[i], asking.remote_shell, command, all[i]);
  }
  const std::uint64_t until = monotonic_ns() + std::uint64_t{asking.deadline_ms} * 1'000'000;
  while (true) {
    std::vector<pollfd> files;
    for (const Asked& each : all) {
      const bool waits = !each.has_ended && each.refusal.empty();
      files.push_back({waits ? each.pipe : -1, POLLIN, 0});
    }
    const bool waits =
        std::any_of(files.begin(), files.end(), [](const pollfd& file) { return file.fd >= 0; });
    const std::uint64_t now = monotonic_ns();
    if (!waits || now >= until) break;
    (void)poll(files.data(), files.size(), static_cast<int>((until - now) / 1'000'000) + 1);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (files[i].fd >= 0 && files[i].revents != 0) read(all[i], answers);
    }
  }
  for (Asked& each : all) {
    if (!each.has_ended && each.refusal.empty()) {
      each.refusal = "no answer within " + std::to_string(asking.deadline_ms / 1000) + " s";
    }
    if (!each.refusal.empty()) {
      answers.refusals.push_back("host " + one_line(each.name) + ": " + each.refusal);
    }
    end(each);
  }
  return answers;
}

int serve_records() {
  std::string out = kGreeting + launch::encode({"hello", kVersion});
  for (const OwnRecord& own : own_records()) {
    out += launch::encode({"record", std::to_string(static_cast<std::uint32_t>(own.rank.life)),
                           std::to_string(own.rank.quiet_s), own.bytes});
  }
  out += launch::encode({"end"});
  return launch::write_all(STDOUT_FILENO, out) ? 0 : 1;
}

}  // namespace espalier::status
