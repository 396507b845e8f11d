#include "tests/random/plan.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/testing/results.h"
#include "tests/mutation/formulas.h"
#include "tests/random/recipes.h"
#include "tests/random/sketch.h"

namespace espalier::random {
namespace {

using mutation::count_at;

// Enough blocks to show everything that repeats with the strides of a plan.
constexpr std::int64_t kPlanFitBlocks = 64;
constexpr std::int64_t kMaxPace = 64;

std::unique_ptr<topology::Topology> make_topology(Dice& dice, std::uint32_t family) {
  static const std::vector<std::vector<std::string>> all_specs = {
      {"complete:2", "complete:3", "complete:4", "complete:4", "complete:5", "complete:6"},
      {"mesh:1x4", "mesh:2x2", "mesh:2x3", "mesh:1x3", "mesh:3x2", "mesh:1x6"},
      {"fattree:k=2,h=1,c=1", "fattree:k=2,h=2,c=1", "fattree:k=2,h=2,c=k", "fattree:k=3,h=1,c=1",
       "fattree:k=2,h=2,c=2,2", "fattree:k=4,h=1,c=2", "fattree:k=2,h=2,c=2,3", "fattree:k=3x2,c=1",
       "fattree:k=2x3,c=1,2"},
      {"custom:name:\"ring\" ranks:4 link{from:0 to:1} link{from:1 to:2 capacity:2} "
       "link{from:2 to:3} link{from:3 to:0}",
       "custom:name:\"star\" ranks:3 routers:1 link{from:0 to:3 capacity:2} link{from:1 to:3} "
       "link{from:2 to:3 capacity:3}",
       "custom:name:\"two-ways\" ranks:5 link{from:0 to:1 capacity:3} link{from:0 to:2} "
       "link{from:1 to:3} link{from:2 to:4 capacity:2} link{from:3 to:4}"},
      {"torus:2x3", "torus:1x2x2", "ring:3", "ring:4", "ring:5", "hypercube:2", "mesh:1x2x2",
       "hyperx:2x3", "dragonfly:2x1x2", "dragonfly:3x1x1"},
      {"crossbar:2x2", "crossbar:3x2", "crossbar:2x2,in=1,out=2", "crossbar:1x2x2",
       "crossbar:2x1x2"}};
  const std::vector<std::string>& specs = all_specs[family];
  return or_throw(
      topology::parse(specs[dice.number(0, static_cast<std::uint32_t>(specs.size()) - 1)]));
}

class Planner {
 public:
  explicit Planner(Dice& dice) : dice_(dice) {}

  std::optional<Plan> make() {
    plan_.regular = dice_.one_in(5);
    const std::uint32_t family = dice_.number(0, 5) < 3 ? 0 : dice_.number(0, 5);
    plan_.topology = make_topology(dice_, family);
    const std::uint32_t ranks = plan_.topology->ranks();
    const bool routers = plan_.topology->nodes() > ranks;
    // All routers have programs, or the fabric routes.
    hop_by_hop_ = routers && !dice_.one_in(4);
    neighbours_ = hop_by_hop_ || (family != 0 && !routers && dice_.one_in(2));
    choose_collective(ranks);
    choose_ports(family);
    plan_.nodes.resize(hop_by_hop_ ? plan_.topology->nodes() : ranks);
    const std::vector<Part> parts = make_recipe(plan_, hop_by_hop_, neighbours_, dice_);
    for (const Part& part : parts) {
      if (!add_stage(part)) return std::nullopt;
    }
    if (!finish()) return std::nullopt;
    return std::move(plan_);
  }

 private:
  void choose_collective(std::uint32_t ranks) {
    // Mostly broadcasts: they show most errors of programs, and they are quick.
    plan_.collective = dice_.one_in(4) ? Collective::kBroadcast
                                       : kAllCollectives[dice_.number(0, dice_.one_in(4) ? 10 : 9)];
    const bool barrier = plan_.collective == Collective::kBarrier;
    const bool runs =
        plan_.collective == Collective::kScatter || plan_.collective == Collective::kGather;
    plan_.pipelined = !barrier && !dice_.one_in(runs ? 6 : 24);
    plan_.root = has_root(plan_.collective) ? dice_.number(0, ranks - 1) : 0;
    if (counts_per_rank(plan_.collective)) {
      plan_.segments = ranks;
    } else if (!barrier) {
      plan_.segments = dice_.one_in(4) ? ranks : dice_.one_in(3) ? dice_.number(1, 3) : 1;
    }
    // Routers combine in the order of links, not of ranks.
    plan_.needs_commutative = neighbours_ || dice_.one_in(3);
    plan_.window = dice_.number(1, 4);
    if (dice_.one_in(5)) plan_.window = dice_.number(1, 12);
  }

