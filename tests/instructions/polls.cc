// Counts the instructions of every poll of real programs on a board under `qemu -icount shift=10`,
// where the clock counts instructions: instructions_test.py runs this and judges. The peers are
// scripted: each post completes in its order.

#include <cstdint>
#include <initializer_list>

#include "base/crc32.h"
#include "espalier/collectives/machine/machine.h"
#include "firmware/bare/board.h"
#include "firmware/bare/text.h"
#include "firmware/image/image.h"
#include "golden.h"
#include "hal/serial/siphash.h"

namespace espalier {
namespace {

using bare::Text;

constexpr std::uint64_t kInstructionNs = 1024;  // -icount shift=10
constexpr std::uint32_t kRoom = 4 << 20;
// Only 8 ranks and 16 blocks: on boards for which the page has one row.
constexpr bool kSample = ESPALIER_SAMPLE;

alignas(16) [[gnu::section(".slots")]] std::uint8_t input[kRoom];
alignas(16) [[gnu::section(".slots")]] std::uint8_t output[kRoom];
alignas(16) [[gnu::section(".slots")]] std::uint8_t scratch[kRoom];
DecodedProgram program;

// Instructions so far; reading it twice in a row costs the same each time.
std::uint64_t count() { return (board::clock().now() + kInstructionNs / 2) / kInstructionNs; }

std::uint32_t between(std::uint64_t begin, std::uint64_t end) {
  static const std::uint64_t cost = [] {
    const std::uint64_t first = count();
    return count() - first;
  }();
  return static_cast<std::uint32_t>(end - begin - cost);
}

// The counts of one poll, as the endpoint and the operator's function saw them.
struct Seen {
  std::uint32_t completions = 0, posts = 0, operations = 0;
};
Seen seen;

void no_operation(void*, const void*, const void*, std::uint64_t, void*) { ++seen.operations; }

class ScriptedEndpoint final : public Endpoint {
 public:
  // check: of every received block.
  void script(std::uint32_t calls_between, std::uint32_t check) {
    between_ = calls_between;
    check_ = check;
  }
  std::uint32_t node() const override { return program.node; }
  std::uint32_t links() const override { return links_count(program); }
  std::uint32_t peer(std::uint32_t link) const override { return peer_of(program, link); }
  std::uint32_t window() const override { return kMaxWindow; }
  std::uint64_t eager_bytes() const override { return 1024; }
  Status prepare(const Region*, std::uint32_t) override { return Status::kOk; }
  Status post_receive(std::uint32_t link, const ReceivePost& post) override {
    return push(Completion::Kind::kReceived, link, post.context);
  }
  Status post_send(std::uint32_t link, const SendPost& post) override {
    return push(Completion::Kind::kSent, link, post.context);
  }
  Status post_control(std::uint32_t, const Control&) override { return Status::kOk; }
  bool poll(Completion& completion) override {
    if (first_ == end_ || calls_++ % between_ != 0) return false;
    completion = {};
    completion.kind = queue_[first_ % kQueue].kind;
    completion.link = queue_[first_ % kQueue].link;
    completion.context = queue_[first_ % kQueue].context;
    completion.check = check_;
    ++first_;
    ++seen.completions;
    return true;
  }
  void release() override {}
  std::uint64_t now() override { return ++now_; }
  void wait(std::uint64_t) override {}

