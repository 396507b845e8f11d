// spares-rig: boards that run as processes of this host, joined by framed links alone, lose a link
// or a board in the middle of a collective. This process carries the boards' frames, cuts what is
// lost, and asks for collectives as a gateway does. It takes no part in how they go on.
//
//   spares-rig --hosted PROGRAM --folder DIR --loss link:A,B|node:V [--returns N] [--seed N]
//              [--deadline-ms N]
//
// DIR/node-V.flash has the image of board V, with spares; DIR/key.pub the signer's key.
// --returns: the lost board is started again at a random moment, and must be taken in; a random one
// is lost before each further return. One return more than sets of links allow must be refused.
// Exit status: 0: all survivors went on by themselves, and after each loss and each return the next
// ten collectives are right; 1: not; 2: bad input.

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/crc32.h"
#include "base/one_line.h"
#include "espalier/internal/base/little_endian.h"
#include "espalier/internal/hal/serial/frame.h"
#include "firmware/gateway/conversation.h"
#include "hal/serial/host/carriers.h"
#include "tests/hil/spares_options.h"
#include "tests/hil/spares_reference.h"

namespace espalier {
namespace {

using gateway::Conversation;
using Event = Conversation::Event;

constexpr std::uint32_t kLater = 10;         // collectives after the loss
constexpr std::uint64_t kRepetitions = 250;  // of the collective that is interrupted
constexpr std::uint64_t kCount = 150;        // elements, or of each rank's part
constexpr std::size_t kQueue = 256;          // frames that wait for a board's socket
// Nothing that works takes as long.
constexpr std::uint64_t kHang = 300'000'000'000;  // ns

struct Options {
  std::string hosted, folder;
  LossOptions lost;
  std::uint64_t deadline_ns = 0;
};

using Bytes = std::vector<std::uint8_t>;

// The frames of one board's agent.
class AgentCarrier final : public Carrier {
 public:
  explicit AgentCarrier(HostCarrier& carrier) : carrier_(carrier) {}
  std::uint32_t mtu() const override { return carrier_.mtu(); }
  Status send(const std::uint8_t* frame, std::uint32_t size) override {
    return carrier_.send(frame, size);
  }
  std::uint32_t receive(std::uint8_t* frame) override {
    if (inbox.empty()) return 0;
    const auto size = static_cast<std::uint32_t>(inbox.front().size());
    std::memcpy(frame, inbox.front().data(), size);
    inbox.pop_front();
    return size;
  }
  std::deque<Bytes> inbox;

 private:
  HostCarrier& carrier_;
};

struct Program {
  agent::ProgramEntry entry;
  std::vector<std::uint32_t> traffic;  // frames over each pair of boards: a * boards + b, a < b
  [[nodiscard]] Collective collective() const {
    return Collective(static_cast<Collective::Value>(entry.collective));
  }
};

class Board {
 public:
  Board(std::unique_ptr<HostCarrier> carrier, HostClock& clock)
      : carrier(std::move(carrier)),
        agent(*this->carrier),
        memory_(2 * this->carrier->mtu() / 8 + 1),
        port_(agent, clock, reinterpret_cast<std::uint8_t*>(memory_.data()), {}),
        conversation(port_, std::random_device{}() | 1) {}

  std::unique_ptr<HostCarrier> carrier;
  AgentCarrier agent;
  std::deque<Bytes> outbox;  // frames of other boards
  pid_t pid = 0;
  bool alive = true;
  // How far a board came that is started again.
  enum class Joins : std::uint8_t { kAsks, kAnswers, kFills, kRuns, kIsRefused };
  Joins joins = Joins::kAsks;
  bool in = false;  // it takes part in collectives
  agent::Hello hello;
  std::vector<std::uint32_t> peers;  // of its links
  Bytes tables, output;
  std::vector<std::uint32_t> input;
  std::uint64_t joined_ns = 0;        // when it was taken in, or refused
  std::deque<agent::Packet> packets;  // that arrived, with their data

 private:
  std::vector<std::uint64_t> memory_;
  SerialPort port_;

