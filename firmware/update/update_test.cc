// Clusters in simulation that are updated, and lose power: at each write and erase of each node's
// flash, and before each of its polls, one node alone or all. All of them boot again afterwards. No
// message of a collective ever passes between nodes of two releases, all end in one release, and
// the next update succeeds. Rules that are wrong are found out.
//
// By default a sample of the moments; all with ESPALIER_WHOLE=1.

#include "firmware/update/update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/hal/sim/network.h"
#include "espalier/internal/base/little_endian.h"
#include "firmware/boot/testing/simulated_flash.h"
#include "firmware/image/image_writer.h"
#include "firmware/image/testing/sample_image.h"
#include "firmware/update/roll_call.h"
#include "hal/forwarding_endpoint.h"
#include "tests/whole.h"

namespace espalier {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Rule = Resolution (*)(const ReleaseView&, const ReleaseState&);

constexpr std::uint32_t kNodes = 4;
constexpr std::uint32_t kRoot = 0;
constexpr std::uint32_t kPieceBytes = 512;
constexpr std::uint64_t kDeadline = 1'000'000;  // ns
constexpr char kBoard[] = "updated";
constexpr std::uint64_t kTopology = 77;
constexpr std::uint32_t kWork = 24;  // elements of the collective that nodes run otherwise
constexpr std::uint32_t kOld = 1, kNew = 2;

struct Algorithms {
  const char* broadcast;
  const char* scatter;
  const char* allreduce;
};
constexpr Algorithms kChains = {"chain", "chain", "chain"};
constexpr Algorithms kTrees = {"binomial", "binomial", "recursive-doubling"};

// The images of a release, one for each node.
struct Release {
  Release(std::uint32_t number, const Algorithms& algorithms, bool line, const SampleKey* key) {
    for (std::uint32_t node = 0; node < kNodes; ++node) {
      images.push_back(sample_image(content(node, number, algorithms, line), key));
    }
  }
  static ImageContent content(std::uint32_t node, std::uint32_t number,
                              const Algorithms& algorithms, bool line) {
    ImageContent content{.board = kBoard,
                         .topology_digest = kTopology,
                         .node = node,
                         .release = number,
                         .counter = number};
    for (std::uint32_t peer = 0; peer < kNodes; ++peer) {
      if (peer == node || (line && peer + 1 != node && node + 1 != peer)) continue;
      content.links.push_back({peer, 0, static_cast<std::uint16_t>(content.links.size())});
    }
    add(content, Collective::kBroadcast, algorithms.broadcast);
    add(content, Collective::kScatter, algorithms.scatter);
    add(content, Collective::kAllreduce, algorithms.allreduce);
    return content;
  }

  static void add(ImageContent& content, Collective collective, const char* name) {
    Program program{};
    ImageContent::Descriptor descriptor{
        .collective = collective, .root = has_root(collective) ? kRoot : 0, .algorithm = name};
    descriptor.bytes.resize(kMaxDescriptorBytes);
    std::size_t written = 0;
    EXPECT_EQ(find_algorithm(collective, name)
                  ->generate({.ranks = kNodes, .root = kRoot, .topology_digest = kTopology},
                             content.node, program),
              Status::kOk);
    EXPECT_EQ(encode_program(program, descriptor.bytes.data(), descriptor.bytes.size(), written),
              Status::kOk);
    descriptor.bytes.resize(written);
    content.programs.push_back(descriptor);
  }

  std::vector<Bytes> images;
};

// Both releases of a cluster.
struct Releases {
  Releases(const Algorithms& old_ones, const Algorithms& new_ones, bool is_line,
           const SampleKey* the_key = nullptr)
      : line(is_line),
        key(the_key),
        before(kOld, old_ones, is_line, the_key),
        after(kNew, new_ones, is_line, the_key) {}
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> links() const {
    if (!line) return sim::complete_links(kNodes);
    return {{1}, {0, 2}, {1, 3}, {2}};
  }
  bool line;
  const SampleKey* key;
  Release before, after;
};

// The messages of a session: of which release each end was when it posted it. 0: of the roll call.
class Ledger {
 public:
  void note(std::uint32_t from, std::uint32_t to, bool sends, std::uint32_t release) {
    auto& ends = links_[{from, to}];
    std::vector<std::uint32_t>& own = sends ? ends.first : ends.second;
    const std::vector<std::uint32_t>& other = sends ? ends.second : ends.first;
    own.push_back(release);
    if (own.size() > other.size() || other[own.size() - 1] == release) return;
    mixed = "a message from node " + std::to_string(from) + " to node " + std::to_string(to) +
            " passed between releases " + std::to_string(release) + " and " +
            std::to_string(other[own.size() - 1]);
  }
  std::string mixed;

