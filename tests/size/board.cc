// The smallest bare-metal node: start-up code, an endpoint over memory-mapped mailboxes and a main
// that reaches every freestanding module. Linked for Cortex-M3 by tests/size; never run.

#include <cstddef>
#include <cstdint>

#include "collectives/machine/recovery.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/machine/machine.h"
#include "espalier/collectives/schedule/file.h"
#include "espalier/collectives/schedule/program.h"
#include "espalier/hal/endpoint.h"
#include "firmware/boot/slots.h"
#include "firmware/update/roll_call.h"
#include "firmware/update/update.h"

extern "C" {
void* memset(void* to, int value, std::size_t size);  // firmware/bare/memory.cc

// A call of a pure virtual function cannot happen; tables of abstract classes name it all the same.
[[noreturn]] void __cxa_pure_virtual() {
  for (;;) {
  }
}

extern char bss_begin[], bss_end[], stack_top[];
int main();

[[noreturn]] void reset() {
  memset(bss_begin, 0, static_cast<std::size_t>(bss_end - bss_begin));
  main();
  for (;;) {
  }
}

extern const void* const vectors[2];
[[gnu::section(".vectors"), gnu::used]] const void* const vectors[2] = {
    stack_top, reinterpret_cast<const void*>(&reset)};
}

namespace {

using espalier::Completion;
using espalier::Control;
using espalier::Status;

// An example of a link's mailbox, as software sees it.
struct Mailbox {
  volatile std::uint32_t status;
  volatile std::uint32_t address;
  volatile std::uint32_t size;
  volatile std::uint32_t tag_low, tag_high, check;
};

Mailbox& box(std::uint32_t link) { return reinterpret_cast<Mailbox*>(0x40000000u)[link]; }

class MailboxEndpoint final : public espalier::Endpoint {
 public:
  std::uint32_t node() const override { return box(0).status; }
  std::uint32_t links() const override { return espalier::kMaxLinks; }
  std::uint32_t peer(std::uint32_t link) const override { return box(link).status; }
  std::uint32_t window() const override { return espalier::kMaxWindow; }
  std::uint64_t eager_bytes() const override { return 0; }
  Status prepare(const espalier::Region*, std::uint32_t) override { return Status::kOk; }
  Status post_receive(std::uint32_t link, const espalier::ReceivePost& post) override {
    return hand_over(link, post.bytes, post.size, post.tag, 0);
  }
  Status post_send(std::uint32_t link, const espalier::SendPost& post) override {
    return hand_over(link, post.bytes, post.size, post.tag, post.check);
  }
  Status post_control(std::uint32_t link, const Control& control) override {
    box(link).status = static_cast<std::uint32_t>(control.kind) | control.number << 8;
    return Status::kOk;
  }
  bool poll(Completion& completion) override {
    if (box(0).status == 0) return false;
    completion = {};
    completion.kind = static_cast<Completion::Kind>(box(0).status & 7);
    completion.link = box(0).address;
    completion.context = box(0).size;
    return true;
  }
  void release() override { box(0).status = 0; }
  std::uint64_t now() override { return ticks_ += 1000; }
  void wait(std::uint64_t) override {}

