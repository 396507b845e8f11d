// Allgather (multinode broadcast) on fat trees with one send per node and step: `leaf-single`, as
// an explicit schedule for at most 256 leaves. [DD96], Theorems 3 and 4, which are for routers of k
// children; here level i has k_i. Capacities do not matter, because a node sends one message per
// step.
//
// Let a router of level l have K_l = k_1 ... k_l leaves below it. Per block it makes S_l sends:
// k_l n for l < h (K_l up, the others down), and (k_h - 1) n at the root. Steps for N = 1: the
// largest of D_l = l + S_l + k_1 + ... + k_(l-1), the minimum; for equal k and h >= 2 this is
// k n + (k+1)(h-2) + 1. Each further block takes fewer steps, and at least max S_l. Cost:
// steps * (alpha + beta*m/N), where m is the bytes of one rank's part.
//
// Bound: the first message reaches level l in step l - 1, so the router makes its last send in step
// l + S_l - 1 or later. That message then goes to k_j children of each level j < l, one after the
// other. (If the last send is one upwards, the message takes longer.)
//
//  * Up. A router of level l < h sends the blocks of its leaves to its parent in steps
//    l .. l + K_l - 1, from each child in turn. The children together deliver k_l blocks per step.
//  * Down. A frame is k_l sends, one block to each child. The first (k_l - 1) K_(l-1) frames are
//    for blocks from the router's own leaves: of every k_l blocks, one per child, child c receives
//    those of children c + 1, c + 2, .. (modulo k_l) in k_l - 1 frames. In each later frame, every
//    child receives the block that the parent sent to this router. All routers of a level begin
//    frame f in the same step: as late as max D_l and the frames of their children allow.
//
// Proof that no block is late. Let every frame begin as early as possible instead. Then the last
// frame of level 1 waits for a sequence of frames, each for the frame before it on its level or for
// the frame of its parent. The frames of a level take equal time, so the longest such sequence
// changes levels only at the last frame, or before the first one that the parent sends; the latter
// is shorter than the frames for the level's own leaves if k_l <= k_(l-1), and than the sequence
// that stays on level l otherwise. So it takes D_l steps for some l. The queues of Fig. 2 in the
// paper take as many steps.
//
// kMaxLinks limits k_i: a router has a link to each child and one to its parent.

#include <algorithm>
#include <utility>
#include <vector>

#include "collectives/lower/timed.h"
#include "collectives/search/fat_tree/leaf_check.h"
#include "collectives/search/searches.h"
#include "collectives/search/streams.h"
#include "espalier/internal/base/arithmetic.h"
#include "espalier/internal/base/limits.h"

namespace espalier::searched {
namespace {

constexpr std::uint32_t kMaxGatherLeaves = 256;

// The steps in which routers send, by level; [0] is of the leaves.
class Timing {
 public:
  explicit Timing(const topology::Shape& shape) : arities_(shape.arities) {
    for (const std::uint32_t arity : arities_) leaves_.push_back(leaves_.back() * arity);
    std::uint32_t below = 0;  // k_1 + ... + k_(l-1)
    for (std::uint32_t level = 1; level <= height(); ++level) {
      const std::uint32_t rest = level + below;
      steps_ = std::max(steps_, rest + sends(level));
      if (sends(level) >= busiest_) {
        busiest_ = sends(level);
        rest_ = rest;
      }
      below += arity(level);
    }
    frames_.resize(height() + 1);
    for (std::uint32_t level = 1; level <= height(); ++level) set_frames(level);
  }

  [[nodiscard]] std::uint32_t height() const { return static_cast<std::uint32_t>(arities_.size()); }
  // Children of a router of the level.
  [[nodiscard]] std::uint32_t arity(std::uint32_t level) const { return arities_[level - 1]; }
  // Leaves below a node of the level.
  [[nodiscard]] std::uint32_t leaves(std::uint32_t level) const { return leaves_[level]; }
  [[nodiscard]] std::uint32_t nodes(std::uint32_t level) const {
    return leaves_.back() / leaves_[level];
  }
  // Frames for blocks from a router's own leaves.
  [[nodiscard]] std::uint32_t own_frames(std::uint32_t level) const {
    return (arity(level) - 1) * leaves(level - 1);
  }
  // The first steps of the frames of a router of the level.
  [[nodiscard]] const std::vector<std::uint32_t>& frames(std::uint32_t level) const {
    return frames_[level];
  }
  // Sends of the busiest node per block, and the other steps of the bound that follows from it.
  [[nodiscard]] std::uint32_t busiest() const { return busiest_; }
  [[nodiscard]] std::uint32_t rest() const { return rest_; }

 private:
  [[nodiscard]] std::uint32_t sends(std::uint32_t level) const {
    return (arity(level) - (level == height() ? 1 : 0)) * leaves_.back();
  }

  void set_frames(std::uint32_t level) {
    std::vector<std::uint32_t>& first = frames_[level];
    first.resize(leaves_.back() - leaves(level - 1));
    std::uint32_t end = steps_;
    for (std::size_t frame = first.size(); frame-- > 0;) {
      if (level > 1) end = std::min(end, frames_[level - 1][own_frames(level - 1) + frame]);
      end -= arity(level);
      first[frame] = end;
    }
  }

  std::vector<std::uint32_t> arities_, leaves_{1};
  std::uint32_t steps_ = 0, busiest_ = 0, rest_ = 0;
  std::vector<std::vector<std::uint32_t>> frames_;
};

class Multinode {
 public:
  Multinode(const topology::Topology& topology, const Timing& timing,
            lower::TimedSchedule& schedule)
      : timing_(timing), ranks_(topology.ranks()), schedule_(schedule), nodes_(topology.nodes()) {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      nodes_[rank].rising.push_back(rank);
      nodes_[rank].blocks.resize(ranks_);
      nodes_[rank].blocks[rank] = operand(Buffer::kInput, rank);
    }
    for (std::uint32_t node = ranks_; node < nodes_.size(); ++node)
      nodes_[node].blocks.resize(ranks_);
  }

