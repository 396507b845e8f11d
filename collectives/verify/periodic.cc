// The proof for every N at once. In a rigid schedule actions are streams: block b + stride*k of a
// segment in step first + pace*k, k = 0, 1, ..., for every N. What crosses between ranks then does
// not depend on N: links match, and data flow alike, for every block of every N if they do for the
// first block of every stream. What happens inside a rank is proven by rank (rank_proof.h). The
// argument stands in docs/verifier.md, "For every N".

#include "collectives/verify/periodic.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "collectives/verify/check.h"
#include "collectives/verify/flow.h"
#include "collectives/verify/rank_proof.h"
#include "collectives/verify/streams.h"

namespace espalier::verify {
namespace {

constexpr std::uint32_t kNone = 0xffffffffu;

// A stream of some node, as far as data flow needs it.
struct Cell {
  std::int64_t time = 0;  // of its first block: steps, of phases one above the other
  std::uint32_t node = 0;
  std::uint32_t a = kNone, b = kNone;  // cells that wrote the operands; kNone: own input
  std::int32_t ranks = -1;             // what it moves or makes, once known
  std::int32_t carried = -1;           // of which segment of their inputs
  std::int32_t block = 0;              // its first
  Kind kind = espalier_Kind_KIND_NONE;
  std::uint8_t action = 0;
};

// One end of a link's stream, at the receiver's time. Those that share a step for some N, on links
// of several lanes, have the same slot of the pace; they meet in the order of their actions, those
// of one action in the order of instances (`turn`: the one in the pace's first round).
struct End {
  std::uint32_t from = 0, to = 0;
  std::int64_t time = 0, slot = 0;
  std::int32_t segment = 0, block = 0;  // in an all-to-all segments are each end's own: 0
  std::uint32_t cell = 0, action = 0;
  std::int64_t turn = 0;

  [[nodiscard]] auto order() const { return std::tuple(from, to, slot, action, turn); }
  friend bool operator<(const End& a, const End& b) { return a.order() < b.order(); }
  [[nodiscard]] bool meets(const End& other) const {
    return std::tuple(from, to, time, segment, block) ==
           std::tuple(other.from, other.to, other.time, other.segment, other.block);
  }
};

// What a block of a rank's output holds at the end.
struct Result {
  std::uint32_t node = 0, segment = 0, block = 0, cell = kNone;
};

class Periodic {
 public:
  Periodic(const topology::Topology& topology, const Programs& programs, const Options& options,
           Verdict& verdict)
      : topology_(topology),
        programs_(programs),
        options_(options),
        verdict_(verdict),
        ranks_(at_, verdict) {}

  Outcome prove() {
    verdict_.slot = verdict_.async = options_.links;
    Finding finding = read_ranks();
    // A node's blocks may take more turns than those of the nodes before it.
    for (std::int64_t tried = 0; coarser_ > 0 && tried < 4; ++tried) {
      stride_ = coarser_;
      finding = read_ranks();
    }
    if (coarser_ > 0) verdict_.limited = "its blocks take too many turns";
    if (!finding && !unknown()) finding = check_linear_steps();
    if (unknown()) return Outcome::kUnknown;
    if (!finding) finding = match();
    if (!finding) finding = flow();
    if (!finding) finding = check_links();
    const std::int64_t first = next_blocks(common_, 1);
    for (const std::int64_t blocks : {first, ranks_.most_blocks()}) {
      set_blocks(at_, blocks);
      if (!finding) finding = check_witnesses(at_, at_.steps());
    }
    if (finding) {
      verdict_.counterexample = *finding;
      return Outcome::kRefused;
    }
    verdict_.valid = verdict_.for_all = true;
    verdict_.proven_blocks = ranks_.most_blocks();
    verdict_.period = ranks_.period();
    verdict_.witnesses = describe(at_.witnesses);
    verdict_.steps_at_one = phase_steps(common_, first);
    verdict_.steps_at_most = phase_steps(common_, verdict_.proven_blocks);
    return Outcome::kProven;
  }

 private:
  [[nodiscard]] bool unknown() const { return !verdict_.limited.empty(); }

  // Steps of different phases, on one axis that is the same for every N.
  [[nodiscard]] static std::int64_t time_of(std::uint32_t phase, std::int64_t first) {
    return (static_cast<std::int64_t>(phase) << 48) + first;
  }

