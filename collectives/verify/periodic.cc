// The proof for every N at once. A periodic schedule's actions are progressions: block
// b + stride*k of a segment in step first + period*k of their stage, k = 0, 1, ..., for every N.
// The messages between ranks then do not depend on N: links match, and data flow alike, for every
// block of every N if they do for the first block of every progression. Each rank alone is proven
// in rank_proof.h. Schedules with only one N are proven in the same way, each instance a
// progression of its own. The argument is in docs/verifier.md, "For every N".

#include "collectives/verify/periodic.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "collectives/verify/check.h"
#include "collectives/verify/flow_graph.h"
#include "collectives/verify/link_match.h"
#include "collectives/verify/progressions.h"
#include "collectives/verify/rank_proof.h"
#include "collectives/verify/stage_steps.h"
#include "espalier/base/arithmetic.h"

namespace espalier::verify {
namespace {

// Progressions of all nodes in the memory of an instance that is expanded.
constexpr std::int64_t kProgressionsPerInstance = 8;

class Periodic {
 public:
  Periodic(const topology::Topology& topology, const Programs& programs, const Options& options,
           Verdict& verdict)
      : topology_(topology), programs_(programs), options_(options), verdict_(verdict) {
    at_.topology = &topology_;
    at_.common = &common_;
    at_.most_instances = options_.max_instances;
    at_.most_in_total = options_.max_instances_total;
  }

  Outcome prove() {
    verdict_.slot = verdict_.async = options_.links;
    Finding finding = read_nodes();
    // A node's blocks may take more turns than those of the nodes before it.
    for (std::int64_t tried = 0; coarser_ > 0 && tried < 4; ++tried) {
      stride_ = coarser_;
      finding = read_nodes();
    }
    if (coarser_ > 0) verdict_.limited = "its blocks take too many turns";
    if (!finding && !unknown()) finding = check_steps();
    if (!finding && !unknown()) finding = check_links();
    if (unknown()) return Outcome::kUnknown;
    if (!finding) finding = follow();
    const std::int64_t first = next_blocks(common_, 1);
    const std::int64_t last = single_ ? first : ranks_->max_blocks();
    for (const std::int64_t blocks : {first, last}) {
      if (finding) break;  // what is refused may name counts that are not there
      set_blocks(at_, blocks);
      finding = check_witnesses(at_, at_.steps());
    }
    if (finding) {
      verdict_.counterexample = *finding;
      return Outcome::kRefused;
    }
    verdict_.valid = verdict_.for_all = true;
    verdict_.proven_blocks = last;
    verdict_.period = stride_;
    verdict_.witnesses = describe(at_.witnesses);
    verdict_.steps_at_one = phase_steps(common_, first);
    verdict_.steps_at_most = phase_steps(common_, last);
    return Outcome::kProven;
  }

 private:
  [[nodiscard]] bool unknown() const { return !verdict_.limited.empty(); }

  // Steps of different stages, on one axis that is the same for every N.
  [[nodiscard]] static std::int64_t time_of(std::size_t stage, std::int64_t step) {
    return (static_cast<std::int64_t>(stage) << 48) + step;
  }

  Finding read_nodes() {
    coarser_ = 0;
    match_ = LinkMatch();
    flow_ = {};
    neighbours_ = true;
    run_ = 1;
    for (std::uint32_t node = 0; node == 0 || node < program_nodes(common_); ++node) {
      const Program& program = programs_(node);
      if (node == 0) begin(program);
      if (Finding finding = check_agreement(topology_, common_, node, program)) return finding;
      Finding finding = read_node(node, program);
      if (finding || coarser_ > 0) return finding;
      if (unknown()) {
        verdict_.limited = topology_.node_name(node) + ": " + verdict_.limited;
        return std::nullopt;
      }
      finding = match(node + 1 == program_nodes(common_));
      if (finding || unknown()) return finding;
      if (options_.progress && node % 1024 == 0) {
        options_.progress(0.8 * node / program_nodes(common_));
      }
    }
    return std::nullopt;
  }

  void begin(const Program& program) {
    common_ = program;
    single_ = !cuts_messages(program);
    // N keeps to a residue of the stride, too.
    const auto mod = std::clamp<std::int64_t>(common_.residue_mod, 1, kMaxStride);
    if (mod < common_.residue_mod) verdict_.limited = "the residue takes too many turns";
    stride_ = single_ ? next_blocks(common_, 1) : std::lcm(stride_, mod);
    if (single_ && stride_ > kMaxStride) verdict_.limited = "the only N is too large";
    if (!unknown()) stages_ = StageSteps(stride_);
    at_.instances.resize(std::min(program_nodes(common_), topology_.nodes()));
    ranks_.emplace(at_, verdict_);
    flow_.begin(common_);
  }

