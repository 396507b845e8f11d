// Checks the machine against the rules: random programs run on an endpoint that completes posts in
// random order. Every post and every combine is compared with expand(), and with the rules.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "collectives/machine/testing/random_program.h"
#include "collectives/machine/testing/scripted_endpoint.h"
#include "collectives/schedule/expand.h"
#include "espalier/collectives/machine/machine.h"

namespace espalier {
namespace {

using testing::pick;
using testing::Random;
using testing::RandomProgram;
using testing::ScriptedEndpoint;
// Tracks a machine: the instances that are posted, are complete or have run.
class Judge {
 public:
  Judge(const Program& program, const Layout& layout, const Buffers& buffers, std::uint32_t window)
      : layout_(layout),
        buffers_(buffers),
        window_(window),
        node_(program.node),
        rotated_(has_rotated_scratch(program)),
        input_(buffer_span(program, layout, Buffer::kInput)),
        output_(buffer_span(program, layout, Buffer::kOutput)) {
    instances_ = expand(program, layout.blocks);
    posted_.resize(instances_.size());
    done_.resize(instances_.size());
  }

  void post(const ScriptedEndpoint::Post& post) {
    const std::size_t index = next(post.send ? ActionKind::kSend : ActionKind::kReceive, post.link);
    ASSERT_LT(index, instances_.size()) << "post of nothing";
    const Instance& it = instances_[index];
    ASSERT_EQ(post.bytes, bytes(post.send ? it.a : it.into)) << describe(it);
    ASSERT_EQ(post.size, size(post.send ? it.a : it.into)) << describe(it);
    check_issued(it);
    if (post.send && it.after > 0) {
      ASSERT_TRUE(ready(it.step - it.after, true)) << describe(it);
    }
    posted_[index] = true;
  }
  void completed(bool send, std::uint32_t link) {
    for (std::size_t index = 0; index < instances_.size(); ++index) {
      if (!posted_[index] || done_[index] || instances_[index].link != link) continue;
      if ((instances_[index].kind == ActionKind::kSend) != send) continue;
      done_[index] = true;
      return;
    }
    FAIL() << "completion of nothing";
  }
  void combined(const void* into, const void* a, const void* b, std::uint64_t elements) {
    std::size_t index = 0;
    while (index < instances_.size() && (instances_[index].kind != ActionKind::kCombine ||
                                         done_[index] || size(instances_[index].into) == 0)) {
      ++index;
    }
    ASSERT_LT(index, instances_.size()) << "combine of nothing";
    const Instance& it = instances_[index];
    ASSERT_EQ(into, bytes(it.into)) << describe(it);
    ASSERT_EQ(a, bytes(it.a)) << describe(it);
    ASSERT_EQ(b, bytes(it.b)) << describe(it);
    ASSERT_EQ(elements * layout_.element_bytes, size(it.into)) << describe(it);
    check_issued(it);
    ASSERT_TRUE(ready(it.step - it.after, false)) << describe(it);  // (a)
    for (std::size_t other = 0; other < instances_.size(); ++other) {
      const Instance& transfer = instances_[other];
      if (transfer.kind != ActionKind::kSend) continue;
      if (transfer.step <= it.step) {
        ASSERT_TRUE(posted_[other]) << describe(it);  // (c)
      }
      const auto* from = static_cast<const std::uint8_t*>(bytes(transfer.a));
      const auto* to = static_cast<const std::uint8_t*>(into);
      const bool apart = from + size(transfer.a) <= to || to + size(it.into) <= from;
      if (posted_[other] && !done_[other] && size(transfer.a) > 0) {
        ASSERT_TRUE(apart) << describe(it);  // (d)
      }
    }
    done_[index] = true;
  }
  [[nodiscard]] bool all_done() const {
    for (std::size_t index = 0; index < instances_.size(); ++index) {
      if (!done_[index] && !empty_op(index)) return false;
    }
    return true;
  }
  [[nodiscard]] std::size_t instances() const { return instances_.size(); }
  // The log has all of them up to its capacity, in order, with ascending times.
  void check_log(const EventLog& log, std::uint32_t capacity) const {
    ASSERT_EQ(log.count(), std::min<std::size_t>(instances_.size(), capacity));
    ASSERT_EQ(log.lost(), instances_.size() - log.count());
    ASSERT_EQ(log.retired(), log.count());
    for (std::uint32_t index = 0; index < log.count(); ++index) {
      const Instance& it = instances_[index];
      const OperandAt& operand = it.kind == ActionKind::kSend ? it.a : it.into;
      Event expected{.step = static_cast<std::uint32_t>(it.step),
                     .segment = static_cast<std::uint32_t>(operand.segment),
                     .block = static_cast<std::uint32_t>(operand.block),
                     .action = static_cast<std::uint8_t>(it.action),
                     .kind = static_cast<std::uint8_t>(it.kind)};
      if (it.link >= 0) expected.link = static_cast<std::uint8_t>(it.link);
      std::array<std::uint8_t, kEventBytes> bytes{}, right{};
      event_bytes(log.event(index), bytes.data());
      event_bytes(expected, right.data());
      ASSERT_EQ(bytes, right) << describe(it);
      ASSERT_TRUE(log.event(index).begun && log.event(index).done) << describe(it);
      const EventTimes& times = log.times(index);
      ASSERT_LT(0, times.issued) << describe(it);
      ASSERT_LE(times.issued, times.posted) << describe(it);
      ASSERT_LE(times.posted, times.done) << describe(it);
      ASSERT_LE(times.done, times.retired) << describe(it);
    }
  }
  // Whether some action has several combines in a step.
  [[nodiscard]] bool has_many_combines() const {
    for (std::size_t index = 1; index < instances_.size(); ++index) {
      const Instance &it = instances_[index], &before = instances_[index - 1];
      if (it.kind != ActionKind::kCombine || size(it.into) == 0) continue;
      if (it.step == before.step && it.action == before.action) return true;
    }
    return false;
  }
  // Returns the largest number of messages of a step on one link in one direction.
  [[nodiscard]] std::uint32_t max_messages() const {
    std::map<std::array<std::int64_t, 3>, std::uint32_t> messages;
    std::uint32_t most = 0;
    for (const Instance& it : instances_) {
      if (it.kind == ActionKind::kCombine) continue;
      most = std::max(most, ++messages[{it.step, it.link, it.kind}]);
    }
    return most;
  }

