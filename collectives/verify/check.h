#pragma once
// What the verifier's checks share: one N of a schedule, expanded, and how a finding is put.
// Internal to collectives/verify.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "espalier/collectives/schedule/expand.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/collectives/verify/verify.h"

namespace espalier::verify {

using Finding = std::optional<Counterexample>;

using Witness = LowerBound;
// All programs of a schedule for one N.
struct Case {
  const topology::Topology* topology = nullptr;
  const Program* common = nullptr;  // rank 0's; in it everything that is the same on all ranks
  std::int64_t blocks = 1;          // N
  std::int64_t most_instances = Options{}.max_instances;
  std::int64_t most_in_total = Options{}.max_instances_total;
  std::int64_t held = 0;           // instances and places of this N that were asked for so far
  std::int64_t spent = 0;          // of all N, and steps
  std::vector<Witness> witnesses;  // of lower bounds on its steps
  std::vector<std::int64_t> phase_first;         // first step of each phase, then the end
  std::vector<std::vector<Instance>> instances;  // by node; each by (step, action)

  [[nodiscard]] std::int64_t steps() const { return phase_first.back(); }
  // Every step up to this one has retired before `step` is let in (rule 2); -1: none need.
  [[nodiscard]] std::int64_t gate(std::int64_t step, std::uint32_t phase) const {
    const std::int64_t by_window = step - common->window;
    const std::int64_t by_phase = phase_first[phase] - 1;
    return by_window > by_phase ? by_window : by_phase;
  }
};

// Sets at.blocks and at.phase_first; nothing of this N is held yet.
void set_blocks(Case& at, std::int64_t blocks);
// The least N >= blocks that the residue allows.
[[nodiscard]] std::int64_t next_blocks(const Program& program, std::int64_t blocks);
// Whether the block table cuts any message into more blocks than the fewest.
[[nodiscard]] bool cuts_messages(const Program& program);
// The postal model's S and L; 1 and 1 elsewhere.
[[nodiscard]] inline std::int64_t send_ticks(const Program& program) {
  return program.send_ticks == 0 ? 1 : program.send_ticks;
}
[[nodiscard]] inline std::int64_t latency_ticks(const Program& program) {
  return program.latency_ticks == 0 ? 1 : program.latency_ticks;
}

// A counterexample at `instance` of `node` (either may be missing: null, -1). `text` says what is
// wrong and what would be right; the rest of the line is put before it.
[[nodiscard]] Counterexample found(Point point, const Case& at, std::int64_t node,
                                   const Instance* instance, const std::string& text);
// "block 3 of segment 0", "block 0 of segments 2-4" (a run of three)
[[nodiscard]] std::string block_name(const PlaceAt& place);
// "scratch slot 2", "scratch slots 2-4", "output block 3 of segment 0"
[[nodiscard]] std::string place_name(const PlaceAt& place);
// The place whose block an instance moves: `a` of a send, else `into`.
[[nodiscard]] inline const PlaceAt& moved(const Instance& instance) {
  return instance.kind == espalier_Kind_SEND ? instance.a : instance.into;
}

// Within a step all sends read, then all receives write, then all operations run: 0, 1, 2.
[[nodiscard]] inline int turn_of(Kind kind) {
  return kind == espalier_Kind_SEND ? 0 : kind == espalier_Kind_RECEIVE ? 1 : 2;
}

// The place of one block at position `at` of the place's run.
[[nodiscard]] inline PlaceAt part_of(PlaceAt place, std::uint32_t at) {
  place.segment += at;
  if (place.buffer == espalier_Buffer_SCRATCH) place.slot += at;
  place.run = 1;
  return place;
}
// How many scratch slots the instances use: one more than the highest.
[[nodiscard]] std::size_t used_slots(const std::vector<Instance>& all);
// Whether two places hold the same blocks. In an all-to-all segments name other ranks, each end's
// its own: there as many blocks of the same number will do.
[[nodiscard]] inline bool same_blocks(const Program& common, const PlaceAt& a, const PlaceAt& b) {
  const bool segments =
      common.collective == espalier_Collective_ALL_TO_ALL || a.segment == b.segment;
  return segments && a.block == b.block && a.run == b.run;
}
// Whether routers have programs too: then all peers are neighbours (rule 12).
[[nodiscard]] inline bool is_modelled(const Program& program) {
  return program_nodes(program) > program.ranks;
}
// Messages a step from one node to another: the lanes of their link; one where the fabric routes.
[[nodiscard]] inline std::uint32_t lanes_of(const topology::Topology& topology, std::uint32_t from,
                                            std::uint32_t to) {
  const std::uint32_t lanes = topology.capacity(from, to);
  return lanes == 0 ? 1 : lanes;
}

// Whether a combine has a meaning: an operator, or in a barrier the union of who has been heard of.
[[nodiscard]] bool has_operator(Collective collective);
// Point kForm for one node against rank 0's program (form.cc). For every N at once.
[[nodiscard]] Finding check_agreement(const topology::Topology& topology, const Program& common,
                                      std::uint32_t node, const Program& program);
// A finding that says only that the check would be too long (Counterexample::too_large).
[[nodiscard]] Counterexample too_large(Point point, const Case& at, std::int64_t node,
                                       const std::string& text);
// Adds what `program` takes for N = at.blocks to at.held and at.spent; too_large where that is more
// than the options allow. To be asked before it is expanded.
[[nodiscard]] Finding check_size(Case& at, std::uint32_t node, const Program& program);
// Adds the steps of all nodes, which are walked through, to at.spent; the next check_size refuses.
void add_steps(Case& at);
// Every instance names links, segments, blocks and slots that exist and that its rank may use
// (kForm, kClaims, kDataFlow).
[[nodiscard]] Finding check_instances(const Case& at, std::uint32_t node, const Program& program);
[[nodiscard]] Finding check_ports(const Case& at, std::uint32_t node);
// kMatching, and kDeadlock where the ends of a transfer name different steps (rule 8).
[[nodiscard]] Finding check_matching(const Case& at);
// kMatching and kDeadlock of one link alone: the instances of its ends are enough.
[[nodiscard]] Finding check_link(const Case& at, std::uint32_t from, std::uint32_t to);
// Whether two transfers of one node need the same port of the model's, if they hold it at once.
// The lanes of links are counted besides, in every model.
[[nodiscard]] bool share_port(PortModel model, bool send, bool other_send);
// The first of the S steps in which a transfer of `step` holds its port: a send from its step on, a
// receive up to its step.
[[nodiscard]] std::int64_t port_begin(const Program& program, bool send, std::int64_t step);
[[nodiscard]] Finding check_steps(const Case& at);
// kHazards; clears verdict.in_place where input and output may not be the same memory, adds to
// verdict.checks.
[[nodiscard]] Finding check_hazards(const Case& at, std::uint32_t node, Verdict& verdict);

// What is known of a schedule besides what rank 0's program says.
struct Facts {
  bool links = false;       // they carry no more than they can in a step
  bool neighbours = false;  // every message goes one hop
};
// All that apply, by ports, log p and messages (bounds.cc) and by links (cuts.cc). At least one.
// `run`: the longest of any message.
[[nodiscard]] std::vector<Witness> witnesses(const topology::Topology& topology,
                                             const Program& common, std::int64_t run, Facts facts);
// Adds those by links.
void add_cuts(const topology::Topology& topology, const Program& common, std::int64_t run,
              Facts facts, std::vector<Witness>& all);
// Whether all peers of a node are its neighbours.
[[nodiscard]] bool only_neighbours(const topology::Topology& topology, const Program& program);
// The longest run of a message of `program`.
[[nodiscard]] std::int64_t longest_run(const Program& program);
// Those for a verdict: of several with the same formula the first.
[[nodiscard]] std::vector<LowerBound> describe(const std::vector<Witness>& all);
// The claimed lower bound against the witnesses and against the steps, for one N ...
[[nodiscard]] Finding check_bound(const Case& at, std::int64_t steps);
// Steps that from N = stride on grow by the same every `stride` blocks, a multiple of the
// residue's.
struct Steps {
  std::vector<std::int64_t> first;  // for N = 1 .. 3 stride; 0 where no message has so many
  std::int64_t stride = 1;
};
// ... and for all. `limited` says why not.
[[nodiscard]] Finding check_bound(Case& at, const Steps& steps, std::string& limited);

// That no witness is above the steps of what is otherwise valid: one that is would be wrong itself.
[[nodiscard]] Finding check_witnesses(const Case& at, std::int64_t steps);

// One message of a progression on the link from -> to, in one step of its period.
struct LinkUse {
  std::uint32_t from = 0, to = 0;  // nodes; the links are those of the route
  std::int64_t slot = 0;           // phase and step of the period
};
// kLinks of these uses; clears what does not hold of the grades in `verdict`, and raises the
// busiest link of the one that is claimed.
[[nodiscard]] Finding check_loads(Case& at, std::vector<LinkUse> uses, Verdict& verdict);
// kLinks for one N; clears what does not hold of the grades in `verdict`.
[[nodiscard]] Finding check_links(Case& at, Verdict& verdict);

}  // namespace espalier::verify
