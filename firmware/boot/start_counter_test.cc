// Power fails at every write and erase of many starts, and again at the operations that follow. No
// number is ever returned twice.

#include "firmware/boot/start_counter.h"

#include <gtest/gtest.h>

#include "firmware/boot/testing/simulated_flash.h"

namespace espalier {
namespace {

constexpr std::uint32_t kStarts = 30;

// Counts starts until `starts` of them have a number, over power failures.
void count(SimulatedFlash& flash, std::uint32_t starts, std::uint32_t offset) {
  std::uint32_t last = 0;
  for (std::uint32_t done = 0; done < starts;) {
    try {
      std::uint32_t number = 0;
      ASSERT_EQ(StartCounter(flash, offset).next(number), Status::kOk);
      ASSERT_GT(number, last);
      last = number;
      ++done;
    } catch (const PowerLost&) {
    }
  }
}

TEST(StartCounter, CountsFromOne) {
  SimulatedFlash flash(3, 64, 16);
  for (std::uint32_t expected = 1; expected <= kStarts; ++expected) {
    std::uint32_t number = 0;
    ASSERT_EQ(StartCounter(flash, 64).next(number), Status::kOk);
    EXPECT_EQ(number, expected);
  }
  EXPECT_TRUE(std::all_of(flash.memory(), flash.memory() + 64, [](std::uint8_t byte) {
    return byte == 0xff;
  })) << "the block before";
}

TEST(StartCounter, NumbersIncreaseThroughPowerFailures) {
  for (const std::uint32_t unit : {1u, 4u, 16u, 64u}) {
    SimulatedFlash whole(2, 64, unit);
    count(whole, kStarts, 0);
    for (int cut = 0; cut < whole.operations(); ++cut) {
      for (const Tear tear : kTears) {
        for (int again = 0; again < 3; ++again) {
          SimulatedFlash flash(2, 64, unit);
          std::uint32_t last = 0;
          flash.cut(cut, tear, static_cast<std::uint32_t>(cut));
          for (std::uint32_t start = 0; start < kStarts; ++start) {
            try {
              std::uint32_t number = 0;
              ASSERT_EQ(StartCounter(flash, 0).next(number), Status::kOk);
              ASSERT_GT(number, last);
              last = number;
            } catch (const PowerLost&) {
              if (again > 0) flash.cut(again - 1, tear, static_cast<std::uint32_t>(cut) + 7);
            }
          }
        }
      }
    }
  }
}

TEST(StartCounter, NoisyBlocksAreErased) {
  SimulatedFlash flash(2, 64, 4);
  for (std::size_t i = 0; i < flash.spoil().size(); ++i) {
    flash.spoil()[i] = static_cast<std::uint8_t>(i);
  }
  count(flash, kStarts, 0);
}

TEST(StartCounter, ReportsAFailedFlash) {
  SimulatedFlash flash(2, 64, 4);
  flash.worn_out = true;
  std::uint32_t number = 0;
  EXPECT_EQ(StartCounter(flash, 0).next(number), Status::kBackEnd);
  EXPECT_EQ(number, 1u);
}

}  // namespace
}  // namespace espalier
