// spares-cluster: boards behind their gateways, and espalier-nodes, lose a link or a node in the
// middle of a collective. This process starts them, as `espalier run` does, and carries the frames
// between boards and their gateways, in which it cuts links. It takes no part in how they go on.
//
//   spares-cluster --topology SPEC --nodes N --programs LIST --loss link:A,B|node:V
//                  --start V=COMMAND ... [--boots LIST --image|--flash FILE --public-key FILE]
//                  [--relay V:LINKS=R,B,S,G ... --at V:LINK ...] [--returns N] [--seed N]
//                  [--deadline-ms N]
//
// --start: for each node, the command that starts it: a gateway, or an espalier-node. The nodes of
// --boots get the options that follow it. --programs: each program of the images in order, like
// "allreduce:0,broadcast:2": its collective and root. --relay: the board of node V has LINKS links
// and the socket B, its gateway the socket G; B sends to R, and G to S, which are this process's.
// --at: a link of what is lost at such a board. It is cut, and the moment of the loss is a number
// of frames of these links. Without it, only a node can be lost, at a moment by the clock.
// --returns: the lost node is started again, and must be taken in; a random one is lost before each
// further return, at a moment by the clock. One return more than sets of links allow must be
// refused. The seed determines collective and moment. Exit status: 0: all survivors went on by
// themselves, and after each loss and each return the next ten collectives are right; 1: not; 2:
// bad input.

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "espalier/internal/hal/serial/frame.h"
#include "firmware/bare/agent.h"
#include "hal/serial/host/carriers.h"
#include "tests/hil/spares_options.h"
#include "tests/hil/spares_reference.h"
#include "tools/cluster/launcher.h"

