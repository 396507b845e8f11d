// The verifier's errors that the campaign found, each as a minimal example: accepted and wrong, or
// refused though right.

#include <gtest/gtest.h>

#include "base/testing/results.h"
#include "collectives/verify/testing/program_builder.h"
#include "tests/random/brute.h"

namespace espalier::random {
namespace {

using verify::chain_broadcast;
using verify::chain_reduce;
using verify::verdict_of;

std::string brute(const topology::Topology& topology, const Programs& programs,
                  std::int64_t blocks) {
  return Brute(topology, programs, true).check(blocks, InPlace::kNo);
}

// Ranks 1 and 2 do the same one step apart, except that rank 2 looks its steps up and has one more
// instance, which never exists: its step is beyond the phase, where a machine stops.
TEST(Found, OneRankStandsForAnotherWithAPace) {
  const auto topology = or_throw(topology::parse("complete:4"));
  Programs programs = chain_broadcast(*topology);
  EXPECT_TRUE(verdict_of(*topology, programs).for_all);
  Program& other = programs[2];
  for (std::uint32_t i = 0; i < other.actions_count; ++i) {
    other.indices[other.indices_count] = {0, 1, 0, 0, 0, 0, 0};
    other.actions[i].pace_ref = static_cast<std::uint8_t>(other.indices_count++);
  }
  EXPECT_TRUE(verdict_of(*topology, programs).for_all);
  other.counts[other.actions[1].instances_ref].a = 2;
  EXPECT_NE(brute(*topology, programs, 1), "");
  const verify::Verdict verdict = verdict_of(*topology, programs);
  EXPECT_FALSE(verdict.valid);
  EXPECT_NE(verdict.counterexample.message.find("rank 2"), std::string::npos)
      << verdict.counterexample.message;
}

// Slots by instance modulo 3, computed by a product that leaves 64 bits at instance 2^13: beyond it
// the machine's slots differ from the formula.
TEST(Found, AnIndexWraps) {
  const auto topology = or_throw(topology::parse("complete:3"));
  Programs programs = chain_reduce(*topology, 2, 3);
  Program& inner = programs[1];
  Index& slots = inner.indices[inner.actions[0].into.slot_ref];
  ASSERT_EQ(slots.mod, 3u);
  slots.coef = 0;
  slots.terms = 1;
  inner.terms[0] = {};
  inner.terms[0].coef = 1 << 30;  // 1 modulo 3, as the next
  inner.terms[0].mul = 1 << 20;
  inner.terms_count = 1;
  EXPECT_EQ(brute(*topology, programs, 20), "");
  EXPECT_NE(brute(*topology, programs, 8200), "");
  const verify::Verdict verdict = verdict_of(*topology, programs);
  EXPECT_FALSE(verdict.valid && verdict.for_all) << "proven for every N, and wrong at 8200";
}

// Only odd N occur: that an even N would beat a bound is therefore irrelevant.
TEST(Found, ABoundCountsWhereNOccurs) {
  const auto topology = or_throw(topology::parse("complete:3"));
  Programs programs = chain_broadcast(*topology);
  for (Program& program : programs) {
    program.residue_mod = 2;
    program.residue = 1;
    // N + 1 where N is odd, N where it is even.
    Count& steps = program.counts[program.phases[0].steps_ref];
    steps = {0, 0, 2, 0, 2};
    program.counts[program.steps_ref] = steps;
    program.counts[program.bound_ref] = {1, 0, 0, 0, 0};
  }
  EXPECT_EQ(brute(*topology, programs, 7), "");
  const verify::Verdict verdict = verdict_of(*topology, programs);
  EXPECT_TRUE(verdict.valid) << verdict.counterexample.message;
}

}  // namespace
}  // namespace espalier::random
