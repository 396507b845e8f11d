// The proof for every N at once. The actions of a periodic schedule are progressions: for every N
// they move block b + stride * k of a segment in step first + period * k of their stage. So the
// messages between ranks do not depend on N. If links match and data flow is right for the first
// block of every progression, they are for every block of every N. rank_proof.h proves each node
// alone. A schedule with only one N is proven in the same way, each instance as a progression. The
// proof is in docs/verifier.md, "For every N".

#include "collectives/verify/every_n/periodic.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/counted.h"
#include "collectives/verify/bounds/all_bounds.h"
#include "collectives/verify/bounds/claimed_bound.h"
#include "collectives/verify/every_n/flow_graph.h"
#include "collectives/verify/every_n/link_match.h"
#include "collectives/verify/every_n/progressions.h"
#include "collectives/verify/every_n/rank_proof.h"
#include "collectives/verify/every_n/stage_steps.h"
#include "collectives/verify/properties/checks.h"
#include "collectives/verify/properties/counterexample.h"
#include "collectives/verify/properties/data_flow.h"
#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/program_facts.h"
#include "collectives/verify/properties/rank_sets.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier::verify {
namespace {

// Progressions of all nodes that fit into the memory of one expanded instance.
constexpr std::int64_t kProgressionsPerInstance = 8;

class Periodic {
 public:
  Periodic(const topology::Topology& topology, const Programs& programs,
           const VerifyOptions& options, Verdict& verdict)
      : topology_(topology), programs_(programs), options_(options), verdict_(verdict) {
    schedule_.topology = &topology_;
    schedule_.common = &common_;
    schedule_.max_instances = options_.max_instances;
  }

  Outcome prove() {
    verdict_.slot = verdict_.async = options_.links;
    ProofResult result = read_nodes();
    // A node may need a larger stride than the nodes before it.
    for (std::int64_t tried = 0; coarser_ > 0 && tried < 4; ++tried) {
      stride_ = coarser_;
      result = read_nodes();
    }
    if (coarser_ > 0) result = Undecided{"its blocks take too many turns"};
    if (result.passed()) result = check_steps();
    if (result.passed()) result = check_links();
    if (result.passed()) result = follow();
    const std::int64_t first = next_blocks(common_, 1);
    const std::int64_t last = single_ || !result.passed() ? first : ranks_->max_blocks();
    for (const std::int64_t blocks : {first, last}) {
      if (!result.passed()) break;  // a refused program may name counts that do not exist
      set_blocks(schedule_, blocks);
      result = check_known_bounds(schedule_, schedule_.steps());
    }
    if (const Undecided* undecided = result.undecided()) {
      verdict_.limited = undecided->reason;
      return Outcome::kUnknown;
    }
    if (const Counterexample* example = result.error()) {
      verdict_.counterexample = *example;
      return Outcome::kRefused;
    }
    verdict_.valid = verdict_.for_all = true;
    verdict_.proven_blocks = last;
    verdict_.period = stride_;
    verdict_.lower_bounds = describe(schedule_.bounds);
    verdict_.steps_at_one = phase_steps(common_, first);
    verdict_.steps_at_most = phase_steps(common_, last);
    return Outcome::kProven;
  }

 private:
  // Numbers the steps of all stages on one axis that is the same for every N.
  [[nodiscard]] static std::int64_t time_of(std::size_t stage, std::int64_t step) {
    return (static_cast<std::int64_t>(stage) << 48) + step;
  }

  ProofResult read_nodes() {
    coarser_ = 0;
    match_ = LinkMatch();
    flow_ = {};
    verdict_.bound_facts = {.links = options_.links};
    head_ = 0;
    for (std::uint32_t node = 0; node == 0 || node < program_nodes(common_); ++node) {
      const Program& program = programs_(node);
      ProofResult result = node == 0 ? begin(program) : ProofResult();
      if (Finding finding = check_agreement(topology_, common_, node, program)) return finding;
      if (result.passed()) result = read_node(node, program);
      if (const Undecided* undecided = result.undecided()) {
        return Undecided{topology_.node_name(node) + ": " + undecided->reason};
      }
      if (result.passed() && coarser_ == 0) result = match(node + 1 == program_nodes(common_));
      if (!result.passed() || coarser_ > 0) return result;
      if (options_.progress && node % 1024 == 0) {
        options_.progress(0.8 * node / program_nodes(common_));
      }
    }
    return {};
  }