  void add() {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      schedule_.add_operation(ActionKind::kCopy, rank, 0, 0, operand(Buffer::kOutput, rank),
                              operand(Buffer::kInput, rank));
    }
    std::uint32_t first = 0;  // node of the level
    for (std::uint32_t level = 0; level < timing_.height(); ++level) {
      add_up(level, first);
      first += timing_.nodes(level);
    }
    for (std::uint32_t level = timing_.height(); level > 0; --level) {
      const std::uint32_t first_child = first - timing_.nodes(level - 1);
      for (std::uint32_t index = 0; index < timing_.nodes(level); ++index) {
        add_down(level, first + index, first_child + index * timing_.arity(level));
      }
      first = first_child;
    }
  }

 private:
  struct TreeNode {
    std::vector<std::uint32_t> rising;        // origins below, in the order in which they go up
    std::vector<std::uint32_t> falling;       // origins in the order in which the parent sends them
    std::vector<lower::TimedOperand> blocks;  // by origin, those that the node has
  };

  static lower::TimedOperand operand(Buffer buffer, std::uint32_t segment) {
    return {buffer, as_int(segment), -1};
  }

  void send(std::uint32_t from, std::uint32_t to, std::uint32_t step, std::uint32_t origin) {
    lower::TimedOperand& into = nodes_[to].blocks[origin];
    into = operand(to < ranks_ ? Buffer::kOutput : Buffer::kScratch, origin);
    const std::uint32_t hop[] = {from, to};
    const std::int32_t steps[] = {as_int(step)};
    into = schedule_.add_message(0, hop, steps, nodes_[from].blocks[origin], into);
  }

  // Adds the blocks that the nodes of a level send to their parents.
  void add_up(std::uint32_t level, std::uint32_t first) {
    const std::uint32_t count = timing_.nodes(level), k = timing_.arity(level + 1);
    for (std::uint32_t index = 0; index < count; ++index) {
      const std::vector<std::uint32_t>& rising = nodes_[first + index].rising;
      for (std::uint32_t block = 0; block < rising.size(); ++block) {
        send(first + index, first + count + index / k, level + block, rising[block]);
      }
    }
    for (std::uint32_t parent = 0; parent < count / k; ++parent) {
      for (std::uint32_t block = 0; block < timing_.leaves(level + 1); ++block) {
        const std::uint32_t child = first + parent * k + block % k;
        nodes_[first + count + parent].rising.push_back(nodes_[child].rising[block / k]);
      }
    }
  }

  // Adds the blocks that a router sends to its children.
  void add_down(std::uint32_t level, std::uint32_t router, std::uint32_t first_child) {
    const std::uint32_t k = timing_.arity(level), own = timing_.own_frames(level);
    const std::vector<std::uint32_t>& first_steps = timing_.frames(level);
    const TreeNode& node = nodes_[router];
    for (std::uint32_t frame = 0; frame < first_steps.size(); ++frame) {
      for (std::uint32_t child = 0; child < k; ++child) {
        const std::uint32_t turned = (child + 1 + frame % (k - 1)) % k;
        const std::uint32_t origin =
            frame < own ? node.rising[frame / (k - 1) * k + turned] : node.falling[frame - own];
        nodes_[first_child + child].falling.push_back(origin);
        send(router, first_child + child, first_steps[frame] + child, origin);
      }
    }
  }

  const Timing& timing_;
  std::uint32_t ranks_;
  lower::TimedSchedule& schedule_;
  std::vector<TreeNode> nodes_;
};

// Every wait below the window is a separate action, so the window is as large as a program has room
// for.
Result<Programs> write_widest(const CollectiveParameters& parameters,
                              const lower::TimedSchedule& schedule) {
  Result<Programs> widest = lower::write_programs(parameters, schedule);
  if (widest) return widest;
  CollectiveParameters narrow = parameters;
  std::uint32_t fits = 0, too_wide = parameters.window;
  while (too_wide - fits > 1) {
    narrow.window = fits + (too_wide - fits) / 2;
    Result<Programs> programs = lower::write_programs(narrow, schedule);
    (programs ? fits : too_wide) = narrow.window;
    if (programs) widest = std::move(programs);
  }
  return widest;
}

Result<Programs> leaf_single_allgather(Collective, const topology::Topology& topology,
                                       const CollectiveParameters& parameters) {
  if (auto fits = check_leaves(topology, parameters, "leaf-single", kMaxGatherLeaves); !fits)
    return fail(fits.error());
  const Timing timing(topology.shape());
  lower::TimedSchedule schedule(topology.nodes());
  schedule.outline = {.collective = Collective::kAllgather,
                      .algorithm = "leaf-single",
                      .nodes = topology.nodes(),
                      .port_model = PortModel::kSingleSend};
  Multinode(topology, timing, schedule).add();
  schedule.period = lower::least_period(topology, schedule, as_int(timing.busiest()));
  schedule.bound = {
      .a = as_int(timing.rest()), .b = as_int(timing.busiest()), .c = 0, .d = 0, .e = 0};
  return write_widest(parameters, schedule);
}

}  // namespace

const SearchedAlgorithm kLeafMultinodeRows[] = {
    row("leaf-single", Collective::kAllgather, leaf_single_allgather,
        "one send per node and step, up first: kn+(k+1)(h-2)+1 steps for N = 1, n <= 256 leaves",
        {.topologies = "fattree:k=K,h=H", .applies = on_fat_tree, .has_routers = true}),
};

}  // namespace espalier::searched