  Finding read_ranks() {
    at_.topology = &topology_;
    at_.common = &common_;
    at_.most_instances = options_.max_instances;
    at_.most_in_total = options_.max_instances_total;
    coarser_ = 0;
    cells_.clear();
    sends_.clear();
    receives_.clear();
    results_.clear();
    paces_.clear();
    neighbours_ = true;
    for (std::uint32_t node = 0; node == 0 || node < program_nodes(common_); ++node) {
      const Program& program = programs_(node);
      if (node == 0) begin(program);
      if (Finding finding = check_agreement(topology_, common_, node, program)) return finding;
      std::string& why = verdict_.limited;
      const RankFlow* inside = nullptr;
      streams_.stride = stride_;
      if (!unknown()) why = read_streams(common_, program, streams_);
      if (!unknown() && streams_.stride != stride_) {
        coarser_ = streams_.stride;
        return std::nullopt;
      }
      if (!unknown()) why = check_paces();
      Finding finding;
      if (!unknown()) finding = ranks_.prove(node, program, streams_, inside, why);
      if (unknown()) why = topology_.node_name(node) + ": " + why;
      if (finding || unknown()) return finding;
      add_rank(node, program, *inside);
      if (options_.progress && node % 1024 == 0) {
        options_.progress(0.8 * node / program_nodes(common_));
      }
    }
    return std::nullopt;
  }

  void begin(const Program& program) {
    common_ = program;
    // N keeps to a residue of the stride, too.
    const auto mod = std::clamp<std::int64_t>(common_.residue_mod, 1, kMostStride);
    if (mod < common_.residue_mod) verdict_.limited = "the residue takes too many turns";
    stride_ = std::lcm(stride_, mod);
    at_.instances.resize(std::min(program_nodes(common_), topology_.nodes()));
    used_.assign(program.phases_count, {});
    for (auto& used : used_) used.assign(static_cast<std::size_t>(stride_), -1);
    if (!cuts_messages(program)) verdict_.limited = "only one N occurs";
  }

  // Phases go on at one pace everywhere.
  std::string check_paces() {
    paces_.resize(streams_.pace.size(), 0);
    for (std::size_t phase = 0; phase < paces_.size(); ++phase) {
      if (streams_.pace[phase] == 0) continue;
      if (paces_[phase] != 0 && paces_[phase] != streams_.pace[phase]) {
        return "phase " + std::to_string(phase) + " goes on at another pace than elsewhere";
      }
      paces_[phase] = streams_.pace[phase];
    }
    return {};
  }

  void add_rank(std::uint32_t node, const Program& program, const RankFlow& inside) {
    neighbours_ = neighbours_ && only_neighbours(topology_, program);
    const auto base = static_cast<std::uint32_t>(cells_.size());
    const std::int64_t flight = latency_ticks(program) - 1;
    const auto cell_of = [base](std::int32_t stream) {
      return stream < 0 ? kNone : base + static_cast<std::uint32_t>(stream);
    };
    const bool named = common_.collective != espalier_Collective_ALL_TO_ALL;
    for (std::size_t k = 0; k < streams_.all.size(); ++k) {
      const Stream& stream = streams_.all[k];
      const RankFlow::Sources& from = inside.sources[k];
      const auto block = static_cast<std::int32_t>(stream.block);
      cells_.push_back({time_of(stream.phase, stream.first), node, cell_of(from.a), cell_of(from.b),
                        -1, static_cast<std::int32_t>(stream.from_segment), block, stream.kind,
                        static_cast<std::uint8_t>(stream.action)});
      std::int64_t& latest = used_[stream.phase][static_cast<std::size_t>(stream.block)];
      latest = std::max(latest, stream.first);
      if (stream.link < 0) continue;
      const std::uint32_t peer = peer_of(program, static_cast<std::uint32_t>(stream.link));
      const bool send = stream.kind == espalier_Kind_SEND;
      const std::int64_t first = stream.first + (send ? flight : 0);
      const std::int64_t pace = streams_.pace[stream.phase];
      (send ? sends_ : receives_)
          .push_back({send ? node : peer, send ? peer : node, time_of(stream.phase, first),
                      time_of(stream.phase, first % pace),
                      named ? static_cast<std::int32_t>(stream.segment) : 0, block,
                      base + static_cast<std::uint32_t>(k), stream.action,
                      stream.instance - stream.every * (first / pace)});
    }
    const Extent output = buffer_extent(program, espalier_Buffer_OUTPUT);
    const auto stride = static_cast<std::uint32_t>(stride_);
    for (std::uint32_t segment = 0; segment < common_.segments; ++segment) {
      if (output == Extent::kNothing || (output == Extent::kOwn && segment != node)) continue;
      for (std::uint32_t block = 0; block < stride; ++block) {
        const std::int32_t last = inside.results[segment * stride + block];
        results_.push_back({node, segment, block, cell_of(last)});
      }
    }
  }