  ProofResult begin(const Program& program) {
    common_ = program;
    schedule_.max_instances_total = max_total(options_, program_nodes(common_), kTimesAtOnce);
    single_ = !cuts_messages(program);
    schedule_.instances.resize(std::min(program_nodes(common_), topology_.nodes()));
    ranks_.emplace(schedule_, verdict_);
    flow_.begin(common_);
    // The stride is a multiple of the residue's modulus.
    const auto mod = std::clamp<std::int64_t>(common_.residue_mod, 1, kMaxStride);
    if (mod < common_.residue_mod) return Undecided{"the residue takes too many turns"};
    stride_ = single_ ? next_blocks(common_, 1) : std::lcm(stride_, mod);
    if (single_ && stride_ > kMaxStride) return Undecided{"the only N is too large"};
    stages_ = StageSteps(stride_);
    return {};
  }

  ProofResult read_node(std::uint32_t node, const Program& program) {
    ProofResult result =
        single_ ? read_only_blocks(node, program) : read_every_blocks(node, program);
    if (!result.passed() || coarser_ > 0) return result;
    schedule_.spent += static_cast<std::int64_t>(progressions_.all.size());
    const auto cells = static_cast<std::int64_t>(flow_.size() + progressions_.all.size());
    if (cells > kProgressionsPerInstance * options_.max_instances ||
        schedule_.spent > schedule_.max_instances_total) {
      return too_large(
          Property::kForm, schedule_, node,
          std::to_string(cells) + " progressions up to here are more than can be checked");
    }
    const RankFlow* inside = nullptr;
    result = ranks_->prove(node, program, progressions_, inside);
    return result.passed() ? add_node(node, program, *inside) : result;
  }

  ProofResult read_every_blocks(std::uint32_t node, const Program& program) {
    progressions_.stride = stride_;
    const ReadResult read = read_progressions(common_, program, progressions_);
    verdict_.progressions += progressions_.all.size();
    if (const WrongFrom* wrong_from = read.error()) {
      return ranks_->expand_wrong(node, program, *wrong_from,
                                  "an instance that may not exist names no place");
    }
    if (read.undecided() != nullptr) return *read.undecided();
    if (progressions_.stride != stride_) coarser_ = progressions_.stride;
    return {};
  }

  // Reads a program for the only N that occurs.
  ProofResult read_only_blocks(std::uint32_t node, const Program& program) {
    set_blocks(schedule_, stride_);
    if (Finding finding = check_size(schedule_, node, program)) return finding;
    std::vector<Instance>& all = schedule_.instances[node];
    all = expand(program, stride_);
    Finding finding = check_instances(schedule_, node, program);
    if (!finding) finding = check_ports(schedule_, node);
    if (!finding) {
      read_single(program, all, stride_, progressions_);
      verdict_.progressions += progressions_.all.size();
    }
    std::vector<Instance>().swap(all);
    return finding;
  }

  ProofResult add_node(std::uint32_t node, const Program& program, const RankFlow& inside) {
    add_facts(topology_, program, verdict_.bound_facts);
    head_ = std::max(head_, progressions_.head);
    const std::uint32_t base = flow_.add_node(node, progressions_, inside);
    std::vector<std::size_t> numbers;
    for (const Stage& stage : progressions_.stages) {
      numbers.push_back(stages_.number_of(stage));
      if (numbers.back() == StageSteps::kMaxStages) {
        return Undecided{"its actions go on at too many different paces"};
      }
    }
    make_room(program);
    const std::int64_t flight = latency_ticks(program) - 1;
    const bool named = common_.collective != Collective::kAllToAll;
    for (std::size_t k = 0; k < progressions_.all.size(); ++k) {
      const Progression& one = progressions_.all[k];
      const std::size_t stage = numbers[one.stage];
      stages_.add(stage, one);
      if (one.link < 0) continue;
      const bool send = one.kind == ActionKind::kSend;
      const std::int64_t first = one.first + (send ? flight : 0);
      match_.add(static_cast<std::size_t>(one.link),
                 {.first = time_of(stage, first),
                  .slot = time_of(stage, first % stages_.period(stage)),
                  .segment = named ? one.segment : 0,
                  .block = one.block,
                  .cell = base + static_cast<std::uint32_t>(k),
                  .part = one.part,
                  .segment_count = one.segment_count,
                  .once = one.once},
                 send);
    }
    return {};
  }

  // Makes room for the ends that add_node() adds.
  void make_room(const Program& program) {
    std::vector<LinkMatch::Room> rooms(links_count(program));
    for (std::uint32_t link = 0; link < rooms.size(); ++link) {
      rooms[link].peer = peer_of(program, link);
    }
    for (const Progression& one : progressions_.all) {
      if (one.link < 0) continue;
      LinkMatch::Room& room = rooms[static_cast<std::size_t>(one.link)];
      ++(one.kind == ActionKind::kSend ? room.sends : room.receives);
    }
    match_.begin_node(rooms);
  }

