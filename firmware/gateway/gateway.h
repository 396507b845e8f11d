#pragma once
// The gateway: for the launcher and for the fabric it is its board's rank. Host only.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "espalier/hal/ofi/ofi_endpoint.h"
#include "firmware/gateway/bridge.h"
#include "firmware/gateway/child.h"
#include "firmware/gateway/conversation.h"
#include "firmware/gateway/options.h"
#include "firmware/node/control.h"
#include "firmware/node/node.h"
#include "hal/serial/host/carriers.h"

namespace espalier::gateway {

class Gateway {
 public:
  explicit Gateway(const Options& options) : options_(options) {}
  // Starts the board, wires up, serves the launcher until that ends. The exit status: 0 told to
  // end, 1 a failure (the launcher was told, or where there is none stderr), 2 bad input.
  [[nodiscard]] int run();

 private:
  // Of the order that is served, from the launcher's Run to its Report.
  enum class State {
    kIdle,
    kOrdered,    // the board is to have it, as soon as it has taken what it was sent before
    kAnswering,  // the board has it
    kFilling,    // the input is on its way
    kAwaitsStart,
    kRunning,
    kCollecting,  // the board's Report is here, what follows it on its way
  };

  // start.cc. False: error_ says why.
  [[nodiscard]] bool start_board();
  [[nodiscard]] bool hear_hello();
  [[nodiscard]] bool check_hello();
  [[nodiscard]] bool configure();
  [[nodiscard]] bool open_fabric();
  [[nodiscard]] bool connect();
  // Waits until `wanted` comes of the board, or until it has been silent too long.
  [[nodiscard]] bool await(Conversation::Event wanted, std::uint64_t patience_ns,
                           const std::string& what);

  // gateway.cc
  // Moves everything; what came of the board's agent.
  [[nodiscard]] Conversation::Event pump();
  [[nodiscard]] bool works();
  void wait();
  [[nodiscard]] int serve();
  [[nodiscard]] int fail(int status);
  // Whether the board has moved within `patience_ns`; else error_ says that `what` was awaited.
  [[nodiscard]] bool patient(std::uint64_t patience_ns, const std::string& what);
  [[nodiscard]] std::string board() const;
  [[nodiscard]] bool broken(const std::string& what) {
    if (error_.empty()) error_ = board() + ": " + what;
    return false;
  }

  // orders.cc
  [[nodiscard]] bool attend();
  [[nodiscard]] bool map_memory(const control::Memory& memory, int descriptor);
  [[nodiscard]] bool take(Conversation::Event event);
  [[nodiscard]] bool take_packet();
  [[nodiscard]] bool take_answer(const agent::Answer& answer);
  [[nodiscard]] bool take_report(const agent::Report& report);
  [[nodiscard]] bool go_on();
  [[nodiscard]] agent::Run board_order() const;
  void translate(const agent::Report& report);
  void copy_log();
  [[nodiscard]] bool finish(Status status);
  void enter(State state);

  Options options_;
  std::string error_;
  bool ended_ = false;
  std::uint64_t moved_ns_ = 0;        // when anything moved last
  std::uint64_t board_moves_ = 0;     // of the conversation, as seen last
  std::uint64_t board_moved_ns_ = 0;  // when that changed

  Child child_;
  HostClock clock_;
  std::unique_ptr<HostCarrier> carrier_;
  std::vector<std::uint32_t> frames_;
  std::unique_ptr<SerialPort> port_;
  std::unique_ptr<Conversation> agent_;
  agent::Hello hello_;
  std::vector<agent::LinkEntry> board_links_;
  std::vector<agent::ProgramEntry> board_programs_;
  std::unique_ptr<node::Programs> programs_;  // of the launcher's schedule files
  std::unique_ptr<ofi::OfiEndpoint> fabric_;
  std::vector<std::uint32_t> fabric_links_;  // of the board's
  std::vector<SerialLink> links_;
  std::unique_ptr<Bridge> bridge_;

  State state_ = State::kIdle;
  control::Run order_;
  control::Report report_;
  node::Mapping input_, output_, log_;
  std::uint64_t input_bytes_ = 0;
  std::uint64_t output_bytes_ = 0;
  std::uint32_t events_ = 0;  // that the launcher has room for
  std::vector<std::uint8_t> records_;
  bool asked_ = false;  // an Ask that the board has not answered
  std::uint64_t asked_ns_ = 0;
};

}  // namespace espalier::gateway
