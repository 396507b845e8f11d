// The proof for every N at once. In a rigid schedule every action is a stream: block k of a segment
// in step first + period*k, k = 0 .. N-1, for every N. What crosses between ranks then depends on
// the streams alone, not on N: links match, and data flow alike, for every block of every N if they
// do for block 0. What happens inside a rank is proven by rank (rank_proof.h). The argument stands
// in docs/verifier.md, "For every N".

#include "collectives/verify/periodic.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "collectives/verify/check.h"
#include "collectives/verify/flow.h"
#include "collectives/verify/rank_proof.h"
#include "collectives/verify/streams.h"

namespace espalier::verify {
namespace {

constexpr std::uint32_t kNone = 0xffffffffu;

// An action of some rank, as far as data flow needs it.
struct Cell {
  std::int64_t time = 0;  // steps, of phases one above the other, at N = 1
  std::uint32_t node = 0;
  std::uint32_t a = kNone, b = kNone;  // cells that wrote the operands; kNone: own input
  std::int32_t ranks = -1;             // what it moves or makes, once known
  Kind kind = espalier_Kind_KIND_NONE;
  std::uint8_t action = 0;
};

// One end of a link's stream, at the receiver's time. Those that share a step for some N, on links
// of several lanes, have the same slot of the period; they meet in the order of their actions.
struct End {
  std::uint32_t from = 0, to = 0;
  std::int64_t time = 0, slot = 0;
  std::int32_t segment = 0;
  std::uint32_t cell = 0;

  [[nodiscard]] auto order() const { return std::tuple(from, to, slot, cell); }
  friend bool operator<(const End& a, const End& b) { return a.order() < b.order(); }
  [[nodiscard]] bool meets(const End& other) const {
    return std::tuple(from, to, time, segment) ==
           std::tuple(other.from, other.to, other.time, other.segment);
  }
};

// What a rank's output segment holds at the end.
struct Result {
  std::uint32_t node = 0, segment = 0, cell = kNone;
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
    if (!finding && !unknown()) finding = check_linear_steps();
    if (unknown()) return Outcome::kUnknown;
    if (!finding) finding = match();
    if (!finding) finding = flow();
    if (!finding) finding = check_links();
    for (const std::int64_t blocks : {std::int64_t{1}, ranks_.most_blocks()}) {
      if (finding) break;
      set_blocks(at_, blocks);
      finding = check_witnesses(at_, at_.steps());
    }
    if (finding) {
      verdict_.counterexample = *finding;
      return Outcome::kRefused;
    }
    verdict_.valid = verdict_.for_all = true;
    verdict_.proven_blocks = ranks_.most_blocks();
    verdict_.period = ranks_.period();
    verdict_.witnesses = describe(at_.witnesses);
    verdict_.steps_at_one = phase_steps(common_, 1);
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
    for (std::uint32_t node = 0; node == 0 || node < program_nodes(common_); ++node) {
      const Program& program = programs_(node);
      if (node == 0) begin(program);
      if (Finding finding = check_agreement(topology_, common_, node, program)) return finding;
      std::string& why = verdict_.limited;
      const RankFlow* inside = nullptr;
      if (!unknown()) why = read_streams(common_, program, streams_);
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
    at_.instances.resize(std::min(program_nodes(common_), topology_.nodes()));
    used_.assign(program.phases_count, 0);
    if (!cuts_messages(program)) verdict_.limited = "only one N occurs";
    if (program.collective == espalier_Collective_ALL_TO_ALL) {
      verdict_.limited = "in an all-to-all segments name other ranks";
    }
    if (program.residue_mod > 1) verdict_.limited = "N is raised to a residue";
  }

  void add_rank(std::uint32_t node, const Program& program, const RankFlow& inside) {
    const auto base = static_cast<std::uint32_t>(cells_.size());
    const std::int64_t flight = latency_ticks(program) - 1;
    const auto cell_of = [base](std::int16_t action) {
      return action < 0 ? kNone : base + static_cast<std::uint32_t>(action);
    };
    for (const Stream& stream : streams_.all) {
      const RankFlow::Sources& from = inside.sources[stream.action];
      cells_.push_back({time_of(stream.phase, stream.first), node, cell_of(from.a), cell_of(from.b),
                        -1, stream.kind, static_cast<std::uint8_t>(stream.action)});
      used_[stream.phase] = std::max(used_[stream.phase], stream.first + 1);
      if (stream.link < 0) continue;
      const std::uint32_t peer = program.peers[stream.link];
      const bool send = stream.kind == espalier_Kind_SEND;
      const std::int64_t time = cells_.back().time + (send ? flight : 0);
      const std::int64_t slot = stream.first + (send ? flight : 0);
      (send ? sends_ : receives_)
          .push_back({send ? node : peer, send ? peer : node, time,
                      time_of(stream.phase, slot % program.phases[stream.phase].period),
                      static_cast<std::int32_t>(stream.segment), base + stream.action});
    }
    const Extent output = buffer_extent(program, espalier_Buffer_OUTPUT);
    for (std::uint32_t segment = 0; segment < common_.segments; ++segment) {
      if (output == Extent::kWhole || (output == Extent::kOwn && segment == node)) {
        results_.push_back({node, segment, cell_of(inside.results[segment])});
      }
    }
  }

