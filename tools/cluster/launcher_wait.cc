// The launcher's waits: receiving from nodes, and declaring them failed.

#include <poll.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/clock.h"
#include "base/counted.h"
#include "base/one_line.h"
#include "base/parse_number.h"
#include "base/try.h"
#include "bootstrap/first_word.h"
#include "hal/fabric/address.h"
#include "tools/cluster/launcher.h"

namespace espalier::cluster {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint32_t kConnectPatience = 5;  // s, without ESPALIER_PATIENCE
constexpr char kCablesHint[] = "; 'espalier cables' shows which interfaces each cable joins";
constexpr std::uint32_t kMaxCablesShown = 4;
constexpr std::uint64_t kListen = kSecond / 10;  // the longest time between two looks at the clock
constexpr std::uint64_t kReportTime = kSecond / 10;  // the longest that a report of a board takes
// All nodes must have their order before they start. Each takes a wake-up to read it.
constexpr std::uint64_t kStartLead = 2'000'000;       // ns
constexpr std::uint64_t kStartLeadPerNode = 100'000;  // ns

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

volatile std::sig_atomic_t caught_signal = 0;

void note_signal(int number) { caught_signal = number; }

const char* doing(Member::State state) {
  switch (state) {
    case Member::State::kStarting: return "loading its schedule and opening its endpoint";
    case Member::State::kHello: return "connecting to its neighbours";
    case Member::State::kReady: return "mapping its memory";
    case Member::State::kRunning: return "running";
    case Member::State::kAsks: return "being taken in again";
    default: return "idle";
  }
}

// Returns why the sizes in a Hello cannot be right; empty: they can.
std::string wrong_size(const control::Hello& hello) {
  if (hello.lanes > control::kMaxLanes) {
    return "its Hello has " + counted(hello.lanes, "lane") + "; expected at most " +
           std::to_string(control::kMaxLanes);
  }
  for (std::uint32_t lane = 0; lane < hello.lanes; ++lane) {
    const std::uint32_t size = hello.addresses[lane].size;
    if (size <= control::kMaxAddressBytes) continue;
    return "its Hello has an address of " + counted(size, "byte") + "; expected at most " +
           std::to_string(control::kMaxAddressBytes);
  }
  return "";
}

// Whether two names of hosts are equal but for a domain.
bool is_same_host(const std::string& a, const std::string& b) {
  const std::string first = a.substr(0, a.find('.')), second = b.substr(0, b.find('.'));
  return strcasecmp(first.c_str(), second.c_str()) == 0;
}

std::string seconds(std::uint64_t nanoseconds) {
  const std::uint64_t tenths = nanoseconds / (kSecond / 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace

SignalWatch::SignalWatch() {
  struct sigaction action {};
  action.sa_handler = note_signal;  // no SA_RESTART: poll() returns
  for (std::size_t i = 0; i < before_.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

SignalWatch::~SignalWatch() {
  for (std::size_t i = 0; i < before_.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

Result<void> SignalWatch::check() {
  if (caught_signal == 0) return {};
  return fail(std::string("broken off: ") + strsignal(caught_signal));
}

std::string NodeProcesses::waits_for(const StallReport& stall) const {
  if (!stall.waiting) return "";
  return ", in step " + std::to_string(stall.step) + " waiting to " +
         (stall.sending ? "send to " : "receive from ") + name(stall.peer) + " (link " +
         std::to_string(stall.link) + ", action " + std::to_string(stall.action) + ")";
}

std::string NodeProcesses::describe(std::uint32_t node) const {
  const Member& member = members_[node];
  if (member.state == Member::State::kFailed) return member.failure;
  const control::Report& report = member.report;
  if (report.status == Status::kOk) return "ok";
  std::string text = status_name(report.status);
  if (report.cause.status == Status::kDeadLink) {
    text += ": " + name(report.cause.detector) + " found its link to " + name(report.cause.peer) +
            " dead";
  } else if (report.cause.status != Status::kOk) {
    text +=
        ": found by " + name(report.cause.detector) + " on its link to " + name(report.cause.peer);
  }
  const std::uint64_t completed = member.completed_before + report.completed;
  return text + waits_for(report.stall) + "; " + counted(completed, "collective") +
         (completed == 1 ? " was" : " were") + " complete since the start";
}

std::string NodeProcesses::with_name(const std::string& error) const {
  constexpr std::string_view kBefore = "cannot connect to the neighbours: node ";
  if (!error.starts_with(kBefore)) return error;
  const std::size_t end = std::min(error.find(' ', kBefore.size()), error.size());
  std::uint32_t node = 0;
  const std::string_view number = std::string_view(error).substr(0, end).substr(kBefore.size());
  if (!parse_number(number, node) || node >= members_.size()) return error;
  return "cannot connect to the neighbours: " + name(node) + error.substr(end) +
         (options_.cables.empty() ? "" : kCablesHint);
}

// Prints which nodes have not connected.
void NodeProcesses::say_unconnected() const {
  std::string nodes;
  for (std::uint32_t node = 0; node < members_.size(); ++node) {
    if (members_[node].state == Member::State::kHello)
      nodes += (nodes.empty() ? "" : ", ") + name(node);
  }
  const bool has_cables = !options_.cables.empty();
  std::fprintf(stderr, "espalier: waiting for %s to connect%s%s\n", one_line(nodes).c_str(),
               has_cables ? one_line(unconnected_cables()).c_str() : "",
               has_cables ? kCablesHint : "");
}

std::string NodeProcesses::unconnected_cables() const {
  const auto waits = [this](std::uint32_t node) {
    return members_[node].state == Member::State::kHello;
  };
  std::string text;
  std::uint32_t count = 0;
  for (std::uint32_t node = 0; node < members_.size(); ++node) {
    const control::Hello& hello = members_[node].hello;
    for (std::uint32_t lane = 0; waits(node) && lane < hello.lanes; ++lane) {
      const std::uint32_t peer = hello.peers[lane];
      if (peer <= node || peer >= members_.size() || !waits(peer) || ++count > kMaxCablesShown) {
        continue;
      }
      text += (count == 1 ? " over " : ", ") + cable_end(node, lane) + " to " +
              cable_end(peer, other_lane(node, lane));
    }
  }
  if (count > kMaxCablesShown) text += " and " + std::to_string(count - kMaxCablesShown) + " more";
  for (std::uint32_t node = 0; node < members_.size(); ++node) {
    const std::string& host = options_.hosts[node];
    const std::string own = members_[node].hello.host;
    if (!waits(node) || host.empty() || own.empty() || is_same_host(host, own)) continue;
    text += "; " + name(node) + " runs on host " + own + ", and the cables' file has " + host;
  }
  return text;
}

// "eth0 of host1 ([fe80::1]:4000)"
std::string NodeProcesses::cable_end(std::uint32_t node, std::uint32_t lane) const {
  const control::Address& address = members_[node].hello.addresses[lane];
  const std::vector<std::string>& ends = options_.cables[node];
  return (lane < ends.size() ? ends[lane] : name(node)) + " (" +
         ofi::address_text({address.bytes, address.size}) + ")";
}

// Lane k of those between two nodes leads to lane k of the other one.
std::uint32_t NodeProcesses::other_lane(std::uint32_t node, std::uint32_t lane) const {
  const control::Hello& here = members_[node].hello;
  const control::Hello& there = members_[here.peers[lane]].hello;
  const auto before = std::count(here.peers, here.peers + lane, here.peers[lane]);
  std::uint32_t other = 0;
  for (std::int64_t left = before; other + 1 < there.lanes; ++other) {
    if (there.peers[other] == node && left-- == 0) break;
  }
  return other;
}

Result<void> NodeProcesses::await(Member::State state) {
  const std::uint32_t word_s = bootstrap::patience(kConnectPatience).value_or(kConnectPatience);
  const std::uint64_t word_ns = clock_.now() + word_s * kSecond;
  bool has_spoken = word_s == 0 || state != Member::State::kReady;
  // Opening libfabric costs each process a fraction of a second of one of the cores they share.
  const std::uint64_t patience =
      (std::max(60U, options_.deadline_ms / 1000) + options_.nodes) * kSecond;
  const std::uint64_t until = clock_.now() + patience;
  while (true) {
    bool all = true;
    std::uint32_t half_steps = 0;  // each node says hello, then that it is ready
    for (std::uint32_t node = 0; node < members_.size(); ++node) {
      const Member& member = members_[node];
      half_steps += member.state >= Member::State::kReady   ? 2
                    : member.state >= Member::State::kHello ? 1
                                                            : 0;
      if (member.state == Member::State::kFailed) {
        is_refused_ = member.refused;
        return fail(name(node) + ": " + member.failure);
      }
      if (member.state >= state) continue;
      all = false;
      if (clock_.now() >= until) {
        return fail(name(node) + ": no word for " + seconds(patience) + " while " +
                    doing(member.state));
      }
    }
    if (options_.progress) {
      options_.progress(static_cast<double>(half_steps) / static_cast<double>(2 * members_.size()));
    }
    if (all) return {};
    if (!has_spoken && clock_.now() >= word_ns) {
      has_spoken = true;
      say_unconnected();
    }
    ESPALIER_TRY(listen(until));
  }
}

// Receives packets of the nodes until one arrives, `until_ns` on clock_, or a short time has
// passed.
// Errors: the user interrupts it.
Result<void> NodeProcesses::listen(std::uint64_t until_ns) {
  std::vector<pollfd> entries;
  std::vector<Member*> behind;
  for (Member& member : members_) {
    if (member.channel < 0) continue;
    entries.push_back({member.channel, POLLIN, 0});
    behind.push_back(&member);
  }
  const std::uint64_t now = clock_.now();
  const std::uint64_t wait = until_ns <= now ? 0 : std::min(until_ns - now, kListen);
  const int timeout = static_cast<int>((wait + 999'999) / 1'000'000);
  const int ready = poll(entries.data(), entries.size(), timeout);
  ESPALIER_TRY(signals_.check());
  for (std::size_t i = 0; ready > 0 && i < entries.size(); ++i) {
    if (entries[i].revents != 0) take_packet(*behind[i]);
  }
  return {};
}

void NodeProcesses::take_packet(Member& member) {
  control::Any packet;
  int descriptor = -1;
  const control::Received received = control::receive(member.channel, packet, descriptor, 0);
  if (descriptor >= 0) close(descriptor);
  if (received == control::Received::kNothing) return;
  if (received == control::Received::kEnd) return lose(member);
  if (member.state == Member::State::kFailed) return;  // given up; only its end matters
  if (received == control::Received::kBad) {
    return refuse(member, "sent a packet that is not part of the control protocol");
  }
  member.heard_ns = clock_.now();
  switch (packet.packet) {
    case control::Packet::kHello:
      if (member.state != Member::State::kStarting) return refuse(member, "sent two Hellos");
      if (std::string wrong = wrong_size(packet.hello); !wrong.empty()) {
        return refuse(member, wrong);
      }
      packet.hello.host[sizeof packet.hello.host - 1] = '\0';
      member.hello = packet.hello;
      member.pid = packet.hello.pid;
      member.state = Member::State::kHello;
      if (packet.hello.version != control::kControlVersion) {
        member.failure = "speaks version " + std::to_string(packet.hello.version) +
                         " of the control protocol, the launcher " +
                         std::to_string(control::kControlVersion) + ": install both of one release";
        member.state = Member::State::kFailed;
      }
      break;
    case control::Packet::kReady:
      if (member.state == Member::State::kAsks) {
        give_order(member);
      } else {
        advance(member, Member::State::kHello, Member::State::kReady);
      }
      break;
    case control::Packet::kMapped:
      advance(member, Member::State::kReady, Member::State::kMapped);
      break;
    case control::Packet::kReport: take_report(member, packet.report); break;
    case control::Packet::kFailed:
      packet.failed.text[control::kMaxTextBytes - 1] = '\0';
      member.failure = with_name(one_line(packet.failed.text));
      member.refused =
          member.state == Member::State::kStarting &&
          (packet.failed.is_bad_input != 0 || processes_[member.process].command.empty());
      member.state = Member::State::kFailed;
      break;
    default: refuse(member, "sent a packet that is not a node's"); break;
  }
}

void NodeProcesses::advance(Member& member, Member::State from, Member::State to) {
  if (member.state != from) {
    return refuse(member, std::string("sent ") +
                              (to == Member::State::kReady ? "Ready" : "Mapped") + " while " +
                              doing(member.state));
  }
  member.state = to;
}

void NodeProcesses::refuse(Member& member, const std::string& why) {
  member.failure = why;
  member.state = Member::State::kFailed;
}

void NodeProcesses::take_report(Member& member, const control::Report& report) {
  // An answer to Ask may cross with the order, or follow the run's last report.
  if (report.number != runs_ || member.state != Member::State::kRunning) return;
  const EventLog::Counts& log = report.log;
  const std::uint32_t room = member.memory.layout().events;
  if (report.status != Status::kBusy && (log.count > room || log.retired > log.count)) {
    return refuse(member, "reports a log of " + counted(log.count, "record") + ", " +
                              std::to_string(log.retired) + " of them retired; expected at most " +
                              std::to_string(room));
  }
  const control::Report& before = member.report;
  // A gateway knows since when its board waits up to the time that the board's report took.
  const bool waits_anew = report.stall.since_ns > before.stall.since_ns + kReportTime;
  if (report.completed != before.completed || report.stall.step != before.stall.step ||
      report.stall.action != before.stall.action || waits_anew) {
    member.moved_ns = member.heard_ns;
  }
  member.report = report;
  if (report.status != Status::kBusy) member.state = Member::State::kReported;
}

// The channel ended: finds out how the process did.
void NodeProcesses::lose(Member& member) {
  close(member.channel);
  member.channel = -1;
  if (member.state == Member::State::kFailed) return;
  member.state = Member::State::kFailed;
  Process& process = processes_[member.process];
  for (int i = 0; i < 100 && !has_ended(process); ++i) usleep(1000);
  if (!process.ended) {
    member.failure = "closed its control channel";
  } else if (process.killed) {
    member.failure = "killed by signal " + std::to_string(process.status) + " (" +
                     strsignal(process.status) + ")";
  } else {
    member.failure = "ended with status " + std::to_string(process.status);
  }
  if (!process.command.empty()) member.failure += "; it was started as: " + process.command;
}

void NodeProcesses::disturb(std::uint64_t now) {
  for (Disturbance& disturbance : options_.disturbances) {
    const std::uint64_t due_ns = first_run_ns_ + std::uint64_t{disturbance.after_ms} * 1'000'000;
    if (disturbance.at_ns != 0 || now < due_ns) continue;
    const Member& member = members_[disturbance.node];
    disturbance.at_ns = monotonic_ns();
    if (member.channel >= 0 && member.pid > 0) kill(member.pid, disturbance.signal);
  }
}

// Asks a running node for its progress, and declares it failed if it does not answer or does not
// progress. Its machine ends by itself within twice its deadline, so both limits are beyond that.
void NodeProcesses::watch(Member& member, std::uint64_t now) {
  const std::uint64_t deadline = std::uint64_t{options_.deadline_ms} * 1'000'000;
  const std::uint64_t silence = 2 * deadline + 3 * kSecond;
  const std::uint64_t standstill = 4 * deadline + 10 * kSecond;
  // heard_ns may be later than now: packets were taken since.
  if (now > member.heard_ns + silence) {
    member.failure = "no answer for " + seconds(now - member.heard_ns) + " while " +
                     doing(member.state) + " (stopped, or held inside the provider)" +
                     waits_for(member.report.stall);
    member.state = Member::State::kFailed;
  } else if (now > member.moved_ns + standstill) {
    member.failure =
        "no progress for " + seconds(now - member.moved_ns) + waits_for(member.report.stall);
    member.state = Member::State::kFailed;
  } else if (now > std::max(member.heard_ns, member.asked_ns) + std::max(deadline, kSecond)) {
    member.asked_ns = now;
    if (!control::send(member.channel, control::Ask{}, -1, 0) && errno != EAGAIN) lose(member);
  }
}

// A node that is taken in takes part in the run that the others have begun.
bool NodeProcesses::takes_in() const {
  return std::any_of(members_.begin(), members_.end(), [](const Member& member) {
    const control::Report& report = member.report;
    return member.state == Member::State::kReported && report.status == Status::kOk &&
           report.loss.generation != 0 && report.loss.loss() == Loss();
  });
}

void NodeProcesses::give_order(Member& member) {
  member.state = Member::State::kRunning;
  member.completed_before += member.report.completed;
  member.report = control::Report{};
  member.heard_ns = member.moved_ns = std::max(clock_.of(order_.start_ns), clock_.now());
  if (!control::send(member.channel, order_)) lose(member);
}

Result<void> NodeProcesses::await_reports() {
  while (true) {
    const std::uint64_t now = clock_.now();
    disturb(monotonic_ns());
    std::uint64_t until = now + kListen;
    bool all = true;
    for (Member& member : members_) {
      const bool is_late = member.state == Member::State::kAsks && takes_in();
      if (member.state != Member::State::kRunning && !is_late) continue;
      all = false;
      watch(member, now);
    }
    if (all) return {};
    for (const Disturbance& next : options_.disturbances) {
      if (next.at_ns != 0) continue;
      until = std::min(until, clock_.of(first_run_ns_ + std::uint64_t{next.after_ms} * 1'000'000));
    }
    ESPALIER_TRY(listen(until));
  }
}

Result<bool> NodeProcesses::run(control::RunRequest order, const Late& late) {
  order.number = ++runs_;
  order.start_ns = monotonic_ns() + kStartLead + options_.nodes * kStartLeadPerNode;
  if (first_run_ns_ == 0) first_run_ns_ = order.start_ns;
  const std::uint64_t start_ns = order.start_ns;
  for (std::uint32_t node = 0; node < members_.size(); ++node) {
    Member& member = members_[node];
    if (member.state == Member::State::kFailed) continue;
    order_ = order;
    order_.start_ns = start_ns + (node == late.node ? late.ns : 0);
    if (member.state != Member::State::kAsks) {
      give_order(member);
    } else {
      member.heard_ns = member.moved_ns = clock_.of(start_ns);
    }
  }
  ESPALIER_TRY(await_reports());
  for (const Member& member : members_) {
    if (member.state != Member::State::kReported || member.report.status != Status::kOk) {
      return false;
    }
  }
  return true;
}

}  // namespace espalier::cluster