 public:
  Conversation conversation;
};

class Rig {
 public:
  // moment: gets what is lost and when, once that is chosen.
  Rig(const Options& options, std::string& moment)
      : options_(options), random_(options.lost.seed), moment_(moment) {}
  ~Rig() {
    for (const auto& board : boards_) {
      if (board->alive) kill(board->pid, SIGKILL);
      (void)waitpid(board->pid, nullptr, 0);
    }
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  void run() {
    start();
    greet();
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      counted_ = &programs_[i];
      collective(i, 1);
      counted_ = nullptr;
    }
    go_on_without(options_.lost.loss);
    std::string text = text_;
    for (std::uint32_t i = 0; i < options_.lost.returns; ++i) {
      if (i > 0) {
        const auto last = static_cast<std::uint32_t>(boards_.size() - 1);
        go_on_without(Loss::node(std::uniform_int_distribution<std::uint32_t>(0, last)(random_)));
        text += "; " + text_;
      }
      take_in(i >= Recovery::kReturns);
      text += text_;
    }
    std::printf("%s\n", text.c_str());
  }

 private:
  // Loses it in the middle of a collective; all others go on.
  void go_on_without(const Loss& loss) {
    loss_ = loss;
    lost_ = false;
    resumed_ns_ = frames_ = 0;
    cut_at_ = std::uniform_int_distribution<std::uint64_t>(1, 2000)(random_);
    const std::size_t interrupted = choose();
    const Program& program = programs_[interrupted];
    moment_ = loss_name(loss_) + " lost after " + std::to_string(cut_at_) + " frames of " +
              collective_name(program.collective()) + " by " + one_line(program.entry.algorithm) +
              ", root " + std::to_string(program.entry.root);
    collective(interrupted, kRepetitions);
    if (!lost_) fail(1, "the collectives were complete before the loss");
    const Agreement::Found found = agreement_.newest();
    const std::size_t survivors = members().size();
    if (found.loss != loss_) {
      fail(1,
           loss_name(loss_) + " was cut, and the boards went on without " + loss_name(found.loss));
    }
    std::uint32_t right = 0;
    for (std::size_t i = 0; right < kLater; ++i) {
      if (collective(i % programs_.size(), 1)) ++right;
    }
    if (resumed_ns_ == 0) fail(1, "no frame shows that the spare was used");
    char text[200];
    std::snprintf(text, sizeof text,
                  ": %zu boards went on by themselves in generation %u, the next collective after "
                  "%.2f s, %u collectives right",
                  survivors, found.generation, static_cast<double>(resumed_ns_ - lost_ns_) * 1e-9,
                  static_cast<unsigned>(kRepetitions) + right);
    text_ = moment_ + text;
  }

  // The lost board is started again. The others take it in, or refuse it, while they run
  // collectives.
  void take_in(bool refused) {
    const std::uint32_t v = loss_.a;
    Board& board = *boards_[v];
    const std::uint64_t longest = 2 * options_.deadline_ns;
    const std::uint64_t delay = std::uniform_int_distribution<std::uint64_t>(0, longest)(random_);
    const std::string who = "board " + std::to_string(v);
    moment_ = who + " started again after " + std::to_string(delay / 1'000'000) + " ms";
    pause(delay);
    spawn(v);
    board.alive = true;
    board.joins = Board::Joins::kAsks;
    const std::uint64_t begin = clock_.now();
    std::uint32_t meanwhile = 0;
    for (std::size_t i = 0; !board.in && board.joins != Board::Joins::kIsRefused; ++i) {
      if (clock_.now() > begin + kHang) fail(1, who + " is not taken in");
      if (collective(i % programs_.size(), 1)) ++meanwhile;
      pause(20'000'000);
    }
    const bool is_in = board.in;
    if (is_in == refused) fail(1, who + (is_in ? " was taken in" : " was refused"));
    std::uint32_t right = 0;
    for (std::size_t i = 0; right < kLater; ++i) {
      if (!collective(i % programs_.size(), 1)) {
        if (is_in) fail(1, "a program is not there again");
        continue;
      }
      ++right;
      const Loss& found = agreement_.newest().loss;
      if (found != (is_in ? Loss() : loss_)) {
        fail(1, "the boards go on without " + loss_name(found));
      }
    }
    char text[200];
    std::snprintf(text, sizeof text,
                  ", %s in generation %u after %.2f s and %u collectives, %u more right on all %zu",
                  is_in ? "taken in" : "refused", agreement_.newest().generation,
                  static_cast<double>(board.joined_ns - begin) * 1e-9, meanwhile, right,
                  members().size());
    text_ = "; " + moment_ + text;
  }