  // Point 8, as lines in N: two that agree at N = 1 and at N = 2 are the same.
  Finding check_linear_steps() {
    Linear sum;
    for (std::uint32_t phase = 0; phase < common_.phases_count; ++phase) {
      const std::int64_t period = common_.phases[phase].period;
      Linear used;
      if (used_[phase] > 0) used = {used_[phase] - period, period};
      Finding finding = check_claim(common_.phases[phase].steps_ref, used,
                                    "phase " + std::to_string(phase) + " claims ");
      if (finding || unknown()) return finding;
      sum = {sum.a + used.a, sum.b + used.b};
    }
    Finding finding = check_claim(common_.steps_ref, sum, "the schedule claims ");
    if (finding || unknown()) return finding;
    at_.witnesses = witnesses(topology_, common_, 1, options_.links);
    return check_bound(at_, sum, verdict_.limited);
  }

  Finding check_claim(std::uint32_t count, const Linear& used, const std::string& who) {
    for (std::int64_t blocks = 1; blocks <= 2; ++blocks) {
      const std::int64_t claimed = count_value(common_.counts[count], blocks);
      const std::int64_t taken = used.a + used.b * blocks;
      if (claimed == taken) continue;
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
    Linear claimed;
    if (!is_linear(common_.counts[count], claimed)) {
      verdict_.limited = "the claimed steps are not linear in N";
    }
    return std::nullopt;
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
        return std::tuple(end.from, end.to, end.slot, end.time, end.segment);
      };
      const bool of_send = sent && (!received || when(sends_[k]) < when(receives_[k]));
      const End& wrong = of_send ? sends_[k] : receives_[k];
      if (Finding finding = expand_at_one({wrong.from, wrong.to})) return finding;
      if (Finding finding = check_link(at_, wrong.from, wrong.to)) return finding;
      return found(Point::kMatching, at_, of_send ? wrong.from : wrong.to, nullptr,
                   "the ends of a link name different steps or blocks");
    }
    receives_ = {};
    return std::nullopt;
  }

  Finding expand_at_one(const std::vector<std::uint32_t>& nodes) {
    set_blocks(at_, 1);
    for (const std::uint32_t node : nodes) {
      const Program& program = programs_(node);
      if (Finding finding = check_size(at_, node, program)) return finding;
      at_.instances[node] = expand(program, 1);
    }
    return std::nullopt;
  }

  // Point 7, of block 0 of every segment at N = 1.
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
    if (Finding finding = expand_at_one({cell.node})) return finding;
    for (const Instance& instance : at_.instances[cell.node]) {
      if (instance.action != cell.action) continue;
      return found(Point::kDataFlow, at_, cell.node, &instance,
                   sets_.why_not_combined(left, right, join_of(common_)));
    }
    return found(Point::kDataFlow, at_, cell.node, nullptr,
                 sets_.why_not_combined(left, right, join_of(common_)));
  }

  Finding check_results() {
    const Wanted all(common_);
    for (const Result& result : results_) {
      const std::int32_t wanted = all.ranks(sets_, result.node, result.segment);
      const std::int32_t ranks = result.cell == kNone ? -1 : cells_[result.cell].ranks;
      if (ranks == wanted) continue;
      set_blocks(at_, 1);
      const Value value = {ranks, result.segment, 0};
      return wrong_result(at_, sets_, result.node, result.segment, 0, value, wanted);
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
      const std::int64_t period = common_.phases[phase].period;
      const std::int64_t first = (end.time & ((std::int64_t{1} << 48) - 1)) - flight;
      for (std::int64_t tick = 0; tick < std::min(send_ticks(common_), period); ++tick) {
        uses.push_back({end.from, end.to, time_of(phase, (first + tick) % period)});
      }
    }
    return check_loads(at_, std::move(uses), verdict_);
  }

  const topology::Topology& topology_;
  const Programs& programs_;
  const Options& options_;
  Verdict& verdict_;
  Program common_ = espalier_Program_init_zero;
  Case at_;
  RankProofs ranks_;
  Streams streams_;                 // of the rank at hand
  std::vector<std::int64_t> used_;  // by phase: steps at N = 1
  std::vector<Cell> cells_;
  std::vector<End> sends_, receives_;
  std::vector<Result> results_;
  RankSets sets_;
};

}  // namespace

Outcome prove_every_blocks(const topology::Topology& topology, const Programs& programs,
                           const Options& options, Verdict& verdict) {
  Periodic periodic(topology, programs, options, verdict);
  return periodic.prove();
}

}  // namespace espalier::verify
