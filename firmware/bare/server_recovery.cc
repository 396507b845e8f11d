// After a failure: the server's part of going on with the spares (docs/spares.md).

#include "firmware/bare/server.h"

#if ESPALIER_SPARES

namespace espalier::bare {

// Polls the machine or, after a failure, the recovery. kBusy as well if the run goes on later.
Status Server::poll_machine() {
  if (recovering_) {
    const Status status = recovery_->poll();
    recovering_ = status == Status::kBusy;
    if (asks_ && !recovering_) end_asking(status);
    return status == Status::kOk ? resume() : status;
  }
  if (expelled()) return recovery_->cause().status;
  const Status status = machine_.poll();
  if (is_failure(status)) return recover(status);
  if (!restarts_) return status;
  // The output may still be on its way to the gateway.
  if (sending() || ended_run_) return Status::kBusy;
  restarts_ = false;
  const Status started = start_one();
  return started == Status::kOk ? Status::kBusy : started;
}

// The run's input is untouched while it runs and until the next one is requested.
Status Server::recover(Status status) {
  if (!recovery_) return status;
  restarts_ = false;
  const Status begun = recovery_->begin(numbers_.progress(is_running(), completed_));
  recovering_ = begun == Status::kBusy;
  return begun;
}

// Before the first collective of each run all survivors look whether the lost board asks to be
// taken in again. kOk: there is none, or this board has no spares.
Status Server::look() {
  if (!recovery_) return Status::kOk;
  const Status status = recovery_->look(numbers_.next());
  recovering_ = status == Status::kBusy;
  return status;
}

// status: how coming back ended.
void Server::end_asking(Status status) {
  asks_ = false;
  came_back_ = status;
  configured_ = status == Status::kOk;
  if (configured_) numbers_.come_back(recovery_->point().next);
}

// All survivors have agreed where to go on. Returns kBusy if this board's run goes on.
Status Server::resume() {
  spares_->load_programs();
  const bool was_running = is_running();
  switch (numbers_.resume(recovery_->point().next, was_running, state_ == State::kIdle,
                          run_.repetitions, completed_)) {
    case RunNumbers::Then::kIsLost: return Status::kDeadLink;
    case RunNumbers::Then::kWaits: return Status::kOk;
    case RunNumbers::Then::kGoesOn: break;
  }
  const Status fits = check_room();
  if (fits != Status::kOk) return fits;
  repeats_ = !was_running;
  state_ = State::kRunning;
  restarts_ = true;
  return Status::kBusy;
}

void Server::fill_loss(agent::Report& report, Status status) const {
  if (!recovery_) return;
  const Loss& loss = recovery_->loss();
  report.generation = recovery_->generation();
  report.loss_kind = static_cast<std::uint32_t>(loss.kind);
  report.loss_a = loss.a;
  report.loss_b = loss.b;
  if (report.generation != 0) report.stall_peer = loss.real(report.stall_peer);
  const Cause& cause = recovery_->cause();
  if (!is_failure(status) || cause.status == Status::kOk) return;
  report.cause = cause.status;
  report.cause_detector = cause.detector;
  report.cause_peer = cause.peer;
}

}  // namespace espalier::bare

#endif