namespace espalier {
namespace {

constexpr std::uint32_t kLater = 10;  // collectives after the loss
// Repetitions of the collective that is interrupted: by frames; by the clock, with boards or only
// nodes.
constexpr std::uint64_t kRepetitions = 60, kBoardRepetitions = 500, kNodeRepetitions = 4000;
constexpr std::uint64_t kCount = 150;  // elements, or of each rank's part
constexpr std::size_t kQueue = 256;    // frames that wait for a socket
// Nothing that works takes as long.
constexpr std::uint64_t kHang = 300'000'000'000;  // ns

struct Entry {
  Collective collective = Collective::kBarrier;
  std::uint32_t root = 0;
  bool uses_loss = false;
};

// The sockets between a board and its gateway: the board's carrier and the gateway's.
struct RelayOptions {
  std::uint32_t board = 0, links = 0;
  std::string to_board, to_gateway;
};

struct Options {
  std::string topology;
  std::uint32_t nodes = 0;
  std::vector<std::string> commands, boot;
  std::vector<bool> boots;  // by node
  std::vector<RelayOptions> relays;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> places;  // of --at: board, link
  std::vector<Entry> programs;
  LossOptions lost;
};

// Carries the frames between the boards and their gateways, in a thread of its own.
class Relay {
 public:
  explicit Relay(const Options& options) : options_(options) {
    for (const RelayOptions& each : options.relays) {
      Wire& wire = wires_.emplace_back();
      wire.number = each.board;
      wire.links = each.links;
      wire.board.carrier = open(open_carrier(each.to_board));
      wire.gateway.carrier = open(open_board_carrier(each.to_gateway));
      clock_.add(*wire.board.carrier);
      clock_.add(*wire.gateway.carrier);
    }
    thread_ = std::thread([this] { run(); });
  }
  ~Relay() {
    ends_ = true;
    thread_.join();
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Cuts the link, or kills this process of the node, after so many frames of --at or, otherwise,
  // ms. generations: those in use so far.
  void cut_after(std::uint64_t moment, bool is_frames, pid_t victim, std::uint32_t generations) {
    kill_at_ = left_ = 0;  // of the loss before
    lost_ = false;
    victim_ = victim;
    generations_ = generations;
    resumed_ns_ = 0;
    left_ = is_frames ? moment : 0;
    kill_at_ = is_frames ? 0 : clock_.now() + moment * 1'000'000;
  }
  [[nodiscard]] bool has_cut() const { return lost_; }
  // From the loss until a board shows that it runs collectives on a spare; 0: none did.
  [[nodiscard]] std::uint64_t gap_ns() const {
    return resumed_ns_ == 0 ? 0 : resumed_ns_ - lost_ns_;
  }
  // Frames so far of the links that will be lost.
  [[nodiscard]] std::uint64_t frames() const { return frames_; }

 private:
  using Bytes = std::vector<std::uint8_t>;
  struct End {
    std::unique_ptr<HostCarrier> carrier;
    std::deque<Bytes> outbox;
  };
  struct Wire {
    std::uint32_t number = 0, links = 0;
    End board, gateway;
  };

  static std::unique_ptr<HostCarrier> open(Result<std::unique_ptr<HostCarrier>> opened) {
    if (!opened) fail(2, opened.error().message);
    return *std::move(opened);
  }
  void run() {
    while (!ends_) {
      bool moved = false;
      for (Wire& wire : wires_) {
        moved = pass(wire, wire.board, wire.gateway) || moved;
        moved = pass(wire, wire.gateway, wire.board) || moved;
      }
      if (!lost_ && kill_at_ != 0 && clock_.now() >= kill_at_) lose();
      if (!moved) clock_.wait(clock_.now() + 2'000'000);
    }
  }
  bool pass(const Wire& wire, End& from, End& to) {
    bool moved = false;
    std::uint8_t frame[2048];
    while (const std::uint32_t size = from.carrier->receive(frame)) {
      moved = true;
      if (!is_dropped(wire, frame, size) && to.outbox.size() < kQueue) {
        to.outbox.emplace_back(frame, frame + size);
      }
    }
    while (!to.outbox.empty()) {
      const Bytes& first = to.outbox.front();
      const auto size = static_cast<std::uint32_t>(first.size());
      if (to.carrier->send(first.data(), size) == Status::kTryAgain) break;
      to.outbox.pop_front();
      moved = true;
    }
    return moved;
  }
  // Channels of all generations lead to the same boards.
  bool is_dropped(const Wire& wire, const std::uint8_t* frame, std::uint32_t size) {
    if (size < serial::kHeaderBytes) return false;
    const std::uint32_t channel = serial::get<serial::header::kChannel>(frame);
    if (channel == agent::kChannel) return false;
    if (lost_ && resumed_ns_ == 0 && is_after_agreement(frame, generations_ * wire.links)) {
      resumed_ns_ = clock_.now();
    }
    const std::pair place{wire.number, channel % wire.links};
    if (std::find(options_.places.begin(), options_.places.end(), place) == options_.places.end()) {
      return false;
    }
    ++frames_;
    if (!lost_ && left_ != 0 && --left_ == 0) lose();
    return lost_ && options_.lost.loss.kind == Loss::Kind::kLink;
  }
  void lose() {
    lost_ns_ = clock_.now();
    lost_ = true;
    if (options_.lost.loss.kind == Loss::Kind::kNode) kill(victim_, SIGKILL);
  }

  const Options& options_;
  HostClock clock_;
  std::deque<Wire> wires_;
  std::atomic<bool> ends_ = false, lost_ = false;
  std::atomic<std::uint64_t> left_ = 0, frames_ = 0, kill_at_ = 0, lost_ns_ = 0, resumed_ns_ = 0;
  std::atomic<std::uint32_t> generations_ = 1;
  std::atomic<pid_t> victim_ = 0;
  std::thread thread_;
};

class Cluster {
 public:
  // moment: gets what is lost and when, once that is chosen.
  Cluster(const Options& options, std::string& moment)
      : options_(options),
        moment_(moment),
        programs_(options.programs),
        random_(options.lost.seed),
        relay_(options) {
    cluster::LaunchOptions launch;
    launch.topology = options.topology;
    launch.nodes = options.nodes;
    launch.deadline_ms = options.lost.deadline_ms;
    launch.check_blocks = true;
    launch.boot = options.boot;
    launch.boots = options.boots;
    launch.commands = options.commands;
    expect(processes_.start(launch));
    for (std::uint32_t v = 0; v < options.nodes; ++v) {
      const std::uint64_t bytes = 4 * kCount * options.nodes;
      expect(processes_.give_memory(v, bytes, bytes));
    }
    expect(processes_.await_memory());
  }

