#pragma once
// The running node: steps its machine, and does what the control channel says; and the loop in
// which one thread drives one or several of them. Nothing is allocated but by Memory and Run
// packets, before their collectives start. Host only.

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "espalier/collectives/machine/machine.h"
#include "espalier/collectives/schedule/programs.h"
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
  Node(Endpoint& endpoint, const OwnedProgram* programs, std::uint32_t count, int channel)
      : endpoint_(endpoint), programs_(programs), count_(count), channel_(channel) {}
  // Binds the machine; call before serve(). log: keeps one, where a Memory packet has room for it.
  [[nodiscard]] Status init(MachineConfig config, bool log) {
    if (log) config.log = &log_;
    return machine_.init(endpoint_, config);
  }
  // Called once, when the first Run has ended well, before its Report.
  void after_first_good_run(std::function<void()> call) { after_good_run_ = std::move(call); }
  // Says that the node is ready; false: the launcher is gone.
  [[nodiscard]] bool ready();
  // Goes on with the run; between runs the machine goes on answering its peers. Takes a packet if
  // one is there: if `look`, else only where wake() has come. Bounded work, no waiting.
  void step(bool look);
  // CLOCK_MONOTONIC at which step() has something to do even if nothing arrives.
  [[nodiscard]] std::uint64_t wake() const { return wake_; }
  // A collective is under way: what may arrive comes to the endpoint, else to the channel.
  [[nodiscard]] bool running() const { return state_ == State::kRunning; }
  // Told to end, or its launcher is gone; exit_status() is then 0 or 1.
  [[nodiscard]] bool ended() const { return state_ == State::kEnded; }
  [[nodiscard]] int exit_status() const { return exit_status_; }
  [[nodiscard]] Endpoint& endpoint() { return endpoint_; }
  [[nodiscard]] int channel() const { return channel_; }

 private:
  enum class State { kIdle, kAwaitsStart, kRunning, kEnded };

  // Takes at most one packet and does what it says.
  void attend();
  void end(int exit_status);
  void map_memory(const control::Memory& memory, int descriptor);
  void take_run(const control::Run& order);
  Status prepare();
  void await_start();
  Status start_one();
  void go_on();
  void finish(Status status);

  Endpoint& endpoint_;
  const OwnedProgram* programs_;
  std::uint32_t count_;
  int channel_;
  Machine machine_;
  EventLog log_;
  Mapping input_;
  Mapping output_;
  Mapping scratch_;
  Mapping log_memory_;
  std::uint64_t input_bytes_ = 0;
  std::uint64_t output_bytes_ = 0;
  State state_ = State::kIdle;
  std::uint64_t wake_ = 0;
  std::uint64_t look_ = 0;  // when the channel is looked at next, while a collective runs
  control::Run order_;      // the Run served last
  Operator op_;
  Buffers buffers_;
  control::Report report_;  // how it stands
  int exit_status_ = 1;
  std::function<void()> after_good_run_;
};

// Serves all nodes, in one thread, until each has ended. The worst of their exit statuses.
[[nodiscard]] int serve(const std::vector<std::unique_ptr<Node>>& nodes);

}  // namespace espalier::node