 private:
  using Ends = std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Ends> links_;
};

// An endpoint whose messages are noted.
class NotedEndpoint final : public ForwardingEndpoint {
 public:
  NotedEndpoint(Endpoint& endpoint, Ledger& ledger)
      : ForwardingEndpoint(endpoint), ledger_(ledger) {}
  std::uint32_t running = 0;  // the release of what is posted; 0: the roll call

  Status post_receive(std::uint32_t link, const ReceivePost& post) override {
    const Status status = inner_->post_receive(link, post);
    if (status == Status::kOk) ledger_.note(peer(link), node(), false, running);
    return status;
  }
  Status post_send(std::uint32_t link, const SendPost& post) override {
    const Status status = inner_->post_send(link, post);
    if (status == Status::kOk) ledger_.note(node(), peer(link), true, running);
    return status;
  }

 private:
  Ledger& ledger_;
};

// A loss of power.
struct Cut {
  std::uint32_t node = 0;
  bool in_flash = true;  // at a write or erase; otherwise before a poll
  int number = -1;       // of the operations or polls since the last cut; -1: never
  Tear tear = Tear::kAll;
  std::uint32_t seed = 0;
  bool of_all = false;  // all nodes lose power then
};

struct Scenario {
  const Releases* releases = nullptr;
  Rule rule = resolve;
  std::vector<Cut> cuts = {};          // one after the other
  const UpdateOrder* order = nullptr;  // changes to the order
};

class Cluster;

// A node: its flash, and what it does in a session.
class Node final : public UpdateOwner {
 public:
  Node(Cluster& cluster, std::uint32_t number);

  void boot(sim::Network& network, Ledger& ledger, bool updates);
  void poll();
  [[nodiscard]] std::uint64_t next_deadline();
  [[nodiscard]] const Program* load(const Image& image, std::uint32_t vote) override;
  [[nodiscard]] Status piece(std::uint32_t offset) override;

  enum class State : std::uint8_t { kDown, kJoins, kUpdates, kWorks, kDone, kRestarts, kRefused };
  State state = State::kDown;
  SimulatedFlash flash;
  std::uint64_t polls = 0;
  std::uint32_t release = 0;  // that it booted
  bool updated = false;       // its update ended with all nodes switched
  Update::Refusal refusal;    // of its update
  bool waits = false;         // an image waits in the other slot
  std::string wrong;

 private:
  void called();
  void start_work();
  void note(const std::string& what) {
    if (wrong.empty()) wrong = "node " + std::to_string(number_) + ": " + what;
  }
  [[nodiscard]] Expectation expectation() const;
  void install(const Bytes& image);

  // All that is lost with power.
  struct Session {
    Session(SimulatedFlash& flash, Endpoint& link, Ledger& ledger)
        : slots(flash, whole_flash(flash)), endpoint(link, ledger) {}
    Slots slots;
    NotedEndpoint endpoint;
    Expectation expected;
    Image image;
    BootReport report;
    ReleaseState releases;
    std::vector<DecodedProgram> programs = std::vector<DecodedProgram>(3);
    DecodedProgram memory;
    UpdatePrograms indices;
    std::unique_ptr<RollCall> roll_call;
    Machine machine;
    std::unique_ptr<Update> update;
    bool updates = false;
    std::vector<std::uint8_t> pieces, piece;
    alignas(16) std::uint8_t scratch[16384];
    Little<std::uint32_t> given[kWork] = {}, sums[kWork] = {};
  };

  Cluster& cluster_;
  std::uint32_t number_;
  std::unique_ptr<Session> session_;
};

class Cluster {
 public:
  explicit Cluster(const Scenario& what) : scenario(what) {
    for (std::uint32_t v = 0; v < kNodes; ++v) nodes.emplace_back(*this, v);
    arm();
  }