 private:
  struct Post {
    Completion::Kind kind;
    std::uint32_t link, context;
  };
  Status push(Completion::Kind kind, std::uint32_t link, std::uint32_t context) {
    queue_[end_++ % kQueue] = {kind, link, context};
    ++seen.posts;
    return Status::kOk;
  }
  static constexpr std::uint32_t kQueue = 2 * kMaxLinks * kMaxWindow;
  Post queue_[kQueue] = {};
  std::uint32_t first_ = 0, end_ = 0, between_ = 1, calls_ = 0, check_ = 0;
  std::uint64_t now_ = 0;
};

struct Size {
  std::uint32_t blocks, block_bytes;
};

// One collective; prints a line: the worst poll of each kind. checks: with a CRC of every block.
// All blocks are zeros.
void run(const Size& size, const Operator& op, const char* op_name, std::uint32_t calls_between,
         bool checks = false) {
  program.blocks_count = 1;
  program.blocks[0] = {0, size.block_bytes};
  const std::uint32_t parts = counts_per_rank(program.collective) ? 1 : program.segments;
  const std::uint64_t whole =
      std::uint64_t{size.blocks} * size.block_bytes * (parts == 1 ? program.segments : parts);
  if (whole > kRoom) return;
  ScriptedEndpoint endpoint;
  endpoint.script(calls_between, checks ? crc32(0, input, size.block_bytes) : 0);
  Machine machine;
  MachineConfig config;
  config.check_blocks = checks;
  Buffers buffers;
  buffers.input = input;
  buffers.output = output;
  buffers.scratch = scratch;
  buffers.scratch_bytes = kRoom;
  Status status = machine.init(endpoint, config);
  if (status == Status::kOk) {
    status = machine.start(program, buffers, op,
                           std::uint64_t{size.blocks} * size.block_bytes / 4 * parts);
  }
  std::uint32_t worst[4] = {}, polls = 0;
  if (status == Status::kOk) status = Status::kBusy;
  while (status == Status::kBusy) {
    seen = {};
    const std::uint64_t begin = count();
    status = machine.poll();
    const std::uint32_t spent = between(begin, count());
    const std::uint32_t kind = seen.operations > 0    ? 3
                               : seen.posts > 0       ? 2
                               : seen.completions > 0 ? 1
                                                      : 0;
    if (spent > worst[kind]) worst[kind] = spent;
    ++polls;
  }
  std::uint32_t of_kind[_espalier_ActionKind_ARRAYSIZE] = {};
  for (std::uint32_t i = 0; i < program.actions_count; ++i) ++of_kind[program.actions[i].kind];
  Text() << (checks ? "checked " : "run ") << static_cast<std::uint32_t>(program.collective) << " "
         << program.algorithm << " " << program.ranks << " " << machine.blocks() << " "
         << size.block_bytes << " " << op_name << " " << calls_between << " "
         << of_kind[ActionKind::kSend] << " " << of_kind[ActionKind::kReceive] << " "
         << of_kind[ActionKind::kCombine] << " " << of_kind[ActionKind::kCopy] << " " << polls
         << " " << worst[0] << " " << worst[1] << " " << worst[2] << " " << worst[3] << " "
         << status << "\n";
}

void run_all(const std::uint8_t* bytes, std::uint32_t size) {
  Expectation expected;
  expected.board = "mps2-an385";  // for which the images are made
  expected.node = 3;
  expected.authority = &kTakesUnsigned;
  Image image;
  if (const Status status = check_image(bytes, size, expected, image); status != Status::kOk) {
    Text() << "no image: status " << status << "\n";
    return;
  }
  Operator custom;
  custom.op = Op::kCustom;
  custom.type = Type::kI32;
  custom.custom = no_operation;
  custom.custom_id = 1;
  Operator sum;
  sum.op = Op::kSum;
  sum.type = Type::kI32;
  constexpr Size kSizes[] = {{1, 64}, {16, 64}, {256, 64}, {4096, 64}, {16, 1024}, {16, 16384}};
  for (std::uint32_t i = 0; i < image.programs; ++i) {
    for (const Size& one : kSizes) {
      if (kSample && (one.blocks != 16 || one.block_bytes > 1024)) continue;
      if (image.load(i, program) != Status::kOk) {
        Text() << "program " << i << " does not load\n";
        return;
      }
      run(one, custom, "none", 1);
      run(one, custom, "none", 3);
      run(one, sum, "sum", 1);
      if (one.blocks == 16 && one.block_bytes <= 1024) run(one, custom, "none", 1, true);
    }
  }
}

// Takes a few instructions before the loop and 2 per round.
[[gnu::noinline]] void loop(std::uint32_t rounds) {
#ifdef __riscv
  asm volatile("1: addi %0, %0, -1\n bnez %0, 1b" : "+r"(rounds));
#else
  asm volatile("1: subs %0, %0, #1\n bne 1b" : "+r"(rounds) : : "cc");
#endif
}

void check_counting() {
  for (const std::uint32_t rounds : {100u, 1100u, 21100u}) {
    const std::uint64_t begin = count();
    loop(rounds);
    const std::uint32_t spent = between(begin, count());
    Text() << "loop " << rounds << " " << spent << "\n";
  }
}

void measure_operators() {
  constexpr Type kTypes[] = {Type::kU8,  Type::kI16, Type::kI32, Type::kI64,
                             Type::kF16, Type::kF32, Type::kF64};
  for (const Type type : kTypes) {
    Operator op;
    op.op = Op::kSum;
    op.type = type;
    for (const std::uint32_t elements : {64u, 256u, 1024u}) {
      const std::uint64_t begin = count();
      combine(op, output, input, scratch, elements);
      const std::uint32_t spent = between(begin, count());
      Text() << "combine " << static_cast<std::uint32_t>(type) << " " << element_bytes(op) << " "
             << elements << " " << spent << "\n";
    }
  }
}

// The checks of a frame: by a CRC, and by a code on a link with a key. Both end with its checksum.
void measure_frames() {
  static constexpr std::uint8_t kKey[16] = {1, 2, 3};
  for (const std::uint32_t bytes : {40u, 96u, 512u, 1488u}) {
    std::uint64_t begin = count();
    volatile std::uint32_t sink = crc32(0, input, bytes);
    const std::uint32_t by_crc = between(begin, count());
    begin = count();
    sink = static_cast<std::uint32_t>(serial::SipHash(kKey).finish(input, bytes));
    const std::uint32_t by_code = between(begin, count());
    static_cast<void>(sink);
    Text() << "frame " << bytes << " " << by_crc << " " << by_code << "\n";
  }
}

}  // namespace
}  // namespace espalier

int main() {
  using namespace espalier;
  board::begin();
  check_counting();
  measure_operators();
  measure_frames();
  run_all(golden::ranks_8, sizeof golden::ranks_8);
  if (!kSample) {
    run_all(golden::ranks_64, sizeof golden::ranks_64);
    run_all(golden::ranks_1024, sizeof golden::ranks_1024);
  }
  Text() << "done\n";
  return 0;
}