  // Properties matching and deadlock: the sends and receives of each link are the same
  // progressions.
  ProofResult match(bool last) {
    auto wrong = match_.end_node(
        [this](std::uint32_t send, std::uint32_t receive) { flow_.connect(send, receive); });
    if (!wrong && last) wrong = match_.finish();
    if (!wrong) return {};
    // Ends of different stages may agree on their first blocks and differ later.
    for (std::int64_t blocks = wrong->end.block + 1; blocks <= wrong->end.block + 1 + 2 * stride_;
         blocks += stride_) {
      if (Finding finding = expand_at(blocks, {wrong->from, wrong->to})) return finding;
      if (Finding finding = check_link(schedule_, wrong->from, wrong->to)) return finding;
    }
    return Undecided{"the ends of link " + topology_.node_name(wrong->from) + " -> " +
                     topology_.node_name(wrong->to) + " go on differently"};
  }

  // Expands these nodes for the smallest N >= blocks that occurs.
  Finding expand_at(std::int64_t blocks, const std::vector<std::uint32_t>& nodes) {
    set_blocks(schedule_, single_ ? next_blocks(common_, 1) : next_blocks(common_, blocks));
    for (const std::uint32_t node : nodes) {
      const Program& program = programs_(node);
      if (Finding finding = check_size(schedule_, node, program)) return finding;
      schedule_.instances[node] = expand(program, schedule_.blocks);
    }
    return std::nullopt;
  }

  // Property steps. From N = stride * (head + 1) onward, the steps of each stage and the claims
  // grow by constants from N to N + stride. Claims that are exact up to three times this N are
  // exact for every N, if no stage grows faster than its phase.
  ProofResult check_steps() {
    Steps sum;
    sum.stride = stride_ * (head_ + 1);
    const std::int64_t last = single_ ? next_blocks(common_, 1) : 3 * sum.stride;
    stages_.finish();
    for (std::int64_t blocks = single_ ? last : 1; blocks <= last; ++blocks) {
      std::int64_t whole = 0;
      if (next_blocks(common_, blocks) != blocks) {
        sum.first.push_back(0);
        continue;
      }
      for (std::uint32_t phase = 0; phase < common_.phases_count; ++phase) {
        const std::int64_t used = stages_.phase_used(phase, blocks);
        ProofResult result = check_claim(common_.phases[phase].steps_ref, blocks, used,
                                         "phase " + std::to_string(phase) + " claims ");
        if (!result.passed()) return result;
        whole += used;
      }
      ProofResult result = check_claim(common_.steps_ref, blocks, whole, "the schedule claims ");
      if (!result.passed()) return result;
      sum.first.push_back(whole);
    }
    KnownBounds known = all_bounds(topology_, common_, verdict_.bound_facts);
    schedule_.bounds = std::move(known.all);
    verdict_.bounds_limited = std::move(known.limited);
    if (single_) {
      set_blocks(schedule_, last);
      return check_bound(schedule_, sum.first.back());
    }
    for (std::int64_t blocks = 2 * sum.stride + 1; blocks <= last; ++blocks) {
      if (next_blocks(common_, blocks) != blocks || !stages_.overtakes(blocks)) continue;
      return Undecided{"a phase takes longer than it claims for large N"};
    }
    return check_bound_for_all(schedule_, sum);
  }

  ProofResult check_claim(std::uint32_t ref, std::int64_t blocks, std::int64_t taken,
                          const std::string& who) {
    const Count& count = common_.counts[ref];
    const std::int64_t claimed = count_value(count, blocks);
    if (!single_ && count.c != 0 && count.e > 1 && stride_ % count.e != 0) {
      return Undecided{"the claimed steps do not go on as the blocks do"};
    }
    if (claimed == taken) return {};
    if (!single_ && claimed < taken && topology_.ranks() <= kMaxRanksToPhrase) {
      // Too few steps cut instances off. That may be intended, but it is not periodic.
      return Undecided{who + "too few steps for all blocks of its actions"};
    }
    set_blocks(schedule_, blocks);
    return found(Property::kSteps, schedule_, -1, nullptr,
                 who + counted(claimed, "step") + ", but its actions take " +
                     std::to_string(taken) + "; the claim must be exact");
  }

  // Property data flow, for the first block of every progression.
  Finding follow() {
    const auto bad = flow_.follow(schedule_);
    if (bad) return wrong_operands(*bad);
    if (flow_.sets().intervals_read() > schedule_.max_instances)
      return check_sets(schedule_, flow_.sets());
    if (common_.collective == Collective::kBarrier) return check_barrier();
    const auto wrong = flow_.check_results();
    if (!wrong) return std::nullopt;
    set_blocks(schedule_, single_ ? stride_ : next_blocks(common_, wrong->block + 1));
    return wrong_result(schedule_, flow_.sets(), wrong->node, wrong->segment, wrong->block,
                        wrong->value, wrong->expected);
  }

