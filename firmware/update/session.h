#pragma once
// A node's session in an update of all nodes, from its boot to its restart: the roll call, what the
// rule says (release.h) and, unless it only settles, the update. Freestanding, without allocation,
// polled; docs/updates.md.

#include <cstdint>
#include <optional>

#include "espalier/collectives/machine/machine.h"
#include "firmware/boot/slots.h"
#include "firmware/update/release.h"
#include "firmware/update/roll_call.h"
#include "firmware/update/update.h"
#include "firmware/update/update_end.h"

namespace espalier {

// The owner of a node, as its session sees it.
class SessionOwner : public UpdateOwner {
 public:
  // Returns program `index` of the image that booted, decoded; null: there is none.
  [[nodiscard]] virtual const Program* program(std::uint32_t index) = 0;

 protected:
  ~SessionOwner() = default;
};

// What a session is about. Everything that it points to must outlive the session.
struct SessionPlan {
  Endpoint* endpoint = nullptr;  // no message was posted yet; its links connect all nodes
  Machine* machine = nullptr;    // init() was not called; the session does, after the roll call
  MachineConfig config;
  Slots* slots = nullptr;
  const Image* image = nullptr;              // that booted from the slots
  const Expectation* expectation = nullptr;  // by which it was checked
  ReleaseState releases;                     // at the boot
  SessionOwner* owner = nullptr;
  // Without `settles`: an update from node `origin` follows the roll call.
  bool settles = false;
  std::uint32_t origin = 0;
  UpdateMemory memory;
  UpdateOrder order;  // read on the origin only
};

class UpdateSession {
 public:
  explicit UpdateSession(const SessionPlan& plan);
  UpdateSession(const UpdateSession&) = delete;
  UpdateSession& operator=(const UpdateSession&) = delete;

  // Bounded work, except for what Update::poll() excepts. Call it after the end, too: it answers
  // peers that may still wait.
  void poll();
  [[nodiscard]] bool ended() const { return state_ == State::kEnded; }

  // After the end. cause().detector of kRefused is the node that refused, and status() its reason.
  [[nodiscard]] UpdateEnd end() const { return end_; }
  [[nodiscard]] Status status() const { return status_; }
  [[nodiscard]] const Cause& cause() const { return cause_; }
  // Bytes of this node's image that are written to flash.
  [[nodiscard]] std::uint32_t written() const { return update_ ? update_->written() : 0; }
  // The endpoint's time at which poll() has work even if nothing arrives; 0: at once.
  [[nodiscard]] std::uint64_t next_deadline() const;

 private:
  enum class State : std::uint8_t { kJoins, kUpdates, kEnded };

  void settle();
  void begin_update();
  void end_update(Status status);
  void end(UpdateEnd end, Status status, const Cause& cause);
  // Returns a cause that concerns this node alone.
  [[nodiscard]] Cause own_cause(Status status) const;

  SessionPlan plan_;
  State state_ = State::kJoins;
  RollCall roll_call_;
  std::optional<Update> update_;
  bool has_machine_ = false;
  UpdateEnd end_ = UpdateEnd::kNone;
  Status status_ = Status::kBusy;
  Cause cause_;
};

}  // namespace espalier
