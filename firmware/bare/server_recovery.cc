// After a failure: the server's part of going on with the spares (docs/spares.md).

#include "firmware/bare/server.h"

#if ESPALIER_SPARES

namespace espalier::bare {

// Polls the machine or, after a failure, the recovery. kBusy as well if the run goes on later.
Status Server::poll_machine() {
  if (recovering_) {
    const Status status = recovery_->poll();
    recovering_ = status == Status::kBusy;
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
  const auto completed =
      state_ == State::kRunning ? first_ + static_cast<std::uint32_t>(completed_) : next_;
  const Status begun = recovery_->begin({completed, repeatable_});
  recovering_ = begun == Status::kBusy;
  return begun;
}

// All survivors have agreed where to go on. Returns kBusy if this board's run goes on.
Status Server::resume() {
  spares_->load_programs();
  const std::uint32_t next = recovery_->point().next;
  const bool is_running = state_ == State::kRunning;
  const bool is_repeatable = state_ == State::kIdle && repeatable_ != next_;
  if ((is_running || is_repeatable) && next - first_ < run_.repetitions) {
    repeats_ = !is_running;
    state_ = State::kRunning;
    completed_ = next - first_;
    restarts_ = true;
    return Status::kBusy;
  }
  next_ = next;
  if (!is_running) return Status::kOk;
  // Others have another run already, and do not repeat this one: it is lost.
  repeatable_ = next;
  return Status::kDeadLink;
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