 private:
  static Status hand_over(std::uint32_t link, const void* bytes, std::uint64_t size,
                          std::uint64_t tag, std::uint32_t check) {
    Mailbox& mailbox = box(link);
    mailbox.address = reinterpret_cast<std::uintptr_t>(bytes);
    mailbox.size = static_cast<std::uint32_t>(size);
    mailbox.tag_low = static_cast<std::uint32_t>(tag);
    mailbox.tag_high = static_cast<std::uint32_t>(tag >> 32);
    mailbox.check = check;
    return Status::kOk;
  }
  std::uint64_t ticks_ = 0;
};

constexpr std::size_t kMessageBytes = 1024;
constinit espalier::DecodedProgram program = {};
constinit espalier::Machine machine;
alignas(16) std::uint8_t message[kMessageBytes];
alignas(16) std::uint8_t scratch[kMessageBytes];

// Flash behind a controller of two registers.
class BoardFlash final : public espalier::Flash {
 public:
  const std::uint8_t* memory() const override {
    return reinterpret_cast<const std::uint8_t*>(0x10000u);
  }
  std::uint32_t bytes() const override { return 0x10000; }
  std::uint32_t block_bytes() const override { return 4096; }
  std::uint32_t unit_bytes() const override { return 8; }
  Status erase(std::uint32_t offset) override {
    box(1).address = offset;
    return box(1).status == 0 ? Status::kOk : Status::kBackEnd;
  }
  Status write(std::uint32_t offset, const std::uint8_t* bytes, std::uint32_t size) override {
    for (std::uint32_t k = 0; k < size; ++k) {
      box(2).address = offset + k;
      box(2).size = bytes[k];
    }
    return box(2).status == 0 ? Status::kOk : Status::kBackEnd;
  }
};

constexpr std::uint8_t kKey[espalier::kPublicKeyBytes] = {1, 2, 3};

#if ESPALIER_MAX_SELECTIONS > 0
constinit espalier::NodeSelection selection = {};

// An image will do if its first program loads, and its selection with it.
Status load_first(void*, const espalier::Image& image) {
  const Status status = image.load(0, program);
  if (status != Status::kOk || image.selections == 0) return status;
  return image.load_selection(0, &program, selection);
}

bool has_schedule() {
  const std::uint64_t bytes = espalier::started_bytes(kMessageBytes, 1);
  return selection.digest == 0 || espalier::find_row(selection.table, bytes, true) != nullptr;
}
#else
// An image will do if its first program loads.
Status load_first(void*, const espalier::Image& image) { return image.load(0, program); }
bool has_schedule() { return true; }
#endif

// The newest valid slot; `update`, where the board has received an image, goes into the other.
Status boot(espalier::Slots& slots, std::uint32_t node, const std::uint8_t* update,
            std::uint32_t size, espalier::Image& image) {
  const espalier::Authority authority = espalier::ed25519_authority(kKey);
  espalier::Expectation expectation;
  expectation.board = "tests-size";
  expectation.node = node;
  expectation.authority = &authority;
  const espalier::Acceptance loads{load_first, nullptr};
  espalier::BootReport report;
  Status status = slots.boot(expectation, loads, image, report);
  if (status == Status::kOk) status = slots.confirm();
  if (update != nullptr && slots.begin(size) == Status::kOk &&
      slots.append(update, size) == Status::kOk) {
    return slots.finish(expectation, loads);
  }
  return status;
}

// Descriptors may also be in flash as a schedule file.
Status load_file(std::uint32_t node) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(0x20000u);
  espalier::ScheduleFile file;
  const Status status = file.open(bytes, 0x10000u);
  return status == Status::kOk ? file.program(node, program) : status;
}

#if ESPALIER_SPARES
class BoardSpares final : public espalier::Spares {
 public:
  BoardSpares(espalier::Endpoint& endpoint, const espalier::Image& image)
      : endpoint_(&endpoint), image_(&image) {}
  espalier::SpareKinds kinds() const override { return espalier::SpareKinds::kBoth; }
  const espalier::Program* load(const espalier::Loss& loss) override {
    const std::uint32_t index = image_->find_spare(loss);
    if (index == image_->spares) return nullptr;
    return image_->load_spare(index, 0, program) == Status::kOk ? &program : nullptr;
  }
  std::uint32_t generations() const override { return espalier::Recovery::kGenerations; }
  espalier::Endpoint* open(std::uint32_t) override { return endpoint_; }

 private:
  espalier::Endpoint* endpoint_;
  const espalier::Image* image_;
};

