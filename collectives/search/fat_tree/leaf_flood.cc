// Allgather (multinode broadcast) on fat trees by flooding: `leaf-flood`, as an explicit schedule
// for at most 256 leaves. [DD96], Theorem 7: every node sends each block that it receives to all
// its other neighbours, on all links at once. Blocks that cannot leave yet wait in a queue per
// link, in order of arrival; those that arrive in the same step, in order of their senders. The
// queues are simulated for one block per rank, and then unrolled into steps.
//
// Steps for N = 1 and one lane at the leaves: n, or n + 1 if k = 2 < n, which is the minimum. With
// more lanes everywhere there are fewer; `leaf` takes n steps too, without queues and on one lane.
// Each further block takes `period` steps, the least in which no link exceeds its lanes: n - 1 for
// one lane at the leaves, n if k = 2 < n. Cost: steps * (alpha + beta*m/N), where m is the bytes of
// one rank's part. Routers need as much scratch as their queues are long, up to n blocks.
//
// A link uses at most min(64, floor(255 / d)) lanes, where d is the larger number of links of its
// two ends: nodes count no more messages (step_limits.h).

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "collectives/lower/timed.h"
#include "collectives/search/fat_tree/leaf_check.h"
#include "collectives/search/searches.h"
#include "collectives/search/streams.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/internal/base/arithmetic.h"
#include "espalier/internal/base/limits.h"
#include "espalier/internal/base/step_limits.h"

namespace espalier::searched {
namespace {

constexpr std::uint32_t kMaxFloodLeaves = 256;

// A tree in which every node forwards every block to all neighbours except its sender.
class FloodedTree {
 public:
  FloodedTree(const topology::Topology& topology, lower::TimedSchedule& schedule)
      : ranks_(topology.ranks()), schedule_(schedule), nodes_(topology.nodes()) {
    for (const topology::Link& link : topology.links()) {
      nodes_[link.from].queues.push_back({link.to, link.capacity, {}});
    }
    for (Node& node : nodes_) {
      std::sort(node.queues.begin(), node.queues.end(),
                [](const Queue& a, const Queue& b) { return a.to < b.to; });
    }
    for (Node& node : nodes_) {
      for (Queue& queue : node.queues) {
        const std::size_t links = std::max(node.queues.size(), nodes_[queue.to].queues.size());
        const auto counted = static_cast<std::uint32_t>(kMaxStepMessages / links);
        queue.lanes = std::min({queue.lanes, kMaxLinkMessages, counted});
      }
    }
  }

  // Sends one block of every rank to all ranks.
  void flood() {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      schedule_.add_operation(ActionKind::kCopy, rank, 0, 0, operand(Buffer::kOutput, rank),
                              operand(Buffer::kInput, rank));
      add(rank, rank, {rank, operand(Buffer::kInput, rank)});
    }
    for (std::int32_t step = 0; waiting_ > 0; ++step) send_all(step);
  }

 private:
  struct Block {
    std::uint32_t origin;
    lower::TimedOperand operand;  // where the node has it
  };
  struct Queue {
    std::uint32_t to, lanes;
    std::deque<Block> blocks;
  };
  struct Node {
    std::vector<Queue> queues;  // one per neighbour
  };
  struct Arrival {
    std::uint32_t from, to;
    Block block;
  };

  static lower::TimedOperand operand(Buffer buffer, std::uint32_t segment) {
    return {buffer, as_int(segment), -1};
  }

  // Queues a block that `node` has, from `from`.
  void add(std::uint32_t node, std::uint32_t from, const Block& block) {
    for (Queue& queue : nodes_[node].queues) {
      if (queue.to == from) continue;
      queue.blocks.push_back(block);
      ++waiting_;
    }
  }

  void send_all(std::int32_t step) {
    std::vector<Arrival> arrivals;
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      for (Queue& queue : nodes_[node].queues) {
        for (std::uint32_t lane = 0; lane < queue.lanes && !queue.blocks.empty(); ++lane) {
          arrivals.push_back({node, queue.to, send(node, queue.to, step, queue.blocks.front())});
          queue.blocks.pop_front();
          --waiting_;
        }
      }
    }
    for (const Arrival& arrival : arrivals) add(arrival.to, arrival.from, arrival.block);
  }

  // Returns the block as the receiver has it.
  Block send(std::uint32_t from, std::uint32_t to, std::int32_t step, const Block& block) {
    const std::uint32_t hop[] = {from, to};
    const std::int32_t steps[] = {step};
    const Buffer buffer = to < ranks_ ? Buffer::kOutput : Buffer::kScratch;
    return {block.origin,
            schedule_.add_message(0, hop, steps, block.operand, operand(buffer, block.origin))};
  }

  std::uint32_t ranks_;
  lower::TimedSchedule& schedule_;
  std::vector<Node> nodes_;
  std::size_t waiting_ = 0;  // blocks in all queues
};

Result<Programs> leaf_flood_allgather(Collective, const topology::Topology& topology,
                                      const CollectiveParameters& parameters) {
  if (auto fits = check_leaves(topology, parameters, "leaf-flood", kMaxFloodLeaves); !fits)
    return fail(fits.error());
  lower::TimedSchedule schedule(topology.nodes());
  schedule.outline = {.collective = Collective::kAllgather,
                      .algorithm = "leaf-flood",
                      .nodes = topology.nodes(),
                      .port_model = PortModel::kMultiport};
  FloodedTree(topology, schedule).flood();
  schedule.period = lower::least_period(topology, schedule, 1);
  Program common;
  const Status status = Builder(common).begin(parameters, 0, schedule.outline);
  if (status != Status::kOk) return fail(std::string("leaf-flood: ") + status_name(status));
  schedule.bound = verify::provable_bound(topology, common, 1, true);
  return lower::write_programs_for_window(parameters, schedule);
}

}  // namespace

const SearchedAlgorithm kLeafFloodRows[] = {
    row("leaf-flood", Collective::kAllgather, leaf_flood_allgather,
        "every port at once, queues unrolled: (n-1)N+1 steps for c_1 = 1, nN+1 for k = 2 < n, n <= "
        "256 leaves",
        {.topologies = "fattree:k=K,h=H", .applies = on_fat_tree, .has_routers = true}),
};

}  // namespace espalier::searched
