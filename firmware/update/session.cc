#include "firmware/update/session.h"

#include "espalier/internal/base/assert.h"

#if ESPALIER_UPDATES

namespace espalier {

UpdateSession::UpdateSession(const SessionPlan& plan)
    : plan_(plan),
      roll_call_(*plan.endpoint, program_nodes(*plan.owner->program(0)), plan.releases) {}

void UpdateSession::poll() {
  switch (state_) {
    case State::kJoins: {
      const Status status = roll_call_.poll();
      if (status == Status::kOk) return settle();
      if (status != Status::kBusy) end(UpdateEnd::kNone, status, roll_call_.cause());
      return;
    }
    case State::kUpdates: {
      ESPALIER_ASSERT(has_machine_ && update_.has_value());
      const Status status = update_->poll();
      if (status != Status::kBusy) end_update(status);
      return;
    }
    case State::kEnded:
      if (has_machine_) {
        (void)plan_.machine->poll();
      } else {
        (void)roll_call_.poll();
      }
  }
}

std::uint64_t UpdateSession::next_deadline() const {
  if (state_ == State::kUpdates) return update_->next_deadline();
  return has_machine_ ? plan_.machine->next_deadline() : UINT64_MAX;
}

void UpdateSession::end(UpdateEnd end, Status status, const Cause& cause) {
  ESPALIER_ASSERT(state_ != State::kEnded && status != Status::kBusy);
  state_ = State::kEnded;
  end_ = end;
  status_ = status;
  cause_ = cause;
}

Cause UpdateSession::own_cause(Status status) const {
  const std::uint32_t node = plan_.endpoint->node();
  return {status, node, node};
}

// The releases of all nodes are known.
void UpdateSession::settle() {
  ESPALIER_ASSERT(state_ == State::kJoins && !has_machine_);
  Status status = Status::kOk;
  switch (resolve(roll_call_.view(), plan_.releases)) {
    case Resolution::kRefuse: return end(UpdateEnd::kMixed, Status::kMismatch, {});
    case Resolution::kSwitch:
      status = plan_.slots->switch_over();
      if (status != Status::kOk) break;
      return end(UpdateEnd::kRestarts, Status::kOk, {});
    case Resolution::kRestart: return end(UpdateEnd::kRestarts, Status::kOk, {});
    case Resolution::kWithdraw: status = plan_.slots->withdraw(); break;
    case Resolution::kRun: break;
  }
  if (status != Status::kOk) return end(UpdateEnd::kNone, status, own_cause(status));
  if (plan_.settles) return end(UpdateEnd::kSettled, Status::kOk, {});
  begin_update();
}

void UpdateSession::begin_update() {
  ESPALIER_ASSERT(state_ == State::kJoins && !plan_.settles);
  UpdatePrograms found;
  Status status = find_update_programs(*plan_.image, plan_.origin, found);
  if (status == Status::kOk) {
    status = plan_.machine->init(*plan_.endpoint, plan_.config);
    has_machine_ = status == Status::kOk;
  }
  // All nodes have the same programs, and none begins.
  if (status != Status::kOk) return end(UpdateEnd::kRefused, status, own_cause(status));
  SessionOwner& owner = *plan_.owner;
  const DecodedUpdatePrograms programs{owner.program(found.broadcast), owner.program(found.scatter),
                                       owner.program(found.vote)};
  update_.emplace(*plan_.machine, *plan_.slots, *plan_.image, *plan_.expectation, programs,
                  plan_.memory, owner, plan_.order);
  state_ = State::kUpdates;
}

void UpdateSession::end_update(Status status) {
  ESPALIER_ASSERT(state_ == State::kUpdates);
  const Update::Refusal& refusal = update_->refused();
  if (refusal.any) {
    const Cause cause{refusal.status, refusal.node, refusal.node};
    return end(UpdateEnd::kRefused, refusal.status, cause);
  }
  if (status == Status::kOk) return end(UpdateEnd::kSwitched, status, {});
  const Cause& cause = plan_.machine->cause();
  end(UpdateEnd::kNone, status, cause.status == Status::kOk ? own_cause(status) : cause);
}

}  // namespace espalier

#endif
