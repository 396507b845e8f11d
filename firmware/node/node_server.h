#pragma once
// The running node: steps its machine and serves the control channel. Also the loop in which one
// thread drives one or several nodes. Memory is allocated only by Memory packets and by the
// requests for runs, before their collectives start. Host only.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/machine/run_numbers.h"
#include "espalier/collectives/machine/machine.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/internal/base/assert.h"
#include "firmware/node/control.h"
#include "firmware/node/mapping.h"
#include "firmware/node/node_record.h"
#include "firmware/node/node_spares.h"
#include "firmware/node/schedule_files.h"

namespace espalier::node {

class NodeServer {
 public:
  // The endpoint must carry all links of the programs. Endpoint, programs and channel must outlive
  // the server.
  NodeServer(Endpoint& endpoint, const Programs& programs, int channel)
      : endpoint_(endpoint), programs_(programs), channel_(channel) {}
  // Binds the machine; call once, before serve(). log: keeps a log if a Memory packet has room for
  // it. Machine::init()'s errors.
  [[nodiscard]] Status init(MachineConfig config, bool log) {
    if (log) config.log = &log_;
    return machine_.init(endpoint_, config);
  }
  // Goes on with these after a failure. Call after init().
  void use(NodeSpares& spares, std::uint64_t deadline_ns) {
    spares_ = &spares;
    recovery_.emplace(machine_, endpoint_, spares, deadline_ns);
  }
  // Sets the function that opens new links when another node comes back: of all generations after
  // `present`, and those over which the node asks. Without it such a request ends the node.
  using OpenLinksAnew = std::function<Result<void>(std::uint32_t present, std::uint32_t lost)>;
  void on_return(OpenLinksAnew call) { open_links_anew_ = std::move(call); }
  // Writes to this record, which must outlive the server.
  void use(NodeRecord& record) { record_ = &record; }
  // The others went on without this node: it asks them to take it in. Call after use().
  void come_back() {
    ESPALIER_ASSERT(spares_ != nullptr);
    comes_back_ = true;
  }
  // Sets the function that is called once, after the first successful run and before its Report.
  void after_first_good_run(std::function<void()> call) { after_good_run_ = std::move(call); }
  // Sends Ready; false: the launcher is gone.
  [[nodiscard]] bool ready();
  // Continues the current run. Between runs the machine still answers its peers. Takes at most one
  // packet from the channel: if `look`, or once wake() has passed. Bounded work; never waits.
  void step(bool look);
  // The time (CLOCK_MONOTONIC, ns) at which step() must be called even if nothing arrives.
  [[nodiscard]] std::uint64_t wake() const { return wake_; }
  // Whether a collective is in progress: the caller then waits for the endpoint, otherwise for the
  // channel.
  [[nodiscard]] bool running() const { return state_ == State::kRunning || recovering_; }
  // Whether the launcher ended the node (exit_status() 0), or a failure did (exit_status() 1).
  [[nodiscard]] bool ended() const { return state_ == State::kEnded; }
  [[nodiscard]] int exit_status() const { return exit_status_; }
  [[nodiscard]] Endpoint& endpoint() {
    return spares_ != nullptr ? spares_->endpoint() : endpoint_;
  }
  [[nodiscard]] int channel() const { return channel_; }

 private:
  enum class State { kIdle, kAwaitsStart, kRunning, kEnded };

  // Takes at most one packet and executes it.
  void take_packet();
  void end(int exit_status);
  void map_memory(const control::Memory& memory, int descriptor);
  void take_request(const control::RunRequest& request);
  void fail(const std::string& what);
  Status prepare();
  [[nodiscard]] Status find_memory();
  [[nodiscard]] ElementCounts counts();
  void await_start();
  Status start_one();
  void record_request();
  void continue_run();
  void finish(Status status);

  // node_recovery.cc
  [[nodiscard]] Status poll_machine();
  [[nodiscard]] Status recover(Status status);
  [[nodiscard]] Status resume();
  void print_loss();
  [[nodiscard]] Status look();
  void take_return(const control::Return& request);
  void end_asking(Status status);
  [[nodiscard]] std::uint64_t next_poll() const;

  Endpoint& endpoint_;
  const Programs& programs_;
  NodeRecord unrecorded_;
  NodeRecord* record_ = &unrecorded_;
  int channel_;
  Machine machine_;
  EventLog log_;
  Mapping input_, output_, scratch_, log_memory_, counts_;
  std::vector<std::uint64_t> own_counts_;  // the same in big-endian byte order, where it is that
  std::vector<std::uint64_t> offsets_;     // of a run with a count for each rank
  std::uint64_t input_bytes_ = 0, output_bytes_ = 0;
  State state_ = State::kIdle;
  std::uint64_t wake_ = 0;
  std::uint64_t next_look_ns_ = 0;  // next look at the channel while a collective runs
  control::RunRequest request_;     // the latest one
  Operator op_;
  Buffers buffers_;
  control::Report report_;  // the state of the latest run
  int exit_status_ = 1;
  std::function<void()> after_good_run_;
  NodeSpares* spares_ = nullptr;
  std::optional<Recovery> recovery_;  // if there are spares
  OpenLinksAnew open_links_anew_;
  bool recovering_ = false;
  bool comes_back_ = false;  // until it is taken in
  bool restarts_ = false;    // the run goes on with the next poll
  bool repeats_ = false;  // the run goes on although it was reported: others have not completed it
  RunNumbers numbers_;
  Loss printed_;  // the loss in the newest message
  Mapping repeated_output_;
};

// Serves all nodes in one thread until each has ended. Returns the largest of their exit statuses.
[[nodiscard]] int serve(const std::vector<std::unique_ptr<NodeServer>>& nodes);

}  // namespace espalier::node