  Finding read_node(std::uint32_t node, const Program& program) {
    if (unknown()) return std::nullopt;
    Finding finding = single_ ? read_only_blocks(node, program) : read_every_blocks(node, program);
    if (finding || unknown() || coarser_ > 0) return finding;
    at_.spent += static_cast<std::int64_t>(progressions_.all.size());
    const auto cells = static_cast<std::int64_t>(flow_.size() + progressions_.all.size());
    if (cells > kProgressionsPerInstance * options_.max_instances ||
        at_.spent > options_.max_instances_total) {
      return too_large(Point::kForm, at_, node,
                       std::to_string(cells) +
                           " progressions up to here are more than can be "
                           "checked");
    }
    const RankFlow* inside = nullptr;
    finding = ranks_->prove(node, program, progressions_, inside, verdict_.limited);
    if (finding || unknown()) return finding;
    add_node(node, program, *inside);
    return std::nullopt;
  }

  Finding read_every_blocks(std::uint32_t node, const Program& program) {
    progressions_.stride = stride_;
    Unread unread = read_progressions(common_, program, progressions_);
    verdict_.progressions += progressions_.all.size();
    verdict_.limited = unread.why;
    if (unread.wrong_from > 0) {
      return ranks_->expand_wrong(node, program, unread.wrong_from,
                                  "an instance that may not exist names no place",
                                  verdict_.limited);
    }
    if (!unknown() && progressions_.stride != stride_) coarser_ = progressions_.stride;
    return std::nullopt;
  }

  // The only N that occurs.
  Finding read_only_blocks(std::uint32_t node, const Program& program) {
    set_blocks(at_, stride_);
    if (Finding finding = check_size(at_, node, program)) return finding;
    std::vector<Instance>& all = at_.instances[node];
    all = expand(program, stride_);
    Finding finding = check_instances(at_, node, program);
    if (!finding) finding = check_ports(at_, node);
    if (!finding) {
      read_single(program, all, stride_, progressions_);
      verdict_.progressions += progressions_.all.size();
    }
    std::vector<Instance>().swap(all);
    return finding;
  }

  void add_node(std::uint32_t node, const Program& program, const RankFlow& inside) {
    neighbours_ = neighbours_ && only_neighbours(topology_, program);
    run_ = std::max(run_, longest_run(program));
    const std::uint32_t base = flow_.add_node(node, progressions_, inside);
    std::vector<std::size_t> numbers;
    for (const Stage& stage : progressions_.stages) {
      numbers.push_back(stages_.number_of(stage));
      if (numbers.back() == StageSteps::kMaxStages) {
        verdict_.limited = "its actions go on at too many different paces";
        return;
      }
    }
    make_room(program);
    const std::int64_t flight = latency_ticks(program) - 1;
    const bool named = common_.collective != espalier_Collective_ALL_TO_ALL;
    for (std::size_t k = 0; k < progressions_.all.size(); ++k) {
      const Progression& one = progressions_.all[k];
      const std::size_t stage = numbers[one.stage];
      stages_.add(stage, one);
      if (one.link < 0) continue;
      const bool send = one.kind == espalier_Kind_SEND;
      const std::int64_t first = one.first + (send ? flight : 0);
      LinkEnd end;
      end.first = time_of(stage, first);
      end.slot = time_of(stage, first % stages_.period(stage));
      end.segment = named ? one.segment : 0;
      end.block = one.block;
      end.cell = base + static_cast<std::uint32_t>(k);
      end.part = one.part;
      end.run = one.run;
      match_.add(static_cast<std::size_t>(one.link), end, send);
    }
  }

  // For the ends that add_node() adds.
  void make_room(const Program& program) {
    std::vector<LinkMatch::Room> rooms(links_count(program));
    for (std::uint32_t link = 0; link < rooms.size(); ++link) {
      rooms[link].peer = peer_of(program, link);
    }
    for (const Progression& one : progressions_.all) {
      if (one.link < 0) continue;
      LinkMatch::Room& room = rooms[static_cast<std::size_t>(one.link)];
      ++(one.kind == espalier_Kind_SEND ? room.sends : room.receives);
    }
    match_.begin_node(rooms);
  }

