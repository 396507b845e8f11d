#pragma once
// The running node: steps its machine, and does what the control channel says. Nothing is allocated
// but by Memory and Run packets, before their collectives start. Host only.

#include <cstdint>

#include "collectives/machine/machine.h"
#include "firmware/node/control.h"

namespace espalier::node {

// Memory from the kernel, unmapped at the end.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();
  // `size` bytes of fresh memory, or, where descriptor >= 0, of that file from `offset` on. What
  // was mapped before is given back. False and errno on failure.
  [[nodiscard]] bool map(std::uint64_t size, int descriptor, std::uint64_t offset, bool writable);
  void unmap();
  [[nodiscard]] void* bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  void* bytes_ = nullptr;
  std::uint64_t size_ = 0;
};

class Node {
 public:
  // The endpoint carries all links of `programs`; everything outlives the node.
  Node(Endpoint& endpoint, const Program* programs, std::uint32_t count, int channel)
      : endpoint_(endpoint), programs_(programs), count_(count), channel_(channel) {}
  // Binds the machine; call before serve().
  [[nodiscard]] Status init(const MachineConfig& config) {
    return machine_.init(endpoint_, config);
  }
  // Sends Ready, then serves until Quit or the channel's end; between runs the machine goes on
  // answering its peers. The process's exit status: 0 after Quit, 1 otherwise.
  [[nodiscard]] int serve();

 private:
  // What attend() found to do.
  enum class Order { kNone, kRun, kEnd };

  // Takes at most one packet, waiting up to timeout_ms. Answers Ask itself.
  Order attend(int timeout_ms);
  bool map_memory(const control::Memory& memory, int descriptor);
  void run();
  Status prepare(Operator& op, Buffers& buffers);
  void wait_for_start(std::uint64_t start_ns);
  Status run_one(const Operator& op, const Buffers& buffers);
  void stand(Status status);
  bool fail(const char* what);

  Endpoint& endpoint_;
  const Program* programs_;
  std::uint32_t count_;
  int channel_;
  Machine machine_;
  Mapping input_;
  Mapping output_;
  Mapping scratch_;
  std::uint64_t input_bytes_ = 0;
  std::uint64_t output_bytes_ = 0;
  control::Run order_;      // the Run served last
  control::Report report_;  // how it stands
  bool ended_ = false;
  int exit_status_ = 1;
};

}  // namespace espalier::node
