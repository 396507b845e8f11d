#pragma once
// The board's end of the agent's protocol (agent.h): steps the node's machine and executes the
// gateway's requests. Freestanding. Bounded work per step, except that Install erases and writes
// flash. With spares it goes on by itself after a failure (docs/spares.md).

#include <cstdint>

#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/limits.h"
#if ESPALIER_SPARES
#include <optional>
#endif

#include "collectives/machine/run_numbers.h"
#include "espalier/collectives/machine/machine.h"
#include "firmware/bare/agent.h"
#include "firmware/bare/boot.h"
#include "firmware/bare/node_spares.h"
#include "firmware/bare/node_update.h"
#include "firmware/bare/rooms.h"

namespace espalier::bare {

class Server {
 public:
  // gateway: an endpoint with one link. links: an endpoint with the links of the booted image; null
  // if no image booted. All arguments, and the memory of `rooms`, must outlive the server.
  Server(Endpoint& gateway, Endpoint* links, Slots& slots, Booted& booted, const Rooms& rooms)
      : gateway_(gateway), links_(links), slots_(slots), booted_(booted), rooms_(rooms) {}

#if ESPALIER_SPARES
  // Goes on with these after a failure. `links` of the constructor is their endpoint. They must
  // outlive the server. Call before begin().
  void use(NodeSpares& spares) { spares_ = &spares; }
#endif
#if ESPALIER_UPDATES
  // Takes part in updates with this. It must outlive the server. Call before begin().
  void use(NodeUpdate& update) { update_ = &update; }
#endif
  // Sends Hello. Called once, first.
  void begin();
  // Polls everything once. False: the gateway's session ended, or the gateway violated the
  // protocol; the board must restart.
  [[nodiscard]] bool step();
  [[nodiscard]] bool is_running() const { return state_ == State::kRunning; }
  // The time, on the clock of `links`, at which step() must be called even if nothing arrives.
  [[nodiscard]] std::uint64_t wake() const;

 private:
  enum class State { kIdle, kAwaitsGo, kRunning, kUpdating };
  // Bytes that are sent or received in pieces.
  struct Data {
    std::uint8_t* bytes = nullptr;
    std::uint32_t size = 0;
    std::uint32_t posted = 0;  // bytes already posted

    [[nodiscard]] std::uint32_t next() const {
      return size - posted < agent::kPieceBytes ? size - posted : agent::kPieceBytes;
      ESPALIER_ASSERT(posted <= size);
    }
  };

  [[nodiscard]] bool take_completions();
  void post_sends();
  void post_receives();
  [[nodiscard]] bool sending() const { return packet_to_send_ || sends_ > 0 || out_left() > 0; }
  [[nodiscard]] std::uint32_t out_left() const {
    return out_[0].size - out_[0].posted + out_[1].size - out_[1].posted;
  }
  void send(const agent::Packet& packet) {
    out_packet_ = packet;
    packet_to_send_ = true;
  }
  void answer(agent::Kind to, Status status);
  void expect(std::uint8_t* bytes, std::uint32_t size) { in_ = {bytes, size, 0}; }

  void take_packet();
  void take_data();
  [[nodiscard]] Status configure(const agent::Configure& request);
  [[nodiscard]] Status prepare(const agent::RunRequest& request);
#if ESPALIER_SPARES
  [[nodiscard]] Status poll_machine();
  [[nodiscard]] Status recover(Status status);
  [[nodiscard]] Status resume();
  [[nodiscard]] Status look();
  void end_asking(Status status);
  [[nodiscard]] bool expelled() const { return recovery_ && recovery_->expelled(); }
  // Whether packets other than Ask wait.
  [[nodiscard]] bool is_recovering() const { return recovering_ || repeats_; }
  void fill_loss(agent::Report& report, Status status) const;
#else
  [[nodiscard]] Status poll_machine() { return machine_.poll(); }
#endif
  [[nodiscard]] Status check_room() const;
#if ESPALIER_UPDATES
  [[nodiscard]] Status begin_update(const agent::Update& request);
  [[nodiscard]] bool in_update() const { return update_ != nullptr && update_->begun(); }
  // Whether the gateway ends the session of an update.
  [[nodiscard]] bool ends_update() const {
    return in_update() && in_packet_.kind == agent::Kind::kQuit;
  }
  // Whether an image or a piece of images arrives.
  [[nodiscard]] bool receives_data() const { return installing_ || receives_piece_; }
  void poll_update();
  [[nodiscard]] Status take_piece(const agent::Piece& piece);
  void fill_end(agent::Report& report) const;
#else
  [[nodiscard]] static bool in_update() { return false; }
  [[nodiscard]] static bool ends_update() { return false; }
  [[nodiscard]] bool receives_data() const { return installing_; }
#endif
  [[nodiscard]] Status start_one();
  void go();
  void continue_run(Status status);
  void end_run(Status status);
  void report(Status status);

  Endpoint& gateway_;
  Endpoint* links_;
  Slots& slots_;
  Booted& booted_;
  Rooms rooms_;

  Machine machine_;
  EventLog log_;
  bool configured_ = false;
  bool logs_ = false;
  bool confirmed_ = false;
  State state_ = State::kIdle;
  agent::RunRequest run_;  // the latest one
  const Program* program_ = nullptr;
  Operator op_;
  std::uint64_t completed_ = 0;
  std::uint64_t began_ = 0, ended_ = 0;
  Status status_ = Status::kOk;        // how the latest run ended
  Status confirmation_ = Status::kOk;  // the result of confirming the image

#if ESPALIER_SPARES
  NodeSpares* spares_ = nullptr;
  std::optional<Recovery> recovery_;  // if there are spares, after Configure
  bool recovering_ = false;
  bool asks_ = false;                 // to be taken in again
  Status came_back_ = Status::kBusy;  // the answer that is due to Configure; kBusy: none
  bool restarts_ = false;             // the run goes on with the next poll
  bool repeats_ = false;  // the run goes on although it was reported: others have not completed it
  RunNumbers numbers_;
#endif
#if ESPALIER_UPDATES
  NodeUpdate* update_ = nullptr;
  bool receives_piece_ = false;
#endif

  // The server sends one packet at a time, then its data. The next received packet waits for that.
  agent::Packet out_packet_, in_packet_;
  bool packet_to_send_ = false, packet_received_ = false, packet_posted_ = false;
  bool ended_run_ = false;  // a run ended and its Report is not sent yet
  bool installing_ = false;
  Data out_[2], in_;
  std::uint32_t sends_ = 0, receives_ = 0;  // posted, incomplete
};

}  // namespace espalier::bare
