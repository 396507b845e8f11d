#include "firmware/update/update.h"

#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/little_endian.h"

#if ESPALIER_UPDATES

namespace espalier {
namespace {

constexpr std::uint32_t kNoRefusal = 0xffffffffu;

bool has_same_links(const Image& a, const Image& b) {
  if (a.links != b.links) return false;
  for (std::uint32_t link = 0; link < a.links; ++link) {
    const LinkRow one = a.link(link), other = b.link(link);
    if (one.peer != other.peer || one.device != other.device || one.port != other.port) {
      return false;
    }
  }
  return true;
}

}  // namespace

Update::Update(Machine& machine, Slots& slots, const Image& image, const Expectation& expectation,
               const DecodedUpdatePrograms& programs, const UpdateMemory& memory,
               UpdateOwner& owner, const UpdateOrder& order)
    : machine_(machine),
      slots_(slots),
      image_(image),
      expectation_(expectation),
      programs_(programs),
      memory_(memory),
      owner_(owner) {
  if (is_root()) order_ = order;
}

std::uint64_t Update::next_deadline() const {
  if (state_ == State::kEnded) return UINT64_MAX;
  return runs_ ? machine_.next_deadline() : 0;
}

Status Update::end(Status status) {
  ESPALIER_ASSERT(status != Status::kBusy);
  state_ = State::kEnded;
  status_ = status;
  return status;
}

Status Update::poll() {
  if (state_ == State::kEnded) return status_;
  // While no collective runs, this answers the peers that wait for this node.
  const Status status = machine_.poll();
  if (is_failure(status)) return end(status);
  if (runs_ && status == Status::kBusy) return status;
  runs_ = false;
  const Status advanced = advance();
  return is_failure(advanced) ? end(advanced) : advanced;
}

// Does the next thing. Returns kBusy, kOk at the end, or a failure, which ends the update.
Status Update::advance() {
  switch (state_) {
    case State::kBegins: {
      const bool root = is_root();
      return start(*programs_.broadcast, root ? &order_ : nullptr, root ? nullptr : &order_,
                   Type::kU32, UpdateOrder::kWords, State::kOrder);
    }
    case State::kOrder: refuse(check_order()); return start_vote(*programs_.vote, State::kAccepts);
    case State::kAccepts: return passed() ? next_piece() : end(refusal_.status);
    case State::kAsks: return next_piece();
    case State::kScatters: return take_piece();
    case State::kErases: erase(); return Status::kBusy;
    case State::kWrites: write(); return Status::kBusy;
    case State::kChecks: return prepare();
    case State::kPrepares:
      if (passed()) return try_new();
      // A mark that cannot be erased is withdrawn at the next roll call.
      (void)slots_.withdraw();
      return end(refusal_.status);
    case State::kTries: return passed() ? switch_over() : end(Status::kMismatch);
    case State::kSwitches: return end(passed() ? Status::kOk : Status::kMismatch);
    case State::kEnded: break;
  }
  return status_;
}

Status Update::start(const Program& program, const void* input, void* output, Type type,
                     std::uint32_t count, State next) {
  // The nodes run their collectives one after the other.
  ESPALIER_ASSERT(!runs_ && state_ != State::kEnded && next != State::kEnded);
  Operator op;
  op.op = Op::kMin;
  op.type = type;
  state_ = next;
  runs_ = true;
  const Status status =
      machine_.start(program, {input, output, memory_.scratch, memory_.scratch_bytes}, op, count);
  return status == Status::kOk ? Status::kBusy : status;
}

// A vote is the minimum of what the nodes give: the lowest refusal, and the least and greatest
// digest of the release.
Status Update::start_vote(const Program& program, State next) {
  ballot_[0] = own_ == Status::kOk ? kNoRefusal : image_.node << 8 | static_cast<unsigned>(own_);
  for (std::uint32_t half = 0; half < 2; ++half) {
    ballot_[1 + half] = static_cast<std::uint32_t>(order_.digest >> 32 * half);
    ballot_[3 + half] = ~ballot_[1 + half];
  }
  return start(program, ballot_, result_, Type::kU32, kVoteWords, next);
}

// Whether the vote that is complete was unanimous. Otherwise refusal_ says why not.
bool Update::passed() {
  ESPALIER_ASSERT(!runs_);
  refusal_.any = result_[0] != kNoRefusal;
  refusal_.node = result_[0] >> 8;
  refusal_.status = static_cast<Status>(result_[0] & 255);
  if (!refusal_.any && (result_[1] != ~result_[3] || result_[2] != ~result_[4])) {
    refusal_ = {true, image_.node, Status::kMismatch};
  }
  return !refusal_.any;
}

Status Update::check_order() const {
  const UpdateOrder& order = order_;
  if (order.magic != UpdateOrder::kMagic || order.version != UpdateOrder::kVersion) {
    return Status::kBadVersion;
  }
  if (order.nodes != programs_.scatter->ranks || program_nodes(*programs_.scatter) != order.nodes) {
    return Status::kWrongTopology;
  }
  if (order.piece_bytes < kImageHeaderBytes || order.piece_bytes % UpdateOrder::kPieceUnit != 0 ||
      order.image_bytes < kImageHeaderBytes) {
    return Status::kMalformed;
  }
  Layout layout;
  Operator bytes;
  bytes.type = Type::kBytes;
  const Status status = make_layout(*programs_.scatter, std::uint32_t{order.piece_bytes},
                                    element_bytes(bytes), layout);
  if (status != Status::kOk) return status;
  if (order.image_bytes > slots_.room() || order.piece_bytes > memory_.output_bytes ||
      scratch_needed(*programs_.scatter, layout) > memory_.scratch_bytes ||
      (is_root() && std::uint64_t{order.nodes} * order.piece_bytes > memory_.input_bytes)) {
    return Status::kTooLarge;
  }
  if (order.release < image_.release) return Status::kOlderRelease;
  if (order.counter < slots_.counter()) return Status::kRolledBack;
  // The broadcast was a successful collective.
  const Status confirmed = slots_.is_confirmed() ? Status::kOk : slots_.confirm();
  return confirmed == Status::kOk ? confirmed : Status::kUnconfirmed;
}

// Starts the scatter of the piece at offset_, or the check if there is none.
Status Update::next_piece() {
  ESPALIER_ASSERT(order_.piece_bytes != 0 && offset_ % order_.piece_bytes == 0);
  ESPALIER_ASSERT(offset_ / order_.piece_bytes <= order_.pieces());
  if (offset_ / order_.piece_bytes == order_.pieces()) {
    state_ = State::kChecks;
    return Status::kBusy;
  }
  if (is_root()) {
    const Status status = owner_.piece(offset_);
    state_ = State::kAsks;
    if (status != Status::kOk) return status;
  }
  return start(*programs_.scatter, is_root() ? memory_.input : nullptr, memory_.output,
               Type::kBytes, order_.piece_bytes, State::kScatters);
}

// The piece is in memory_.output. The first one has the image's header.
Status Update::take_piece() {
  ESPALIER_ASSERT(state_ == State::kScatters && !runs_);
  if (offset_ == 0 && own_ == Status::kOk) {
    size_ = load_u32(memory_.output + kImageSizeAt);
    refuse(size_ > order_.image_bytes ? Status::kTooLarge : slots_.begin_erasing(size_));
  }
  state_ = offset_ == 0 ? State::kErases : State::kWrites;
  return Status::kBusy;
}

void Update::erase() {
  ESPALIER_ASSERT(state_ == State::kErases && offset_ == 0);
  const Status status = own_ == Status::kOk ? slots_.erase_next() : Status::kOk;
  if (status == Status::kBusy) return;
  refuse(status);
  state_ = State::kWrites;
}

// A node that refuses still takes part in all collectives, and writes nothing.
void Update::write() {
  ESPALIER_ASSERT(state_ == State::kWrites && order_.piece_bytes != 0);
  const std::uint32_t end =
      size_ - offset_ < order_.piece_bytes ? size_ : offset_ + order_.piece_bytes;
  if (own_ == Status::kOk && written_ < end && offset_ < size_) {
    const std::uint32_t bytes = end - written_ < kWriteBytes ? end - written_ : kWriteBytes;
    ESPALIER_ASSERT(offset_ <= written_ && written_ + bytes <= size_);
    ESPALIER_ASSERT(written_ - offset_ + bytes <= order_.piece_bytes);
    refuse(slots_.append(memory_.output + (written_ - offset_), bytes));
    written_ += bytes;
    return;
  }
  offset_ += order_.piece_bytes;
  state_ = State::kAsks;
}

Status Update::check_image_of(const Image& image) {
  if (!has_same_links(image, image_)) return Status::kUnsupported;
  UpdatePrograms programs;
  Status status = find_update_programs(image, kAnyNode, programs);
  std::uint64_t digest = 0;
  if (status == Status::kOk) status = release_digest(image, *memory_.program, digest);
  if (status != Status::kOk) return status;
  return digest == order_.digest ? Status::kOk : Status::kMismatch;
}

Status Update::accepts(void* update, const Image& image) {
  return static_cast<Update*>(update)->check_image_of(image);
}

Status Update::prepare() {
  ESPALIER_ASSERT(state_ == State::kChecks);
  if (own_ == Status::kOk) refuse(slots_.prepare(expectation_, {accepts, this}));
  return start_vote(*programs_.vote, State::kPrepares);
}

// All nodes have prepared their images.
Status Update::try_new() {
  ESPALIER_ASSERT(state_ == State::kPrepares && own_ == Status::kOk);
  Image image;
  const Status status = slots_.find_prepared(expectation_, {}, image);
  if (status != Status::kOk) return status;
  UpdatePrograms programs;
  if (find_update_programs(image, kAnyNode, programs) != Status::kOk) return Status::kUnsupported;
  new_vote_ = owner_.load(image, programs.vote);
  return new_vote_ == nullptr ? Status::kUnsupported : start_vote(*new_vote_, State::kTries);
}

// All nodes run the new programs: the trial is complete.
Status Update::switch_over() {
  ESPALIER_ASSERT(state_ == State::kTries && new_vote_ != nullptr);
  const Status status = slots_.switch_over();
  return status == Status::kOk ? start_vote(*new_vote_, State::kSwitches) : status;
}

}  // namespace espalier

#endif
