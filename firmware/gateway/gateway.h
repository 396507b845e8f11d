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
#include "firmware/node/generations.h"
#include "firmware/node/mapping.h"
#include "firmware/node/new_release.h"
#include "firmware/node/node_record.h"
#include "firmware/node/schedule_files.h"
#include "firmware/node/wire_up.h"
#include "hal/serial/host/carriers.h"
#include "hal/serial/host/link_key.h"

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

  // One set of the board's links (docs/spares.md).
  struct Generation {
    std::vector<SerialLink> links;
    std::unique_ptr<Bridge> bridge;
  };

  // start.cc
  [[nodiscard]] Result<void> start_board();
  [[nodiscard]] Result<void> receive_hello();
  [[nodiscard]] Result<void> receive_tables();
  [[nodiscard]] Result<void> check_links();
  [[nodiscard]] Result<void> check_hello();
  [[nodiscard]] Result<void> read_release();
  [[nodiscard]] Result<void> configure();
  void send_configuration();
  // How many sets of links are bridged. One if the launcher gave schedules: nodes that boot from
  // these have no spares.
  [[nodiscard]] std::uint32_t generations() const {
    return programs_ == nullptr ? 1u + hello_.further_generations : 1;
  }
  [[nodiscard]] Result<void> open_fabric();
  [[nodiscard]] Result<void> open_bridge(const Bridge::Shape& shape);
  [[nodiscard]] Result<void> open_endpoints();
  [[nodiscard]] Result<void> connect();
  [[nodiscard]] Result<void> prepare_bridges(std::uint32_t first);
  // Waits for `expected` from the board. Fails if the board is silent for `patience_ns`, or another
  // event occurs. `what` is the awaited message, for the error.
  [[nodiscard]] Result<void> await(Conversation::Event expected, std::uint64_t patience_ns,
                                   const std::string& what);

  // gateway.cc
  // Polls the device, the board's agent and the bridge once. Returns the agent's event.
  [[nodiscard]] Conversation::Event pump();
  // Checks that board, device and launcher still work.
  [[nodiscard]] Result<void> check_works();
  // Checks that the board made progress within `patience_ns`; `what` is awaited, for the error.
  [[nodiscard]] Result<void> check_progress(std::uint64_t patience_ns, const std::string& what);
  void wait();
  [[nodiscard]] int serve();
  // Reports the failure to the launcher. Returns `status`.
  [[nodiscard]] int report_failure(int status, const Error& error);
  [[nodiscard]] int channel() const { return options_.node.controls.front(); }  // to the launcher
  template <typename T>
  [[nodiscard]] Result<void> send_to_launcher(const T& packet);
  [[nodiscard]] std::string board() const;
  [[nodiscard]] const std::uint8_t* link_key() const {
    return link_key_ ? link_key_->data() : nullptr;
  }
  [[nodiscard]] std::string rejection(const Conversation& agent) const;
  // Reports the first frame that was dropped for want of a key or of the right code, once for the
  // agent's channel and once for the links.
  void report_rejections();
  // Makes the result of a function in which the board fails. Quotes its console.
  [[nodiscard]] auto fail_board(const std::string& what) const {
    return fail(board() + ": " + what + child_.last_words());
  }

  // gateway_record.cc
  [[nodiscard]] Result<void> open_record();
  void hear_board(std::uint64_t now);
  void record_run();
  void record_report(std::uint64_t now);
  void look_at_board(std::uint64_t now);
  [[nodiscard]] bool is_ask_due(std::uint64_t now) const;

  // orders.cc
  [[nodiscard]] Result<void> take_from_launcher();
  [[nodiscard]] Result<void> map_memory(const control::Memory& memory, int descriptor);
  [[nodiscard]] Result<void> take_event(Conversation::Event event);
  [[nodiscard]] Result<void> take_packet();
  [[nodiscard]] Result<void> take_answer(const agent::Answer& answer);
  [[nodiscard]] Result<void> take_report(const agent::Report& report);
  [[nodiscard]] Result<void> take_return(std::uint32_t node);
  [[nodiscard]] Result<void> end_asking(Status status);
  [[nodiscard]] Result<void> continue_request();
  [[nodiscard]] agent::RunRequest board_request() const;
  void begin_running();
  void send_request();
  void give_piece();
  void translate(const agent::Report& report);
  [[nodiscard]] Result<void> send_busy();
  void report_loss(const agent::Report& report);
  void copy_log();
  [[nodiscard]] Result<void> finish(Status status);
  void enter(State state);

  GatewayOptions options_;
  bool ended_ = false;                   // the launcher ended the node, or is gone
  bool has_bad_input_ = false;           // its cables' interfaces are not as --links says
  std::uint64_t progress_ns_ = 0;        // time of the last progress of board, bridge or device
  std::uint64_t board_completions_ = 0;  // the conversation's count at the last pump()
  std::uint64_t board_progress_ns_ = 0;  // when that count last changed

  Child child_;
  std::optional<LinkKey> link_key_;
  bool reported_agent_ = false, reported_links_ = false;
  Loss reported_loss_;
  bool asks_ = false;  // the board asks to be taken in again
  HostClock clock_;
  std::unique_ptr<HostCarrier> carrier_;
  std::vector<std::uint32_t> frames_;
  std::unique_ptr<SerialPort> port_;
  std::unique_ptr<Conversation> agent_;
  agent::Hello hello_;
  std::string board_name_;  // hello_.board, fit for a terminal
  std::vector<agent::LinkEntry> board_links_;
  std::vector<agent::ProgramEntry> board_programs_;
  std::unique_ptr<node::Programs> programs_;  // from the launcher's schedule files
  // The release of an update from this board.
  std::optional<node::NewRelease> release_;
  std::vector<std::uint8_t> piece_;
  std::optional<std::uint32_t> wanted_;  // offset of the piece that the board wants
  ofi::FixedConfig fabric_config_;
  node::Generations fabrics_;
  std::vector<Generation> generations_;

  node::NodeRecord record_;
  std::uint64_t collectives_ = 0;     // complete, of all runs that have ended
  std::uint64_t heard_ns_ = 0;        // the board's last sign
  std::uint64_t moved_ns_ = 0;        // ... of its last message on a link
  std::uint64_t board_messages_ = 0;  // on its links, at the last pump()

  State state_ = State::kIdle;
  control::RunRequest request_;
  control::Report report_;
  node::Mapping input_, output_, log_;
  std::uint64_t input_bytes_ = 0, output_bytes_ = 0;
  std::uint32_t events_ = 0;  // records that the launcher has room for
  std::vector<std::uint8_t> records_;
  bool asked_ = false;  // the board has not answered an Ask
  std::uint64_t asked_ns_ = 0;
};

template <typename T>
Result<void> Gateway::send_to_launcher(const T& packet) {
  if (control::send(channel(), packet)) return {};
  return fail("cannot send to the launcher: it is gone, or takes no packets");
}

}  // namespace espalier::gateway