  Finding wrong_operands(const FlowGraph::BadCombine& bad) {
    const auto [node, position] = flow_.place_of(bad.cell);
    if (Finding finding = expand_at(stride_ * (head_ + 1), {node})) return finding;
    if (single_) {
      read_single(programs_(node), schedule_.instances[node], stride_, progressions_);
    } else if (!read_progressions(common_, programs_(node), progressions_).passed()) {
      return found(Property::kDataFlow, schedule_, node, nullptr, "its program changed");
    }
    const Progression& cell = progressions_.all[position];
    const std::vector<Instance>& all = schedule_.instances[node];
    const auto wrong = std::find_if(all.begin(), all.end(), [&cell](const Instance& one) {
      return one.action == cell.action && one.into.block == cell.block;
    });
    return found(Property::kDataFlow, schedule_, node, wrong == all.end() ? nullptr : &*wrong,
                 flow_.sets().why_not_combined(bad.left, bad.right, join_of(common_)));
  }

  // A rank waits for another, directly or not, if it ever receives data that contains its arrival.
  Finding check_barrier() {
    const auto unheard = flow_.check_barrier();
    if (!unheard) return std::nullopt;
    set_blocks(schedule_, stride_);
    return not_heard(schedule_, flow_.sets(), unheard->first, unheard->second);
  }

  // Property links: the load of each link in the busiest step of a period, and under any timing
  // skew.
  ProofResult check_links() {
    if (!options_.links) return {};
    if (verdict_.bound_facts
            .neighbours) {  // the port check has counted the messages of each link, and found no excess
      verdict_.busiest = ranks_->busiest();
      return {};
    }
    if (stages_.share_a_phase() && !single_) {
      return Undecided{"the routes of actions that go on at different paces are not followed"};
    }
    // With a head, a progression begins up to head_ strides after the first block.
    const std::int64_t together =
        stages_.blocks_together(send_ticks(common_)) + (single_ ? 0 : head_ * stride_);
    set_blocks(schedule_, single_ ? stride_ : next_blocks(common_, together));
    std::vector<LinkUse> uses;
    for (std::uint32_t node = 0; node < program_nodes(common_); ++node) {
      ProofResult result = add_uses(node, together / stride_, uses);
      if (!result.passed()) return result;
    }
    return check_loads(schedule_, std::move(uses), verdict_);
  }

  // Adds the links that the node's sends use, by their step modulo the period. With a head, some
  // sends exist once and others begin later: then by step, in as many periods as there are rounds
  // until all have begun. Afterwards no step has more.
  ProofResult add_uses(std::uint32_t node, std::int64_t rounds, std::vector<LinkUse>& uses) {
    const Program& program = programs_(node);
    ProofResult result =
        single_ ? read_only_blocks(node, program) : read_every_blocks(node, program);
    if (!result.passed()) return result;
    for (const Progression& one : progressions_.all) {
      if (one.kind != ActionKind::kSend || one.part > 0) continue;
      const std::uint32_t peer = peer_of(program, static_cast<std::uint32_t>(one.link));
      const std::size_t stage = stages_.number_of(progressions_.stages[one.stage]);
      const std::int64_t period = stages_.period(stage);
      const std::int64_t begin = head_ > 0 ? one.first : one.first % period;
      const std::int64_t end = head_ > 0 && !one.once ? rounds * period : begin + 1;
      for (std::int64_t step = begin; step < end; step += period) {
        for (std::int64_t tick = 0; tick < std::min(send_ticks(common_), period); ++tick) {
          const std::int64_t slot = head_ > 0 ? step + tick : (step + tick) % period;
          uses.push_back({node, peer, time_of(stage, slot)});
        }
      }
    }
    return {};
  }

  const topology::Topology& topology_;
  const Programs& programs_;
  const VerifyOptions& options_;
  Verdict& verdict_;
  OwnedProgram common_;
  ExpandedSchedule schedule_;
  std::optional<RankProofs> ranks_;
  bool single_ = false;       // only one N occurs
  std::int64_t stride_ = 1;   // of all progressions; the only N, if single_
  std::int64_t head_ = 0;     // the largest RankProgressions::head of all nodes
  std::int64_t coarser_ = 0;  // the stride that is needed, if stride_ is not enough; otherwise 0
  RankProgressions progressions_;  // of the current node
  StageSteps stages_{1};           // of all nodes
  LinkMatch match_;
  FlowGraph flow_;
};

}  // namespace

Outcome prove_every_blocks(const topology::Topology& topology, const Programs& programs,
                           const VerifyOptions& options, Verdict& verdict) {
  return Periodic(topology, programs, options, verdict).prove();
}

}  // namespace espalier::verify