  // Updates, until all run one release, then updates again. Returns what went wrong, or nothing.
  std::string run() {
    std::string wrong = settle(true);
    if (!wrong.empty()) return wrong;
    ended_in = nodes[0].release;
    if (cut_ < scenario.cuts.size()) all_cut = false;
    cut_ = scenario.cuts.size();
    for (Node& node : nodes) node.flash.cut(-1, Tear::kAll);
    if (ended_in == kNew) return wrong;
    wrong = settle(true);
    if (wrong.empty() && nodes[0].release != kNew) wrong = "the next update does not succeed";
    return wrong;
  }

  const Scenario scenario;
  std::deque<Node> nodes;
  std::uint32_t ended_in = 0;
  bool all_cut = true;  // all cuts of the scenario came
  std::uint32_t sessions = 0;

  // Sessions, until all nodes did their work in one release.
  std::string settle(bool updates) {
    for (std::uint32_t tries = 0; tries < 8; ++tries) {
      std::string wrong = run_session(updates && tries == 0);
      if (!wrong.empty()) return wrong;
      bool done = true;
      for (const Node& node : nodes) {
        done = done && node.state == Node::State::kDone;
        has_switched_ = has_switched_ || node.updated;
      }
      if (!done) continue;
      for (const Node& node : nodes) {
        if (node.release != nodes[0].release) return "the cluster ends in two releases";
        if (node.waits) return "an image still waits";
      }
      if (has_switched_ && nodes[0].release != kNew) return "an update that succeeded is gone";
      return {};
    }
    return "the cluster does not settle";
  }

 private:
  std::string run_session(bool updates) {
    ++sessions;
    sim::Network network({.one_port = false, .poison = true}, scenario.releases->links());
    Ledger ledger;
    bool down = false;
    const auto with_power = [&](std::uint32_t v, auto&& act) {
      try {
        if (is_cut_before_poll(v)) throw PowerLost{};
        act();
      } catch (const PowerLost&) {
        nodes[v].state = Node::State::kDown;
        network.kill(v);
        down = down || scenario.cuts[cut_].of_all;
        ++cut_;
        arm();
      }
    };
    for (std::uint32_t v = 0; v < kNodes; ++v) {
      with_power(v, [&] { nodes[v].boot(network, ledger, updates); });
    }
    for (std::uint32_t rounds = 0; !down; ++rounds) {
      if (rounds > 1'000'000) return "it does not end";
      std::uint64_t next = UINT64_MAX;
      bool busy = false;
      for (std::uint32_t v = 0; v < kNodes && !down; ++v) {
        Node& node = nodes[v];
        if (!is_busy(node)) continue;
        with_power(v, [&] { node.poll(); });
        if (!node.wrong.empty()) return node.wrong;
        if (!is_busy(node)) continue;
        busy = true;
        next = std::min(next, node.next_deadline());
      }
      if (!ledger.mixed.empty()) return ledger.mixed;
      if (!busy) break;
      if (next <= network.now_ns()) continue;
      // A roll call waits for nodes that are down without a deadline.
      if (!network.advance(next) && next == UINT64_MAX) break;
    }
    return {};
  }
  static bool is_busy(const Node& node) {
    return node.state == Node::State::kJoins || node.state == Node::State::kUpdates ||
           node.state == Node::State::kWorks;
  }

  // Waits for the next cut.
  void arm() {
    if (cut_ >= scenario.cuts.size()) return;
    const Cut& cut = scenario.cuts[cut_];
    Node& node = nodes[cut.node];
    if (cut.in_flash) node.flash.cut(cut.number, cut.tear, cut.seed);
    node.polls = 0;
  }
  bool is_cut_before_poll(std::uint32_t v) {
    if (cut_ >= scenario.cuts.size() || scenario.cuts[cut_].node != v) return false;
    const Cut& cut = scenario.cuts[cut_];
    return !cut.in_flash && static_cast<int>(nodes[v].polls++) == cut.number;
  }

