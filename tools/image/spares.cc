#include "tools/image/spares.h"

#include <algorithm>
#include <set>
#include <utility>

#include "collectives/machine/recovery.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "planner/files/prove.h"
#include "planner/make/plan.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"
#include "tools/common/schedules.h"

namespace espalier::tools {
namespace {

// The algorithm of a spare if the schedule's own is only for other topologies.
const char* simplest(Collective collective) {
  switch (collective.value()) {
    case Collective::kScatter:
    case Collective::kGather: return "binomial";
    case Collective::kAllgather:
    case Collective::kReduceScatter: return "ring";
    case Collective::kAllToAll: return "pairwise";
    case Collective::kBarrier: return "dissemination";
    default: return "two-tree";
  }
}

planner::LoadedSchedule compile_proven(const planner::PlanRequest& request,
                                       const std::string& name) {
  std::vector<std::uint8_t> bytes = compile(or_bad_input(planner::make_schedule(request)));
  (void)prove_compiled(name, bytes, true);
  return load_schedule(name, std::move(bytes), "");
}

// Compiles one collective for what is left, by this algorithm or by the simplest one.
planner::LoadedSchedule compile_left(const std::shared_ptr<const topology::Topology>& left,
                                     Collective collective, const std::string& algorithm,
                                     std::uint32_t root, const std::string& name) {
  planner::PlanRequest request{.topology = left, .collective = collective, .is_hop_by_hop = true};
  request.placement.kind = planner::Placement::Kind::kAsNumbered;
  if (has_root(collective)) request.root = root;
  const std::string other = simplest(collective);
  const auto own = planner::find_entry(collective, algorithm);
  if (own && algorithm != other) {
    request.algorithm = *own;
    try {
      return compile_proven(request, name);
    } catch (const Failure&) {
      // It is for a mesh, for a power of two of ranks, ...
    }
  }
  request.algorithm = or_bad_input(planner::find_entry(collective, other));
  return compile_proven(request, name);
}

}  // namespace

std::vector<Loss> single_losses(const topology::Topology& topology, bool links, bool nodes) {
  std::vector<Loss> losses;
  if (links) {
    std::set<std::pair<std::uint32_t, std::uint32_t>> ends;
    for (const topology::Link& link : topology.links()) {
      ends.insert(std::minmax(link.from, link.to));
    }
    for (const auto& [a, b] : ends) losses.push_back(Loss::link(a, b));
  }
  for (std::uint32_t rank = 0; nodes && rank < topology.ranks(); ++rank) {
    losses.push_back(Loss::node(rank));
  }
  return losses;
}

std::string loss_text(const Loss& loss) {
  if (loss.kind == Loss::Kind::kNothing) return "nothing";
  if (loss.kind == Loss::Kind::kNode) return "node " + std::to_string(loss.a);
  return "link " + std::to_string(loss.a) + " - " + std::to_string(loss.b);
}

Result<std::unique_ptr<topology::Topology>> what_is_left(const topology::Topology& topology,
                                                         const Loss& loss) {
  const std::uint32_t ranks = topology.ranks() - (loss.kind == Loss::Kind::kNode ? 1 : 0);
  if (ranks < 2) return fail("fewer than two ranks are left");
  std::string text = "custom:name: \"left\" ranks: " + std::to_string(ranks) +
                     " routers: " + std::to_string(topology.nodes() - topology.ranks());
  for (const topology::Link& link : topology.links()) {
    if (loss.closes(link.from, link.to)) continue;
    text += " link { from: " + std::to_string(loss.dense(link.from)) +
            " to: " + std::to_string(loss.dense(link.to)) +
            " capacity: " + std::to_string(link.capacity) + " one_way: true }";
  }
  return topology::parse(text);
}

Spare make_spare(const topology::Topology& topology,
                 const std::vector<planner::LoadedSchedule>& schedules, const Loss& loss) {
  const std::string without = " without " + loss_text(loss);
  auto left = loss.kind == Loss::Kind::kNothing ? topology::parse(topology.spec())
                                                : what_is_left(topology, loss);
  if (!left) {
    bad_input("there is nothing to run on " + topology.title() + without + ": " +
              left.error().message);
  }
  const std::shared_ptr<const topology::Topology> rest = *std::move(left);
  Spare spare;
  spare.loss = loss;
  spare.agreement =
      compile_left(rest, Collective::kAllreduce, "two-tree", 0, "the agreement" + without);
  for (const Program& program : spare.agreement.programs) {
    Layout layout;
    if (make_layout(program, Recovery::kElements, 4, layout) == Status::kOk &&
        scratch_needed(program, layout) <= Recovery::kScratchSlots * Recovery::kElements * 4) {
      continue;
    }
    bad_input("the agreement on " + topology.title() + without + " needs too much scratch");
  }
  if (loss.kind == Loss::Kind::kNothing) return spare;
  for (const planner::LoadedSchedule& schedule : schedules) {
    const Program& main = schedule.programs.front();
    if (has_root(main.collective) && loss == Loss::node(main.root)) {
      spare.schedules.emplace_back();
      continue;
    }
    spare.schedules.push_back(compile_left(rest, main.collective, main.algorithm,
                                           loss.dense(main.root), schedule.name + without));
  }
  return spare;
}

ImageContent::Descriptor image_descriptor(const planner::LoadedSchedule& schedule,
                                          std::uint32_t node) {
  const Program& program = schedule.programs[node];
  const std::uint8_t* bytes = nullptr;
  std::size_t size = 0;
  if (schedule.file.descriptor(node, bytes, size) != Status::kOk) {
    bad_input("'" + one_line(schedule.name) + "' is corrupt");
  }
  return {program.collective, program.root, program.algorithm,
          std::vector<std::uint8_t>(bytes, bytes + size)};
}

ImageContent::SpareDescriptors image_spare(const std::vector<planner::LoadedSchedule>& schedules,
                                           const Spare& spare, std::uint32_t node,
                                           std::vector<std::uint32_t>& peers) {
  ImageContent::SpareDescriptors content;
  content.loss = spare.loss;
  content.topology_digest = spare.agreement.topology->digest();
  const std::uint32_t own = spare.loss.dense(node);
  const auto add = [&](const planner::LoadedSchedule& schedule) {
    content.programs.push_back(image_descriptor(schedule, own));
    const Program& program = schedule.programs[own];
    for (std::uint32_t link = 0; link < links_count(program); ++link) {
      peers.push_back(spare.loss.real(peer_of(program, link)));
    }
  };
  add(spare.agreement);
  if (spare.loss.kind == Loss::Kind::kNothing) {
    for (const planner::LoadedSchedule& schedule : schedules) {
      content.programs.push_back(image_descriptor(schedule, node));
    }
  }
  for (std::size_t i = 0; i < spare.schedules.size(); ++i) {
    const planner::LoadedSchedule& schedule = spare.schedules[i];
    if (schedule.programs.size() > 0) {
      add(schedule);
      continue;
    }
    const Program& main = schedules[i].programs.front();
    content.programs.push_back({main.collective, main.root, main.algorithm, {}});
  }
  return content;
}

}  // namespace espalier::tools
