// Point 0: programs well formed, and agreeing on everything that must be the same on all nodes.

#include <algorithm>
#include <cstdlib>
#include <string>

#include "collectives/verify/check.h"
#include "espalier/base/arithmetic.h"

namespace espalier::verify {
namespace {

Counterexample badly_formed(const topology::Topology& topology, std::uint32_t node,
                            const std::string& text, Point point = Point::kForm) {
  Counterexample example;
  example.point = point;
  example.node = node;
  const std::string name =
      node < topology.nodes() ? topology.node_name(node) : "node " + std::to_string(node);
  example.message = std::string(point_name(point)) + ": " + name + ": " + text;
  return example;
}

// A peer that is no node with a program, or where routers have programs, none of the node's own
// neighbours.
Counterexample absent_link(const topology::Topology& topology, std::uint32_t node,
                           const Program& program, std::uint32_t link) {
  const std::uint32_t peer = peer_of(program, link);
  const std::string there =
      peer < topology.nodes() ? topology.node_name(peer) : "node " + std::to_string(peer);
  Counterexample example = badly_formed(topology, node, "");
  example.message =
      std::string(point_name(Point::kLinks)) + ": " + topology.node_name(node) + ", link " +
      topology.node_name(node) + " -> " + there + ": " + topology.title() +
      " has no such link (peer " + std::to_string(link) + " of the program)" +
      (is_modelled(program)
           ? "; where routers have programs every peer must be a neighbour"
           : " between ranks; there are ranks 0 .. " + std::to_string(program.ranks - 1));
  example.point = Point::kLinks;
  example.from = node;
  example.to = peer;
  return example;
}

// The same value for every N. Forms that differ only where it does not matter are the same.
bool same_count(const Program& left, std::uint32_t left_ref, const Program& right,
                std::uint32_t right_ref) {
  const Count& a = left.counts[left_ref];
  const Count& b = right.counts[right_ref];
  if (a.a != b.a || a.b != b.b || a.c != b.c) return false;
  return a.c == 0 || (a.d == b.d && (a.e == 0 ? 1 : a.e) == (b.e == 0 ? 1 : b.e));
}

std::string same_header(const Program& a, const Program& b) {
  const auto differ = [](const char* what, std::uint64_t here, std::uint64_t there) {
    return std::string(what) + " is " + std::to_string(here) + ", but " + std::to_string(there) +
           " in rank 0's program; it must be the same on all nodes";
  };
  if (a.schedule_digest != b.schedule_digest) {
    return differ("the schedule's digest", b.schedule_digest, a.schedule_digest);
  }
  if (a.collective != b.collective) return differ("collective", b.collective, a.collective);
  if (a.ranks != b.ranks) return differ("ranks", b.ranks, a.ranks);
  if (program_nodes(a) != program_nodes(b)) {
    return differ("nodes", program_nodes(b), program_nodes(a));
  }
  if (a.root != b.root) return differ("root", b.root, a.root);
  if (a.needs_commutative != b.needs_commutative) {
    return differ("needs_commutative", b.needs_commutative, a.needs_commutative);
  }
  if (a.window != b.window) return differ("window", b.window, a.window);
  if (send_ticks(a) != send_ticks(b)) return differ("send_ticks", b.send_ticks, a.send_ticks);
  if (latency_ticks(a) != latency_ticks(b)) {
    return differ("latency_ticks", b.latency_ticks, a.latency_ticks);
  }
  if (a.port_model != b.port_model) return differ("port_model", b.port_model, a.port_model);
  if (a.grade != b.grade) return differ("grade", b.grade, a.grade);
  if (a.segments != b.segments) return differ("segments", b.segments, a.segments);
  if (a.residue_mod != b.residue_mod) return differ("residue_mod", b.residue_mod, a.residue_mod);
  if (a.residue != b.residue) return differ("residue", b.residue, a.residue);
  if (a.phases_count != b.phases_count) return differ("phases", b.phases_count, a.phases_count);
  if (a.blocks_count != b.blocks_count) {
    return differ("the length of the block table", b.blocks_count, a.blocks_count);
  }
  for (std::uint32_t rule = 0; rule < a.blocks_count; ++rule) {
    if (a.blocks[rule].from_bytes != b.blocks[rule].from_bytes ||
        a.blocks[rule].block_bytes != b.blocks[rule].block_bytes) {
      return "rule " + std::to_string(rule) +
             " of the block table is not as in rank 0's program; all nodes must cut alike";
    }
  }
  return {};
}

std::string same_claims(const Program& a, const Program& b) {
  if (!same_count(a, a.steps_ref, b, b.steps_ref)) return "the claimed steps";
  if (!same_count(a, a.bound_ref, b, b.bound_ref)) return "the claimed lower bound";
  for (std::uint32_t phase = 0; phase < a.phases_count; ++phase) {
    if (!same_count(a, a.phases[phase].steps_ref, b, b.phases[phase].steps_ref)) {
      return "the steps of phase " + std::to_string(phase);
    }
  }
  return {};
}

}  // namespace

Finding check_agreement(const topology::Topology& topology, const Program& common,
                        std::uint32_t node, const Program& program) {
  const Status status = check_program(program);
  if (status != Status::kOk) {
    return badly_formed(
        topology, node,
        std::string("the program is not one a node would load: ") + status_name(status));
  }
  if (program.node != node) {
    return badly_formed(topology, node,
                        "the program says that it is node " + std::to_string(program.node) +
                            "'s; it must be " + std::to_string(node) + "'s");
  }
  if (program.topology_digest != topology.digest()) {
    return badly_formed(topology, node,
                        "the program was made for a topology other than " + topology.title() +
                            "; compile it for this one");
  }
  if (program.ranks != topology.ranks()) {
    return badly_formed(topology, node,
                        "the program is for " + std::to_string(program.ranks) + " ranks; " +
                            topology.title() + " has " + std::to_string(topology.ranks()));
  }
  if (program_nodes(program) != program.ranks && program_nodes(program) != topology.nodes()) {
    return badly_formed(topology, node,
                        "the schedule has programs for " + std::to_string(program_nodes(program)) +
                            " nodes; " + topology.title() + " has " +
                            std::to_string(topology.nodes()) +
                            ", and either all of its routers have one or none");
  }
  if (program.collective == espalier_Collective_BARRIER &&
      (program.segments != 1 || cuts_messages(program))) {
    return badly_formed(topology, node,
                        "a barrier has no elements; it must have one segment of one block");
  }
  if (program.window > kMostWindow) {
    return badly_formed(topology, node,
                        "a window of " + std::to_string(program.window) + " is claimed; at most " +
                            std::to_string(kMostWindow) + " can be proven",
                        Point::kClaims);
  }
  if (latency_ticks(program) > program.window) {
    const std::string latency = std::to_string(latency_ticks(program));
    return badly_formed(topology, node,
                        "a receive is " + std::to_string(latency_ticks(program) - 1) +
                            " steps after its send, but may not be let in while that is in flight "
                            "with window " +
                            std::to_string(program.window) + "; a window of " + latency +
                            " would do",
                        Point::kDeadlock);
  }
  for (std::uint32_t link = 0; link < links_count(program); ++link) {
    const std::uint32_t peer = peer_of(program, link);
    const bool there = peer < program_nodes(program) &&
                       (!is_modelled(program) ||
                        (topology.capacity(node, peer) > 0 && topology.capacity(peer, node) > 0));
    if (!there) return absent_link(topology, node, program, link);
  }
  const std::string header = same_header(common, program);
  if (!header.empty()) return badly_formed(topology, node, header);
  const std::string claim = same_claims(common, program);
  if (!claim.empty()) {
    return badly_formed(topology, node,
                        claim + " must be the same on all nodes; rank 0's program says otherwise");
  }
  return std::nullopt;
}

bool only_neighbours(const topology::Topology& topology, const Program& program) {
  for (std::uint32_t link = 0; link < links_count(program); ++link) {
    const std::uint32_t peer = peer_of(program, link);
    if (topology.capacity(program.node, peer) == 0 || topology.capacity(peer, program.node) == 0) {
      return false;
    }
  }
  return true;
}

std::int64_t longest_run(const Program& program) {
  std::int64_t run = 1;
  for (std::uint32_t k = 0; k < program.actions_count; ++k) {
    const Action& action = program.actions[k];
    run = std::max({run, std::int64_t{action.into.run}, std::int64_t{action.a.run}});
  }
  return run;
}

Counterexample too_large(Point point, const Case& at, std::int64_t node, const std::string& text) {
  Counterexample example = found(point, at, node, nullptr, text);
  example.too_large = true;
  return example;
}

namespace {

// Steps that a rank does nothing in, in the time that an instance takes.
constexpr std::int64_t kIdleSteps = 32;
// More of anything is too much; products of it with what tables hold stay inside 64 bits.
constexpr std::int64_t kMost = std::int64_t{1} << 32;

// How many instances expand() looks at, one of a run for each of its segments. Without a pace an
// action has at most one a period of its phase.
std::int64_t possible_instances(const Case& at, const Program& program) {
  std::int64_t sum = 0;
  std::uint32_t next = 0;
  for (std::uint32_t phase = 0; phase < program.phases_count; ++phase) {
    const std::int64_t steps = at.phase_first[phase + 1] - at.phase_first[phase];
    const std::int64_t periods = std::min(kMost, ceil_div(steps, program.phases[phase].period));
    for (std::uint32_t end = next + program.phases[phase].actions; next < end; ++next) {
      const Action& action = program.actions[next];
      const std::int64_t instances = count_value(program.counts[action.instances_ref], at.blocks);
      const std::int64_t run = std::max(place_run(action.into), place_run(action.a));
      sum += run * std::clamp<std::int64_t>(instances, 0, action.pace_ref == 0 ? periods : kMost);
    }
  }
  return sum;
}

}  // namespace

void add_steps(Case& at) {
  at.spent += std::min(kMost, ceil_div(at.steps(), kIdleSteps)) * program_nodes(*at.common);
}

Finding check_size(Case& at, std::uint32_t node, const Program& program) {
  const std::int64_t needed = possible_instances(at, program) +
                              std::int64_t{program.segments} * at.blocks +
                              std::int64_t{program.scratch_blocks};
  at.held += needed;
  at.spent += needed;
  const auto too_many = [&](std::int64_t taken, std::int64_t most, const std::string& what,
                            const std::string& scope) {
    return too_large(Point::kForm, at, node,
                     std::to_string(taken) + " " + what + " up to here are more than can be " +
                         "checked; " + std::to_string(most) + " are for " + scope);
  };
  if (at.held > at.most_instances) {
    return too_many(at.held, at.most_instances, "instances and places", "one N");
  }
  if (at.spent > at.most_in_total) {
    return too_many(at.spent, at.most_in_total, "instances, places and steps", "all N together");
  }
  return std::nullopt;
}

bool has_operator(Collective collective) {
  switch (collective) {
    case espalier_Collective_REDUCE:
    case espalier_Collective_ALLREDUCE:
    case espalier_Collective_SCAN:
    case espalier_Collective_EXSCAN:
    case espalier_Collective_REDUCE_SCATTER:
    case espalier_Collective_BARRIER: return true;
    default: return false;
  }
}

namespace {

// Whether `place`, which `instance` uses, lies inside what there is; empty if so.
Finding check_place(const Case& at, std::uint32_t node, const Program& program,
                    const Instance& instance, const PlaceAt& place) {
  const std::int64_t last = place.run - std::int64_t{1};
  if (place.segment < 0 || place.segment + last >= program.segments) {
    const std::int64_t wrong = place.segment < 0 ? place.segment : place.segment + last;
    return found(Point::kForm, at, node, &instance,
                 "segment " + std::to_string(wrong) + " does not exist; there are " +
                     std::to_string(program.segments));
  }
  if (place.block < 0 || place.block >= at.blocks) {
    return found(Point::kForm, at, node, &instance,
                 "block " + std::to_string(place.block) + " does not exist; there are " +
                     std::to_string(at.blocks));
  }
  if (place.buffer == espalier_Buffer_SCRATCH &&
      (place.slot < 0 || place.slot + last >= program.scratch_blocks)) {
    const std::int64_t wrong = place.slot < 0 ? place.slot : place.slot + last;
    return found(Point::kClaims, at, node, &instance,
                 "scratch slot " + std::to_string(wrong) + " is used, but only " +
                     std::to_string(program.scratch_blocks) + " blocks of scratch are claimed");
  }
  return std::nullopt;
}

// What of the message a buffer holds, and so which places in it there are (buffer_extent). In a
// barrier INPUT, of no bytes, stands for the rank's own coming.
Finding check_buffer(const Case& at, std::uint32_t node, const Program& program,
                     const Instance& instance, const PlaceAt& place) {
  if (place.buffer == espalier_Buffer_SCRATCH) return std::nullopt;
  const bool input = place.buffer == espalier_Buffer_INPUT;
  const std::string name = input ? "input" : "output";
  Extent extent = buffer_extent(program, place.buffer);
  if (program.collective == espalier_Collective_BARRIER && input && !is_router(program)) {
    extent = Extent::kWhole;
  }
  if (extent == Extent::kNothing) {
    return found(Point::kDataFlow, at, node, &instance,
                 "the " + name + " of " + at.topology->node_name(node) + " is used, but " +
                     (is_router(program) ? "routers have scratch only"
                                         : "in this collective its caller gives none"));
  }
  if (extent == Extent::kOwn && (place.segment != node || place.run != 1)) {
    return found(Point::kDataFlow, at, node, &instance,
                 place_name(place) +
                     " is used, but that buffer holds the node's own segment only, " +
                     std::to_string(node));
  }
  return std::nullopt;
}

// `place` against the one whose block the instance moves: the same block, and the same memory or
// none of it.
Finding check_operand(const Case& at, std::uint32_t node, const Instance& instance,
                      const PlaceAt& place) {
  const PlaceAt& target = moved(instance);
  if (!same_blocks(*at.common, place, target)) {
    return found(Point::kForm, at, node, &instance,
                 "an operand is " + block_name(place) + ", the result " + block_name(target) +
                     "; both must be the same block");
  }
  const bool slots = place.buffer == espalier_Buffer_SCRATCH;
  const std::int64_t apart = slots ? place.slot - target.slot : place.segment - target.segment;
  if (place.buffer == target.buffer && apart != 0 && std::abs(apart) < place.run) {
    return found(Point::kHazards, at, node, &instance,
                 place_name(place) + " and " + place_name(target) +
                     " overlap; what is read and what is written must be the same place or apart");
  }
  return std::nullopt;
}

// A pace never falls, that of a combine or copy rises, and it keeps within its phase: machines step
// through its instances in order.
Finding check_paces(const Case& at, std::uint32_t node, const Program& program) {
  std::uint32_t k = 0;
  for (std::uint32_t phase = 0; phase < program.phases_count; ++phase) {
    const std::int64_t steps =
        count_value(program.counts[program.phases[phase].steps_ref], at.blocks);
    for (const std::uint32_t end = k + program.phases[phase].actions; k < end; ++k) {
      const Action& action = program.actions[k];
      if (action.pace_ref == 0) continue;
      const std::int64_t first = count_value(program.counts[action.t0_ref], at.blocks);
      const std::int64_t many = count_value(program.counts[action.instances_ref], at.blocks);
      const bool transfer =
          action.kind == espalier_Kind_SEND || action.kind == espalier_Kind_RECEIVE;
      std::int64_t earliest = 0;
      for (std::int64_t i = 0; i < many; ++i) {
        const std::int64_t step =
            first + program.phases[phase].period * index_value(program, action.pace_ref, i);
        if (step >= earliest && step < steps) {
          earliest = step + (transfer ? 0 : 1);
          continue;
        }
        return found(Point::kForm, at, node, nullptr,
                     "the pace of action " + std::to_string(k) + " gives instance " +
                         std::to_string(i) + " step " + std::to_string(step) + " of phase " +
                         std::to_string(phase) + "; it must be " + std::to_string(earliest) +
                         " or later, and the phase has " + std::to_string(steps));
      }
    }
  }
  return std::nullopt;
}

}  // namespace

Finding check_instances(const Case& at, std::uint32_t node, const Program& program) {
  if (Finding finding = check_paces(at, node, program)) return finding;
  for (const Instance& instance : at.instances[node]) {
    const bool transfer =
        instance.kind == espalier_Kind_SEND || instance.kind == espalier_Kind_RECEIVE;
    if (transfer && instance.peer < 0) {
      return found(Point::kForm, at, node, &instance,
                   "link " + std::to_string(instance.link) + " is not in the table of " +
                       std::to_string(links_count(program)) + " peers");
    }
    for (const PlaceAt* place : {&instance.into, &instance.a, &instance.b}) {
      if (place->buffer == espalier_Buffer_BUFFER_NONE) continue;
      if (Finding finding = check_place(at, node, program, instance, *place)) return finding;
      if (Finding finding = check_buffer(at, node, program, instance, *place)) return finding;
      if (Finding finding = check_operand(at, node, instance, *place)) return finding;
    }
    if (instance.kind == espalier_Kind_COMBINE && !has_operator(program.collective)) {
      return found(Point::kForm, at, node, &instance,
                   "it combines, but this collective takes no operator");
    }
  }
  return std::nullopt;
}

}  // namespace espalier::verify
