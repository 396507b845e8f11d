#include "collectives/simulation/paged_machines.h"

#include <algorithm>
#include <cstring>

#include "espalier/internal/base/assert.h"

namespace espalier::sim {
namespace {

constexpr std::uint32_t kUnit = 128;  // bytes
constexpr std::size_t kBlockBytes = std::size_t{1} << 21;
// Spare room for more steps and messages in flight than when the page was allocated.
constexpr std::uint32_t kSpare = 128;

}  // namespace

PagedMachines::PagedMachines(std::uint32_t nodes, const ProgramStore& programs,
                             std::uint32_t frames)
    : programs_(programs), pages_(nodes) {
  frames_.resize(std::clamp<std::uint32_t>(frames, 1, std::max(1u, nodes)));
  for (auto& frame : frames_) frame = std::make_unique<Frame>();
}

Status PagedMachines::start(std::uint32_t node, Endpoint& endpoint, const MachineConfig& config,
                            const Buffers& buffers, const Operator& op, ElementCounts counts) {
  ESPALIER_ASSERT(node < pages_.size());
  Frame& frame = frame_of(node);
  if (frame.node != kNobody) put_away(frame);
  frame.state.clear(endpoint.links());
  programs_.load(node, frame.program);
  frame.node = node;
  pages_[node].started = true;
  const Status status = frame.machine.init(endpoint, config);
  return status == Status::kOk ? frame.machine.start(frame.program, buffers, op, counts) : status;
}

Machine& PagedMachines::at(std::uint32_t node) {
  Frame& frame = frame_of(node);
  if (frame.node == node) return frame.machine;
  ESPALIER_ASSERT(has(node));
  if (frame.node != kNobody) put_away(frame);
  frame.node = node;
  programs_.load(node, frame.program);
  frame.state.unpack(pages_[node].bytes);
  return frame.machine;
}

void PagedMachines::put_away(Frame& frame) {
  ESPALIER_ASSERT(frame.node < pages_.size() && pages_[frame.node].started);
  Page& page = pages_[frame.node];
  const std::size_t size = frame.state.pack();
  if (size > page.capacity) {
    if (page.capacity > 0) free_[page.capacity / kUnit].push_back(page.bytes);
    page.capacity = (static_cast<std::uint32_t>(size) + kSpare + kUnit - 1) / kUnit * kUnit;
    page.bytes = take(page.capacity);
  }
  ESPALIER_ASSERT(size <= page.capacity && page.capacity % kUnit == 0);
  std::memcpy(page.bytes, frame.state.bytes(), size);
  frame.node = kNobody;
}

std::uint8_t* PagedMachines::take(std::uint32_t bytes) {
  ESPALIER_ASSERT(bytes > 0 && bytes % kUnit == 0);
  free_.resize(std::max<std::size_t>(free_.size(), bytes / kUnit + 1));
  std::vector<std::uint8_t*>& free = free_[bytes / kUnit];
  if (!free.empty()) {
    std::uint8_t* const page = free.back();
    free.pop_back();
    return page;
  }
  if (left_ < bytes) {
    left_ = std::max<std::size_t>(kBlockBytes, bytes);
    next_ = blocks_.emplace_back(left_).data();
  }
  ESPALIER_ASSERT(left_ >= bytes);
  std::uint8_t* const page = next_;
  next_ += bytes;
  left_ -= bytes;
  return page;
}

void PagedMachines::expect(std::uint32_t node, std::size_t stage) const {
  ESPALIER_ASSERT(node < pages_.size());
  const Page& page = pages_[node];
  if (stage == 0) {
    expect_use(&page);
    programs_.expect(node);
  } else if (stage == 1 && page.capacity > 0 && frames_[node % frames_.size()]->node != node) {
    expect_use(page.bytes, page.capacity);
  }
}

}  // namespace espalier::sim
