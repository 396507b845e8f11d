#include "collectives/verify/every_n/stage_proof.h"

#include <algorithm>
#include <type_traits>

#include "base/counted.h"
#include "collectives/verify/properties/hazard_rules.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier::verify {
namespace {

constexpr std::int64_t kMaxLocalBlocks = 4096;  // maximum N* if every N up to it is run

// Appends every field, small numbers in few bytes, because there are many long keys. Structured
// bindings name each member: a member that is added to a struct and not here does not compile.
class KeyWriter {
 public:
  template <typename... Fields>
  void put(const Fields&... fields) {
    (put_one(fields), ...);
  }
  std::string take() { return std::move(key_); }

 private:
  template <typename Number>
  requires std::is_enum_v<Number> || std::convertible_to<Number, std::int64_t>
  void put_one(const Number& number) {
    // Seven bits per byte, the sign first; the high bit means that more bytes follow. So the bytes
    // of no number are a prefix of another's.
    const auto value = static_cast<std::int64_t>(number);
    auto bits = static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
    for (; bits >= 128; bits >>= 7) key_.push_back(static_cast<char>(bits | 128));
    key_.push_back(static_cast<char>(bits));
  }
  template <typename Entry>
  void put_one(const std::vector<Entry>& entries) {
    put_one(entries.size());  // lists of different lengths must differ
    for (const Entry& entry : entries) put_one(entry);
  }
  void put_one(const FormOperand& operand) {
    const auto& [buffer, index] = operand;
    put(buffer, index);
  }
  void put_one(const FormProgression& one) {
    const auto& [first, block, link, segment, after, kind, once, into, a, b] = one;
    put(first, block, link, segment, after, kind, once, into, a, b);
  }

  std::string key_;
};

// The accesses to one operand, and the latest receive among them.
struct StageUses : OperandUses {
  std::int64_t receive_step = kNever;
};

// The events that count as certain before an event.
enum class Certain : std::uint8_t {
  kByAll,    // all that HazardRules derives from the events of the run
  kByItself  // only those by the event's own window and `after`, in any run
};

// Runs the events of the stage in lock-step order, for one N after the other.
class StageRun {
 public:
  StageRun(const StageForm& form, Certain certain, std::int64_t max_events)
      : form_(form), certain_(certain), max_events_(max_events), rules_(0) {
    proof_.sources.resize(form.all.size());
    round_.reserve(form.all.size());
    for (const FormProgression& one : form.all) {
      round_.push_back(static_cast<std::int32_t>(one.first / form.period));
      last_round_ = std::max<std::int64_t>(last_round_, round_.back());
      span_ = std::max(span_, one.first);
    }
    slots_now_.resize(form.all.size());
  }

  // Runs every N up to N*.
  StageProof prove_each() {
    std::int64_t last = form_.single ? form_.stride : next_blocks(1);
    for (std::int64_t blocks = last; blocks <= last; blocks = next_blocks(blocks + 1)) {
      run(blocks);
      if (stopped()) break;
      proof_.max_blocks = blocks;
      if (form_.single) break;
      last = std::max(last, settled());
      if (last > kMaxLocalBlocks) {
        proof_.undecided = Undecided{"it settles only after " + counted(last, "block")};
        break;
      }
    }
    return std::move(proof_);
  }

  // Runs only N* (or the next N that occurs). With Certain::kByItself it stands for every smaller
  // N.
  StageProof prove_last() {
    for (std::int64_t last = 0; !stopped() && last < settled();) {
      last = next_blocks(settled());
      if (last > max_events_ / std::max(1, form_.outputs)) {
        proof_.too_large = true;
        break;
      }
      run(last);
      proof_.max_blocks = last;
    }
    return std::move(proof_);
  }

 private:
  [[nodiscard]] bool stopped() const {
    return proof_.wrong_at > 0 || proof_.undecided || proof_.too_large;
  }
  [[nodiscard]] std::int64_t next_blocks(std::int64_t blocks) const {
    const std::int64_t mod = std::max<std::int64_t>(1, form_.residue_mod);
    return blocks + floor_mod(form_.residue - blocks, mod);
  }
  // N* = R (c + 2 + head), c = floor((span + D - 1) / T). D: the steps that a check looks back, at
  // most.
  [[nodiscard]] std::int64_t settled() const {
    const std::int64_t reach = std::max<std::int64_t>(form_.window, longest_ + 1);
    return form_.stride * ((span_ + reach - 1) / form_.period + 2 + form_.head);
  }

