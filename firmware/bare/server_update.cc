// Updates of all nodes: the server's part (docs/updates.md).

#include "firmware/bare/server.h"
#include "firmware/bare/text.h"

#if ESPALIER_UPDATES

namespace espalier::bare {

Status Server::begin_update(const agent::Update& request) {
  run_.number = request.number;
  if (update_ == nullptr || configured_) return Status::kBadArgument;
  const Status status = update_->begin(request, machine_);
  if (status == Status::kOk) state_ = State::kUpdating;
  return status;
}

void Server::poll_update() {
  UpdateSession& session = update_->session();
  session.poll();
  if (state_ != State::kUpdating) return;  // it ended before
  if (session.ended()) {
    Text() << "update: ended with " << static_cast<std::uint32_t>(session.end()) << ", "
           << status_name(session.status()) << " (status " << session.status() << ")\n";
    state_ = State::kIdle;
    status_ = session.status();
    ended_run_ = true;
  } else if (update_->wants_piece() && !sending()) {
    agent::Packet packet;
    packet.want = agent::Want{agent::Kind::kWant, update_->offset()};
    send(packet);
    update_->note_request();
  }
}

Status Server::take_piece(const agent::Piece& piece) {
  if (!in_update() || !update_->expects(piece.bytes) || piece.bytes > rooms_.input_bytes) {
    return Status::kBadArgument;
  }
  receives_piece_ = true;
  expect(rooms_.input, piece.bytes);
  return Status::kOk;
}

void Server::fill_end(agent::Report& report) const {
  if (!in_update()) return;
  const UpdateSession& session = update_->session();
  report.completed = session.written();
  if (!session.ended()) return;
  report.blocks = static_cast<std::uint32_t>(session.end());
  report.cause = session.cause().status;
  report.cause_detector = session.cause().detector;
  report.cause_peer = session.cause().peer;
}

}  // namespace espalier::bare

#endif
