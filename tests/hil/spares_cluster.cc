// spares-cluster: boards behind gateways, and espalier-nodes, lose a link or a node in the middle
// of a collective. A launcher runs collectives on them, and takes no part in how they go on. This
// process also carries the frames between each board and its gateway, and cuts links there.
//
//   spares-cluster --hosted PROGRAM --gateway PROGRAM --folder DIR --topology SPEC --nodes N
//                  --programs LIST --loss link:A,B|node:V --at BOARD:LINK/LINKS
//                  [--node PROGRAM --linux LIST] [--seed N] [--deadline-ms N]
//
// DIR/node-V.flash has the image of board V, with spares; DIR/linux-V.img that of an espalier-node,
// which are those of --linux; DIR/key.pub the signer's key. --programs: each program of the images
// in order, like "allreduce:0,broadcast:2": its collective and root. --at: a link of what is lost
// at a board, of the board's number of links; it is the one that is cut. Its frames are counted
// until the moment of the loss. Exit status: 0: all survivors went on by themselves, and the next
// ten collectives are right; 1: not; 2: bad input.

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "espalier/hal/serial/frame.h"
#include "firmware/bare/agent.h"
#include "hal/serial/host/carriers.h"
#include "tests/hil/spares_reference.h"
#include "tools/launch/launcher.h"