  void run(std::int64_t blocks) {
    blocks_ = blocks;
    rules_ = HazardRules(static_cast<std::size_t>(form_.links));
    output_.assign(static_cast<std::size_t>(form_.outputs * blocks), {});
    scratch_.assign(static_cast<std::size_t>(form_.slots), {});
    write_earlier();
    for (std::size_t k = 0; k < form_.all.size(); ++k) {
      const FormProgression& one = form_.all[k];
      slots_now_[k] = {one.into.index, one.a.index, one.b.index};
    }
    const std::int64_t rounds = form_.single ? 1 : ceil_div(blocks, form_.stride) + last_round_;
    for (std::int64_t round = 0; round < rounds && !stopped(); ++round) run_round(round);
  }

  // Marks the blocks of OUTPUT that earlier phases wrote. They have retired before the stage
  // begins.
  void write_earlier() {
    for (std::size_t i = 0; i < form_.written.size(); ++i) {
      if (form_.written[i] == 0) continue;
      StageUses uses;
      uses.write_step = -1;
      uses.write = kEarlierEvent;
      const auto stride = static_cast<std::size_t>(form_.stride);
      for (auto block = static_cast<std::int64_t>(i % stride); block < blocks_;
           block += form_.stride) {
        output_[i / stride * static_cast<std::size_t>(blocks_) + static_cast<std::size_t>(block)] =
            uses;
      }
    }
  }

  // Runs all progressions in the steps round * period .. round * period + period - 1.
  void run_round(std::int64_t round) {
    const std::vector<FormProgression>& all = form_.all;
    for (std::size_t begin = 0, end = 0; begin < all.size() && !stopped(); begin = end) {
      const std::int64_t late = all[begin].first - round_[begin] * form_.period;
      bool begun = false;
      for (; end < all.size() && all[end].first - round_[end] * form_.period == late; ++end) {
        const std::int64_t turn = round - round_[end];
        const std::int64_t block = all[end].block + turn * form_.stride;
        const bool only = form_.single || all[end].once;
        if (turn < 0 || block >= blocks_ || (only && turn > 0)) continue;
        if (!begun) {
          step_ = round * form_.period + late;
          retired_ = std::max<std::int64_t>(-1, step_ - form_.window);
          rules_.begin_step(step_, retired_);
          begun = true;
        }
        block_ = block;
        turn_ = turn;
        check_one(end);
        if (stopped()) return;
      }
      if (begun) rules_.end_step();
    }
  }

  void check_one(std::size_t k) {
    const FormProgression& one = form_.all[k];
    if (++proof_.instances > max_events_) {
      proof_.too_large = true;
      return;
    }
    std::array<std::int32_t, 3>& slots = slots_now_[k];
    if (one.kind == ActionKind::kSend) {
      const Known& before = one.link < 0
                                ? rules_.post_send_alone(one.after)
                                : rules_.post_send(static_cast<std::size_t>(one.link), one.after);
      read(k, one.a, slots[1], before, proof_.sources[k].a);
    } else if (one.kind == ActionKind::kReceive) {
      receive(k, slots[0]);
    } else {
      operate(k, slots);
    }
    if (form_.next_slot.empty()) return;
    const FormOperand* const places[3] = {&one.into, &one.a, &one.b};
    for (std::size_t operand = 0; operand < 3; ++operand) {
      if (places[operand]->buffer != Buffer::kScratch) continue;
      slots[operand] = form_.next_slot[static_cast<std::size_t>(slots[operand])];
    }
  }

  void receive(std::size_t k, std::int32_t slot) {
    StageUses& uses = of(form_.all[k].into, slot);
    if (!rules_.is_free(uses)) return wrong();
    uses = {{step_, event(k), step_, event(k), -1, true}, step_};
  }

  void operate(std::size_t k, const std::array<std::int32_t, 3>& slots) {
    const FormProgression& one = form_.all[k];
    const Known& before = rules_.run_operation(one.after);
    read(k, one.a, slots[1], before, proof_.sources[k].a);
    if (one.kind == ActionKind::kCombine) read(k, one.b, slots[2], before, proof_.sources[k].b);
    if (stopped()) return;
    StageUses& uses = of(one.into, slots[0]);
    if (!is_received(one, uses, before)) return wrong();
    uses = {{step_, event(k), step_, event(k), rules_.operation(), true}, uses.receive_step};
  }