  // The program that is interrupted: one that uses what is lost.
  [[nodiscard]] std::size_t choose() {
    std::vector<std::size_t> fit;
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      const bool is_node = loss_.kind == Loss::Kind::kNode;
      if (is_node && has_root(programs_[i].collective()) && programs_[i].entry.root == loss_.a) {
        continue;  // it has no spare
      }
      if (is_node || programs_[i].traffic[loss_.a * boards_.size() + loss_.b] > 0) fit.push_back(i);
    }
    if (fit.empty()) fail(1, "no program uses " + loss_name(loss_));
    return fit[std::uniform_int_distribution<std::size_t>(0, fit.size() - 1)(random_)];
  }

  void start() {
    namespace fs = std::filesystem;
    const fs::path folder = options_.folder;
    for (std::uint32_t v = 0;; ++v) {
      const std::string name = std::to_string(v);
      if (!fs::exists(folder / ("node-" + name + ".flash"))) break;
      const std::string near = folder / ("g" + name), far = folder / ("b" + name);
      auto carrier = open_carrier("unix:" + near + "," + far);
      if (!carrier) fail(2, carrier.error().message);
      clock_.add(**carrier);
      boards_.push_back(std::make_unique<Board>(*std::move(carrier), clock_));
      spawn(v);
    }
    const Loss& loss = options_.lost.loss;
    if (boards_.size() <= loss.a || boards_.size() <= loss.b) {
      fail(2, "there is no " + loss_name(loss) + " among " + std::to_string(boards_.size()) +
                  " boards");
    }
  }