  void run() {
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      const std::uint64_t before = relay_.frames();
      collective(i, 1);
      // A few of 10 frames may be probes.
      programs_[i].uses_loss = options_.places.empty() || relay_.frames() > before + 10;
    }
    go_on_without(options_.lost.loss);
    std::string text = text_;
    for (std::uint32_t i = 0; i < options_.lost.returns; ++i) {
      if (i > 0) {
        go_on_without(Loss::node(
            std::uniform_int_distribution<std::uint32_t>(0, options_.nodes - 1)(random_)));
        text += "; " + text_;
      }
      take_in(i >= Recovery::kReturns);
      text += text_;
    }
    std::printf("%s\n", text.c_str());
  }

 private:
  void expect(const Result<void>& result) {
    if (!result) fail(1, result.error().message);
  }
  // Loses it in the middle of a collective; all others go on.
  void go_on_without(const Loss& loss) {
    const bool is_first = loss_.kind == Loss::Kind::kNothing;
    const bool by_frames = is_first && !options_.places.empty();
    loss_ = loss;
    const std::size_t interrupted = choose();
    const auto when = std::uniform_int_distribution<std::uint64_t>(1, 150)(random_);
    moment_ = loss_name(loss_) + " lost after " + std::to_string(when) +
              (by_frames ? " of its frames in " : " ms of ") +
              collective_name(programs_[interrupted].collective);
    const std::uint64_t repetitions = by_frames                 ? kRepetitions
                                      : options_.relays.empty() ? kNodeRepetitions
                                                                : kBoardRepetitions;
    relay_.cut_after(when, by_frames, processes_.members()[loss_.a].pid,
                     agreement_.newest().generation + 1);
    collective(interrupted, repetitions);
    if (!relay_.has_cut()) fail(1, "the collectives were complete before the loss");
    check_found(loss_);
    const std::uint32_t right = run_later();
    check_found(loss_);
    text_ = moment_ + ": the others went on by themselves in generation " +
            std::to_string(agreement_.newest().generation);
    if (!options_.relays.empty()) {
      if (relay_.gap_ns() == 0) fail(1, "no frame shows that the spare was used");
      text_ += ", the next collective after " + seconds(relay_.gap_ns());
    }
    text_ += ", " + std::to_string(repetitions + right) + " collectives right";
  }

  // The lost node is started again. The others take it in, or refuse it, while they run
  // collectives.
  void take_in(bool refused) {
    const std::uint32_t v = loss_.a;
    const std::uint64_t longest = 2 * options_.lost.deadline_ms;
    const std::uint64_t delay = std::uniform_int_distribution<std::uint64_t>(0, longest)(random_);
    moment_ = "node " + std::to_string(v) + " started again after " + std::to_string(delay) + " ms";
    std::this_thread::sleep_for(std::chrono::milliseconds(delay));
    const std::uint64_t begin = monotonic_ns();
    expect(processes_.come_back(v));
    const cluster::Member& member = processes_.members()[v];
    using State = cluster::Member::State;
    std::uint32_t meanwhile = 0;
    for (std::size_t i = 0; member.state == State::kAsks; ++i) {
      if (monotonic_ns() > begin + kHang) fail(1, "it is not taken in");
      if (collective(i % programs_.size(), 1)) ++meanwhile;
    }
    const std::uint64_t took = monotonic_ns() - begin;
    const bool is_in = member.state != State::kFailed;
    const bool is_refused = member.failure.find("no links left") != std::string::npos;
    if (is_in == refused || is_in == is_refused) {
      fail(1, is_in ? "it was taken in" : "it was not taken in: " + member.failure);
    }
    const std::uint32_t right = run_later();
    check_found(is_in ? Loss() : loss_);
    text_ = "; " + moment_ + (is_in ? ", taken in" : ", refused") + " in generation " +
            std::to_string(agreement_.newest().generation) + " after " + seconds(took) + " and " +
            std::to_string(meanwhile) + " collectives, " + std::to_string(right) +
            " more right on all " + std::to_string(options_.nodes - (is_in ? 0 : 1));
  }