  // Whether the latest write is certain before a read by `one`.
  [[nodiscard]] bool is_written(const FormProgression& one, const StageUses& uses,
                                const Known& before) const {
    if (certain_ == Certain::kByAll) return HazardRules::is_written(uses, before);
    const bool in_turn = one.kind != ActionKind::kSend && uses.operation >= 0;
    return in_turn || awaits(one, uses.write_step);
  }
  // Whether an operation `one` may overwrite the operand. Only a receive could still be writing.
  [[nodiscard]] bool is_received(const FormProgression& one, const StageUses& uses,
                                 const Known& before) const {
    if (certain_ == Certain::kByAll) return HazardRules::is_received(uses, before);
    // An operation on the same block wrote last: it exists for the same N and waited for the
    // receive. Programs without a head need not rely on it: prove_each() proves them.
    if (form_.head > 0 && uses.operation >= 0 && block_of(uses.write) == block_) return true;
    // All earlier receives into the operand retired before the latest was issued.
    return uses.receive_step == StageUses::kNever || awaits(one, uses.receive_step);
  }
  // Whether a write in `step` is certain before `one` by its window or its own `after`.
  [[nodiscard]] bool awaits(const FormProgression& one, std::int64_t step) const {
    const bool send_at_once = one.kind == ActionKind::kSend && one.after == 0;
    return step <= retired_ || (step == step_ - one.after && !send_at_once);
  }

  void read(std::size_t k, const FormOperand& operand, std::int32_t slot, const Known& before,
            std::int32_t& source) {
    if (operand.buffer == Buffer::kInput) return set_source(k, source, kFromInput);
    StageUses& uses = of(operand, slot);
    uses.last = event(k);
    uses.last_step = step_;
    const bool scratch = operand.buffer == Buffer::kScratch;
    if (uses.write < 0) {
      if (!scratch || !form_.slots_before) return wrong();
      proof_.undecided = Undecided{"a slot is read in a later phase"};
      return;
    }
    if (!is_written(form_.all[k], uses, before)) return wrong();
    if (uses.write == kEarlierEvent) return set_source(k, source, kFromEarlier);
    const auto writer =
        static_cast<std::size_t>(uses.write % static_cast<std::int64_t>(form_.all.size()));
    if (block_of(uses.write) != block_ || form_.all[writer].segment != form_.all[k].segment) {
      return wrong();
    }
    if (scratch) longest_ = std::max(longest_, step_ - uses.write_step);
    set_source(k, source, static_cast<std::int32_t>(writer));
  }

  void set_source(std::size_t k, std::int32_t& source, std::int32_t from) {
    if (source == kUnknownSource) source = from;
    if (source == from) return;
    proof_.undecided = Undecided{"progression " + std::to_string(k) +
                                 " does not always read the same action's data"};
  }

  void wrong() { proof_.wrong_at = blocks_; }

  [[nodiscard]] std::int64_t event(std::size_t k) const {
    return turn_ * static_cast<std::int64_t>(form_.all.size()) + static_cast<std::int64_t>(k);
  }
  [[nodiscard]] std::int64_t block_of(std::int64_t event) const {
    const auto size = static_cast<std::int64_t>(form_.all.size());
    return form_.all[static_cast<std::size_t>(event % size)].block + event / size * form_.stride;
  }
  StageUses& of(const FormOperand& operand, std::int32_t slot) {
    ++proof_.checks;
    if (operand.buffer == Buffer::kScratch) return scratch_[static_cast<std::size_t>(slot)];
    return output_[static_cast<std::size_t>(operand.index * blocks_ + block_)];
  }

  static constexpr std::int64_t kEarlierEvent = INT64_MAX;  // a write of an earlier phase

  const StageForm& form_;
  Certain certain_;
  std::int64_t max_events_;
  StageProof proof_;
  HazardRules rules_;
  std::vector<std::int32_t> round_;  // the round in which each progression has its first block
  std::int64_t last_round_ = 0, span_ = 0;
  std::int64_t longest_ = 0;  // most steps from a write of a slot to a read of it
  std::int64_t blocks_ = 1, step_ = 0, block_ = 0, turn_ = 0;
  std::int64_t retired_ = -1;  // all steps up to this one, before step_ is issued
  std::vector<std::array<std::int32_t, 3>> slots_now_;  // slots of into, a and b in the next round
  std::vector<StageUses> output_, scratch_;
};

}  // namespace

std::string stage_key(const StageForm& form) {
  const auto& [window, stride, period, head, residue_mod, residue, single, slots_before, outputs,
               links, next_slot, slots, written, all] = form;
  KeyWriter writer;
  writer.put(window, stride, period, head, residue_mod, residue, single, slots_before, outputs,
             links, next_slot, slots, written, all);
  return writer.take();
}

StageProof prove_stage(const StageForm& form, std::int64_t max_events) {
  if (!form.single) {
    StageProof proof = StageRun(form, Certain::kByItself, max_events).prove_last();
    if (proof.wrong_at == 0 && !proof.undecided && !proof.too_large) return proof;
  }
  StageProof proof = StageRun(form, Certain::kByAll, max_events).prove_each();
  // An event of the head may make others certain, and later rounds have no such event.
  if (form.head > 0 && proof.wrong_at == 0 && !proof.undecided && !proof.too_large) {
    proof.undecided = Undecided{"it waits by others, and its first blocks are irregular"};
  }
  return proof;
}

}  // namespace espalier::verify
