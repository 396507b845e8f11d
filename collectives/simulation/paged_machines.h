#pragma once
// Machines and programs of very many nodes. Host only.
//
// A few Machine objects, the frames, serve all nodes. When node v is polled, its machine and
// program are loaded into frame v mod frames(), and the node that was there before is packed
// (collectives/machine/packed_state.h). The machines run the same code with the same effects as if
// each node had its own Machine.

#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/machine/packed_state.h"
#include "collectives/schedule/program_store.h"
#include "espalier/hal/endpoint.h"
#include "espalier/internal/collectives/simulation/machines.h"
#include "hal/sim/large_memory.h"

namespace espalier::sim {

class PagedMachines final : public Machines {
 public:
  static constexpr std::uint32_t kFrames = 32;

  // For nodes 0 .. nodes-1, whose programs are `programs`, which must outlive this object.
  PagedMachines(std::uint32_t nodes, const ProgramStore& programs, std::uint32_t frames);

  // Starts node's collective by Machine::init() and start(). Call once per node.
  [[nodiscard]] Status start(std::uint32_t node, Endpoint& endpoint, const MachineConfig& config,
                             const Buffers& buffers, const Operator& op, ElementCounts counts);

  [[nodiscard]] std::uint32_t size() const override {
    return static_cast<std::uint32_t>(pages_.size());
  }
  [[nodiscard]] bool has(std::uint32_t node) const override { return pages_[node].started; }
  [[nodiscard]] Machine& at(std::uint32_t node) override;
  void expect(std::uint32_t node, std::size_t stage) const override;

 private:
  static constexpr std::uint32_t kNobody = 0xffffffffu;
  struct Frame {
    Machine machine;
    PackedState state{machine};
    StoredProgram program;
    std::uint32_t node = kNobody;
  };
  // A node's packed state. While the node is in a frame, only the memory is kept.
  struct Page {
    std::uint8_t* bytes = nullptr;
    std::uint32_t capacity = 0;
    bool started = false;
  };
  [[nodiscard]] Frame& frame_of(std::uint32_t node) { return *frames_[node % frames_.size()]; }
  void put_away(Frame& frame);
  [[nodiscard]] std::uint8_t* take(std::uint32_t bytes);

  const ProgramStore& programs_;
  std::vector<std::unique_ptr<Frame>> frames_;
  LargeVector<Page> pages_;  // by node
  // The memory of pages.
  std::vector<std::vector<std::uint8_t*>> free_;  // free pages by size, in units
  std::vector<LargeBytes> blocks_;
  std::uint8_t* next_ = nullptr;  // unused part of the last block
  std::size_t left_ = 0;          // its size in bytes
};

}  // namespace espalier::sim
