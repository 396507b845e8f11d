#pragma once
// The gateway: represents its board as a rank to the launcher and to the fabric. Host only.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/hal/ofi/ofi_endpoint.h"
#include "firmware/gateway/bridge.h"
#include "firmware/gateway/child.h"
#include "firmware/gateway/conversation.h"
#include "firmware/gateway/options.h"
#include "firmware/node/control.h"
#include "firmware/node/mapping.h"
#include "firmware/node/schedule_files.h"
#include "hal/serial/host/carriers.h"

namespace espalier::gateway {

inline constexpr std::uint64_t kSecond = 1'000'000'000;  // ns

class Gateway {
 public:
  explicit Gateway(const GatewayOptions& options) : options_(options) {}
  // Starts the board, connects it to its neighbours, serves the launcher until the channel ends.
  // Returns the exit status: 0 the launcher ended it; 1 a failure, reported to the launcher or, if
  // there is none, on stderr; 2 bad input.
  [[nodiscard]] int run();

 private:
  // The state of the current request, from the launcher's RunRequest to its Report.
  enum class State {
    kIdle,
    kRequested,  // the request is sent once the board has received everything sent before
    kAnswering,  // the board has the request and must answer
    kFilling,    // the input is being sent
    kAwaitsStart,
    kRunning,
    kCollecting,  // the board's Report arrived; the data that follow it are being received
  };

  // start.cc. False: error_ has the reason.
  [[nodiscard]] bool start_board();
  [[nodiscard]] bool receive_hello();
  [[nodiscard]] bool receive_tables();
  [[nodiscard]] bool check_hello();
  [[nodiscard]] bool configure();
  [[nodiscard]] bool open_fabric();
  [[nodiscard]] bool connect();
  // Waits for `expected` from the board. False if the board is silent for `patience_ns`, or another
  // event occurs. `what` is the awaited message, for the error.
  [[nodiscard]] bool await(Conversation::Event expected, std::uint64_t patience_ns,
                           const std::string& what);

  // gateway.cc
  // Polls the device, the board's agent and the bridge once. Returns the agent's event.
  [[nodiscard]] Conversation::Event pump();
  // Whether board, device and launcher still work; otherwise error_ has the reason.
  [[nodiscard]] bool works();
  void wait();
  [[nodiscard]] int serve();
  [[nodiscard]] int fail(int status);
  // Whether the board made progress within `patience_ns`; otherwise error_ names `what`.
  [[nodiscard]] bool patient(std::uint64_t patience_ns, const std::string& what);
  [[nodiscard]] std::string board() const;
  // Sets error_ and returns false.
  bool fail_with(const Error& error) {
    error_ = error;
    return false;
  }
  // Sets error_ to a failure of the board, unless it is set. Returns false.
  [[nodiscard]] bool fail_board(const std::string& what) {
    if (!error_) error_ = Error{board() + ": " + what};
    return false;
  }

  // orders.cc
  [[nodiscard]] bool take_from_launcher();
  [[nodiscard]] bool map_memory(const control::Memory& memory, int descriptor);
  [[nodiscard]] bool take_event(Conversation::Event event);
  [[nodiscard]] bool take_packet();
  [[nodiscard]] bool take_answer(const agent::Answer& answer);
  [[nodiscard]] bool take_report(const agent::Report& report);
  [[nodiscard]] bool continue_request();
  [[nodiscard]] agent::RunRequest board_request() const;
  void translate(const agent::Report& report);
  void copy_log();
  [[nodiscard]] bool finish(Status status);
  void enter(State state);

  GatewayOptions options_;
  std::optional<Error> error_;  // why the gateway ends
  bool ended_ = false;
  std::uint64_t progress_ns_ = 0;        // time of the last progress of board, bridge or device
  std::uint64_t board_completions_ = 0;  // the conversation's count at the last pump()
  std::uint64_t board_progress_ns_ = 0;  // when that count last changed

  Child child_;
  HostClock clock_;
  std::unique_ptr<HostCarrier> carrier_;
  std::vector<std::uint32_t> frames_;
  std::unique_ptr<SerialPort> port_;
  std::unique_ptr<Conversation> agent_;
  agent::Hello hello_;
  std::vector<agent::LinkEntry> board_links_;
  std::vector<agent::ProgramEntry> board_programs_;
  std::unique_ptr<node::Programs> programs_;  // from the launcher's schedule files
  std::unique_ptr<ofi::OfiEndpoint> fabric_;
  std::vector<SerialLink> links_;
  std::unique_ptr<Bridge> bridge_;

  State state_ = State::kIdle;
  control::RunRequest request_;
  control::Report report_;
  node::Mapping input_, output_, log_;
  std::uint64_t input_bytes_ = 0;
  std::uint64_t output_bytes_ = 0;
  std::uint32_t events_ = 0;  // records that the launcher has room for
  std::vector<std::uint8_t> records_;
  bool asked_ = false;  // the board has not answered an Ask
  std::uint64_t asked_ns_ = 0;
};

}  // namespace espalier::gateway
