#include "espalier/collectives/machine/recovery.h"

#if ESPALIER_SPARES

#include <algorithm>

#include "espalier/base/digest.h"

namespace espalier {
namespace {

// Two nodes never agree on different losses: their programs have other digests already, and so do
// their tags. This is for programs that were made for two losses at once.
std::uint32_t digest_of(const Loss& loss) {
  const std::uint64_t kind = digest_u64(kDigestSeed, static_cast<std::uint64_t>(loss.kind));
  const std::uint64_t digest = digest_u64(kind, std::uint64_t{loss.a} << 32 | loss.b);
  return static_cast<std::uint32_t>(digest ^ digest >> 32);
}

bool has(SpareKinds kinds, SpareKinds kind) {
  return (static_cast<unsigned>(kinds) & static_cast<unsigned>(kind)) != 0;
}

}  // namespace

// Why D/2 of quiet: a node ends D/4 after it heard of the failure, and may hear of it over several
// others. Until then this node still passes the cause on, over the former links.
Recovery::Recovery(Machine& machine, Endpoint& endpoint, Spares& spares, std::uint64_t deadline_ns)
    : machine_(&machine), endpoint_(&endpoint), spares_(&spares), quiet_ns_(deadline_ns / 2) {}

Status Recovery::begin(const RecoveryProgress& progress) {
  if (state_ == State::kEnded) return status_;
  if (machine_->cause().status == Status::kOk || state_ != State::kRuns) {
    return Status::kBadArgument;
  }
  note_cause();
  progress_ = progress;
  if (generation_ != 0 || !choose(cause_)) return end(cause_.status);
  return wait_for_others();
}

// Machines of a spare count the nodes without the lost one.
void Recovery::note_cause() {
  cause_ = machine_->cause();
  if (generation_ == 0) return;
  cause_.detector = loss_.real(cause_.detector);
  cause_.peer = loss_.real(cause_.peer);
}

// Chooses what to go on without. False: there is nothing to choose.
bool Recovery::choose(const Cause& cause) {
  if (cause.status != Status::kDeadLink || cause.detector == cause.peer) return false;
  const SpareKinds kinds = spares_->kinds();
  if (loss_.kind == Loss::Kind::kNothing) {
    loss_ = has(kinds, SpareKinds::kLinks) ? Loss::link(cause.detector, cause.peer)
                                           : Loss::node(cause.peer);
  } else if (loss_.kind == Loss::Kind::kLink && has(kinds, SpareKinds::kNodes) &&
             (cause.peer == loss_.a || cause.peer == loss_.b)) {
    // An end of the lost link is dead on another link, too: the node was lost.
    loss_ = Loss::node(cause.peer);
  } else {
    return false;
  }
  expelled_ = loss_.kind == Loss::Kind::kNode && loss_.a == endpoint_->node();
  return !expelled_;
}

Status Recovery::wait_for_others() {
  open_at_ = endpoint_->now() + quiet_ns_;
  state_ = State::kWaits;
  return Status::kBusy;
}

Status Recovery::poll() {
  if (state_ == State::kEnded) return status_;
  const Status status = machine_->poll();
  if (state_ == State::kRuns || status == Status::kBusy) return status;
  if (state_ == State::kWaits) return endpoint_->now() < open_at_ ? Status::kBusy : agree();
  if (status != Status::kOk) {
    note_cause();
    return choose(cause_) ? wait_for_others() : end(status);
  }
  if (agreed_[2] != ~agreed_[3]) return end(Status::kMismatch);
  point_.completed = agreed_[0];
  point_.next = std::max(agreed_[0], ~agreed_[1]);
  state_ = State::kRuns;
  return Status::kOk;
}

Status Recovery::agree() {
  const Program* const program = spares_->load(loss_);
  if (program == nullptr || ++generation_ >= kGenerations) return end(cause_.status);
  Endpoint* const endpoint = spares_->open(generation_);
  if (endpoint == nullptr) return end(cause_.status);
  endpoint_ = endpoint;
  links_.open(*endpoint, loss_);
  Status status = machine_->reopen(links_);
  if (status != Status::kOk) return end(status);
  given_[0] = progress_.completed;
  given_[1] = ~progress_.repeatable;
  given_[2] = digest_of(loss_);
  given_[3] = ~given_[2];
  Operator op;
  op.op = Op::kMin;
  op.type = Type::kU32;
  status = machine_->start(*program, {given_, agreed_, scratch_, sizeof scratch_}, op, kElements);
  if (status != Status::kOk) return end(status);
  state_ = State::kAgrees;
  return Status::kBusy;
}

Status Recovery::end(Status status) {
  state_ = State::kEnded;
  status_ = status;
  return status;
}

std::uint64_t Recovery::next_deadline() const {
  const std::uint64_t next = machine_->next_deadline();
  return state_ == State::kWaits ? std::min(next, open_at_) : next;
}

}  // namespace espalier

#endif