  std::size_t cut_ = 0;
  bool has_switched_ = false;  // a node reported that all have switched
};

Node::Node(Cluster& cluster, std::uint32_t number)
    : flash(14, 512, 64), cluster_(cluster), number_(number) {
  install(cluster.scenario.releases->before.images[number]);
}

Expectation Node::expectation() const {
  static const Authority with_key = [] {
    static const SampleKey key(9);
    return ed25519_authority(key.public_key);
  }();
  Expectation expected{
      .board = kBoard,
      .topology_digest = kTopology,
      .node = number_,
      .authority = cluster_.scenario.releases->key != nullptr ? &with_key : &kTakesUnsigned};
  return expected;
}

// As the factory does.
void Node::install(const Bytes& bytes) {
  Slots slots(flash, whole_flash(flash));
  Image image;
  BootReport report;
  EXPECT_EQ(slots.begin(static_cast<std::uint32_t>(bytes.size())), Status::kOk);
  EXPECT_EQ(slots.append(bytes.data(), static_cast<std::uint32_t>(bytes.size())), Status::kOk);
  EXPECT_EQ(slots.finish(expectation(), {}), Status::kOk);
  EXPECT_EQ(slots.boot(expectation(), {}, image, report), Status::kOk);
  EXPECT_EQ(slots.confirm(), Status::kOk);
}

void Node::boot(sim::Network& network, Ledger& ledger, bool updates) {
  session_ = std::make_unique<Session>(flash, network.endpoint(number_), ledger);
  Session& now = *session_;
  now.expected = expectation();
  now.updates = updates;
  updated = false;
  if (now.slots.boot(now.expected, {}, now.image, now.report) != Status::kOk) {
    state = State::kDown;
    return note("it does not boot");
  }
  release = now.image.release;
  for (std::uint32_t i = 0; i < now.image.programs; ++i) {
    if (now.image.load(i, now.programs[i]) != Status::kOk) note("a program does not load");
  }
  if (find_update_programs(now.image, kRoot, now.indices) != Status::kOk ||
      read_release_state(now.slots, now.expected, now.image, now.memory, now.releases) !=
          Status::kOk) {
    note("it cannot be updated");
  }
  waits = now.releases.prepared != 0;
  now.endpoint.running = 0;
  now.roll_call = std::make_unique<RollCall>(now.endpoint, kNodes, now.releases);
  state = State::kJoins;
}

std::uint64_t Node::next_deadline() {
  if (state == State::kUpdates) return session_->update->next_deadline();
  return state == State::kWorks ? session_->machine.next_deadline() : UINT64_MAX;
}

void Node::poll() {
  Session& now = *session_;
  if (state == State::kJoins) {
    const Status status = now.roll_call->poll();
    if (status == Status::kOk) {
      called();
    } else if (status != Status::kBusy) {
      state = State::kRestarts;
    }
  } else if (state == State::kUpdates) {
    const Status status = now.update->poll();
    if (status == Status::kBusy) return;
    updated = status == Status::kOk;
    refusal = now.update->refused();
    if (refusal.any) return start_work();
    state = State::kRestarts;
  } else if (state == State::kWorks) {
    const Status status = now.machine.poll();
    if (status == Status::kBusy) return;
    state = status == Status::kOk ? State::kDone : State::kRestarts;
    for (std::uint32_t i = 0; status == Status::kOk && i < kWork; ++i) {
      if (now.sums[i] != kNodes * i + kNodes * (kNodes - 1) / 2) note("a wrong result");
    }
  }
}

// All nodes' releases are known.
void Node::called() {
  Session& now = *session_;
  switch (cluster_.scenario.rule(now.roll_call->view(), now.releases)) {
    case Resolution::kSwitch:
      if (now.slots.switch_over() != Status::kOk) note("it cannot switch");
      state = State::kRestarts;
      return;
    case Resolution::kRestart: state = State::kRestarts; return;
    case Resolution::kRefuse: state = State::kRefused; return;
    case Resolution::kWithdraw:
      if (now.slots.withdraw() != Status::kOk) note("it cannot withdraw");
      waits = false;
      break;
    case Resolution::kRun: break;
  }
  MachineConfig config{.deadline_ns = kDeadline};
  now.endpoint.running = release;
  if (now.machine.init(now.endpoint, config) != Status::kOk) note("no machine");
  if (!now.updates || release == kNew) return start_work();
  const Release& after = cluster_.scenario.releases->after;
  UpdateOrder order;
  if (number_ == kRoot) {
    order.nodes = kNodes;
    order.release = order.counter = kNew;
    if (cluster_.scenario.order != nullptr) order = *cluster_.scenario.order;
    order.piece_bytes = kPieceBytes;
    for (const Bytes& image : after.images) {
      order.image_bytes =
          std::max(std::uint32_t{order.image_bytes}, static_cast<std::uint32_t>(image.size()));
    }
    Image image;
    std::uint64_t digest = 0;
    if (check_image(after.images[kRoot].data(), after.images[kRoot].size(), now.expected, image) !=
            Status::kOk ||
        release_digest(image, now.memory, digest) != Status::kOk) {
      note("the new image is bad");
    }
    order.digest = digest;
  }
  now.pieces.resize(kNodes * kPieceBytes);
  now.piece.resize(kPieceBytes);
  UpdateMemory memory{.input = now.pieces.data(),
                      .input_bytes = kNodes * kPieceBytes,
                      .output = now.piece.data(),
                      .output_bytes = kPieceBytes,
                      .scratch = now.scratch,
                      .scratch_bytes = sizeof now.scratch};
  memory.program = &now.memory;
  now.update = std::make_unique<Update>(
      now.machine, now.slots, now.image, now.expected,
      DecodedUpdatePrograms{&now.programs[now.indices.broadcast],
                            &now.programs[now.indices.scatter], &now.programs[now.indices.vote]},
      memory, *this, order);
  state = State::kUpdates;
}

const Program* Node::load(const Image& image, std::uint32_t vote) {
  Session& now = *session_;
  for (std::uint32_t i = 0; i < image.programs; ++i) {
    if (image.load(i, now.programs[i]) != Status::kOk) return nullptr;
  }
  now.endpoint.running = image.release;
  return &now.programs[vote];
}

Status Node::piece(std::uint32_t offset) {
  Session& now = *session_;
  std::fill(now.pieces.begin(), now.pieces.end(), std::uint8_t{0});
  for (std::uint32_t v = 0; v < kNodes; ++v) {
    const Bytes& image = cluster_.scenario.releases->after.images[v];
    if (offset >= image.size()) continue;
    const std::size_t bytes = std::min<std::size_t>(kPieceBytes, image.size() - offset);
    std::memcpy(now.pieces.data() + v * kPieceBytes, image.data() + offset, bytes);
  }
  return Status::kOk;
}

void Node::start_work() {
  Session& now = *session_;
  for (std::uint32_t i = 0; i < kWork; ++i) now.given[i] = i + number_;
  const Status status = now.machine.start(now.programs[now.indices.vote],
                                          {now.given, now.sums, now.scratch, sizeof now.scratch},
                                          {.op = Op::kSum, .type = Type::kU32}, kWork);
  state = status == Status::kOk ? State::kWorks : State::kRestarts;
}

class UpdateTest : public ::testing::Test {
 protected:
  ~UpdateTest() override {
    if (scenarios_ == 0) return;
    std::printf("%u scenarios: %u ended in the old release, %u in the new one; %u sessions\n",
                scenarios_, ended_[kOld], ended_[kNew], sessions_);
  }