  // Steps that the actions of a phase take.
  [[nodiscard]] std::int64_t used_steps(std::uint32_t phase, std::int64_t blocks) const {
    std::int64_t used = 0;
    for (std::int64_t block = 0; block < std::min(blocks, stride_); ++block) {
      const std::int64_t first = used_[phase][static_cast<std::size_t>(block)];
      const std::int64_t rounds = (blocks - block - 1) / stride_;  // of its stream, but one
      if (first >= 0) used = std::max(used, first + paces_[phase] * rounds + 1);
    }
    return used;
  }

  // Point 8. From N = stride on, used steps and claims go on by the same every `stride` blocks:
  // those that agree up to N = 3 stride always do.
  Finding check_linear_steps() {
    Steps sum;
    sum.stride = stride_;
    for (std::int64_t blocks = 1; blocks <= 3 * stride_; ++blocks) {
      std::int64_t whole = 0;
      if (next_blocks(common_, blocks) != blocks) {
        sum.first.push_back(0);
        continue;
      }
      for (std::uint32_t phase = 0; phase < common_.phases_count; ++phase) {
        const std::int64_t used = used_steps(phase, blocks);
        Finding finding = check_claim(common_.phases[phase].steps_ref, blocks, used,
                                      "phase " + std::to_string(phase) + " claims ");
        if (finding || unknown()) return finding;
        whole += used;
      }
      Finding finding = check_claim(common_.steps_ref, blocks, whole, "the schedule claims ");
      if (finding || unknown()) return finding;
      sum.first.push_back(whole);
    }
    at_.witnesses = witnesses(topology_, common_, 1, {options_.links, neighbours_});
    return check_bound(at_, sum, verdict_.limited);
  }

  Finding check_claim(std::uint32_t ref, std::int64_t blocks, std::int64_t taken,
                      const std::string& who) {
    const Count& count = common_.counts[ref];
    const std::int64_t claimed = count_value(count, blocks);
    if (count.c != 0 && count.e > 1 && stride_ % count.e != 0) {
      verdict_.limited = "the claimed steps do not go on as the blocks do";
      return std::nullopt;
    }
    if (claimed == taken) return std::nullopt;
    if (claimed < taken && topology_.ranks() <= kMostRanksToPhrase) {
      // Steps that are not there cut instances off; that may be meant, but is not rigid.
      verdict_.limited = who + "too few steps for all blocks of its actions";
      return std::nullopt;
    }
    set_blocks(at_, blocks);
    return found(Point::kSteps, at_, -1, nullptr,
                 who + std::to_string(claimed) + " steps, but its actions take " +
                     std::to_string(taken) + "; the claim must be exact");
  }

  // Point 1 and 4: each link's sends and receives are the same streams.
  Finding match() {
    std::sort(sends_.begin(), sends_.end());
    std::sort(receives_.begin(), receives_.end());
    for (std::size_t k = 0; k < std::max(sends_.size(), receives_.size()); ++k) {
      const bool sent = k < sends_.size(), received = k < receives_.size();
      if (sent && received && sends_[k].meets(receives_[k])) {
        cells_[receives_[k].cell].a = sends_[k].cell;
        continue;
      }
      const auto when = [](const End& end) {
        return std::tuple(end.from, end.to, end.slot, end.time, end.segment, end.block);
      };
      const bool of_send = sent && (!received || when(sends_[k]) < when(receives_[k]));
      const End& wrong = of_send ? sends_[k] : receives_[k];
      if (Finding finding = expand_at(wrong.block + 1, {wrong.from, wrong.to})) return finding;
      if (Finding finding = check_link(at_, wrong.from, wrong.to)) return finding;
      return found(Point::kMatching, at_, of_send ? wrong.from : wrong.to, nullptr,
                   "the ends of a link name different steps or blocks");
    }
    receives_ = {};
    return std::nullopt;
  }

  // For the least N from `blocks` on that can be.
  Finding expand_at(std::int64_t blocks, const std::vector<std::uint32_t>& nodes) {
    set_blocks(at_, next_blocks(common_, blocks));
    for (const std::uint32_t node : nodes) {
      const Program& program = programs_(node);
      if (Finding finding = check_size(at_, node, program)) return finding;
      at_.instances[node] = expand(program, blocks);
    }
    return std::nullopt;
  }

