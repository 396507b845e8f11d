// Point 0: programs well formed, and agreeing on everything that must be the same on all ranks.

#include <algorithm>
#include <string>

#include "collectives/schedule/arithmetic.h"
#include "collectives/verify/check.h"

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

// A peer that is no rank: a router, which runs no program yet, or no node at all.
Counterexample absent_link(const topology::Topology& topology, std::uint32_t node,
                           const Program& program, std::uint32_t link) {
  const std::uint32_t peer = program.peers[link];
  const bool router = peer < topology.nodes();
  const std::string there = router ? topology.node_name(peer) : "node " + std::to_string(peer);
  Counterexample example = badly_formed(topology, node, "");
  example.message = std::string(point_name(Point::kLinks)) + ": " + topology.node_name(node) +
                    ", link " + topology.node_name(node) + " -> " + there + ": " + topology.spec() +
                    " has no such link (peer " + std::to_string(link) +
                    " of the program) between ranks; there are ranks 0 .. " +
                    std::to_string(program.ranks - 1);
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
           " in rank 0's program; it must be the same on all ranks";
  };
  if (a.schedule_digest != b.schedule_digest) {
    return differ("the schedule's digest", b.schedule_digest, a.schedule_digest);
  }
  if (a.collective != b.collective) return differ("collective", b.collective, a.collective);
  if (a.ranks != b.ranks) return differ("ranks", b.ranks, a.ranks);
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
             " of the block table is not as in rank 0's program; all ranks must cut alike";
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
                        "the program was made for a topology other than " + topology.spec() +
                            "; compile it for this one");
  }
  if (program.ranks != topology.ranks()) {
    return badly_formed(topology, node,
                        "the program is for " + std::to_string(program.ranks) + " ranks; " +
                            topology.spec() + " has " + std::to_string(topology.ranks()));
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
  for (std::uint32_t link = 0; link < program.peers_count; ++link) {
    if (program.peers[link] >= program.ranks) return absent_link(topology, node, program, link);
  }
  const std::string header = same_header(common, program);
  if (!header.empty()) return badly_formed(topology, node, header);
  const std::string claim = same_claims(common, program);
  if (!claim.empty()) {
    return badly_formed(topology, node,
                        claim + " must be the same on all ranks; rank 0's program says otherwise");
  }
  return std::nullopt;
}

Counterexample too_large(Point point, const Case& at, std::int64_t node, const std::string& text) {
  Counterexample example = found(point, at, node, nullptr, text);
  example.too_large = true;
  return example;
}

namespace {

// Steps that a rank does nothing in, in the time that an instance takes.
constexpr std::int64_t kIdleSteps = 32;

// How many instances expand() looks at: an action has at most one a period of its phase.
std::int64_t possible_instances(const Case& at, const Program& program) {
  std::int64_t sum = 0;
  std::uint32_t action = 0;
  for (std::uint32_t phase = 0; phase < program.phases_count; ++phase) {
    const std::int64_t steps = at.phase_first[phase + 1] - at.phase_first[phase];
    const std::int64_t periods = ceil_div(steps, program.phases[phase].period);
    for (std::uint32_t end = action + program.phases[phase].actions; action < end; ++action) {
      const Count& instances = program.counts[program.actions[action].instances_ref];
      sum += std::clamp<std::int64_t>(count_value(instances, at.blocks), 0, periods);
    }
  }
  return sum;
}

}  // namespace

void add_steps(Case& at) {
  constexpr std::int64_t kMost = std::int64_t{1} << 32;  // times ranks, below 2^30, is no overflow
  at.spent += std::min(kMost, ceil_div(at.steps(), kIdleSteps)) * at.common->ranks;
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

namespace {

// Whether `place`, which `instance` uses, lies inside what there is; empty if so.
Finding check_place(const Case& at, std::uint32_t node, const Program& program,
                    const Instance& instance, const PlaceAt& place) {
  if (place.segment < 0 || place.segment >= program.segments) {
    return found(Point::kForm, at, node, &instance,
                 "segment " + std::to_string(place.segment) + " does not exist; there are " +
                     std::to_string(program.segments));
  }
  if (place.block < 0 || place.block >= at.blocks) {
    return found(Point::kForm, at, node, &instance,
                 "block " + std::to_string(place.block) + " does not exist; there are " +
                     std::to_string(at.blocks));
  }
  if (place.buffer == espalier_Buffer_SCRATCH &&
      (place.slot < 0 || place.slot >= program.scratch_blocks)) {
    return found(Point::kClaims, at, node, &instance,
                 "scratch slot " + std::to_string(place.slot) + " is used, but only " +
                     std::to_string(program.scratch_blocks) + " blocks of scratch are claimed");
  }
  return std::nullopt;
}

// Who may use which buffer: the caller's of a rooted collective may be missing elsewhere.
Finding check_buffers(const Case& at, std::uint32_t node, const Program& program,
                      const Instance& instance) {
  const bool root = node == program.root;
  const bool broadcast = program.collective == espalier_Collective_BROADCAST;
  for (const PlaceAt* place : {&instance.into, &instance.a, &instance.b}) {
    if (broadcast && !root && place->buffer == espalier_Buffer_INPUT) {
      return found(Point::kDataFlow, at, node, &instance,
                   "the input of a rank that is not the root is read; only the root has one");
    }
    if (broadcast && root && place->buffer == espalier_Buffer_OUTPUT) {
      return found(Point::kDataFlow, at, node, &instance,
                   "the root's output is used; the root of a broadcast has its input only");
    }
    if (program.collective == espalier_Collective_REDUCE && !root &&
        place->buffer == espalier_Buffer_OUTPUT) {
      return found(Point::kDataFlow, at, node, &instance,
                   "the output of a rank that is not the root is used; only the root has one");
    }
  }
  return std::nullopt;
}

}  // namespace

Finding check_instances(const Case& at, std::uint32_t node, const Program& program) {
  for (const Instance& instance : at.instances[node]) {
    const bool transfer =
        instance.kind == espalier_Kind_SEND || instance.kind == espalier_Kind_RECEIVE;
    if (transfer && instance.peer < 0) {
      return found(Point::kForm, at, node, &instance,
                   "link " + std::to_string(instance.link) + " is not in the table of " +
                       std::to_string(program.peers_count) + " peers");
    }
    for (const PlaceAt* place : {&instance.into, &instance.a, &instance.b}) {
      if (place->buffer == espalier_Buffer_BUFFER_NONE) continue;
      if (Finding finding = check_place(at, node, program, instance, *place)) return finding;
      const PlaceAt& target = moved(instance);
      if (place->segment != target.segment || place->block != target.block) {
        return found(Point::kForm, at, node, &instance,
                     "an operand is " + block_name(*place) + ", the result " + block_name(target) +
                         "; both must be the same block");
      }
    }
    if (Finding finding = check_buffers(at, node, program, instance)) return finding;
  }
  return std::nullopt;
}

}  // namespace espalier::verify