namespace espalier {
namespace {

constexpr std::uint32_t kLater = 10;        // collectives after the loss
constexpr std::uint64_t kRepetitions = 60;  // of the collective that is interrupted
constexpr std::uint64_t kCount = 150;       // elements, or of each rank's part
constexpr std::size_t kQueue = 256;         // frames that wait for a socket

struct Failure {
  int status;
  std::string line;
};
[[noreturn]] void fail(int status, const std::string& line) { throw Failure{status, line}; }

struct Entry {
  Collective collective = Collective::kBarrier;
  std::uint32_t root = 0;
  bool uses_loss = false;
};

struct Options {
  std::string hosted, gateway, node, folder, topology;
  std::uint32_t nodes = 0;
  std::uint32_t board = 0, link = 0, links = 0;  // of --at
  std::vector<bool> is_linux;                    // by node
  std::vector<Entry> programs;
  Loss loss;
  std::uint64_t seed = 1;
  std::uint32_t deadline_ms = 3000;
};

// Carries the frames between the boards and their gateways, in a thread of its own.
class Relay {
 public:
  explicit Relay(const Options& options) : options_(options) {
    for (std::uint32_t v = 0; v < options.nodes; ++v) {
      Wire& wire = wires_.emplace_back();
      wire.board.carrier = open(open_carrier("unix:" + path("r", v) + "," + path("b", v)));
      wire.gateway.carrier = open(open_board_carrier("unix:" + path("s", v) + "," + path("g", v)));
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

  // Cuts the link, or kills the process of the node, after so many frames.
  void cut_after(std::uint64_t frames, pid_t victim) {
    victim_ = victim;
    left_ = frames;
  }
  [[nodiscard]] bool has_cut() const { return lost_; }
  // Frames so far of the link that will be lost.
  [[nodiscard]] std::uint64_t frames() const { return frames_; }
  [[nodiscard]] std::string path(const char* kind, std::uint32_t v) const {
    return options_.folder + "/" + kind + std::to_string(v);
  }

 private:
  using Bytes = std::vector<std::uint8_t>;
  struct End {
    std::unique_ptr<HostCarrier> carrier;
    std::deque<Bytes> outbox;
  };
  struct Wire {
    End board, gateway;
  };

  static std::unique_ptr<HostCarrier> open(Result<std::unique_ptr<HostCarrier>> opened) {
    if (!opened) fail(2, opened.error().message);
    return *std::move(opened);
  }
  void run() {
    while (!ends_) {
      bool moved = false;
      for (std::uint32_t v = 0; v < wires_.size(); ++v) {
        moved = pass(v, wires_[v].board, wires_[v].gateway) || moved;
        moved = pass(v, wires_[v].gateway, wires_[v].board) || moved;
      }
      if (!moved) clock_.wait(clock_.now() + 2'000'000);
    }
  }
  bool pass(std::uint32_t v, End& from, End& to) {
    bool moved = false;
    std::uint8_t frame[2048];
    while (const std::uint32_t size = from.carrier->receive(frame)) {
      moved = true;
      if (!is_dropped(v, frame, size) && to.outbox.size() < kQueue) {
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
  bool is_dropped(std::uint32_t v, const std::uint8_t* frame, std::uint32_t size) {
    const Loss& loss = options_.loss;
    if (v != options_.board || size < serial::kHeaderBytes) return false;
    const std::uint32_t channel = serial::get<serial::header::kChannel>(frame);
    if (channel == agent::kChannel) return false;
    const bool is_node = loss.kind == Loss::Kind::kNode;
    if (channel % options_.links != options_.link) return false;
    ++frames_;
    if (!lost_ && left_ != 0 && --left_ == 0) {
      lost_ = true;
      if (is_node) kill(victim_, SIGKILL);
    }
    return lost_ && !is_node;
  }

  const Options& options_;
  HostClock clock_;
  std::deque<Wire> wires_;
  std::atomic<bool> ends_ = false, lost_ = false;
  std::atomic<std::uint64_t> left_ = 0, frames_ = 0;
  std::atomic<pid_t> victim_ = 0;
  std::thread thread_;
};

class Cluster {
 public:
  explicit Cluster(const Options& options)
      : options_(options), programs_(options.programs), random_(options.seed), relay_(options) {
    launch::LaunchOptions launch;
    launch.topology = options.topology;
    launch.nodes = options.nodes;
    launch.deadline_ms = options.deadline_ms;
    launch.check_blocks = true;
    launch.node_binary = options.node;
    launch.boot = {"--image", options.folder + "/linux-%r.img", "--public-key",
                   options.folder + "/key.pub"};
    launch.boots = options.is_linux;
    for (std::uint32_t v = 0; v < options.nodes; ++v) {
      if (options.is_linux[v]) {
        launch.commands.emplace_back();
        continue;
      }
      const std::string board = options.hosted + " --device unix:" + relay_.path("b", v) + "," +
                                relay_.path("r", v) + " --flash " + relay_.path("node-", v) +
                                ".flash --public-key " + options.folder + "/key.pub --board hosted";
      launch.commands.push_back(options.gateway + " --device unix:" + relay_.path("g", v) + "," +
                                relay_.path("s", v) + " --start '" + board + "' --console " +
                                relay_.path("console-", v));
    }
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
      collective(i, 1, Loss());
      programs_[i].uses_loss = relay_.frames() > before + 10;  // of 10 a few may be probes
    }
    const std::size_t interrupted = choose();
    const auto frames = std::uniform_int_distribution<std::uint64_t>(1, 150)(random_);
    relay_.cut_after(frames, processes_.members()[options_.loss.a].pid);
    collective(interrupted, kRepetitions, options_.loss);
    if (!relay_.has_cut()) fail(1, "the collectives were complete before the loss");
    std::uint32_t right = 0;
    for (std::size_t i = 0; right < kLater; ++i) {
      if (collective(i % programs_.size(), 1, options_.loss)) ++right;
    }
    std::printf(
        "%s lost after %u of its frames in %s: the others went on by themselves behind "
        "their gateways, %u collectives right\n",
        loss_name(options_.loss).c_str(), static_cast<unsigned>(frames),
        collective_name(programs_[interrupted].collective),
        static_cast<unsigned>(kRepetitions) + right);
  }

 private:
  void expect(const Result<void>& result) {
    if (!result) fail(1, result.error().message);
  }
  // A program that uses what is lost, and has a spare.
  std::size_t choose() {
    std::vector<std::size_t> fit;
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      const Entry& program = programs_[i];
      const bool loses_root =
          has_root(program.collective) && options_.loss == Loss::node(program.root);
      if (program.uses_loss && !loses_root) fit.push_back(i);
    }
    if (fit.empty()) fail(1, "no program uses " + loss_name(options_.loss));
    return fit[std::uniform_int_distribution<std::size_t>(0, fit.size() - 1)(random_)];
  }

  // Runs it on all that are left, and checks all results. False: its root is lost.
  bool collective(std::size_t index, std::uint64_t repetitions, const Loss& loss) {
    ReferenceRun run;
    run.collective = programs_[index].collective;
    run.root = programs_[index].root;
    run.count = kCount;
    run.number = ++runs_;
    run.nodes = options_.nodes;
    run.loss = loss;
    control::RunRequest order;
    order.program = static_cast<std::uint32_t>(index);
    order.op = Op::kSum;
    order.type = Type::kU32;
    order.count = run.collective == Collective::kBarrier ? 0 : kCount;
    order.repetitions = repetitions;
    for (std::uint32_t v = 0; v < options_.nodes; ++v) {
      const launch::Member& member = processes_.members()[v];
      if (member.state == launch::Member::State::kFailed) continue;
      for (std::uint64_t i = 0; i < kCount * options_.nodes; ++i) {
        store_u32(member.memory.input() + 4 * i, input_at(run.number, v, i));
      }
    }
    if (auto ran = processes_.run(order); !ran) fail(1, ran.error().message);
    std::uint32_t without = 0, with = 0;
    for (std::uint32_t v = 0; v < options_.nodes; ++v) {
      const launch::Member& member = processes_.members()[v];
      if (loss == Loss::node(v)) continue;
      if (member.state == launch::Member::State::kReported &&
          member.report.status == Status::kUnsupported) {
        ++without;
        continue;
      }
      if (member.state != launch::Member::State::kReported || member.report.status != Status::kOk) {
        fail(1, "node " + std::to_string(v) + ": " + processes_.describe(v));
      }
      if (member.report.completed != repetitions) {
        fail(1, "node " + std::to_string(v) + " did not complete all collectives");
      }
      ++with;
      const std::string wrong = wrong_result(run, v, member.memory.output());
      if (!wrong.empty()) fail(1, wrong);
    }
    if (with != 0 && without != 0) fail(1, "some nodes have the program, and others do not");
    const bool loses_root = has_root(run.collective) && loss == Loss::node(run.root);
    if (without != 0 && !loses_root) fail(1, "the spare lacks a program");
    return without == 0;
  }

  const Options& options_;
  std::vector<Entry> programs_;
  std::mt19937_64 random_;
  Relay relay_;
  launch::NodeProcesses processes_;
  std::uint32_t runs_ = 0;
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

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string word = argv[i], value = argv[i + 1];
    unsigned a = 0, b = 0;
    if (word == "--hosted") {
      options.hosted = value;
    } else if (word == "--node") {
      options.node = value;
    } else if (word == "--linux") {
      std::istringstream words(value);
      for (std::string number; std::getline(words, number, ',');) {
        options.is_linux.resize(
            std::max<std::size_t>(options.is_linux.size(), std::atoi(number.c_str()) + 1));
        options.is_linux[std::atoi(number.c_str())] = true;
      }
    } else if (word == "--gateway") {
      options.gateway = value;
    } else if (word == "--folder") {
      options.folder = value;
    } else if (word == "--topology") {
      options.topology = value;
    } else if (word == "--programs") {
      options.programs = programs_of(value);
    } else if (word == "--nodes") {
      options.nodes = static_cast<std::uint32_t>(std::atoi(value.c_str()));
    } else if (word == "--seed") {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (word == "--deadline-ms") {
      options.deadline_ms = static_cast<std::uint32_t>(std::atoi(value.c_str()));
    } else if (word == "--at" && std::sscanf(value.c_str(), "%u:%u/%u", &options.board,
                                             &options.link, &options.links) == 3) {
    } else if (word == "--loss" && std::sscanf(value.c_str(), "link:%u,%u", &a, &b) == 2) {
      options.loss = Loss::link(a, b);
    } else if (word == "--loss" && std::sscanf(value.c_str(), "node:%u", &a) == 1) {
      options.loss = Loss::node(a);
    } else {
      fail(2, "unexpected argument " + word + " " + value);
    }
  }
  options.is_linux.resize(std::max<std::size_t>(options.is_linux.size(), options.nodes));
  if (argc % 2 == 0 || options.hosted.empty() || options.gateway.empty() ||
      options.folder.empty() || options.topology.empty() || options.programs.empty() ||
      options.links == 0 || options.loss.kind == Loss::Kind::kNothing ||
      options.loss.a >= options.nodes || options.loss.b >= options.nodes ||
      options.is_linux.size() != options.nodes || options.is_linux[options.board]) {
    fail(2, "an argument is missing; see the first lines of spares_cluster.cc");
  }
  return options;
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) {
  try {
    const espalier::Options options = espalier::parse(argc, argv);
    espalier::Cluster(options).run();
    return 0;
  } catch (const espalier::Failure& failure) {
    std::fprintf(stderr, "spares-cluster: %s\n", failure.line.c_str());
    return failure.status;
  }
}