  // Points 1 and 4: each link's sends and receives are the same progressions.
  Finding match(bool last) {
    auto wrong = match_.end_node(
        [this](std::uint32_t send, std::uint32_t receive) { flow_.connect(send, receive); });
    if (!wrong && last) wrong = match_.finish();
    if (!wrong) return std::nullopt;
    // Ends of different stages may agree on their first blocks.
    for (std::int64_t blocks = wrong->end.block + 1; blocks <= wrong->end.block + 1 + 2 * stride_;
         blocks += stride_) {
      if (Finding finding = expand_at(blocks, {wrong->from, wrong->to})) return finding;
      if (Finding finding = check_link(at_, wrong->from, wrong->to)) return finding;
    }
    verdict_.limited = "the ends of link " + topology_.node_name(wrong->from) + " -> " +
                       topology_.node_name(wrong->to) + " go on differently";
    return std::nullopt;
  }

  // For the least N from `blocks` on that occurs.
  Finding expand_at(std::int64_t blocks, const std::vector<std::uint32_t>& nodes) {
    set_blocks(at_, single_ ? next_blocks(common_, 1) : next_blocks(common_, blocks));
    for (const std::uint32_t node : nodes) {
      const Program& program = programs_(node);
      if (Finding finding = check_size(at_, node, program)) return finding;
      at_.instances[node] = expand(program, at_.blocks);
    }
    return std::nullopt;
  }

  // Point 8. From N = stride on, each stage's steps and the claims grow by the same every `stride`
  // blocks: claims that agree up to N = 3 stride always do, if no stage grows faster than its
  // phase.
  Finding check_steps() {
    Steps sum;
    sum.stride = stride_;
    const std::int64_t last = single_ ? next_blocks(common_, 1) : 3 * stride_;
    stages_.finish();
    for (std::int64_t blocks = single_ ? last : 1; blocks <= last; ++blocks) {
      std::int64_t whole = 0;
      if (next_blocks(common_, blocks) != blocks) {
        sum.first.push_back(0);
        continue;
      }
      for (std::uint32_t phase = 0; phase < common_.phases_count; ++phase) {
        const std::int64_t used = stages_.phase_used(phase, blocks);
        Finding finding = check_claim(common_.phases[phase].steps_ref, blocks, used,
                                      "phase " + std::to_string(phase) + " claims ");
        if (finding || unknown()) return finding;
        whole += used;
      }
      Finding finding = check_claim(common_.steps_ref, blocks, whole, "the schedule claims ");
      if (finding || unknown()) return finding;
      sum.first.push_back(whole);
    }
    at_.witnesses = witnesses(topology_, common_, run_, {options_.links, neighbours_});
    if (single_) {
      set_blocks(at_, last);
      return check_bound(at_, sum.first.back());
    }
    for (std::int64_t blocks = 2 * stride_ + 1; blocks <= 3 * stride_; ++blocks) {
      if (next_blocks(common_, blocks) != blocks || !stages_.overtakes(blocks)) continue;
      verdict_.limited = "a phase takes longer than it claims for large N";
      return std::nullopt;
    }
    return check_bound(at_, sum, verdict_.limited);
  }

  Finding check_claim(std::uint32_t ref, std::int64_t blocks, std::int64_t taken,
                      const std::string& who) {
    const Count& count = common_.counts[ref];
    const std::int64_t claimed = count_value(count, blocks);
    if (!single_ && count.c != 0 && count.e > 1 && stride_ % count.e != 0) {
      verdict_.limited = "the claimed steps do not go on as the blocks do";
      return std::nullopt;
    }
    if (claimed == taken) return std::nullopt;
    if (!single_ && claimed < taken && topology_.ranks() <= kMostRanksToPhrase) {
      // Steps that are not there cut instances off; that may be meant, but is not periodic.
      verdict_.limited = who + "too few steps for all blocks of its actions";
      return std::nullopt;
    }
    set_blocks(at_, blocks);
    return found(Point::kSteps, at_, -1, nullptr,
                 who + std::to_string(claimed) + " steps, but its actions take " +
                     std::to_string(taken) + "; the claim must be exact");
  }

