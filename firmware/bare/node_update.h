#pragma once
// A bare-metal node's part in an update of all nodes: its session (firmware/update/session.h) over
// its framed links. Freestanding; docs/updates.md.

#include <cstdint>

#include "espalier/internal/base/limits.h"

#if ESPALIER_UPDATES

#include <optional>

#include "espalier/collectives/machine/machine.h"
#include "firmware/bare/agent.h"
#include "firmware/bare/boot.h"
#include "firmware/bare/rooms.h"
#include "firmware/update/session.h"

namespace espalier::bare {

class NodeUpdate final : public SessionOwner {
 public:
  // links: the endpoint of the image's links. An image booted. memory: for the check of other
  // images. All must outlive the object.
  NodeUpdate(Slots& slots, Booted& booted, Endpoint& links, const Rooms& rooms,
             DecodedProgram& memory)
      : slots_(slots), booted_(booted), links_(links), rooms_(rooms), memory_(memory) {}

  // Begins the session. machine: init() was not called; it must outlive the object. Errors: as in
  // agent::Update.
  [[nodiscard]] Status begin(const agent::Update& request, Machine& machine);
  [[nodiscard]] bool begun() const { return session_.has_value(); }
  [[nodiscard]] UpdateSession& session() { return *session_; }
  [[nodiscard]] const UpdateSession& session() const { return *session_; }

  // On the origin. Whether the gateway must be asked for the piece from byte offset() on.
  [[nodiscard]] bool wants_piece() const { return piece_ == Piece::kWanted; }
  [[nodiscard]] std::uint32_t offset() const { return offset_; }
  void note_request() { piece_ = Piece::kRequested; }
  // Whether `bytes` bytes for the input's room were asked for.
  [[nodiscard]] bool expects(std::uint32_t bytes) const {
    return piece_ == Piece::kRequested && bytes == piece_bytes_;
  }
  // The piece is in the input's room.
  void note_arrival() { piece_ = Piece::kArrived; }

  [[nodiscard]] const Program* program(std::uint32_t index) override;
  [[nodiscard]] const Program* load(const Image& image, std::uint32_t vote) override;
  [[nodiscard]] Status piece(std::uint32_t offset) override;

 private:
  enum class Piece : std::uint8_t { kNone, kWanted, kRequested, kArrived };

  Slots& slots_;
  Booted& booted_;
  Endpoint& links_;
  Rooms rooms_;
  DecodedProgram& memory_;
  Expectation expectation_;
  std::optional<UpdateSession> session_;
  Piece piece_ = Piece::kNone;
  std::uint32_t offset_ = 0;
  std::uint32_t piece_bytes_ = 0;  // of all nodes
};

}  // namespace espalier::bare

#endif
