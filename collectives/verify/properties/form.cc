#include <string>

#include "base/counted.h"
#include "collectives/verify/properties/checks.h"
#include "collectives/verify/properties/program_facts.h"

namespace espalier::verify {
namespace {

Counterexample badly_formed(const topology::Topology& topology, std::uint32_t node,
                            const std::string& text, Property property = Property::kForm) {
  Counterexample example{.property = property, .node = node};
  const std::string name =
      node < topology.nodes() ? topology.node_name(node) : "node " + std::to_string(node);
  example.message = std::string(property_name(property)) + ": " + name + ": " + text;
  return example;
}

// Returns the counterexample of a peer that has no program, or that is not a neighbour although
// routers have programs.
Counterexample absent_link(const topology::Topology& topology, std::uint32_t node,
                           const Program& program, std::uint32_t link) {
  const std::uint32_t peer = peer_of(program, link);
  const std::string there =
      peer < topology.nodes() ? topology.node_name(peer) : "node " + std::to_string(peer);
  Counterexample example = badly_formed(topology, node, "");
  example.message =
      std::string(property_name(Property::kLinks)) + ": " + topology.node_name(node) + ", link " +
      topology.node_name(node) + " -> " + there + ": " + topology.title() +
      " has no such link (peer " + std::to_string(link) + " of the program)" +
      (is_hop_by_hop(program)
           ? "; where routers have programs every peer must be a neighbour"
           : " between ranks; there are ranks 0 .. " + std::to_string(program.ranks - 1));
  example.property = Property::kLinks;
  example.from = node;
  example.to = peer;
  return example;
}

// Whether two counts have the same value for every N. Fields without effect may differ.
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
  if (a.required_features != b.required_features) {
    return differ("required_features", b.required_features, a.required_features);
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
  if (a.contention != b.contention)
    return differ("contention guarantee", b.contention, a.contention);
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
                        "the program is for " + counted(program.ranks, "rank") + "; " +
                            topology.title() + " has " + std::to_string(topology.ranks()));
  }
  if (program_nodes(program) != program.ranks && program_nodes(program) != topology.nodes()) {
    return badly_formed(topology, node,
                        "the schedule has programs for " + counted(program_nodes(program), "node") +
                            "; " + topology.title() + " has " + std::to_string(topology.nodes()) +
                            ", and either all of its routers have one or none");
  }
  if (program.collective == Collective::kBarrier &&
      (program.segments != 1 || cuts_messages(program))) {
    return badly_formed(topology, node,
                        "a barrier has no elements; it must have one segment of one block");
  }
  if (program.window > kMaxVerifiedWindow) {
    return badly_formed(topology, node,
                        "a window of " + std::to_string(program.window) + " is claimed; at most " +
                            std::to_string(kMaxVerifiedWindow) + " can be proven",
                        Property::kClaims);
  }
  if (latency_ticks(program) > program.window) {
    const std::string latency = std::to_string(latency_ticks(program));
    return badly_formed(topology, node,
                        "a receive is " + counted(latency_ticks(program) - 1, "step") +
                            " after its send, but may not be issued while the send is in flight "
                            "with window " +
                            std::to_string(program.window) + "; a window of " + latency +
                            " would do",
                        Property::kDeadlock);
  }
  for (std::uint32_t link = 0; link < links_count(program); ++link) {
    const std::uint32_t peer = peer_of(program, link);
    const bool there = peer < program_nodes(program) &&
                       (!is_hop_by_hop(program) || topology.capacity(node, peer) > 0 ||
                        topology.capacity(peer, node) > 0);
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

}  // namespace espalier::verify