 private:
  // Combines of empty blocks cannot be observed: they count as run.
  [[nodiscard]] bool empty_op(std::size_t index) const {
    return instances_[index].kind == ActionKind::kCombine && size(instances_[index].into) == 0;
  }
  [[nodiscard]] Span span(const OperandAt& operand) const {
    return block_span(layout_, static_cast<std::uint32_t>(operand.segment),
                      static_cast<std::uint32_t>(operand.block), operand.segment_count,
                      operand.buffer);
  }
  [[nodiscard]] std::uint64_t size(const OperandAt& operand) const { return span(operand).bytes; }
  [[nodiscard]] const void* bytes(const OperandAt& operand) const {
    if (size(operand) == 0) return nullptr;
    const auto offset = [](const void* base, std::uint64_t bytes) -> const void* {
      return static_cast<const std::uint8_t*>(base) + bytes;
    };
    switch (operand.buffer) {
      case Buffer::kInput: return offset(buffers_.input, span(operand).offset - input_.offset);
      case Buffer::kOutput: return offset(buffers_.output, span(operand).offset - output_.offset);
      default: return offset(buffers_.scratch, scratch_offset(operand));
    }
  }
  // Rotated scratch: an area begins with the node's own segment, and has no gaps.
  [[nodiscard]] std::uint64_t scratch_offset(const OperandAt& operand) const {
    auto slot = static_cast<std::uint64_t>(operand.slot);
    std::uint64_t bytes = 0;
    const auto segment = static_cast<std::uint32_t>(operand.segment);
    for (std::uint32_t at = node_; rotated_ && at != segment; at = (at + 1) % layout_.segments) {
      bytes += block_span(layout_, at, 0).bytes;
      --slot;
    }
    return slot * slot_bytes(layout_) + bytes;
  }
  [[nodiscard]] std::size_t next(ActionKind kind, std::uint32_t link) const {
    std::size_t index = 0;
    while (index < instances_.size() &&
           (instances_[index].kind != kind || instances_[index].link != link || posted_[index])) {
      ++index;
    }
    return index;
  }
  // Rule 2.
  void check_issued(const Instance& it) const {
    for (std::size_t index = 0; index < instances_.size(); ++index) {
      const Instance& before = instances_[index];
      const bool must = before.phase < it.phase || before.step <= it.step - window_;
      ASSERT_TRUE(!must || done_[index] || empty_op(index))
          << describe(it) << " though not done: " << describe(before);
    }
  }
  [[nodiscard]] bool ready(std::int64_t step, bool ops_too) const {
    for (std::size_t index = 0; index < instances_.size(); ++index) {
      if (instances_[index].step != step || done_[index] || empty_op(index)) continue;
      if (instances_[index].kind == ActionKind::kReceive) return false;
      if (ops_too && instances_[index].kind == ActionKind::kCombine) return false;
    }
    return true;
  }
  [[nodiscard]] std::string describe(const Instance& it) const {
    return "kind " + std::to_string(it.kind) + " action " + std::to_string(it.action) + " i " +
           std::to_string(it.i) + " step " + std::to_string(it.step);
  }