  static std::string text(const Scenario& scenario) {
    std::string line;
    for (const Cut& cut : scenario.cuts) {
      line += std::string(line.empty() ? "" : ", then ") + "node " + std::to_string(cut.node) +
              (cut.of_all ? " (and all others)" : "") +
              (cut.in_flash ? " at flash operation " : " before poll ") +
              std::to_string(cut.number) + ", tear " + std::to_string(static_cast<int>(cut.tear)) +
              ", seed " + std::to_string(cut.seed);
    }
    return line;
  }

  // Runs the scenario. Returns what went wrong. `came`: all of its cuts came.
  std::string run(const Scenario& scenario, bool& came) {
    Cluster cluster(scenario);
    std::string wrong = cluster.run();
    came = cluster.all_cut;
    ++scenarios_;
    sessions_ += cluster.sessions;
    if (wrong.empty() && came) ++ended_[cluster.ended_in];
    return wrong;
  }

  // Cuts the power of each node at each moment (of which every `stride`-th), after the given cuts.
  // Returns what went wrong first.
  std::string cut_everywhere(const Scenario& born, int stride) {
    for (std::uint32_t node = 0; node < kNodes; ++node) {
      for (const bool in_flash : {true, false}) {
        for (const bool of_all : {false, true}) {
          const int first = stride == 1 ? 0 : static_cast<int>(sample_seed() % stride);
          for (int number = first;; number += stride) {
            bool came = true;
            for (const Tear tear : kTears) {
              if (!in_flash && tear != Tear::kAll) continue;
              for (std::uint32_t seed = 0; seed < (tear == Tear::kSomeBits ? 3u : 1u); ++seed) {
                Scenario scenario = born;
                scenario.cuts.push_back({node, in_flash, number, tear, seed, of_all});
                const std::string wrong = run(scenario, came);
                if (!wrong.empty()) return text(scenario) + ": " + wrong;
              }
            }
            if (!came) break;
          }
        }
      }
    }
    return {};
  }
  // The update is refused by `node`, nothing is written unless an image was the reason, and all go
  // on with the old release.
  void expect_refused(const Releases& releases, const UpdateOrder* order, std::uint32_t node,
                      Status status, const char* name) {
    SCOPED_TRACE(name);
    Cluster cluster({.releases = &releases, .order = order});
    std::vector<int> operations;
    for (const Node& each : cluster.nodes) operations.push_back(each.flash.operations());
    EXPECT_EQ(cluster.settle(true), "");
    for (std::uint32_t v = 0; v < kNodes; ++v) {
      const Node& each = cluster.nodes[v];
      EXPECT_EQ(each.release, kOld);
      EXPECT_FALSE(each.updated);
      EXPECT_TRUE(each.refusal.any);
      EXPECT_EQ(each.refusal.node, node);
      EXPECT_EQ(each.refusal.status, status) << status_name(each.refusal.status);
      EXPECT_EQ(each.flash.operations() == operations[v], order != nullptr);
    }
    EXPECT_EQ(cluster.sessions, 1u);
    // Nothing waits.
    EXPECT_EQ(cluster.settle(false), "");
  }
  static int stride(int usual) { return whole() ? 1 : small_sample() ? 4 * usual : usual; }

