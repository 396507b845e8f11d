#include "collectives/verify/report/picture.h"

#include <gtest/gtest.h>

#include "base/testing/results.h"
#include "collectives/verify/testing/broken.h"

namespace espalier::verify {
namespace {

int count(const std::string& text, const std::string& piece) {
  int number = 0;
  for (auto found = text.find(piece); found != std::string::npos;
       found = text.find(piece, found + 1))
    ++number;
  return number;
}

std::string picture_of(const topology::Topology& topology,
                       const std::vector<OwnedProgram>& programs, std::int64_t blocks,
                       const Counterexample* fault = nullptr) {
  return draw_svg(
      topology, [&](std::uint32_t node) -> const Program& { return programs[node]; }, blocks,
      fault);
}

TEST(Picture, OfAValidSchedule) {
  const auto topology = or_throw(topology::parse("complete:4"));
  const std::string svg = picture_of(*topology, chain_reduce(*topology, 4, 5), 3);
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
  EXPECT_EQ(count(svg, "class=\"name\""), 4);
  EXPECT_EQ(count(svg, "class=\"number note\""), 5);  // N + 2 steps
  EXPECT_EQ(count(svg, "<circle "), 9);               // transfers: 3 ranks send 3 blocks
  EXPECT_EQ(count(svg, "width=\"8\""), 9);            // the same number of combines
  EXPECT_EQ(count(svg, "\"#c0231c\""), 0);            // nothing is red
}

TEST(Picture, MarksTheFault) {
  for (const Broken& one : broken_schedules()) {
    const Verdict verdict = verdict_of(*one.topology, one.broken);
    const Counterexample& fault = verdict.counterexample;
    const std::string svg = picture_of(*one.topology, one.broken, 0, &fault);
    const bool at_rank = fault.node >= 0;
    EXPECT_EQ(count(svg, "class=\"fault\""), at_rank ? 1 : 0) << one.name;
    EXPECT_EQ(count(svg, "claimed end"), fault.property == Property::kSteps ? 1 : 0) << one.name;
    EXPECT_GT(count(svg, "class=\"wrong\""), 0) << one.name;
    if (fault.blocks > 0) {
      EXPECT_EQ(count(svg, "N = " + std::to_string(fault.blocks) + ", "), fault.step < 0 ? 1 : 2)
          << one.name;
    }
  }
}

TEST(Picture, EndsThatDisagreeAreDashed) {
  const std::vector<Broken> all = broken_schedules();
  const std::string cycle = picture_of(*all[1].topology, all[1].broken, 1);
  EXPECT_EQ(count(cycle, "stroke-dasharray=\"5 3\""), 2);  // both ranks' send
  EXPECT_EQ(count(picture_of(*all[0].topology, all[0].broken, 1), "0.0, awaited 1.0"), 1);
  const std::string absent = picture_of(*all[4].topology, all[4].broken, 1);
  EXPECT_EQ(count(absent, "0 to 4"), 1);
  EXPECT_EQ(count(absent, "0 from 2"), 1);  // rank 3's receive: rank 2 does not send it
}

TEST(Picture, OfPartOfALargeSchedule) {
  const auto topology = or_throw(topology::parse("complete:100"));
  Counterexample fault{.property = Property::kHazards,
                       .blocks = 40,
                       .node = 60,
                       .step = 70,
                       .message = "hazards: <here>"};
  const std::string svg = picture_of(*topology, chain_broadcast(*topology), 0, &fault);
  EXPECT_EQ(count(svg, "class=\"name\""), 24);
  EXPECT_EQ(count(svg, "class=\"number note\""), 32);
  EXPECT_EQ(count(svg, "class=\"fault\""), 1);
  EXPECT_NE(svg.find("Drawn: 24 of 100 ranks, steps 54 to 85."), std::string::npos);
  EXPECT_NE(svg.find("hazards: &lt;here>"), std::string::npos);
}

// No node would load the program, so none of it is drawn, even if its tables contain actions.
TEST(Picture, LeavesOutWhatCannotBeLoaded) {
  const auto topology = or_throw(topology::parse("complete:4"));
  std::vector<OwnedProgram> programs = chain_broadcast(*topology);
  programs[2].actions[0].t0_ref = 200;
  const Verdict verdict = verdict_of(*topology, programs);
  ASSERT_FALSE(verdict.valid);
  const std::string svg = picture_of(*topology, programs, 1, &verdict.counterexample);
  EXPECT_EQ(count(svg, "class=\"fault\""), 1);
  EXPECT_NE(svg.find("would load"), std::string::npos);
}

}  // namespace
}  // namespace espalier::verify