  Layout layout_;
  Buffers buffers_;
  std::uint32_t window_, node_;
  bool rotated_;
  Span input_, output_;
  std::vector<Instance> instances_;
  std::vector<bool> posted_, done_;
};

// Sizes of the memory that a collective needs.
struct Memory {
  explicit Memory(const Program& program, const Layout& layout)
      : input(layout.count * layout.element_bytes + 1),
        output(input.size()),
        scratch(scratch_needed(program, layout) / 16 + 1) {}
  [[nodiscard]] Buffers buffers() {
    return {input.data(), output.data(), scratch.data(), scratch.size() * 16};
  }
  struct alignas(16) Line {
    std::uint8_t bytes[16];
  };
  std::vector<std::uint8_t> input, output;
  std::vector<Line> scratch;
};

struct Seen {
  std::size_t runs = 0;
  std::size_t crowded = 0;   // programs with several messages per step on a link
  std::size_t combines = 0;  // programs with several combines of an action in a step
  std::size_t instances = 0;
  std::size_t short_ones = 0;  // prepared programs that are issued as a whole
};

// Polls the machine and completes its posts in random order, until it ends, a check fails, or
// nothing has moved for 1000 polls. Returns the last status. program_link: the program's link, by
// the endpoint's.
Status poll_to_end(Machine& machine, ScriptedEndpoint& endpoint, Judge& judge,
                   const std::vector<std::uint32_t>& program_link, Random& random) {
  Status status = Status::kBusy;
  for (int idle = 0; status == Status::kBusy && idle < 1000; ++idle) {
    ++endpoint.time;
    status = machine.poll();
    if (::testing::Test::HasFailure()) break;
    while (!endpoint.posts.empty() && pick(random, 0, 2) != 0) {
      const auto which = static_cast<std::size_t>(
          pick(random, 0, static_cast<std::int32_t>(endpoint.posts.size()) - 1));
      const ScriptedEndpoint::Post post = endpoint.posts[which];
      judge.completed(post.send, program_link[post.link]);
      endpoint.complete(post.send, post.link);
      idle = 0;
    }
    if (!endpoint.completions.empty()) idle = 0;
  }
  return status;
}

void run_one(unsigned seed, Seen& seen) {
  Random random(seed);
  const RandomProgram writer(random);
  const Program& program = writer.program;
  EXPECT_EQ(check_program(program), Status::kOk) << "seed " << seed;
  std::vector<std::uint32_t> peers(program.peers, program.peers + program.peers_count);
  std::shuffle(peers.begin(), peers.end(), random);
  std::vector<std::uint32_t> program_link(peers.size());  // the program's link, by the endpoint's
  for (std::size_t link = 0; link < peers.size(); ++link) program_link[link] = peers[link] - 1;

  const auto count = static_cast<std::uint64_t>(pick(random, 0, 60));
  Layout layout;
  EXPECT_EQ(make_layout(program, count, 1, layout), Status::kOk);
  Memory memory(program, layout);
  MachineConfig config{.window = static_cast<std::uint32_t>(pick(random, 1, kMaxWindow))};
  const std::uint32_t endpoint_window = static_cast<std::uint32_t>(pick(random, 1, kMaxWindow));
  Judge judge(program, layout, memory.buffers(),
              std::min({config.window, program.window, endpoint_window}));
  const auto combined = [](void* into, const void* a, const void* b, std::uint64_t elements,
                           void* its_judge) {
    static_cast<Judge*>(its_judge)->combined(into, a, b, elements);
  };
  const Operator op{.op = Op::kCustom, .type = Type::kU8, .custom = combined, .context = &judge};

  const auto capacity = static_cast<std::uint32_t>(pick(random, 0, 3) == 0 ? 4 : 4000);
  std::vector<Event> events(capacity);
  std::vector<EventTimes> times(capacity);
  EventLog log(events.data(), times.data(), capacity);
  // A prepared program whose steps fit into the window is issued as a whole, unless there is a log.
  const bool is_prepared = seed % 2 != 0, has_log = seed % 4 != 3;
  if (has_log) config.log = &log;
  ScriptedEndpoint endpoint(0, peers, endpoint_window);
  endpoint.refuse = [&] { return pick(random, 0, 9) == 0; };
  endpoint.on_post = [&](ScriptedEndpoint::Post post) {
    post.link = program_link[post.link];
    judge.post(post);
  };
  Machine machine;
  EXPECT_EQ(machine.init(endpoint, config), Status::kOk);
  Machine::Prepared prepared;
  if (!is_prepared) {
    EXPECT_EQ(machine.start(program, memory.buffers(), op, count), Status::kOk) << "seed " << seed;
  } else {
    EXPECT_EQ(machine.prepare(program, memory.buffers(), op, count, prepared), Status::kOk)
        << "seed " << seed;
    EXPECT_EQ(machine.start(prepared), Status::kOk) << "seed " << seed;
  }
  EXPECT_EQ(machine.blocks(), layout.blocks);
  const Status status = poll_to_end(machine, endpoint, judge, program_link, random);
  if (judge.max_messages() > endpoint_window) {
    EXPECT_EQ(machine.cause().status, Status::kTooLarge) << "seed " << seed;
    return;
  }
  EXPECT_EQ(status, Status::kOk) << "seed " << seed << " " << status_name(machine.cause().status);
  EXPECT_TRUE(judge.all_done()) << "seed " << seed;
  if (has_log) judge.check_log(log, capacity);
  if (::testing::Test::HasFailure()) ADD_FAILURE() << "seed " << seed;
  ++seen.runs;
  seen.short_ones += prepared.is_short();
  seen.crowded += judge.max_messages() > 1;
  seen.combines += judge.has_many_combines();
  seen.instances += judge.instances();
}

TEST(Window, RandomProgramsKeepTheRules) {
  Seen seen;
  for (unsigned seed = 0; seed < 20000 && !HasFailure(); ++seed) run_one(seed, seen);
  // The programs must not be empty, or the test would check nothing.
  EXPECT_GT(seen.runs, 18'000u);
  EXPECT_GT(seen.crowded, 1'000u);
  EXPECT_GT(seen.combines, 100u);
  EXPECT_GT(seen.short_ones, 300u);
  EXPECT_GT(seen.instances, 150'000u);
}

}  // namespace
}  // namespace espalier
