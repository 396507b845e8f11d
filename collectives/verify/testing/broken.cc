#include "collectives/verify/testing/broken.h"

#include <utility>

#include "base/testing/results.h"

namespace espalier::verify {
namespace {

using Programs = std::vector<OwnedProgram>;

Broken start(std::string name, const std::string& topology, std::string story) {
  Broken broken;
  broken.name = std::move(name);
  broken.story = std::move(story);
  broken.topology = or_throw(topology::parse(topology));
  return broken;
}

void expect(Broken& broken, Property property, std::vector<std::string> words) {
  broken.property = property;
  broken.words = std::move(words);
}

// Two segments from rank 0 to rank 1, one after the other.
Programs two_segments(const topology::Topology& topology, bool swapped) {
  Programs programs;
  ProgramBuilder root(topology, Collective::kBroadcast, 0, 4);
  ProgramBuilder other(topology, Collective::kBroadcast, 1, 4);
  root.send(0, 1, root.operand(Buffer::kInput, 0), 0);
  root.send(1, 1, root.operand(Buffer::kInput, 1), 0);
  other.receive(0, 0, other.operand(Buffer::kOutput, swapped ? 1 : 0));
  other.receive(1, 0, other.operand(Buffer::kOutput, swapped ? 0 : 1));
  for (ProgramBuilder* builder : {&root, &other}) {
    builder->program.segments = 2;
    programs.push_back(builder->finish(2, 0, 2, 0));
  }
  return programs;
}

Broken send_order() {
  Broken broken = start("send-order", "complete:2",
                        "Rank 0 sends segment 0, then 1; its neighbour awaits 1, then 0.");
  broken.sound = two_segments(*broken.topology, false);
  broken.broken = two_segments(*broken.topology, true);
  expect(broken, Property::kMatching,
         {"N = 1", "rank 1", "step 0", "rank 0 -> rank 1", "block 0 of segment 1",
          "block 0 of segment 0"});
  return broken;
}

// Two ranks exchange their inputs, each through `slots` slots; block i is sent in step i and
// awaited `later` steps after that.
Programs exchange(const topology::Topology& topology, std::int32_t later) {
  return by_rank(
      topology, Collective::kAllreduce, 4, {1, later, 1, 0}, [&](auto& builder, auto me) {
        builder.program.scratch_blocks = 4;
        const Operand slot = builder.slot(0, 4);
        const Operand own = builder.input();
        builder.send(0, 1 - me, own, 0);
        builder.receive(later, 1 - me, slot);
        builder.combine(later, builder.output(), me == 0 ? own : slot, me == 0 ? slot : own);
      });
}

Broken wait_cycle() {
  Broken broken = start("wait-cycle", "complete:2",
                        "To be sure that a scratch slot is free again, both ranks await a block a "
                        "window of steps after it is sent.");
  broken.sound = exchange(*broken.topology, 0);
  broken.broken = exchange(*broken.topology, 4);
  expect(broken, Property::kDeadlock,
         {"N = 1", "rank 0", "rank 1", "step 0", "step 4", "block 0 of segment 0", "wait cycle: ",
          "rank 0 waits in step 0 for rank 1", "rank 1 waits in step 0 for rank 0"});
  return broken;
}

// Segment 0 goes 0 -> 2 -> 1, segment 1 goes 0 -> 1 -> 2. Rank 2's send waits `after` steps back.
Programs detour(const topology::Topology& topology, std::uint16_t after) {
  return by_rank(topology, Collective::kBroadcast, 8, {4, 0, 4, 0}, [&](auto& builder, auto me) {
    builder.program.segments = 2;
    if (me == 0) {
      builder.send(0, 2, builder.operand(Buffer::kInput, 0), 0);
      builder.send(1, 1, builder.operand(Buffer::kInput, 1), 0);
    } else if (me == 1) {
      builder.receive(1, 0, builder.operand(Buffer::kOutput, 1));
      builder.send(2, 2, builder.operand(Buffer::kOutput, 1), 1);
      builder.receive(3, 2, builder.operand(Buffer::kOutput, 0));
    } else {
      builder.receive(0, 0, builder.operand(Buffer::kOutput, 0));
      builder.receive(2, 1, builder.operand(Buffer::kOutput, 1));
      builder.send(3, 1, builder.operand(Buffer::kOutput, 0), after);
    }
  });
}

Broken missing_dependency() {
  Broken broken =
      start("missing-dependency", "complete:3",
            "Rank 2 passes segment 0 on once segment 1 has come through rank 1: rank 0 "
            "sent that later, so segment 0 is taken for granted. A slow link breaks it.");
  broken.sound = detour(*broken.topology, 3);
  broken.broken = detour(*broken.topology, 1);
  expect(broken, Property::kHazards,
         {"N = 1", "rank 2", "step 3", "rank 2 -> rank 1", "block 0 of segment 0",
          "after = 1 does not", "after = 3 would"});
  return broken;
}

// Rank 1 passes each block on to 2, then to 3, out of one of `slots` slots.
Programs fan_out(const topology::Topology& topology, std::uint32_t slots) {
  return by_rank(topology, Collective::kBroadcast, 3, {2, 1, 2, 0}, [&](auto& builder, auto me) {
    if (me == 0) builder.send(0, 1, builder.input(), 0);
    if (me == 1) {
      builder.program.scratch_blocks = slots;
      const Operand slot = builder.slot(0, slots);
      builder.receive(0, 0, slot);
      builder.copy(0, builder.output(), slot);
      builder.send(1, 2, slot, 1);
      builder.send(2, 3, slot, 2);
    }
    if (me > 1) builder.receive(static_cast<std::int32_t>(me) - 1, 1, builder.output());
  });
}

Broken overwritten() {
  Broken broken = start("overwritten-before-last-send", "complete:4",
                        "Two slots last until a block has been sent to rank 2, but not until it "
                        "has been sent to rank 3.");
  broken.sound = fan_out(*broken.topology, 3);
  broken.broken = fan_out(*broken.topology, 2);
  expect(broken, Property::kHazards,
         {"N = 3", "rank 1", "step 4", "rank 0 -> rank 1", "block 2", "scratch slot 0",
          "action 3 of step 2 may still be sending from it"});
  return broken;
}

Broken absent_link() {
  Broken broken = start("absent-link", "mesh:4x1",
                        "Rank 2 sends to the row after the next: the mesh ends before.");
  broken.sound = chain_broadcast(*broken.topology);
  broken.broken = broken.sound;
  broken.broken[2].peers[1] = 4;
  expect(broken, Property::kLinks, {"rank 2", "node 4", "mesh:4x1 has no such link"});
  return broken;
}

// Reduce to 0: ranks 1 and 2 send to it. `twice`: rank 1 also to rank 2, which adds that.
Programs partial_sums(const topology::Topology& topology, bool twice) {
  return by_rank(topology, Collective::kReduce, 4, {3, 0, 3, 0}, [&](auto& builder, auto me) {
    builder.program.needs_commutative = true;
    builder.program.scratch_blocks = 8;
    const Operand slot = builder.slot(0, 4);
    if (me == 0) {
      const Operand other = builder.slot(4, 4);
      builder.receive(0, 1, slot);
      builder.combine(0, builder.output(), builder.input(), slot);
      builder.receive(2, 2, other);
      builder.combine(2, builder.output(), builder.output(), other);
    } else if (me == 1) {
      builder.send(0, 0, builder.input(), 0);
      if (twice) builder.send(1, 2, builder.input(), 0);
    } else {
      if (twice) builder.receive(1, 1, slot);
      if (twice) builder.combine(1, slot, slot, builder.input());
      builder.send(2, 0, twice ? slot : builder.input(), twice ? 1 : 0);
    }
  });
}

Broken counted_twice() {
  Broken broken = start("counted-twice", "complete:3",
                        "Rank 1's input goes to rank 0 itself and in rank 2's partial sum.");
  broken.sound = partial_sums(*broken.topology, false);
  broken.broken = partial_sums(*broken.topology, true);
  expect(broken, Property::kDataFlow,
         {"N = 1", "rank 0", "step 2", "block 0", "ranks 0-1 (left)", "ranks 1-2 (right)",
          "no rank may count twice"});
  return broken;
}

Broken wrong_order() {
  Broken broken = start("operand-order", "complete:4",
                        "Rank 1 puts what comes from the ranks after it before its own.");
  broken.sound = chain_reduce(*broken.topology, 4, 5);
  broken.broken = broken.sound;
  std::swap(broken.broken[1].actions[1].a, broken.broken[1].actions[1].b);
  expect(broken, Property::kDataFlow,
         {"N = 1", "rank 1", "step 1", "block 0", "ranks 2-3 (left)", "rank 1 (right)"});
  return broken;
}

Broken low_claim() {
  Broken broken =
      start("step-claim", "complete:4", "The schedule claims N + 1 steps; it takes N + 2.");
  broken.sound = chain_broadcast(*broken.topology);
  broken.broken = broken.sound;
  for (Program& program : broken.broken) program.counts[program.steps_ref].a -= 1;
  expect(broken, Property::kSteps, {"N = 1", "2 steps are claimed", "3 together"});
  return broken;
}

Broken small_window() {
  Broken broken = start("small-window", "complete:4",
                        "The slots are a window for 3 steps in flight; the schedule allows 4.");
  broken.sound = chain_reduce(*broken.topology, 4, 5);
  broken.broken = chain_reduce(*broken.topology, 4, 4);
  expect(broken, Property::kHazards,
         {"N = 5", "rank 1", "scratch slot 0", "window 4", "a window of 3 would do"});
  return broken;
}

// All blocks are gathered in seven slots, and copied out in a second phase.
Programs gathered(const topology::Topology& topology, bool phases) {
  Programs programs;
  for (std::uint32_t me = 0; me < 2; ++me) {
    ProgramBuilder builder(topology, Collective::kBroadcast, me, 4);
    if (me == 0) builder.send(0, 1, builder.input(), 0);
    if (me == 1) {
      builder.program.scratch_blocks = 7;
      const Operand slot = builder.slot(0, 7);
      builder.receive(0, 0, slot);
      builder.copy(0, builder.output(), slot);
    }
    OwnedProgram program = builder.finish(1, 0, 1, 0);
    if (phases) {
      program.phases[1] = program.phases[0];
      program.phases[0].actions = 1;
      program.phases[1].actions = me;
      program.phases_count = 2;
      program.counts[program.counts_count] = {0, 2, 0, 0, 0};
      program.steps_ref = static_cast<std::uint8_t>(program.counts_count++);
    }
    programs.push_back(program);
  }
  return programs;
}

Broken eighth_block() {
  Broken broken = start("eighth-block", "complete:2",
                        "Blocks are gathered in seven slots and copied out at the end: right for N "
                        "up to 7, wrong from N = 8 on.");
  broken.sound = gathered(*broken.topology, false);
  broken.broken = gathered(*broken.topology, true);
  expect(broken, Property::kDataFlow,
         {"N = 8", "rank 1", "step 8", "scratch slot 0 holds block 7", "block 0"});
  return broken;
}

}  // namespace

std::vector<Broken> broken_schedules() {
  std::vector<Broken> all;
  all.push_back(send_order());
  all.push_back(wait_cycle());
  all.push_back(missing_dependency());
  all.push_back(overwritten());
  all.push_back(absent_link());
  all.push_back(counted_twice());
  all.push_back(wrong_order());
  all.push_back(low_claim());
  all.push_back(small_window());
  all.push_back(eighth_block());
  return all;
}

}  // namespace espalier::verify