  // Starts the process of a board.
  void spawn(std::uint32_t v) {
    const std::string end = options_.folder + "/", name = std::to_string(v);
    std::vector<std::string> words = {options_.hosted,
                                      "--device",
                                      "unix:" + end + "b" + name + "," + end + "g" + name,
                                      "--flash",
                                      end + "node-" + name + ".flash",
                                      "--public-key",
                                      end + "key.pub",
                                      "--board",
                                      "hosted"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    const std::string console = end + "console-" + name;
    posix_spawn_file_actions_addopen(&files, 1, console.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                     0644);
    const int error = posix_spawn(&boards_[v]->pid, options_.hosted.c_str(), &files, nullptr,
                                  arguments.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    if (error != 0) fail(2, options_.hosted + ": " + std::strerror(error));
  }

  void greet() {
    for (std::uint32_t v = 0; v < boards_.size(); ++v) {
      Board& board = *boards_[v];
      (void)await(v, agent::Kind::kHello);
      if (board.hello.boot != Status::kOk) fail(2, "board " + std::to_string(v) + " has no image");
      std::vector<agent::LinkEntry> links(board.hello.links);
      const std::size_t bytes = links.size() * sizeof(agent::LinkEntry);
      std::memcpy(links.data(), board.tables.data(), bytes);
      for (const agent::LinkEntry& link : links) board.peers.push_back(link.peer);
      if (v != 0) continue;
      programs_.resize(board.hello.programs);
      for (std::size_t i = 0; i < programs_.size(); ++i) {
        std::memcpy(&programs_[i].entry,
                    board.tables.data() + bytes + i * sizeof programs_[i].entry,
                    sizeof programs_[i].entry);
        programs_[i].traffic.resize(boards_.size() * boards_.size());
      }
    }
    for (std::uint32_t v = 0; v < boards_.size(); ++v) {
      configure(v, false);
      expect_ok(v, agent::Kind::kConfigure);
      boards_[v]->in = true;
    }
  }
  void configure(std::uint32_t v, bool comes_back) {
    agent::Configure order{.deadline_ns = options_.deadline_ns,
                           .check_blocks = 1,
                           .spares = 1,
                           .comes_back = static_cast<std::uint8_t>(comes_back)};
    boards_[v]->conversation.send(order);
  }
  // What a board that is started again does next.
  void join(std::uint32_t v) {
    using Joins = Board::Joins;
    Board& board = *boards_[v];
    if (board.joins == Joins::kFills && board.conversation.can_send()) {
      agent::Go go{.number = request_.number};
      board.conversation.send(go);
      board.joins = Joins::kRuns;
      board.in = true;
    }
    if (board.in || board.packets.empty()) return;
    const agent::Packet packet = board.packets.front();
    board.packets.pop_front();
    if (packet.kind == agent::Kind::kHello) return configure(v, true);
    const std::string who = "board " + std::to_string(v);
    if (packet.kind != agent::Kind::kAnswer) fail(1, who + " sent another packet than an answer");
    const Status status = packet.answer.status;
    if (board.joins == Joins::kAsks && packet.answer.to == agent::Kind::kConfigure) {
      board.joined_ns = clock_.now();
      board.joins = status == Status::kTooLarge ? Joins::kIsRefused : Joins::kAnswers;
      if (status == Status::kTooLarge) return;
      // It was taken in before the first collective of the newest run.
      if (status == Status::kOk) board.conversation.send(request_);
    } else if (board.joins == Joins::kAnswers && packet.answer.to == agent::Kind::kRun) {
      send_input(v);
      board.joins = Joins::kFills;
    }
    if (status != Status::kOk) fail(1, who + " comes back: " + status_name(status));
  }

  // Returns the answer's status.
  Status answer(std::uint32_t v, agent::Kind to) {
    const agent::Answer answer = await(v, agent::Kind::kAnswer).answer;
    if (answer.to != to) fail(1, "board " + std::to_string(v) + " answered another packet");
    return answer.status;
  }
  void expect_ok(std::uint32_t v, agent::Kind to) {
    const Status status = answer(v, to);
    if (status != Status::kOk) fail(1, "board " + std::to_string(v) + ": " + status_name(status));
  }

  [[nodiscard]] std::vector<std::uint32_t> members() const {
    std::vector<std::uint32_t> all;
    for (std::uint32_t v = 0; v < boards_.size(); ++v) {
      if (boards_[v]->alive && boards_[v]->in) all.push_back(v);
    }
    return all;
  }
  // Runs it on all boards that are left, and checks all results. False: its root is lost.
  bool collective(std::size_t index, std::uint64_t repetitions) {
    const Program& program = programs_[index];
    const bool is_barrier = program.collective() == Collective::kBarrier;
    const std::uint64_t count = is_barrier ? 0 : kCount;
    const std::uint64_t all =
        counts_per_rank(program.collective()) ? count * boards_.size() : count;
    request_ = agent::RunRequest();
    request_.number = ++sent_;
    request_.schedule = program.entry.schedule;
    request_.count = count;
    request_.repetitions = repetitions;
    request_.input_bytes = request_.output_bytes = static_cast<std::uint32_t>(4 * all);
    request_.op = Op::kSum;
    request_.type = Type::kU32;
    std::uint32_t without = 0;
    const std::vector<std::uint32_t> asked = members();
    for (const std::uint32_t v : asked) boards_[v]->conversation.send(request_);
    for (const std::uint32_t v : asked) {
      const Status status = answer(v, agent::Kind::kRun);
      without += status == Status::kUnsupported ? 1 : 0;
      if (status != Status::kOk && status != Status::kUnsupported) {
        fail(1, "board " + std::to_string(v) + " does not run: " + status_name(status));
      }
    }
    if (without == asked.size()) return false;
    if (without != 0) fail(1, "some boards have the program, and others do not");
    for (const std::uint32_t v : asked) send_input(v);
    for (const std::uint32_t v : asked) {
      until("the input", [&] { return boards_[v]->conversation.can_send(); });
    }
    for (const std::uint32_t v : asked) {
      agent::Go go{.number = request_.number};
      boards_[v]->conversation.send(go);
    }
    running_ = true;
    frames_ = 0;
    agreement_.begin();
    for (const std::uint32_t v : asked) take_report(v, repetitions);
    if (agreement_.newest().loss == Loss() && asked.size() < boards_.size()) {
      until("that board " + std::to_string(loss_.a) + " runs what the others ran",
            [&] { return boards_[loss_.a]->in; });
      take_report(loss_.a, repetitions);
    }
    running_ = false;
    if (const std::string complaint = agreement_.complaint(); !complaint.empty()) {
      fail(1, complaint);
    }
    for (const std::uint32_t v : members()) check(program, request_.number, v);
    return true;
  }

  void send_input(std::uint32_t v) {
    Board& board = *boards_[v];
    board.input.resize(request_.input_bytes / 4);
    for (std::uint64_t i = 0; i < board.input.size(); ++i) {
      board.input[i] = input_at(request_.number, v, i);
    }
    board.conversation.send_data(
        {reinterpret_cast<const std::uint8_t*>(board.input.data()), request_.input_bytes});
  }

  void take_report(std::uint32_t v, std::uint64_t repetitions) {
    const agent::Packet* const packet = await_or_death(v, agent::Kind::kReport);
    if (packet == nullptr) return;
    const agent::Report report = packet->report;
    boards_[v]->packets.pop_front();
    const std::string who = "board " + std::to_string(v);
    if (report.status != Status::kOk) {
      fail(1, who + ": " + status_name(report.status) + ", node " +
                  std::to_string(report.cause_detector) + " lost " +
                  std::to_string(report.cause_peer));
    }
    if (report.completed != repetitions) fail(1, who + " did not complete all collectives");
    const Loss loss = report.generation == 0 ? Loss()
                                             : Loss{static_cast<Loss::Kind>(report.loss_kind),
                                                    report.loss_a, report.loss_b};
    agreement_.take(v, report.generation, loss);
  }

  void check(const Program& program, std::uint32_t number, std::uint32_t v) {
    ReferenceRun run{.collective = program.collective(),
                     .root = program.entry.root,
                     .count = kCount,
                     .number = number,
                     .nodes = static_cast<std::uint32_t>(boards_.size()),
                     .loss = agreement_.loss_of(v)};
    const std::string wrong = wrong_result(run, v, boards_[v]->output.data());
    if (!wrong.empty()) fail(1, wrong);
  }

  // Carries frames until `holds` does.
  template <typename Condition>
  void until(const std::string& what, Condition holds) {
    const std::uint64_t limit = clock_.now() + kHang;
    while (!holds()) {
      if (!pump()) clock_.wait(clock_.now() + 1'000'000);
      if (clock_.now() > limit) fail(1, "nothing happens; expected " + what);
    }
  }
  // Carries frames for this time.
  void pause(std::uint64_t ns) {
    const std::uint64_t end = clock_.now() + ns;
    until("that time passes", [&] { return clock_.now() >= end; });
  }
  agent::Packet await(std::uint32_t v, agent::Kind kind) {
    const agent::Packet* const packet = await_or_death(v, kind);
    if (packet == nullptr) fail(1, "board " + std::to_string(v) + " is gone");
    const agent::Packet copy = *packet;
    boards_[v]->packets.pop_front();
    return copy;
  }
  const agent::Packet* await_or_death(std::uint32_t v, agent::Kind kind) {
    Board& board = *boards_[v];
    until("a packet of board " + std::to_string(v),
          [&] { return !board.alive || !board.packets.empty(); });
    if (!board.alive) return nullptr;
    if (board.packets.front().kind != kind) {
      fail(1, "board " + std::to_string(v) + " sent another packet than was expected");
    }
    return &board.packets.front();
  }

  bool pump() {
    bool moved = false;
    for (std::uint32_t v = 0; v < boards_.size(); ++v) {
      Board& board = *boards_[v];
      if (!board.alive) continue;
      std::uint8_t frame[2048];
      while (const std::uint32_t size = board.carrier->receive(frame)) {
        moved = true;
        if (size < serial::kHeaderBytes + serial::kCrcBytes) continue;
        if (serial::get<serial::header::kChannel>(frame) == agent::kChannel) {
          board.agent.inbox.emplace_back(frame, frame + size);
        } else {
          pass(v, frame, size);
        }
      }
      if (board.alive) take(v, board.conversation.poll());
      if (board.alive && !board.in && lost_) join(v);
    }
    for (const auto& board : boards_) {
      while (board->alive && !board->outbox.empty()) {
        const Bytes& frame = board->outbox.front();
        const auto size = static_cast<std::uint32_t>(frame.size());
        if (board->carrier->send(frame.data(), size) == Status::kTryAgain) break;
        board->outbox.pop_front();
        moved = true;
      }
    }
    return moved;
  }

  // Channels of all generations lead to the same boards: generation g of link l is channel
  // g * links + l.
  void pass(std::uint32_t v, std::uint8_t* frame, std::uint32_t size) {
    const std::vector<std::uint32_t>& links = boards_[v]->peers;
    if (links.empty()) return;  // it is not greeted yet
    const std::uint32_t channel = serial::get<serial::header::kChannel>(frame);
    const std::uint32_t peer = links[channel % links.size()];
    const std::vector<std::uint32_t>& back = boards_[peer]->peers;
    std::uint32_t link = 0;
    while (link < back.size() && back[link] != v) ++link;
    if (link == back.size()) return;
    if (counted_ != nullptr) {
      ++counted_->traffic[std::min(v, peer) * boards_.size() + std::max(v, peer)];
    }
    if (running_ && cut_at_ != 0 && !lost_ && ++frames_ == cut_at_) lose();
    if (lost_ && resumed_ns_ == 0 &&
        is_after_agreement(frame, (agreement_.newest().generation + 1) *
                                      static_cast<std::uint32_t>(links.size()))) {
      resumed_ns_ = clock_.now();
    }
    Board& other = *boards_[peer];
    const bool is_cut = lost_ && loss_.kind == Loss::Kind::kLink && loss_.closes(v, peer);
    if (!other.alive || !boards_[v]->alive || is_cut) return;
    if (other.outbox.size() >= kQueue) return;
    const std::uint32_t generation = channel / static_cast<std::uint32_t>(links.size());
    serial::set<serial::header::kChannel>(frame, generation * back.size() + link);
    const std::uint32_t covered = size - serial::kCrcBytes;
    store_u32(frame + covered, crc32(0, frame, covered));
    other.outbox.emplace_back(frame, frame + size);
  }

  void lose() {
    lost_ = true;
    lost_ns_ = clock_.now();
    for (const auto& board : boards_) {
      if (!board->packets.empty()) fail(1, "a board was done before the loss");
    }
    if (loss_.kind != Loss::Kind::kNode) return;
    Board& board = *boards_[loss_.a];
    kill(board.pid, SIGKILL);
    (void)waitpid(board.pid, nullptr, 0);
    board.alive = board.in = false;
    board.packets.clear();
    board.outbox.clear();
    board.agent.inbox.clear();
  }

  void take(std::uint32_t v, Event event) {
    Board& board = *boards_[v];
    if (event == Event::kRestarted && !board.in) {  // no one answered it
      board.packets.clear();
      return;
    }
    if (event == Event::kRestarted) fail(1, "board " + std::to_string(v) + " restarted");
    if (event == Event::kViolation) fail(1, "board " + std::to_string(v) + " broke the protocol");
    if (event == Event::kPacket) {
      const agent::Packet packet = board.conversation.packet();
      std::size_t data = 0;
      if (packet.kind == agent::Kind::kHello) {
        board.hello = packet.hello;
        board.tables.resize(packet.hello.links * sizeof(agent::LinkEntry) +
                            packet.hello.programs * sizeof(agent::ProgramEntry));
        board.conversation.expect(board.tables);
        data = board.tables.size();
      } else if (packet.kind == agent::Kind::kReport) {
        board.output.resize(packet.report.output_bytes);
        board.conversation.expect(board.output);
        data = board.output.size();
      }
      board_packet_[v] = packet;
      if (data == 0) event = Event::kData;
    }
    if (event == Event::kData) board.packets.push_back(board_packet_[v]);
  }

  const Options& options_;
  std::mt19937_64 random_;
  HostClock clock_;
  std::vector<std::unique_ptr<Board>> boards_;
  std::map<std::uint32_t, agent::Packet> board_packet_;  // whose data are still to come
  std::vector<Program> programs_;
  Program* counted_ = nullptr;  // whose traffic is counted
  std::uint32_t sent_ = 0;      // runs
  agent::RunRequest request_;   // the newest one
  bool running_ = false, lost_ = false;
  std::uint64_t frames_ = 0, cut_at_ = 0;
  std::uint64_t lost_ns_ = 0, resumed_ns_ = 0;
  std::string& moment_;
  std::string text_;  // about the newest loss or return
  Loss loss_;         // the newest one
  Agreement agreement_;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string word = argv[i], value = argv[i + 1];
    if (word == "--hosted") {
      options.hosted = value;
    } else if (word == "--folder") {
      options.folder = value;
    } else if (!read_option(options.lost, word, value)) {
      fail(2, "unexpected argument " + word + " " + value);
    }
  }
  if (argc % 2 == 0 || options.hosted.empty() || options.folder.empty()) {
    fail(2, "expected --hosted PROGRAM --folder DIR --loss link:A,B|node:V");
  }
  check_options(options.lost);
  options.deadline_ns = 1'000'000 * std::uint64_t{options.lost.deadline_ms};
  return options;
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) {
  return espalier::report_failure("spares-rig", [&](std::string& moment) {
    const espalier::Options options = espalier::parse(argc, argv);
    espalier::Rig(options, moment).run();
  });
}