  // Point 7, of the first block of every progression.
  Finding follow() {
    const auto bad = flow_.follow(at_);
    if (bad) return wrong_operands(*bad);
    if (flow_.sets().intervals_read() > at_.most_instances) return check_sets(at_, flow_.sets());
    if (common_.collective == espalier_Collective_BARRIER) return check_barrier();
    const auto wrong = flow_.check_results();
    if (!wrong) return std::nullopt;
    set_blocks(at_, single_ ? stride_ : next_blocks(common_, wrong->block + 1));
    return wrong_result(at_, flow_.sets(), wrong->node, wrong->segment, wrong->block, wrong->value,
                        wrong->wanted);
  }

  Finding wrong_operands(const FlowGraph::BadCombine& bad) {
    const auto [node, position] = flow_.place_of(bad.cell);
    if (Finding finding = expand_at(stride_, {node})) return finding;
    if (single_) {
      read_single(programs_(node), at_.instances[node], stride_, progressions_);
    } else if (!read_progressions(common_, programs_(node), progressions_).none()) {
      return found(Point::kDataFlow, at_, node, nullptr, "its program changed");
    }
    const Progression& cell = progressions_.all[position];
    const std::vector<Instance>& all = at_.instances[node];
    const auto wrong = std::find_if(all.begin(), all.end(), [&cell](const Instance& one) {
      return one.action == cell.action && one.into.block == cell.block;
    });
    return found(Point::kDataFlow, at_, node, wrong == all.end() ? nullptr : &*wrong,
                 flow_.sets().why_not_combined(bad.left, bad.right, join_of(common_)));
  }

  // A rank has heard of another before it ends if it has ever received what that rank sent.
  Finding check_barrier() {
    const auto deaf = flow_.check_barrier();
    if (!deaf) return std::nullopt;
    set_blocks(at_, stride_);
    return not_heard(at_, flow_.sets(), deaf->first, deaf->second);
  }

  // Point 3: what each link carries, in the busiest step of a period and under any drift.
  Finding check_links() {
    if (!options_.links) return std::nullopt;
    if (neighbours_) {  // the port check has counted each link's messages, and found no more
      verdict_.busiest = ranks_->busiest();
      return std::nullopt;
    }
    if (stages_.share_a_phase() && !single_) {
      verdict_.limited = "the routes of actions that go on at different paces are not followed";
      return std::nullopt;
    }
    const std::int64_t together = stages_.blocks_together(send_ticks(common_));
    set_blocks(at_, single_ ? stride_ : next_blocks(common_, together));
    std::vector<LinkUse> uses;
    for (std::uint32_t node = 0; node < program_nodes(common_); ++node) {
      if (Finding finding = add_uses(node, uses)) return finding;
    }
    return check_loads(at_, std::move(uses), verdict_);
  }

  Finding add_uses(std::uint32_t node, std::vector<LinkUse>& uses) {
    const Program& program = programs_(node);
    Finding finding = single_ ? read_only_blocks(node, program) : read_every_blocks(node, program);
    if (finding || unknown()) return finding;
    for (const Progression& one : progressions_.all) {
      if (one.kind != espalier_Kind_SEND || one.part > 0) continue;
      const std::uint32_t peer = peer_of(program, static_cast<std::uint32_t>(one.link));
      const std::size_t stage = stages_.number_of(progressions_.stages[one.stage]);
      const std::int64_t period = stages_.period(stage);
      for (std::int64_t tick = 0; tick < std::min(send_ticks(common_), period); ++tick) {
        uses.push_back({node, peer, time_of(stage, (one.first + tick) % period)});
      }
    }
    return std::nullopt;
  }

  const topology::Topology& topology_;
  const Programs& programs_;
  const Options& options_;
  Verdict& verdict_;
  OwnedProgram common_;
  Case at_;
  std::optional<RankProofs> ranks_;
  bool single_ = false;            // only one N occurs
  std::int64_t stride_ = 1;        // of all progressions; that N, if it is the only one
  std::int64_t coarser_ = 0;       // what it must be, where that is not enough
  RankProgressions progressions_;  // of the node at hand
  StageSteps stages_{1};           // of all nodes
  LinkMatch match_;
  FlowGraph flow_;
  bool neighbours_ = true;  // all peers are
  std::int64_t run_ = 1;    // longest of any message
};

}  // namespace

Outcome prove_every_blocks(const topology::Topology& topology, const Programs& programs,
                           const Options& options, Verdict& verdict) {
  return Periodic(topology, programs, options, verdict).prove();
}

}  // namespace espalier::verify