  std::uint32_t scenarios_ = 0, sessions_ = 0, ended_[3] = {};
};

// Both releases have the same schedules: only the roll call keeps nodes apart.
const Releases& lines() {
  static const Releases releases(kChains, kChains, true);
  return releases;
}
const Releases& signed_ones() {
  static const SampleKey key(9);
  static const Releases releases(kTrees, kChains, false, &key);
  return releases;
}

TEST_F(UpdateTest, SwitchesAllNodes) {
  for (const Releases* releases : {&lines(), &signed_ones()}) {
    bool came = false;
    EXPECT_EQ(run({.releases = releases}, came), "");
    EXPECT_EQ(ended_[kOld], 0u);
  }
  EXPECT_EQ(ended_[kNew], 2u);
}

TEST_F(UpdateTest, EndsInOneReleaseOnALine) {
  EXPECT_EQ(cut_everywhere({.releases = &lines()}, stride(7)), "");
  EXPECT_GT(ended_[kOld], 20u);
  EXPECT_GT(ended_[kNew], 2u);
}

TEST_F(UpdateTest, EndsInOneReleaseOfSignedImages) {
  EXPECT_EQ(cut_everywhere({.releases = &signed_ones()}, stride(29)), "");
}

// Power fails, and again while the nodes come to an end of it.
TEST_F(UpdateTest, EndsInOneReleaseIfPowerFailsTwice) {
  std::mt19937_64 random(sample_seed());
  const auto below = [&](std::uint64_t limit) { return static_cast<int>(random() % limit); };
  const int pairs = whole() ? 20000 : small_sample() ? 60 : 300;
  for (int pair = 0; pair < pairs; ++pair) {
    Scenario scenario{.releases = &lines()};
    for (int i = 0; i < 2; ++i) {
      Cut cut{.node = static_cast<std::uint32_t>(below(kNodes)), .in_flash = below(2) == 0};
      // Flash is written late: more of the moments are near the switch.
      cut.number = below(cut.in_flash ? (i == 0 ? 24 : 4) : (i == 0 ? 220 : 60));
      cut.tear = kTears[below(4)];
      cut.seed = static_cast<std::uint32_t>(random());
      cut.of_all = below(2) == 0;
      scenario.cuts.push_back(cut);
    }
    bool came = false;
    ASSERT_EQ(run(scenario, came), "") << text(scenario);
  }
  EXPECT_GT(ended_[kOld] + ended_[kNew], static_cast<std::uint32_t>(pairs) / 8);
}

struct BadImage {
  const char* name;
  Status status;
  void (*change)(ImageContent&);  // of one node's image, before it is signed
};

// One node's image is bad, or the order: no node switches, all know who refused and why, and go on.
TEST_F(UpdateTest, IsRefusedByAll) {
  constexpr std::uint32_t kBad = 2;
  const BadImage images[] = {
      {"another board", Status::kWrongBoard, [](ImageContent& image) { image.board = "other"; }},
      {"another topology", Status::kWrongTopology,
       [](ImageContent& image) {
         image.topology_digest = 5;
         image.programs.clear();
         Release::add(image, Collective::kBroadcast, "chain");
       }},
      {"another node", Status::kWrongNode,
       [](ImageContent& image) { image = Release::content(1, kNew, kTrees, false); }},
      {"rolled back", Status::kRolledBack, [](ImageContent& image) { image.counter = 0; }},
      {"an older release", Status::kMismatch, [](ImageContent& image) { image.release = kOld; }},
      {"another release", Status::kMismatch, [](ImageContent& image) { image.release = 9; }},
      {"other programs", Status::kMismatch,
       [](ImageContent& image) { image = Release::content(kBad, kNew, kTrees, false); }},
      {"other links", Status::kUnsupported,
       [](ImageContent& image) { image.links.front().port = 40; }},
      {"no scatter", Status::kUnsupported,
       [](ImageContent& image) { image.programs.erase(image.programs.begin() + 1); }},
  };
  const SampleKey key(9), other(8);
  Releases releases(kTrees, kChains, false, &key);
  Bytes& bad = releases.after.images[kBad];
  const Bytes good = bad;
  for (const BadImage& image : images) {
    ImageContent content = Release::content(kBad, kNew, kChains, false);
    image.change(content);
    bad = sample_image(content, &key);
    expect_refused(releases, nullptr, kBad, image.status, image.name);
  }
  bad = good;
  bad.back() ^= 1;
  expect_refused(releases, nullptr, kBad, Status::kCorrupt, "a bit");
  const ImageContent content = Release::content(kBad, kNew, kChains, false);
  bad = sample_image(content, nullptr);
  expect_refused(releases, nullptr, kBad, Status::kUnsigned, "unsigned");
  bad = sample_image(content, &other);
  expect_refused(releases, nullptr, kBad, Status::kBadSignature, "another key");
  bad = good;
  const struct {
    const char* name;
    Status status;
    void (*change)(UpdateOrder&);
  } orders[] = {
      {"a version", Status::kBadVersion, [](UpdateOrder& order) { order.version = 2; }},
      {"nodes", Status::kWrongTopology, [](UpdateOrder& order) { order.nodes = 5; }},
      {"an older order", Status::kOlderRelease, [](UpdateOrder& order) { order.release = 0; }},
      {"a lower counter", Status::kRolledBack, [](UpdateOrder& order) { order.counter = 0; }},
      {"no room", Status::kTooLarge, [](UpdateOrder& order) { order.image_bytes = 1 << 20; }},
  };
  for (const auto& [name, status, change] : orders) {
    UpdateOrder order{.nodes = kNodes};
    order.release = order.counter = kNew;
    change(order);
    expect_refused(releases, &order, 0, status, name);
  }
  scenarios_ = 0;
}

struct WrongRule {
  const char* name;
  Rule rule;
  const char* wrong;  // what it leads to
};

// A rule that is wrong leads to two releases for ever, or to a collective between them.
TEST_F(UpdateTest, FindsRulesThatAreWrong) {
  const WrongRule rules[] = {
      {"goes back alone",
       [](const ReleaseView& view, const ReleaseState& own) {
         return own.prepared != 0 && view.min_running != view.max_running ? Resolution::kWithdraw
                                                                          : resolve(view, own);
       },
       "settle"},
      {"finishes alone",
       [](const ReleaseView& view, const ReleaseState& own) {
         return own.prepared != 0 ? Resolution::kSwitch : resolve(view, own);
       },
       "settle"},
      {"runs with anyone",
       [](const ReleaseView&, const ReleaseState& own) {
         return own.prepared != 0 ? Resolution::kWithdraw : Resolution::kRun;
       },
       "release"},
  };
  for (const WrongRule& wrong : rules) {
    const std::string found = cut_everywhere({.releases = &lines(), .rule = wrong.rule}, 1);
    EXPECT_NE(found.find(wrong.wrong), std::string::npos) << wrong.name << ": " << found;
    std::printf("%s: %s\n", wrong.name, found.c_str());
  }
  scenarios_ = 0;
}

}  // namespace
}  // namespace espalier
