// The watch of carriers, on an interface that has one and on one that does not exist.
// tests/cables/links.py cuts cables.

#include "base/network/carrier.h"

#include <gtest/gtest.h>
#include <net/if.h>

namespace espalier::network {
namespace {

constexpr std::uint64_t kBegin = 1'000'000'000'000;

TEST(CarrierWatch, TheLoopbackHasACarrier) {
  const auto watch = CarrierWatch::open({if_nametoindex("lo")});
  ASSERT_NE(watch, nullptr);
  for (std::uint64_t time = kBegin; time < kBegin + 10 * CarrierWatch::kForgivenNs;
       time += CarrierWatch::kPeriodNs) {
    EXPECT_FALSE(watch->check(time));
    EXPECT_EQ(watch->due_ns(), time + CarrierWatch::kPeriodNs);
  }
  EXPECT_FALSE(watch->is_lost(0));
}

TEST(CarrierWatch, AnInterfaceThatIsGoneIsLostAfterAWhile) {
  constexpr std::uint32_t kNone = 0x7ffffff0;
  const auto watch = CarrierWatch::open({kNone, if_nametoindex("lo")});
  ASSERT_NE(watch, nullptr);
  EXPECT_EQ(watch->due_ns(), 0u);
  EXPECT_FALSE(watch->check(kBegin));
  EXPECT_EQ(watch->due_ns(), kBegin + CarrierWatch::kPeriodNs);
  EXPECT_FALSE(watch->check(kBegin + CarrierWatch::kForgivenNs - 1));
  EXPECT_EQ(watch->due_ns(), kBegin + CarrierWatch::kForgivenNs);
  EXPECT_TRUE(watch->check(kBegin + CarrierWatch::kForgivenNs));
  EXPECT_TRUE(watch->is_lost(0));
  EXPECT_FALSE(watch->is_lost(1));
  EXPECT_FALSE(watch->check(kBegin + 10 * CarrierWatch::kForgivenNs));  // it is not new
  EXPECT_TRUE(watch->is_lost(0));
}

}  // namespace
}  // namespace espalier::network