  void choose_ports(std::uint32_t family) {
    static constexpr std::array<PortModel, 4> kModels = {
        PortModel::kOnePortDuplex, PortModel::kSimplex, PortModel::kSingleSend,
        PortModel::kMultiport};
    const std::uint32_t model = dice_.number(0, 7);
    plan_.ports = kModels[model < 4 ? model : family == 0 ? 0 : 3];
    plan_.links = family == 0 || neighbours_ || dice_.one_in(2);
    // Between neighbours the link carries exactly the transfers of the pair, under any timing skew.
    const bool under_skew = family == 0 || neighbours_ || !plan_.links;
    plan_.contention =
        under_skew && dice_.one_in(2) ? ContentionGuarantee::kAsync : ContentionGuarantee::kSlot;
    if (family != 0 || !dice_.one_in(8)) return;
    plan_.send_ticks = dice_.number(1, 2);
    plan_.latency_ticks = plan_.send_ticks + dice_.number(0, 2);
    plan_.window = std::max(plan_.window, plan_.latency_ticks);
  }

  bool add_stage(const Part& part) {
    static constexpr std::array<std::int64_t, 8> kStrides = {1, 1, 1, 2, 2, 3, 4, 6};
    Stage stage{.stride = plan_.pipelined ? kStrides[dice_.number(0, 7)] : 1};
    const bool large = part.segments.size() * plan_.topology->ranks() > 16;
    if (large) stage.stride = std::min<std::int64_t>(stage.stride, 2);
    Sketch sketch(plan_, stage.stride);
    for (std::uint32_t block = 0; block < stage.stride; ++block) {
      for (const std::uint32_t segment : part.segments) part.emit(sketch, segment, block);
    }
    stage.pace = std::max(sketch.least_pace(), stage.stride == 1 ? 1 : std::int64_t{2});
    if (dice_.one_in(3)) stage.pace += dice_.number(0, 3);
    while (!sketch.schedule(dice_, stage.pace)) {
      if (++stage.pace > kMaxPace) return false;
    }
    if (!plan_.stages.empty()) {
      const bool next_phase = !dice_.one_in(2);
      stage.phase = plan_.stages.back().phase + (next_phase ? 1 : 0);
      if (!next_phase && !follow(sketch, stage)) return false;
      // All of a phase has retired before the next begins.
      const bool again = next_phase && dice_.one_in(2);
      for (NodePlan& node : plan_.nodes) node.taken = again ? 0 : node.taken;
    }
    const auto at = static_cast<std::uint32_t>(plan_.stages.size());
    plan_.stages.push_back(stage);
    return sketch.add_to(plan_, at, dice_);
  }

  // The step at which a stage begins in the phase of the one before it.
  bool follow(const Sketch& sketch, Stage& stage) {
    std::int64_t gap = plan_.window - 1;
    const Stage& before = plan_.stages.back();
    if (before.stride == stage.stride && dice_.one_in(2)) gap = least_gap(sketch, before);
    if (dice_.one_in(3)) gap += dice_.number(0, 3);
    const std::vector<std::int64_t> ends = stage_ends();
    if (ends.empty()) return false;
    std::vector<std::int64_t> starts = ends;
    for (std::int64_t& start : starts) start += gap;
    const auto start = fit_count(starts, wanted(), all_strides());
    if (start) stage.start = *start;
    return start.has_value();
  }

  // The least distance from the end of the previous stage at which all its results have retired
  // before they are read: the distance at N = 1 serves every N, unless the stage's blocks come
  // faster; then the last block counts.
  std::int64_t least_gap(const Sketch& sketch, const Stage& before) const {
    std::int64_t end = 0, gap = 0;
    const auto stage = static_cast<std::uint32_t>(plan_.stages.size() - 1);
    for (const NodePlan& node : plan_.nodes) {
      for (const Progression& one : node.all) {
        if (one.stage == stage && one.block == 0) end = std::max(end, one.first + 1);
      }
    }
    for (const Sketch::Cell& cell : sketch.cells()) {
      if (!cell.before) continue;
      for (const Progression& one : plan_.nodes[cell.node].all) {
        const bool same = one.stage == stage && one.into.buffer == cell.buffer &&
                          one.into.segment == cell.segment;
        if (same) gap = std::max(gap, plan_.window + one.first - end);
      }
    }
    return before.stride == 1 ? gap : plan_.window - 1 + gap;
  }

  [[nodiscard]] std::int64_t all_strides() const {
    std::int64_t all = 1;
    for (const Stage& stage : plan_.stages) all = std::lcm(all, stage.stride);
    return all;
  }

  [[nodiscard]] std::vector<bool> wanted() const {
    std::vector<bool> wanted;
    for (std::int64_t blocks = 1; blocks <= kPlanFitBlocks; ++blocks) {
      wanted.push_back(allows(plan_, blocks));
    }
    return wanted;
  }