// After a failure: goes on with the spare, if all survivors do.
Status recover(espalier::Endpoint& endpoint, const espalier::Image& image) {
  BoardSpares spares(endpoint, image);
  espalier::Recovery recovery(machine, endpoint, spares, 1'000'000'000);
  Status status = recovery.begin({});
  while (status == Status::kBusy) status = recovery.poll();
  if (status == Status::kOk) status = recovery.look(recovery.point().next);
  if (status == Status::kUnsupported) status = recovery.come_back();
  return status;
}
#else
Status recover(espalier::Endpoint&, const espalier::Image&) { return machine.cause().status; }
#endif

#if ESPALIER_UPDATES
class BoardOwner final : public espalier::UpdateOwner {
 public:
  const espalier::Program* load(const espalier::Image& image, std::uint32_t vote) override {
    return image.load(vote, program) == Status::kOk ? &program : nullptr;
  }
  Status piece(std::uint32_t) override { return Status::kOk; }
};

// Has a roll call, and takes part in an update.
Status update(espalier::Endpoint& endpoint, espalier::Slots& slots, const espalier::Image& image) {
  const espalier::Authority authority = espalier::ed25519_authority(kKey);
  espalier::Expectation expectation;
  expectation.board = "tests-size";
  expectation.authority = &authority;
  espalier::ReleaseState own;
  Status status = espalier::read_release_state(slots, expectation, image, program, own);
  if (status != Status::kOk) return status;
  espalier::RollCall roll_call(endpoint, espalier::program_nodes(program), own);
  do {
    status = roll_call.poll();
  } while (status == Status::kBusy);
  if (status != Status::kOk) return status;
  const espalier::Resolution resolution = espalier::resolve(roll_call.view(), own);
  if (resolution == espalier::Resolution::kSwitch) return slots.switch_over();
  if (resolution == espalier::Resolution::kWithdraw) status = slots.withdraw();
  espalier::UpdatePrograms indices;
  if (status == Status::kOk) {
    status = espalier::find_update_programs(image, espalier::kAnyNode, indices);
  }
  if (status != Status::kOk) return status;
  espalier::UpdateMemory memory;
  memory.output = message;
  memory.output_bytes = kMessageBytes;
  memory.scratch = scratch;
  memory.scratch_bytes = kMessageBytes;
  memory.program = &program;
  BoardOwner owner;
  espalier::Update update(machine, slots, image, expectation, {&program, &program, &program},
                          memory, owner);
  do {
    status = update.poll();
  } while (status == Status::kBusy);
  return status;
}
#else
Status update(espalier::Endpoint&, espalier::Slots&, const espalier::Image&) { return Status::kOk; }
#endif

// Without an image a node plans for itself.
Status plan(std::uint32_t node) {
  espalier::CollectiveParameters parameters;
  parameters.ranks = espalier::kMaxLinks;
  for (const espalier::Algorithm& algorithm : espalier::algorithms()) {
    if (algorithm.generate(parameters, node, program) == Status::kOk) return Status::kOk;
  }
  return Status::kUnsupported;
}

}  // namespace

int main() {
  MailboxEndpoint endpoint;
  BoardFlash flash;
  espalier::Slots slots(flash, espalier::whole_flash(flash));
  espalier::Image image;
  Status status = boot(slots, endpoint.node(), message, box(0).size % kMessageBytes, image);
  if (status != Status::kOk) status = load_file(endpoint.node());
  if (status != Status::kOk) status = plan(endpoint.node());
  std::size_t written = 0;
  if (status == Status::kOk) {
    status = espalier::encode_program(program, message, kMessageBytes, written);
  }
  if (status == Status::kOk) status = machine.init(endpoint, espalier::MachineConfig{});
  if (status == Status::kOk) status = update(endpoint, slots, image);
  espalier::Buffers buffers;
  buffers.input = buffers.output = message;
  buffers.scratch = scratch;
  buffers.scratch_bytes = kMessageBytes;
  while (status == Status::kOk && has_schedule()) {
    status = machine.start(program, buffers, espalier::Operator{}, kMessageBytes);
    while (status == Status::kOk || status == Status::kBusy) {
      status = machine.poll();
      if (status == Status::kOk) break;
    }
    if (status != Status::kOk) status = recover(endpoint, image);
  }
  return static_cast<int>(machine.stall_report().step) + static_cast<int>(status);
}