  static std::string seconds(std::uint64_t ns) {
    char text[40];
    std::snprintf(text, sizeof text, "%.2f s", static_cast<double>(ns) * 1e-9);
    return text;
  }
  void check_found(const Loss& loss) const {
    const Loss& found = agreement_.newest().loss;
    if (found == loss) return;
    fail(1, loss_name(loss) + " is lost, and the nodes went on without " + loss_name(found));
  }
  // Runs collectives until ten were right, and returns that number.
  std::uint32_t run_later() {
    std::uint32_t right = 0;
    for (std::size_t i = 0; right < kLater; ++i) {
      if (collective(i % programs_.size(), 1)) ++right;
    }
    return right;
  }
  // A program that uses what is lost, and has a spare.
  std::size_t choose() {
    std::vector<std::size_t> fit;
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      const Entry& program = programs_[i];
      const bool loses_root = has_root(program.collective) && loss_ == Loss::node(program.root);
      if (program.uses_loss && !loses_root) fit.push_back(i);
    }
    if (fit.empty()) fail(1, "no program uses " + loss_name(loss_));
    return fit[std::uniform_int_distribution<std::size_t>(0, fit.size() - 1)(random_)];
  }

  // Runs it on all that are left, and checks all results. False: its root is lost.
  bool collective(std::size_t index, std::uint64_t repetitions) {
    ReferenceRun run;
    run.collective = programs_[index].collective;
    run.root = programs_[index].root;
    run.count = kCount;
    run.number = ++runs_;
    run.nodes = options_.nodes;
    control::RunRequest order{.program = static_cast<std::uint32_t>(index),
                              .op = Op::kSum,
                              .type = Type::kU32,
                              .count = run.collective == Collective::kBarrier ? 0 : kCount,
                              .repetitions = repetitions};
    using State = cluster::Member::State;
    for (std::uint32_t v = 0; v < options_.nodes; ++v) {
      const cluster::Member& member = processes_.members()[v];
      if (member.state == State::kFailed) continue;
      for (std::uint64_t i = 0; i < kCount * options_.nodes; ++i) {
        store_u32(member.memory.input() + 4 * i, input_at(run.number, v, i));
      }
    }
    if (auto ran = processes_.run(order); !ran) fail(1, ran.error().message);
    find_loss();
    std::uint32_t without = 0, with = 0;
    for (std::uint32_t v = 0; v < options_.nodes; ++v) {
      const cluster::Member& member = processes_.members()[v];
      if (agreement_.newest().loss == Loss::node(v)) continue;
      if (member.state == State::kReported && member.report.status == Status::kUnsupported) {
        ++without;
        continue;
      }
      if (member.state != State::kReported || member.report.status != Status::kOk) {
        fail(1, "node " + std::to_string(v) + ": " + processes_.describe(v));
      }
      if (member.report.completed != repetitions) {
        fail(1, "node " + std::to_string(v) + " did not complete all collectives");
      }
      ++with;
      run.loss = agreement_.loss_of(v);
      const std::string wrong = wrong_result(run, v, member.memory.output());
      if (!wrong.empty()) fail(1, wrong);
    }
    if (with != 0 && without != 0) fail(1, "some nodes have the program, and others do not");
    const bool loses_root =
        has_root(run.collective) && agreement_.newest().loss == Loss::node(run.root);
    if (without != 0 && !loses_root) fail(1, "the spare lacks a program");
    return without == 0;
  }

  // Without what the nodes that reported went on.
  void find_loss() {
    agreement_.begin();
    for (std::uint32_t v = 0; v < options_.nodes; ++v) {
      const cluster::Member& member = processes_.members()[v];
      if (member.state != cluster::Member::State::kReported) continue;
      const control::Report& report = member.report;
      if (is_failure(report.status) && report.status != Status::kUnsupported) {
        fail(1, "node " + std::to_string(v) + ": " + processes_.describe(v));
      }
      agreement_.take(v, report.loss.generation, report.loss.loss());
    }
    if (const std::string complaint = agreement_.complaint(); !complaint.empty()) {
      fail(1, complaint);
    }
  }

  const Options& options_;
  std::string& moment_;
  std::vector<Entry> programs_;
  std::mt19937_64 random_;
  Relay relay_;
  cluster::NodeProcesses processes_;
  std::uint32_t runs_ = 0;
  std::string text_;  // about the newest loss or return
  Loss loss_;         // the newest one
  Agreement agreement_;
};

std::vector<Entry> programs_of(const std::string& list) {
  std::vector<Entry> programs;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    const std::size_t colon = word.find(':');
    Entry entry;
    bool known = false;
    for (const auto collective :
         {Collective::kAllreduce, Collective::kBroadcast, Collective::kAllgather,
          Collective::kReduce, Collective::kReduceScatter, Collective::kBarrier}) {
      if (word.substr(0, colon) != collective_name(collective)) continue;
      entry.collective = collective;
      known = true;
    }
    if (!known || colon == std::string::npos) fail(2, "bad program " + word);
    entry.root = static_cast<std::uint32_t>(std::atoi(word.c_str() + colon + 1));
    programs.push_back(entry);
  }
  return programs;
}

