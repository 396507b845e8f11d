#include "collectives/machine/recovery.h"

#if ESPALIER_SPARES

#include <algorithm>

#include "base/digest.h"

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
  const bool uses_spare = loss_.kind != Loss::Kind::kNothing;
  if (uses_spare || !choose(cause_)) return end(cause_.status);
  return wait_for_others();
}

// Machines of a spare count the nodes without the lost one.
void Recovery::note_cause() {
  cause_ = machine_->cause();
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
  ESPALIER_ASSERT(state_ != State::kEnded && !expelled_);
  open_at_ = endpoint_->now() + quiet_ns_;
  state_ = State::kWaits;
  return Status::kBusy;
}

Status Recovery::poll() {
  if (state_ == State::kEnded) return status_;
  if (state_ == State::kAsks) return ask();
  const Status status = machine_->poll();
  if (state_ == State::kRuns || status == Status::kBusy) return status;
  if (state_ == State::kWaits) return endpoint_->now() < open_at_ ? Status::kBusy : agree();
  if (status != Status::kOk) {
    note_cause();
    // A failure while all look is one between two collectives.
    ESPALIER_ASSERT(state_ == State::kAgrees || state_ == State::kLooks);
    return state_ == State::kAgrees && choose(cause_) ? wait_for_others() : end(status);
  }
  if (agreed_[2] != ~agreed_[3]) return end(Status::kMismatch);
  if (state_ == State::kLooks) return take_in();
  ESPALIER_ASSERT(state_ == State::kAgrees);
  point_.completed = agreed_[0];
  point_.next = std::max<std::uint32_t>(agreed_[0], ~agreed_[1]);
  state_ = State::kRuns;
  return Status::kOk;
}

Status Recovery::agree() {
  ESPALIER_ASSERT(state_ == State::kWaits || state_ == State::kAsks);
  const Status reason = is_failure(cause_.status) ? cause_.status : Status::kUnsupported;
  const Program* const program = spares_->load(loss_);
  if (program == nullptr) return end(reason);
  if (!is_failure(cause_.status)) endpoint_->release();  // otherwise the machine did
  Endpoint* const endpoint = spares_->open(++generation_);
  if (endpoint == nullptr) return end(reason);
  endpoint_ = endpoint;
  const bool is_last = generation_ + kGenerationsPerReturn >= spares_->generations();
  links_.open(*endpoint, loss_, is_last);
  const Status status = machine_->reopen(links_);
  if (status != Status::kOk) return end(status);
  return start(State::kAgrees, *program, progress_.completed, ~progress_.repeatable);
}

// Starts the agreement's program: the least of each number of all nodes.
Status Recovery::start(State state, const Program& program, std::uint32_t first,
                       std::uint32_t second) {
  ESPALIER_ASSERT(state == State::kAgrees || state == State::kLooks);
  given_[0] = first;
  given_[1] = second;
  given_[2] = digest_of(loss_) ^ static_cast<std::uint32_t>(state);
  given_[3] = ~given_[2];
  Operator op;
  op.op = Op::kMin;
  op.type = Type::kU32;
  const Status status =
      machine_->start(program, {given_, agreed_, scratch_, sizeof scratch_}, op, kElements);
  if (status != Status::kOk) return end(status);
  state_ = state;
  return Status::kBusy;
}

Status Recovery::look(std::uint32_t number) {
  if (state_ == State::kEnded) return status_;
  if (state_ != State::kRuns) return Status::kBadArgument;
  if (loss_.kind != Loss::Kind::kNode) return Status::kOk;
  progress_ = {number, number};
  const Program* const program = spares_->load(loss_);
  if (program == nullptr) return end(Status::kUnsupported);
  const std::uint64_t now = endpoint_->now();
  const bool asked = links_.was_asked_since(now - std::min(now, quiet_ns_));
  return start(State::kLooks, *program, number, asked ? 0 : 1);
}

// All have looked. If the lost node asks, they take it in as they would go on after a failure.
Status Recovery::take_in() {
  ESPALIER_ASSERT(state_ == State::kLooks && loss_.kind == Loss::Kind::kNode);
  point_ = {progress_.completed, progress_.completed};
  state_ = State::kRuns;
  if (agreed_[1] != 0) return Status::kOk;
  loss_ = Loss();
  cause_ = Cause();
  links_.take_in();
  return wait_for_others();
}

Status Recovery::come_back() {
  if (state_ != State::kRuns || generation_ != 0) return Status::kBadArgument;
  progress_ = {UINT32_MAX, 0};  // whatever the others have
  return ask_in(1);
}

// Asks over the links of this generation.
Status Recovery::ask_in(std::uint32_t generation) {
  ESPALIER_ASSERT(generation > generation_ && (state_ == State::kRuns || state_ == State::kAsks));
  endpoint_->release();
  Endpoint* const endpoint = spares_->open(generation);
  if (endpoint == nullptr) return end(Status::kUnsupported);
  endpoint_ = endpoint;
  generation_ = generation;
  ask_at_ = endpoint->now();
  leave_at_ = ask_at_ + quiet_ns_;
  answered_ = false;
  state_ = State::kAsks;
  return Status::kBusy;
}

Status Recovery::ask() {
  ESPALIER_ASSERT(state_ == State::kAsks && ask_at_ <= leave_at_ + quiet_ns_);
  Completion completion;
  for (std::uint32_t i = 0; i <= endpoint_->links() && endpoint_->poll(completion); ++i) {
    const Control& reply = completion.control;
    if (completion.kind != Completion::Kind::kControl || reply.kind != ControlKind::kAnswer ||
        reply.number < OpenLinks::kJoin || reply.number > OpenLinks::kRefused) {
      continue;
    }
    if (reply.number == OpenLinks::kRefused) return end(Status::kTooLarge);
    // If the others agree on links to which this node does not follow, they have given that up by
    // then.
    leave_at_ = endpoint_->now() + 8 * quiet_ns_;
    answered_ = true;
    if (reply.number == OpenLinks::kTakenIn) return agree();
  }
  const std::uint64_t now = endpoint_->now();
  if (now >= leave_at_) return ask_in(generation_ + 1);
  if (now < ask_at_) return Status::kBusy;
  ask_at_ = now + quiet_ns_ / 4;
  Control request;
  request.kind = ControlKind::kProbe;
  request.number = answered_ ? OpenLinks::kConfirmed : OpenLinks::kJoin;
  for (std::uint32_t link = 0; link < endpoint_->links(); ++link) {
    (void)endpoint_->post_control(link, request);
  }
  return Status::kBusy;
}

Status Recovery::end(Status status) {
  ESPALIER_ASSERT(state_ != State::kEnded && is_failure(status));
  state_ = State::kEnded;
  status_ = status;
  return status;
}

std::uint64_t Recovery::next_deadline() const {
  if (state_ == State::kAsks) return std::min(ask_at_, leave_at_);
  const std::uint64_t next = machine_->next_deadline();
  return state_ == State::kWaits ? std::min(next, open_at_) : next;
}

}  // namespace espalier

#endif
