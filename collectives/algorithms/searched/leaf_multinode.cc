// Allgather (multinode broadcast) on fat trees with one send per node and step: `leaf-single`, as
// an explicit schedule for at most 256 leaves. [DD96], Theorems 3 and 4. Capacities do not matter,
// because a node sends one message per step.
//
// Steps for N = 1: k n + (k+1)(h-2) + 1, the minimum; for h = 1 k^2 - k + 1. Each further block
// takes at most k n + (k+1)(h-2) steps; for h = 1 k^2 - k. Cost:
// steps * (alpha + beta*m/N), where m is the bytes of one rank's part.
//
// Let a router of level l have K = k^l leaves below it.
//  * Up. It sends the blocks of its K leaves to its parent in steps l .. l + K - 1, from each child
//    in turn. The children together deliver k blocks per step.
//  * Down. In frame f, slot c, it sends one block to child c, in step d(l) + k f + c, where
//    d(l) = h - 1 + K + k (h - 1 - l), for h = 1 d(1) = 1. The first (k-1) K/k frames are for
//    blocks from its own leaves: of every k blocks, one per child, child c receives those of
//    children c + 1, c + 2, .. (modulo k) in k - 1 frames. In each later frame, every child
//    receives the block that the parent sent to this router.
// Proof of the steps. A child of level l - 1 receives frame f in step d(l) + k f + c, and sends it
// on from frame f + (k-1) K/k^2, which begins in step d(l) + k (f + 1). So no block is late, and no
// step has two sends. Level 1 begins with k n - k sends in step d(1), so the last one is in step
// d(1) + k n - k - 1. The queues of Fig. 2 in the paper take as many steps.
//
// kMaxLinks limits k: a router has a link to each child.
// Bound: a router of level h - 1 sends k n messages, the first in step h - 1. After the last one,
// each of the h - 2 levels below sends k messages more. For h = 1, the root sends k (k-1) messages.

#include <string>
#include <utility>
#include <vector>

#include "collectives/algorithms/searched/searches.h"
#include "collectives/algorithms/searched/streams.h"
#include "collectives/lower/timed.h"
#include "espalier/base/arithmetic.h"
#include "espalier/base/limits.h"

namespace espalier::searched {
namespace {

constexpr std::uint32_t kMaxGatherLeaves = 256;

Result<void> check_tree(const topology::Topology& topology,
                        const CollectiveParameters& parameters) {
  if (auto fits = check_parameters(topology, parameters); !fits) return fits;
  const std::uint32_t arity = topology.shape().arity;
  if (arity >= 2 && arity <= kMaxLinks && parameters.ranks <= kMaxGatherLeaves) return {};
  return fail("leaf-single on " + topology.spec() + ": expected fattree:k=K,h=H,c=C of at most " +
              std::to_string(kMaxGatherLeaves) + " leaves, and k at most " +
              std::to_string(kMaxLinks));
}

class Multinode {
 public:
  Multinode(const topology::Topology& topology, lower::TimedSchedule& schedule)
      : k_(topology.shape().arity),
        height_(topology.shape().height),
        ranks_(topology.ranks()),
        schedule_(schedule),
        nodes_(topology.nodes()) {
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
    std::uint32_t first = 0, leaves = 1;
    for (std::uint32_t level = 0; level < height_; ++level) {
      add_up(level, first, ranks_ / leaves);
      first += ranks_ / leaves;
      leaves *= k_;
    }
    for (std::uint32_t level = height_; level > 0; --level) {
      const std::uint32_t routers = ranks_ / leaves;
      for (std::uint32_t index = 0; index < routers; ++index) {
        add_down(level, leaves, first + index, first - routers * k_ + index * k_);
      }
      leaves /= k_;
      first -= ranks_ / leaves;
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
  void add_up(std::uint32_t level, std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t index = 0; index < count; ++index) {
      const std::vector<std::uint32_t>& rising = nodes_[first + index].rising;
      for (std::uint32_t block = 0; block < rising.size(); ++block) {
        send(first + index, first + count + index / k_, level + block, rising[block]);
      }
    }
    for (std::uint32_t parent = 0; parent < count / k_; ++parent) {
      const std::size_t each = nodes_[first].rising.size();
      for (std::size_t block = 0; block < each * k_; ++block) {
        const std::uint32_t child = first + parent * k_ + static_cast<std::uint32_t>(block % k_);
        nodes_[first + count + parent].rising.push_back(nodes_[child].rising[block / k_]);
      }
    }
  }

  // Adds the blocks that a router sends to its children.
  void add_down(std::uint32_t level, std::uint32_t leaves, std::uint32_t router,
                std::uint32_t first_child) {
    const std::uint32_t begin =
        height_ == 1 ? 1 : height_ - 1 + leaves + k_ * (height_ - level) - k_;
    const std::uint32_t own = (k_ - 1) * (leaves / k_);
    const TreeNode& node = nodes_[router];
    const std::uint32_t frames = own + static_cast<std::uint32_t>(node.falling.size());
    for (std::uint32_t frame = 0; frame < frames; ++frame) {
      for (std::uint32_t child = 0; child < k_; ++child) {
        const std::uint32_t turned = (child + 1 + frame % (k_ - 1)) % k_;
        const std::uint32_t origin =
            frame < own ? node.rising[frame / (k_ - 1) * k_ + turned] : node.falling[frame - own];
        nodes_[first_child + child].falling.push_back(origin);
        send(router, first_child + child, begin + k_ * frame + child, origin);
      }
    }
  }

  std::uint32_t k_, height_, ranks_;
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

}  // namespace

Result<Programs> leaf_single_allgather(const topology::Topology& topology,
                                       const CollectiveParameters& parameters) {
  if (auto fits = check_tree(topology, parameters); !fits) return fail(fits.error());
  const topology::Shape shape = topology.shape();
  const std::uint32_t n = topology.ranks(), k = shape.arity, h = shape.height;
  lower::TimedSchedule schedule(topology.nodes());
  schedule.outline = {.collective = Collective::kAllgather,
                      .algorithm = "leaf-single",
                      .nodes = topology.nodes(),
                      .port_model = PortModel::kSingleSend};
  Multinode(topology, schedule).add();
  const std::uint32_t busiest = h == 1 ? k * (k - 1) : k * n;  // sends of a node per block
  const std::uint32_t rest = h == 1 ? 1 : (k + 1) * (h - 1) - k;
  schedule.period = lower::least_period(topology, schedule, as_int(busiest));
  schedule.bound = {.a = as_int(rest), .b = as_int(busiest), .c = 0, .d = 0, .e = 0};
  return write_widest(parameters, schedule);
}

}  // namespace espalier::searched