// "V:LINKS=R,B,S,G"
RelayOptions relay_of(const std::string& value) {
  RelayOptions relay;
  std::vector<std::string> sockets;
  const std::size_t equals = value.find('=');
  if (equals != std::string::npos) {
    std::istringstream words(value.substr(equals + 1));
    for (std::string word; std::getline(words, word, ',');) sockets.push_back(word);
  }
  if (sockets.size() != 4 ||
      std::sscanf(value.c_str(), "%u:%u=", &relay.board, &relay.links) != 2 || relay.links == 0) {
    fail(2, "bad --relay " + value);
  }
  relay.to_board = "unix:" + sockets[0] + "," + sockets[1];
  relay.to_gateway = "unix:" + sockets[2] + "," + sockets[3];
  return relay;
}

void add_start(const std::string& value, std::vector<std::string>& commands) {
  const std::size_t equals = value.find('=');
  unsigned node = 0;
  if (equals == std::string::npos || std::sscanf(value.c_str(), "%u=", &node) != 1 ||
      node > kMaxNodes) {
    fail(2, "bad --start " + value);
  }
  commands.resize(std::max<std::size_t>(commands.size(), node + 1));
  commands[node] = value.substr(equals + 1);
}

void check(const Options& options) {
  const auto refuse = [](const char* what) {
    fail(2, std::string(what) + "; see the first lines of spares_cluster.cc");
  };
  if (options.topology.empty() || options.nodes == 0 || options.programs.empty()) {
    refuse("an argument is missing");
  }
  check_options(options.lost);
  const Loss& loss = options.lost.loss;
  if (loss.a >= options.nodes || loss.b >= options.nodes) {
    refuse("no such node in --loss");
  }
  if (options.commands.size() != options.nodes || options.boots.size() > options.nodes) {
    refuse("expected a --start for each node");
  }
  if (std::any_of(options.commands.begin(), options.commands.end(),
                  [](const std::string& command) { return command.empty(); })) {
    refuse("expected a --start for each node");
  }
  for (const auto& [board, link] : options.places) {
    const auto is_there = [&](const RelayOptions& each) {
      return each.board == board && link < each.links;
    };
    if (std::none_of(options.relays.begin(), options.relays.end(), is_there)) {
      refuse("--at is at no --relay");
    }
  }
  if (options.places.empty() && loss.kind == Loss::Kind::kLink) refuse("a link needs --at");
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string word = argv[i], value = argv[i + 1];
    unsigned a = 0, b = 0;
    if (word == "--start") {
      add_start(value, options.commands);
    } else if (word == "--boots") {
      std::istringstream words(value);
      for (std::string number; std::getline(words, number, ',');) {
        const auto node = static_cast<std::size_t>(std::atoi(number.c_str()));
        options.boots.resize(std::max(options.boots.size(), node + 1));
        options.boots[node] = true;
      }
    } else if (word == "--image" || word == "--flash" || word == "--public-key") {
      options.boot.insert(options.boot.end(), {word, value});
    } else if (word == "--relay") {
      options.relays.push_back(relay_of(value));
    } else if (word == "--topology") {
      options.topology = value;
    } else if (word == "--programs") {
      options.programs = programs_of(value);
    } else if (word == "--nodes") {
      options.nodes = number_of<std::uint32_t>(word, value);
    } else if (word == "--at" && std::sscanf(value.c_str(), "%u:%u", &a, &b) == 2) {
      options.places.emplace_back(a, b);
    } else if (!read_option(options.lost, word, value)) {
      fail(2, "unexpected argument " + word + " " + value);
    }
  }
  if (argc % 2 == 0) fail(2, std::string(argv[argc - 1]) + " has no value");
  check(options);
  options.boots.resize(options.nodes);
  return options;
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) {
  return espalier::report_failure("spares-cluster", [&](std::string& moment) {
    const espalier::Options options = espalier::parse(argc, argv);
    espalier::Cluster(options, moment).run();
  });
}
