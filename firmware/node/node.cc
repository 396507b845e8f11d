#include "firmware/node/node.h"

#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace espalier::node {
namespace {

// How long the control channel or the machine may go without being looked at.
constexpr std::uint64_t kControlEvery = 10'000'000;  // ns, while a collective runs
constexpr int kIdleWait = 1;                         // ms, between collectives
// All nodes of a Run start at one time: they sleep until shortly before it, then watch the clock.
constexpr std::uint64_t kWatchClock = 300'000;  // ns

std::uint64_t monotonic() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

Mapping::~Mapping() { unmap(); }

void Mapping::unmap() {
  if (bytes_ != nullptr) munmap(bytes_, size_);
  bytes_ = nullptr;
  size_ = 0;
}

bool Mapping::map(std::uint64_t size, int descriptor, std::uint64_t offset, bool writable) {
  unmap();
  if (size == 0) return true;
  // Populated now, so that no page fault falls into a collective.
  const int flags = MAP_POPULATE | (descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
  const int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* bytes = mmap(nullptr, size, access, flags, descriptor, static_cast<off_t>(offset));
  if (bytes == MAP_FAILED) return false;
  bytes_ = bytes;
  size_ = size;
  return true;
}

int Node::serve() {
  if (!control::send(channel_, control::Ready{})) return 1;
  while (!ended_) {
    switch (attend(kIdleWait)) {
      case Order::kNone: break;
      case Order::kRun: run(); break;
      case Order::kEnd: return exit_status_;
    }
    // Idle, the machine answers probes and passes causes on; how it stands was reported.
    (void)machine_.poll();
  }
  return exit_status_;
}

bool Node::fail(const char* what) {
  control::Failed failed;
  std::snprintf(failed.text, sizeof failed.text, "%s: %s", what, std::strerror(errno));
  (void)control::send(channel_, failed);
  ended_ = true;
  return false;
}

bool Node::map_memory(const control::Memory& memory, int descriptor) {
  input_bytes_ = memory.input_bytes;
  output_bytes_ = memory.output_bytes;
  const bool mapped =
      descriptor >= 0 && input_.map(input_bytes_, descriptor, 0, false) &&
      output_.map(output_bytes_, descriptor, control::output_offset(input_bytes_), true);
  if (!mapped) return fail("cannot map the memory of the collective");
  return control::send(channel_, control::Mapped{});
}

Node::Order Node::attend(int timeout_ms) {
  control::Any packet;
  int descriptor = -1;
  const control::Received received = control::receive(channel_, packet, descriptor, timeout_ms);
  Order order = Order::kNone;
  if (received == control::Received::kNothing) return order;
  const control::Packet kind =
      received == control::Received::kPacket ? packet.packet : control::Packet::kFailed;
  switch (kind) {
    case control::Packet::kMemory:
      if (!map_memory(packet.memory, descriptor)) order = Order::kEnd;
      break;
    case control::Packet::kRun:
      order_ = packet.run;
      order = Order::kRun;
      break;
    case control::Packet::kAsk:
      report_.stall = machine_.stall_report();
      if (!control::send(channel_, report_)) order = Order::kEnd;
      break;
    case control::Packet::kQuit:
      exit_status_ = 0;
      order = Order::kEnd;
      break;
    default:  // the channel's end, or no packet for a node
      order = Order::kEnd;
      break;
  }
  if (descriptor >= 0) close(descriptor);
  if (order == Order::kEnd) ended_ = true;
  return order;
}

// Looks the Run's needs up; kBadArgument: no such program, or memory that the message does not fit.
Status Node::prepare(Operator& op, Buffers& buffers) {
  if (order_.program >= count_) return Status::kBadArgument;
  const Program& program = programs_[order_.program];
  op.op = order_.op;
  op.type = order_.type;
  const std::uint32_t size = element_bytes(op);
  if (size == 0) return Status::kBadOperator;
  if (order_.count > UINT64_MAX / size) return Status::kTooLarge;
  const std::uint64_t bytes = order_.count * size;
  // A launcher gives whole pages, so no memory at all is 0 bytes.
  if (input_bytes_ != 0 && input_bytes_ < bytes) return Status::kBadArgument;
  if (output_bytes_ != 0 && output_bytes_ < bytes) return Status::kBadArgument;
  Layout layout;
  const Status status = make_layout(program, order_.count, size, layout);
  if (status != Status::kOk) return status;
  const std::uint64_t needed = scratch_needed(program, layout);
  if (needed > scratch_.size() && !scratch_.map(needed, -1, 0, true)) return Status::kTooLarge;
  buffers = {input_.bytes(), output_.bytes(), scratch_.bytes(), scratch_.size()};
  return Status::kOk;
}

void Node::wait_for_start(std::uint64_t start_ns) {
  for (std::uint64_t now = monotonic(); now < start_ns && !ended_; now = monotonic()) {
    if (start_ns - now > 1'000'000 + kWatchClock) {
      (void)attend(1);
    } else if (start_ns - now > kWatchClock) {
      const std::uint64_t until = start_ns - kWatchClock;
      const timespec time{static_cast<time_t>(until / 1'000'000'000),
                          static_cast<long>(until % 1'000'000'000)};
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
    } else {
      sched_yield();
    }
    (void)machine_.poll();
  }
}

Status Node::run_one(const Operator& op, const Buffers& buffers) {
  Status status = machine_.start(programs_[order_.program], buffers, op, order_.count);
  if (status != Status::kOk) return status;
  std::uint64_t look = endpoint_.now() + kControlEvery;
  for (status = machine_.poll(); status == Status::kBusy && !ended_; status = machine_.poll()) {
    const std::uint64_t now = endpoint_.now();
    if (now >= look) {
      (void)attend(0);
      look = now + kControlEvery;
    }
    endpoint_.wait(std::min(machine_.next_deadline(), look));
  }
  return status;
}

void Node::stand(Status status) {
  report_.status = status;
  report_.blocks = machine_.blocks();
  report_.cause = machine_.cause();
}

void Node::run() {
  report_ = control::Report{};
  report_.number = order_.number;
  report_.status = Status::kBusy;
  Operator op;
  Buffers buffers;
  Status status = prepare(op, buffers);
  if (status == Status::kOk) {
    wait_for_start(order_.start_ns);
    report_.begin_ns = monotonic();
    while (status == Status::kOk && report_.completed < order_.repetitions && !ended_) {
      status = run_one(op, buffers);
      if (status == Status::kOk) ++report_.completed;
      if ((report_.completed & 0xff) == 0 && status == Status::kOk) (void)attend(0);
    }
    report_.end_ns = monotonic();
  }
  stand(status);
  if (status != Status::kOk) report_.stall = machine_.stall_report();
  if (!ended_ && !control::send(channel_, report_)) ended_ = true;
}

}  // namespace espalier::node