  // By N: the first step of the last stage's phase in which the stage is over. Empty if N keeps to
  // no residue yet and no count has these values.
  std::vector<std::int64_t> stage_ends() {
    const Stage& stage = plan_.stages.back();
    const auto at = static_cast<std::uint32_t>(plan_.stages.size() - 1);
    std::vector<std::int64_t> ends;
    for (std::int64_t blocks = 1; blocks <= kPlanFitBlocks; ++blocks) {
      std::int64_t used = 0;
      for (const NodePlan& node : plan_.nodes) {
        for (const Progression& one : node.all) {
          if (one.stage != at || one.block >= blocks) continue;
          const std::int64_t rounds = (blocks - one.block + stage.stride - 1) / stage.stride;
          used = std::max(used, one.first + stage.pace * (rounds - 1) + 1);
        }
      }
      ends.push_back(count_at(stage.start, blocks) + used);
    }
    if (fit_count(ends, wanted(), all_strides())) return ends;
    if (plan_.residue_mod != 0) return {};
    plan_.residue_mod = static_cast<std::uint32_t>(all_strides());
    plan_.residue = dice_.number(0, plan_.residue_mod - 1);
    if (!fit_count(ends, wanted(), all_strides())) return {};
    return ends;
  }

  bool finish() {
    if (plan_.pipelined && plan_.residue_mod == 0 && dice_.one_in(12)) {
      plan_.residue_mod = dice_.number(1, 4);
      plan_.residue = dice_.number(0, plan_.residue_mod - 1);
    }
    // A residue may be chosen by a later stage: counts are found last.
    const std::vector<Stage> stages = plan_.stages;
    std::vector<std::int64_t> sum(kPlanFitBlocks, 0);
    plan_.stages.clear();
    for (const Stage& stage : stages) {
      const bool first = plan_.stages.empty() || plan_.stages.back().phase != stage.phase;
      if (first && !plan_.stages.empty() && !end_phase(sum)) return false;
      plan_.stages.push_back(stage);
    }
    if (!end_phase(sum)) return false;
    const auto steps = fit_count(sum, wanted(), all_strides());
    if (steps) plan_.steps = *steps;
    return steps.has_value();
  }

  bool end_phase(std::vector<std::int64_t>& sum) {
    const std::vector<std::int64_t> ends = stage_ends();
    if (ends.empty()) return false;
    const auto steps = fit_count(ends, wanted(), all_strides());
    if (!steps) return false;
    plan_.phase_steps.push_back(*steps);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += ends[i];
    return true;
  }

  Dice& dice_;
  Plan plan_;
  bool hop_by_hop_ = false, neighbours_ = false;
};

}  // namespace

bool allows(const Plan& plan, std::int64_t blocks) {
  if (!plan.pipelined) return blocks == 1;
  return plan.residue_mod == 0 || blocks % plan.residue_mod == plan.residue % plan.residue_mod;
}

std::optional<Count> fit_count(const std::vector<std::int64_t>& values,
                               const std::vector<bool>& wanted, std::int64_t divisor) {
  std::vector<std::int64_t> points;  // N
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (wanted[i]) points.push_back(static_cast<std::int64_t>(i) + 1);
  }
  if (points.empty()) return std::nullopt;
  const auto value = [&](std::int64_t blocks) {
    return values[static_cast<std::size_t>(blocks) - 1];
  };
  // With c = 0 two points decide the count; with a divisor, three points that it tells apart.
  for (std::int64_t shift = 0; shift <= (divisor > 1 ? divisor : 0); ++shift) {
    const auto e = static_cast<std::int64_t>(shift == 0 ? 1 : divisor);
    const auto d = shift == 0 ? 0 : shift - 1;
    const auto parts = [&](std::int64_t blocks) { return (blocks + d + e - 1) / e; };
    const std::int64_t x = points[0];
    std::int64_t b = 0, c = 0;
    if (points.size() > 1 && shift == 0) {
      b = (value(points[1]) - value(x)) / (points[1] - x);
    } else if (points.size() > 1) {
      // b from a pair between jumps (0 where N keeps to a residue of the divisor), c from the rest.
      for (std::size_t i = 1; i < points.size(); ++i) {
        if (parts(points[i]) == parts(points[i - 1])) {
          b = (value(points[i]) - value(points[i - 1])) / (points[i] - points[i - 1]);
          break;
        }
      }
      const std::int64_t last = points.back();
      const std::int64_t jumps = parts(last) - parts(x);
      if (jumps == 0) continue;
      c = (value(last) - value(x) - b * (last - x)) / jumps;
    }
    const std::int64_t a = value(x) - b * x - c * parts(x);
    bool fits = true;
    for (const std::int64_t blocks : points) {
      fits = fits && a + b * blocks + c * parts(blocks) == value(blocks);
    }
    if (!fits) continue;
    Count count{};
    count.a = static_cast<std::int32_t>(a);
    count.b = static_cast<std::int32_t>(b);
    count.c = static_cast<std::int32_t>(c);
    count.d = static_cast<std::int32_t>(c == 0 ? 0 : d);
    count.e = static_cast<std::uint32_t>(c == 0 ? 0 : e);
    return count;
  }
  return std::nullopt;
}

std::optional<Plan> make_plan(Dice& dice) { return Planner(dice).make(); }

}  // namespace espalier::random
