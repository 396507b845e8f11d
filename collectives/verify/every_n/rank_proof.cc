#include "collectives/verify/every_n/rank_proof.h"

#include <algorithm>
#include <utility>

#include "collectives/verify/properties/checks.h"
#include "collectives/verify/properties/counterexample.h"
#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/program_facts.h"

namespace espalier::verify {
namespace {

constexpr std::size_t kMaxKept = std::size_t{1} << 25;  // maximum bytes of proofs that are kept
constexpr std::size_t kMaxResults = 1 << 20;            // maximum of segments times the stride
constexpr std::ptrdiff_t kMaxUsesCompared = 4096;       // of one segment, in pairs
constexpr std::int64_t kMaxPhrased = 4096;  // maximum N of a counterexample that is expanded

bool writes_output(const Action& action) {
  return action.has_into && action.into.buffer == Buffer::kOutput;
}

// Whether the action copies a block of INPUT to the same block of OUTPUT.
bool is_same_copy(const Action& action, const Progression& one) {
  return one.kind == ActionKind::kCopy && action.a.buffer == Buffer::kInput &&
         one.from_segment == one.segment;
}

// The position of a block below blocks_that_differ() in RankFlow::results.
std::size_t result_index(const RankProgressions& ranks, std::int32_t segment, std::int64_t block) {
  return static_cast<std::size_t>(segment * ranks.blocks_that_differ() + block);
}

// Calls `use` with each block below blocks_that_differ() that the progression moves, and its step
// in the stage.
template <typename Use>
void for_blocks_that_differ(const RankProgressions& ranks, const Progression& one, const Use& use) {
  std::int64_t step = one.first;
  for (std::int64_t block = one.block; block < ranks.blocks_that_differ(); block += ranks.stride) {
    use(block, step);
    if (one.once) return;
    step += ranks.stages[one.stage].period;
  }
}

// Whether two progressions of one segment move no block in common.
bool move_other_blocks(const RankProgressions& ranks, const Progression& one,
                       const Progression& other) {
  const std::int64_t apart = std::int64_t{other.block} - one.block;
  if (apart % ranks.stride != 0) return true;
  return (one.once && apart > 0) || (other.once && apart < 0) ||
         (one.once && other.once && apart != 0);
}

// Whether some phase has several stages.
bool has_stages(const RankProgressions& ranks) {
  for (std::size_t one = 0; one < ranks.stages.size(); ++one) {
    for (std::size_t other = 0; other < one; ++other) {
      if (ranks.stages[one].phase == ranks.stages[other].phase) return true;
    }
  }
  return false;
}

// Returns by slot the representative of its cycle under next_slot: one slot per cycle.
std::vector<std::int32_t> turns_of(const RankProgressions& ranks, std::uint32_t slots) {
  std::vector<std::int32_t> turn(slots, -1);
  for (std::size_t slot = 0; slot < turn.size(); ++slot) {
    for (auto next = static_cast<std::int32_t>(slot);
         next >= 0 && turn[static_cast<std::size_t>(next)] < 0;
         next = ranks.next_slot.empty() ? -1 : ranks.next_slot[static_cast<std::size_t>(next)]) {
      turn[static_cast<std::size_t>(next)] = static_cast<std::int32_t>(slot);
    }
  }
  return turn;
}

// Whether two stages of one phase never use one slot.
bool slots_are_apart(const Program& program, const RankProgressions& ranks) {
  const std::vector<std::int32_t> turn = turns_of(ranks, program.scratch_blocks);
  std::vector<std::int32_t> slots(program.scratch_blocks, -1);  // the stage that uses each cycle
  std::uint32_t phase = 0;
  for (const Progression& one : ranks.all) {
    if (ranks.stages[one.stage].phase != phase) {
      phase = ranks.stages[one.stage].phase;
      slots.assign(slots.size(), -1);
    }
    for (const std::int32_t slot : {one.into_slot, one.a_slot, one.b_slot}) {
      if (slot < 0) continue;
      std::int32_t& owner = slots[static_cast<std::size_t>(turn[static_cast<std::size_t>(slot)])];
      if (owner >= 0 && owner != one.stage) return false;
      owner = one.stage;
    }
  }
  return true;
}

// A use of a segment of INPUT or OUTPUT.
struct SegmentUse {
  std::uint32_t phase = 0;
  std::int32_t segment = 0;
  std::uint8_t stage = 0;
  bool is_output = false;
  const Progression* by = nullptr;
};

// Returns the uses, by phase and segment.
std::vector<SegmentUse> uses_of_segments(const Program& program, const RankProgressions& ranks) {
  std::vector<SegmentUse> uses;
  for (const Progression& one : ranks.all) {
    const auto use = [&](bool present, const Operand& operand, std::int32_t segment) {
      if (!present || operand.buffer == Buffer::kScratch) return;
      uses.push_back({ranks.stages[one.stage].phase, segment, one.stage,
                      operand.buffer == Buffer::kOutput, &one});
    };
    const Action& action = program.actions[one.action];
    use(action.has_into, action.into, one.segment);
    use(action.has_a, action.a, one.kind == ActionKind::kSend ? one.segment : one.from_segment);
    use(action.has_b, action.b, one.segment);
  }
  std::stable_sort(uses.begin(), uses.end(), [](const SegmentUse& a, const SegmentUse& b) {
    return a.phase != b.phase ? a.phase < b.phase : a.segment < b.segment;
  });
  return uses;
}

// Whether none of these uses of one segment in one phase shares a block with another stage's use.
// INPUT is only read, so several stages may use it.
bool blocks_are_apart(const RankProgressions& ranks, const SegmentUse* begin,
                      const SegmentUse* end) {
  const bool one_stage =
      std::all_of(begin, end, [begin](const SegmentUse& use) { return use.stage == begin->stage; });
  const bool reads = std::none_of(begin, end, [](const SegmentUse& use) { return use.is_output; });
  if (one_stage || reads) return true;
  if (end - begin > kMaxUsesCompared) return false;
  for (const SegmentUse* one = begin; one != end; ++one) {
    for (const SegmentUse* other = begin; other != one; ++other) {
      if (one->stage == other->stage || !(one->is_output || other->is_output)) continue;
      if (!move_other_blocks(ranks, *one->by, *other->by)) return false;
    }
  }
  return true;
}

// Passes (nothing) if the stages of each phase use separate places.
std::optional<Undecided> operands_meet(const Program& program, const RankProgressions& ranks) {
  bool apart = slots_are_apart(program, ranks);
  const std::vector<SegmentUse> uses = uses_of_segments(program, ranks);
  for (std::size_t begin = 0, end = 0; begin < uses.size() && apart; begin = end) {
    while (end < uses.size() && uses[end].phase == uses[begin].phase &&
           uses[end].segment == uses[begin].segment) {
      ++end;
    }
    apart = blocks_are_apart(ranks, uses.data() + begin, uses.data() + end);
  }
  if (apart) return std::nullopt;
  return Undecided{"actions that go on at different paces share a place"};
}

}  // namespace

ProofResult RankProofs::expand_wrong(std::uint32_t node, const Program& program,
                                     WrongFrom wrong_from, const std::string& otherwise) {
  set_blocks(schedule_, next_blocks(program, wrong_from.blocks));
  if (schedule_.blocks <= kMaxPhrased) {
    if (Finding finding = check_size(schedule_, node, program)) return finding;
    schedule_.instances[node] = expand(program, schedule_.blocks);
    Verdict unused;
    Finding finding = check_instances(schedule_, node, program);
    if (!finding) finding = check_ports(schedule_, node);
    if (!finding) finding = check_hazards(schedule_, node, unused);
    std::vector<Instance>().swap(schedule_.instances[node]);
    if (finding) return finding;
  }
  return Undecided{otherwise};
}

ProofResult RankProofs::prove(std::uint32_t node, const Program& program,
                              const RankProgressions& ranks, const RankFlow*& flow) {
  flow = nullptr;
  for (const Progression& one : ranks.all) {
    if (one.link < 0) continue;
    const std::uint32_t peer = peer_of(program, static_cast<std::uint32_t>(one.link));
    const bool send = one.kind == ActionKind::kSend;
    if (is_absent_link(*schedule_.topology, program, send ? node : peer, send ? peer : node)) {
      return expand_wrong(node, program, WrongFrom{one.block + std::int64_t{1}},
                          "a message goes against a one-way link");
    }
  }
  const ReadResult ports = ports_.check_stages(program, ranks);
  if (const WrongFrom* wrong_from = ports.error()) {
    return expand_wrong(node, program, *wrong_from, "two transfers share a port in a step");
  }
  if (ports.undecided() != nullptr) return *ports.undecided();
  if (!ranks.single && has_stages(ranks)) {
    std::optional<Undecided> meet = ports_.stages_meet(program, ranks);
    if (!meet) meet = operands_meet(program, ranks);
    if (meet) return *meet;
  }
  const std::size_t results =
      std::size_t{program.segments} * static_cast<std::size_t>(ranks.blocks_that_differ());
  if (results > kMaxResults) return Undecided{"too many segments"};
  flow_.sources.assign(ranks.all.size(), {});
  results_.assign(results, {});
  for (FirstUseNames* names : {&segments_, &inputs_, &outputs_}) names->reserve(program.segments);
  links_.reserve(links_count(program));
  for (std::size_t stage = 0; stage < ranks.stages.size(); ++stage) {
    ProofResult result = prove_stage_of(node, program, ranks, stage);
    if (!result.passed()) return result;
  }
  flow_.results.clear();
  for (const Result& result : results_) flow_.results.push_back(result.by);
  flow = &flow_;
  return {};
}

const StageProof& RankProofs::proof_of_form() {
  const bool kept = form_.all.size() * sizeof(FormProgression) <= kMaxKept / 4;
  std::string key;
  if (kept) {
    key = stage_key(form_);
    const auto known = proofs_.find(key);
    if (known != proofs_.end()) return known->second;
  }
  alone_ = prove_stage(form_, schedule_.max_instances_total - schedule_.spent);
  schedule_.spent += alone_.instances;
  verdict_.instances += static_cast<std::uint64_t>(alone_.instances);
  verdict_.checks += static_cast<std::uint64_t>(alone_.checks);
  const std::size_t bytes = key.size() + alone_.sources.size() * sizeof(StageProof::Sources);
  if (!kept || kept_bytes_ + bytes > kMaxKept) return alone_;
  kept_bytes_ += bytes;
  return proofs_.emplace(std::move(key), std::move(alone_)).first->second;
}

ProofResult RankProofs::prove_stage_of(std::uint32_t node, const Program& program,
                                       const RankProgressions& ranks, std::size_t stage) {
  make_form(program, ranks, stage);
  const StageProof* found = &proof_of_form();
  if (found->wrong_at > 0) {  // perhaps only because links were left out
    name_links(ranks, ranks.stage_begin[stage]);
    found = &proof_of_form();
  }
  const StageProof& proof = *found;
  if (proof.too_large) {
    return too_large(Property::kForm, schedule_, node,
                     "the instances up to here are more than can be checked; " +
                         std::to_string(schedule_.max_instances_total) + " are for all N together" +
                         costliest_text(schedule_, program));
  }
  if (proof.wrong_at > 0) {
    return expand_wrong(node, program, WrongFrom{proof.wrong_at},
                        "a place does not hold the block that is read from it");
  }
  if (proof.undecided) return *proof.undecided;
  verdict_.in_place = verdict_.in_place && is_in_place(program, ranks, stage);
  max_blocks_ = std::max(max_blocks_, proof.max_blocks);
  add_sources(ranks, stage, proof);
  add_results(program, ranks, stage);
  return {};
}

FormOperand RankProofs::form_operand(bool present, const Operand& operand, std::int32_t segment,
                                     std::int32_t slot) {
  if (!present) return {};
  if (operand.buffer == Buffer::kInput) return {operand.buffer, inputs_.name(segment)};
  if (operand.buffer == Buffer::kOutput) return {operand.buffer, outputs_.name(segment)};
  form_.slots = std::max(form_.slots, slot + 1);
  return {operand.buffer, slot};
}

void RankProofs::make_form(const Program& program, const RankProgressions& ranks,
                           std::size_t stage) {
  const std::size_t begin = ranks.stage_begin[stage], end = ranks.stage_begin[stage + 1];
  form_.window = program.window;
  form_.stride = ranks.stride;
  form_.period = ranks.stages[stage].period;
  form_.head = ranks.head;
  form_.residue_mod = program.residue_mod;
  form_.residue = program.residue;
  form_.single = ranks.single;
  form_.links = 0;
  form_.slots = static_cast<std::int32_t>(ranks.next_slot.size());
  form_.next_slot = ranks.next_slot;
  form_.slots_before = false;
  for (std::size_t k = 0; k < begin && !form_.slots_before; ++k) {
    const Progression& one = ranks.all[k];
    form_.slots_before = ranks.stages[one.stage].phase != ranks.stages[stage].phase &&
                         std::max({one.into_slot, one.a_slot, one.b_slot}) >= 0;
  }
  make_places(program, ranks, begin, end);
  form_.outputs = static_cast<std::int32_t>(outputs_.named().size());
  form_.written.clear();
  // A program with a head has one phase, so no earlier phase has written.
  const auto stride = ranks.head > 0 ? 0 : static_cast<std::size_t>(ranks.stride);
  for (const std::int32_t segment : outputs_.named()) {
    for (std::size_t block = 0; block < stride; ++block) {
      const Result& result = results_[static_cast<std::size_t>(segment) * stride + block];
      form_.written.push_back(result.by >= 0 ? 1 : 0);
    }
  }
  for (FirstUseNames* names : {&segments_, &inputs_, &outputs_}) names->clear();
}

void RankProofs::make_places(const Program& program, const RankProgressions& ranks,
                             std::size_t begin, std::size_t end) {
  std::int64_t earliest = INT64_MAX;
  for (std::size_t k = begin; k < end; ++k) earliest = std::min(earliest, ranks.all[k].first);
  const bool any_segment = program.collective == Collective::kAllToAll;
  form_.all.resize(end - begin);
  for (std::size_t k = begin; k < end; ++k) {
    const Progression& one = ranks.all[k];
    const Action& action = program.actions[one.action];
    const bool send = one.kind == ActionKind::kSend;
    FormProgression& in_form = form_.all[k - begin];
    in_form.first = one.first - earliest;
    in_form.block = one.block;
    in_form.after = action.after;
    in_form.kind = one.kind;
    in_form.once = one.once;
    in_form.link = -1;
    in_form.into = form_operand(action.has_into, action.into, one.segment, one.into_slot);
    in_form.a =
        form_operand(action.has_a, action.a, send ? one.segment : one.from_segment, one.a_slot);
    in_form.b = form_operand(action.has_b, action.b, one.segment, one.b_slot);
    in_form.segment = any_segment ? 0 : segments_.name(one.segment);
  }
}

void RankProofs::name_links(const RankProgressions& ranks, std::size_t begin) {
  for (std::size_t k = 0; k < form_.all.size(); ++k) {
    const std::int32_t link = ranks.all[begin + k].link;
    form_.all[k].link = link < 0 ? -1 : links_.name(link);
  }
  form_.links = static_cast<std::int32_t>(links_.named().size());
  links_.clear();
}

// All uses of one block of INPUT or OUTPUT are in the round of that block, so their steps in the
// blocks that differ decide for every block and N. Every read of INPUT must come before every
// change of OUTPUT. It must come at least a window of steps before a receive that changes OUTPUT.
bool RankProofs::is_in_place(const Program& program, const RankProgressions& ranks,
                             std::size_t stage) {
  times_.assign(results_.size(), {});
  bool in_place = true;
  for (std::size_t k = ranks.stage_begin[stage]; k < ranks.stage_begin[stage + 1]; ++k) {
    const Progression& one = ranks.all[k];
    const Action& action = program.actions[one.action];
    for_blocks_that_differ(ranks, one, [&](std::int64_t block, std::int64_t step) {
      const auto index = [&](std::int32_t segment) { return result_index(ranks, segment, block); };
      const auto read = [&](bool present, const Operand& operand, std::int32_t segment) {
        if (!present || operand.buffer != Buffer::kInput) return;
        in_place = in_place && !results_[index(segment)].changed;  // in an earlier phase
        Time& last = times_[index(segment)].last_read;
        last = std::max(last, Time{step, k});
      };
      read(action.has_a, action.a, one.kind == ActionKind::kSend ? one.segment : one.from_segment);
      read(action.has_b, action.b, one.segment);
      if (!writes_output(action) || is_same_copy(action, one)) return;
      BlockTimes& times = times_[index(one.segment)];
      times.first_change = std::min(times.first_change, Time{step, k});
      if (one.kind != ActionKind::kReceive) return;
      times.first_receive = std::min(times.first_receive, step);
    });
  }
  for (const BlockTimes& times : times_) {
    if (times.last_read.first < 0) continue;
    in_place = in_place && times.last_read <= times.first_change;
    in_place = in_place && (times.first_receive == INT64_MAX ||
                            times.last_read.first <= times.first_receive - program.window);
  }
  return in_place;
}

void RankProofs::add_sources(const RankProgressions& ranks, std::size_t stage,
                             const StageProof& proof) {
  const std::size_t begin = ranks.stage_begin[stage];
  const auto resolve = [&](std::int32_t source, const Progression& one, std::int32_t segment) {
    if (source >= 0) return source + static_cast<std::int32_t>(begin);
    if (source != kFromEarlier) return source;
    return results_[result_index(ranks, segment, one.block)].by;
  };
  for (std::size_t k = 0; k < proof.sources.size(); ++k) {
    const Progression& one = ranks.all[begin + k];
    const bool send = one.kind == ActionKind::kSend;
    flow_.sources[begin + k] = {
        resolve(proof.sources[k].a, one, send ? one.segment : one.from_segment),
        resolve(proof.sources[k].b, one, one.segment)};
  }
}

// The last writer of a block is the same for every N: all its writes are in the round of that
// block, in the order of their steps.
void RankProofs::add_results(const Program& program, const RankProgressions& ranks,
                             std::size_t stage) {
  for (std::size_t k = ranks.stage_begin[stage]; k < ranks.stage_begin[stage + 1]; ++k) {
    const Progression& one = ranks.all[k];
    const Action& action = program.actions[one.action];
    if (!writes_output(action)) continue;
    for_blocks_that_differ(ranks, one, [&](std::int64_t block, std::int64_t step) {
      Result& result = results_[result_index(ranks, one.segment, block)];
      result.changed = result.changed || !is_same_copy(action, one);
      const auto this_stage = static_cast<std::int32_t>(stage);
      if (result.stage == this_stage && step < result.step) return;
      result.by = static_cast<std::int32_t>(k);
      result.step = step;
      result.stage = this_stage;
    });
  }
}

}  // namespace espalier::verify