  // Point 7, of the first block of every stream.
  Finding flow() {
    std::vector<std::pair<std::int64_t, std::uint32_t>> order;  // by time, sends, receives, others
    order.reserve(cells_.size());
    for (std::uint32_t cell = 0; cell < cells_.size(); ++cell) {
      const Kind kind = cells_[cell].kind;
      const int turn = kind == espalier_Kind_SEND ? 0 : kind == espalier_Kind_RECEIVE ? 1 : 2;
      order.emplace_back(cells_[cell].time * 4 + turn, cell);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [time, at] : order) {
      Cell& cell = cells_[at];
      cell.ranks = value(cell, cell.a);
      if (cell.a != kNone) cell.carried = cells_[cell.a].carried;
      if (cell.kind != espalier_Kind_COMBINE) continue;
      const std::int32_t left = cell.ranks, right = value(cell, cell.b);
      cell.ranks = sets_.combine(left, right, join_of(common_));
      if (cell.ranks < 0) return wrong_operands(cell, left, right);
      if (Finding finding = check_sets(at_, sets_)) return finding;
    }
    return check_results();
  }

  std::int32_t value(const Cell& cell, std::uint32_t source) {
    return source == kNone ? sets_.range(cell.node, cell.node) : cells_[source].ranks;
  }

  Finding wrong_operands(const Cell& cell, std::int32_t left, std::int32_t right) {
    if (Finding finding = expand_at(cell.block + 1, {cell.node})) return finding;
    const std::vector<Instance>& all = at_.instances[cell.node];
    const auto wrong = std::find_if(all.begin(), all.end(), [&cell](const Instance& one) {
      return one.action == cell.action && one.into.block == cell.block;
    });
    return found(Point::kDataFlow, at_, cell.node, wrong == all.end() ? nullptr : &*wrong,
                 sets_.why_not_combined(left, right, join_of(common_)));
  }

  Finding check_results() {
    const Wanted all(common_);
    for (const Result& result : results_) {
      const std::int32_t wanted = all.ranks(sets_, result.node, result.segment);
      const Cell& last = result.cell == kNone ? Cell{} : cells_[result.cell];
      const bool astray = common_.collective == espalier_Collective_ALL_TO_ALL &&
                          last.carried != static_cast<std::int32_t>(result.node);
      if (last.ranks == wanted && !astray) continue;
      set_blocks(at_, next_blocks(common_, std::int64_t{result.block} + 1));
      const Value value = {last.ranks, last.carried, result.block};
      return wrong_result(at_, sets_, result.node, result.segment, result.block, value, wanted);
    }
    return std::nullopt;
  }

  // Point 3: what each link carries, in the busiest step of a period and under any drift.
  Finding check_links() {
    if (!options_.links) return std::nullopt;
    set_blocks(at_, 1);
    std::vector<LinkUse> uses;
    uses.reserve(sends_.size());
    const std::int64_t flight = latency_ticks(common_) - 1;
    for (const End& end : sends_) {
      const auto phase = static_cast<std::uint32_t>(end.time >> 48);
      const std::int64_t pace = paces_[phase];
      const std::int64_t first = (end.time & ((std::int64_t{1} << 48) - 1)) - flight;
      for (std::int64_t tick = 0; tick < std::min(send_ticks(common_), pace); ++tick) {
        uses.push_back({end.from, end.to, time_of(phase, (first + tick) % pace)});
      }
    }
    return check_loads(at_, std::move(uses), verdict_);
  }

  const topology::Topology& topology_;
  const Programs& programs_;
  const Options& options_;
  Verdict& verdict_;
  OwnedProgram common_;
  Case at_;
  RankProofs ranks_;
  std::int64_t stride_ = 1;                      // of all streams
  std::int64_t coarser_ = 0;                     // what it must be, where that is not enough
  Streams streams_;                              // of the node at hand
  std::vector<std::int64_t> paces_;              // by phase
  std::vector<std::vector<std::int64_t>> used_;  // by phase and first block: the last first step
  std::vector<Cell> cells_;
  std::vector<End> sends_, receives_;
  std::vector<Result> results_;
  RankSets sets_;
  bool neighbours_ = true;  // all peers are
};

}  // namespace

Outcome prove_every_blocks(const topology::Topology& topology, const Programs& programs,
                           const Options& options, Verdict& verdict) {
  return Periodic(topology, programs, options, verdict).prove();
}

}  // namespace espalier::verify
