#include "firmware/boot/slots.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "firmware/boot/testing/simulated_flash.h"
#include "firmware/image/testing/sample_image.h"

namespace espalier {
namespace {

using Bytes = std::vector<std::uint8_t>;

class BootSlots : public testing::Test {
 protected:
  BootSlots() {
    expectation_.board = kSampleBoard;
    expectation_.topology_digest = kSampleTopology;
    expectation_.node = kSampleNode;
    expectation_.authority = &authority_;
  }

  Bytes image(std::uint32_t release, std::uint32_t counter) const {
    return sample_image(sample_content(release, counter), &key_);
  }
  Status boot() {
    slots_ = std::make_unique<Slots>(flash_, whole_flash(flash_), own_counter_);
    return slots_->boot(expectation_, acceptance_, image_, report_);
  }
  Status install(const Bytes& bytes, std::uint32_t piece = 1000) {
    Status status = slots_->begin(static_cast<std::uint32_t>(bytes.size()));
    for (std::size_t done = 0; status == Status::kOk && done < bytes.size(); done += piece) {
      const auto part = std::min<std::size_t>(piece, bytes.size() - done);
      status = slots_->append(bytes.data() + done, static_cast<std::uint32_t>(part));
    }
    return status == Status::kOk ? slots_->finish(expectation_, acceptance_) : status;
  }
  // Boots, and confirms the image, which runs well.
  void run() {
    ASSERT_EQ(boot(), Status::kOk);
    ASSERT_EQ(slots_->confirm(), Status::kOk);
  }
  // Release 1 runs and is confirmed in slot 0.
  void install_first() {
    ASSERT_EQ(boot(), Status::kNothingToBoot);
    ASSERT_EQ(install(image(1, 1)), Status::kOk);
    run();
  }
  // Then release 2 is installed in slot 1.
  void update() {
    install_first();
    ASSERT_EQ(install(image(2, 1)), Status::kOk);
  }
  std::size_t slot_at(std::uint32_t slot) const { return whole_flash(flash_).slots[slot]; }
  // Replaces the image in slot 1, but not its marks, by one that finish() would refuse.
  void replace(const Bytes& bytes) {
    std::copy(bytes.begin(), bytes.end(),
              flash_.spoil().begin() + static_cast<std::ptrdiff_t>(slot_at(1)));
  }
  void expect_fall_back(Status why) {
    ASSERT_EQ(boot(), Status::kOk) << status_name(why);
    EXPECT_EQ(report_.slot, 0u);
    EXPECT_EQ(image_.release, 1u);
    EXPECT_TRUE(report_.slots[1].looked_at);
    EXPECT_EQ(report_.slots[1].status, why) << status_name(report_.slots[1].status);
  }

  const SampleKey key_{1};
  const Authority authority_ = ed25519_authority(key_.public_key);
  Expectation expectation_;
  Acceptance acceptance_;
  SimulatedFlash flash_{14, 512, 8};
  std::vector<bool> bits_ = std::vector<bool>(16);
  SimulatedBits fuses_{flash_, bits_};
  OneTimeCounter fuses_counter_{fuses_};
  SecurityCounter* own_counter_ = nullptr;  // without one the counter is in flash
  std::unique_ptr<Slots> slots_;
  Image image_;
  BootReport report_;
};

TEST_F(BootSlots, BlankFlashHasNothingToBoot) {
  EXPECT_EQ(boot(), Status::kNothingToBoot);
  for (const SlotReport& slot : report_.slots) EXPECT_EQ(slot.status, Status::kNoImage);
  EXPECT_EQ(slots_->confirm(), Status::kBadArgument);
  EXPECT_EQ(slots_->counter(), 0u);
}

TEST_F(BootSlots, BootsTheNewestAndConfirmsIt) {
  update();
  ASSERT_EQ(boot(), Status::kOk);
  EXPECT_EQ(image_.release, 2u);
  EXPECT_EQ(report_.slot, 1u);
  EXPECT_TRUE(report_.trial);
  EXPECT_FALSE(report_.slots[0].looked_at) << "the older one costs no signature";
  ASSERT_EQ(slots_->confirm(), Status::kOk);
  ASSERT_EQ(boot(), Status::kOk);
  EXPECT_EQ(image_.release, 2u);
  EXPECT_FALSE(report_.trial);
  const int before = flash_.operations();
  ASSERT_EQ(slots_->confirm(), Status::kOk);
  EXPECT_EQ(flash_.operations(), before) << "twice is once";
}

TEST_F(BootSlots, OfEqualReleasesTheOneInstalledLater) {
  update();
  run();
  ASSERT_EQ(install(image(2, 1)), Status::kOk);
  ASSERT_EQ(boot(), Status::kOk);
  EXPECT_EQ(report_.slot, 0u);
  EXPECT_EQ(report_.slots[0].sequence, 3u);
}

TEST_F(BootSlots, FallsBackIfItWasNotConfirmed) {
  update();
  ASSERT_EQ(boot(), Status::kOk);
  EXPECT_EQ(image_.release, 2u);
  EXPECT_EQ(slots_->begin(1000), Status::kUnconfirmed) << "the other slot is its fall-back";
  expect_fall_back(Status::kUnconfirmed);
  EXPECT_FALSE(report_.trial);
  expect_fall_back(Status::kUnconfirmed);
  ASSERT_EQ(install(image(3, 1)), Status::kOk) << "and the failed one can be replaced";
  ASSERT_EQ(boot(), Status::kOk);
  EXPECT_EQ(image_.release, 3u);
}

// An unconfirmed image is better than a node that does not boot; the report says so.
TEST_F(BootSlots, AnUnconfirmedImageIsTheLastResort) {
  ASSERT_EQ(boot(), Status::kNothingToBoot);
  ASSERT_EQ(install(image(1, 1)), Status::kOk);
  ASSERT_EQ(boot(), Status::kOk);
  EXPECT_FALSE(report_.last_resort);
  for (int again = 0; again < 3; ++again) {
    ASSERT_EQ(boot(), Status::kOk);
    EXPECT_TRUE(report_.last_resort);
    EXPECT_TRUE(report_.trial);
    EXPECT_EQ(report_.slots[0].status, Status::kUnconfirmed);
  }
  ASSERT_EQ(slots_->confirm(), Status::kOk);
  ASSERT_EQ(boot(), Status::kOk);
  EXPECT_FALSE(report_.last_resort);
}

TEST_F(BootSlots, EveryRefusedImageFallsBackWithItsStatus) {
  update();
  const SimulatedFlash installed = flash_;
  const auto refused = [&](Status why, const Bytes& bytes) {
    flash_ = installed;
    replace(bytes);
    expect_fall_back(why);
  };
  const auto changed = [&](const std::function<void(ImageContent&)>& change) {
    ImageContent content = sample_content(2, 1);
    change(content);
    return sample_image(content, &key_);
  };
  const auto damaged = [&](std::size_t offset, std::uint8_t value) {
    Bytes bytes = image(2, 1);
    bytes[offset] = value;
    return bytes;
  };
  refused(Status::kCorrupt, damaged(300, 0xaa));
  refused(Status::kNoImage, damaged(0, 0));
  refused(Status::kBadVersion, damaged(8, 9));
  refused(Status::kMalformed, damaged(12, 9));
  refused(Status::kTruncated, damaged(18, 0xff));
  refused(Status::kBadSignature, damaged(140, damaged(0, 0)[140] ^ 1));
  refused(Status::kUnsigned, sample_image(sample_content(2, 1), nullptr));
  refused(Status::kWrongBoard, changed([](ImageContent& content) { content.board = "other"; }));
  refused(Status::kWrongTopology,
          changed([](ImageContent& content) { ++content.topology_digest; }));
  refused(Status::kWrongNode, changed([](ImageContent& content) { content.node = 1000; }));
  refused(Status::kRolledBack, changed([](ImageContent& content) { content.counter = 0; }));
}

TEST_F(BootSlots, WhatTheNodeCannotUseFallsBack) {
  update();
  std::uint32_t refused = 2;
  acceptance_ = {[](void* context, const Image& image) {
                   const auto* release = static_cast<std::uint32_t*>(context);
                   return image.release == *release ? Status::kNoSuchPeer : Status::kOk;
                 },
                 &refused};
  expect_fall_back(Status::kNoSuchPeer);
  EXPECT_FALSE(report_.slots[1].tried) << "it was never run";
  EXPECT_EQ(install(image(2, 1)), Status::kNoSuchPeer);
}

TEST_F(BootSlots, FinishRefusesWhatBootWould) {
  update();
  run();
  const auto next_boot_status = [&] {
    const Status booted = boot();
    return booted == Status::kOk ? report_.slots[0].status : booted;
  };
  Bytes bytes = image(3, 1);
  bytes[300] ^= 1;
  EXPECT_EQ(install(bytes), Status::kCorrupt);
  EXPECT_EQ(next_boot_status(), Status::kUnfinished);
  EXPECT_EQ(install(image(3, 0)), Status::kRolledBack);
  EXPECT_EQ(next_boot_status(), Status::kUnfinished);
  EXPECT_EQ(install(image(1, 1)), Status::kOlderRelease) << "boot would never take it";
  EXPECT_EQ(next_boot_status(), Status::kUnfinished);
  bytes = image(3, 1);
  bytes.resize(bytes.size() + 8);
  EXPECT_EQ(install(bytes), Status::kMalformed);
  EXPECT_EQ(slots_->begin(1u << 20), Status::kTooLarge);
  EXPECT_EQ(slots_->begin(100), Status::kTruncated);
  EXPECT_EQ(slots_->append(bytes.data(), 8), Status::kBadArgument) << "nothing begun";
  ASSERT_EQ(slots_->begin(400), Status::kOk);
  ASSERT_EQ(slots_->append(bytes.data(), 300), Status::kOk);
  EXPECT_EQ(slots_->append(bytes.data(), 101), Status::kTooLarge);
  EXPECT_EQ(slots_->finish(expectation_, acceptance_), Status::kTruncated);
  EXPECT_EQ(install(image(3, 1)), Status::kOk);
}

TEST_F(BootSlots, PiecesOfAnySize) {
  ASSERT_EQ(boot(), Status::kNothingToBoot);
  for (const std::uint32_t piece : {1u, 7u, 8u, 9u, 64u, 513u}) {
    ASSERT_EQ(install(image(1, 1), piece), Status::kOk) << piece;
  }
}

TEST_F(BootSlots, ConfirmingRaisesTheCounterAndRollBackIsRefused) {
  update();
  run();
  ASSERT_EQ(install(image(3, 5)), Status::kOk);
  ASSERT_EQ(boot(), Status::kOk);
  EXPECT_EQ(slots_->counter(), 1u) << "not before it has run well";
  ASSERT_EQ(slots_->confirm(), Status::kOk);
  EXPECT_EQ(slots_->counter(), 5u);
  ASSERT_EQ(boot(), Status::kOk);
  EXPECT_EQ(report_.counter, 5u);
  // The older image can no longer be the fall-back.
  flash_.spoil()[slot_at(0) + 300] ^= 1;
  EXPECT_EQ(boot(), Status::kNothingToBoot);
  EXPECT_EQ(report_.slots[0].status, Status::kCorrupt);
  EXPECT_EQ(report_.slots[1].status, Status::kRolledBack);
  EXPECT_EQ(report_.slots[1].counter, 1u);
  EXPECT_EQ(report_.counter, 5u);
}

// The contents of a flash that boots an older image: its marks, and no counter.
class Attacked : public BootSlots {
 protected:
  // Release 1 with counter 1 is confirmed, then release 2 with counter 2. Then someone writes the
  // flash: release 1 with the marks that it had, blank blocks of the counter.
  void roll_back() {
    install_first();
    Bytes old = flash_.spoil();
    ASSERT_EQ(install(image(2, 2)), Status::kOk);
    run();
    ASSERT_EQ(slots_->counter(), 2u);
    std::fill_n(old.begin() + whole_flash(flash_).counters, 2 * 512, 0xff);
    flash_.spoil() = old;
  }
};

// docs/images.md says so: a counter in flash does not survive someone who writes the flash.
TEST_F(Attacked, BootsTheOlderImageIfTheCounterIsInFlash) {
  roll_back();
  ASSERT_EQ(boot(), Status::kOk);
  EXPECT_EQ(image_.release, 1u);
  EXPECT_FALSE(slots_->has_own_counter());
}

TEST_F(Attacked, RefusesTheOlderImageIfTheBoardHasACounter) {
  own_counter_ = &fuses_counter_;
  roll_back();
  ASSERT_EQ(boot(), Status::kNothingToBoot);
  EXPECT_EQ(report_.slots[0].status, Status::kRolledBack);
  EXPECT_EQ(report_.slots[0].counter, 1u);
  EXPECT_EQ(report_.counter, 2u);
  EXPECT_EQ(install(image(1, 1)), Status::kRolledBack);
  ASSERT_EQ(install(image(2, 2)), Status::kOk) << "the board is not lost";
  ASSERT_EQ(boot(), Status::kOk);
}

TEST_F(Attacked, ACounterOfTheBoardLeavesTheFlashsAlone) {
  own_counter_ = &fuses_counter_;
  const auto counters = [this] {
    const auto first = flash_.spoil().begin() + whole_flash(flash_).counters;
    return Bytes(first, first + 2 * 512);
  };
  const Bytes before = counters();
  update();
  run();
  EXPECT_EQ(slots_->counter(), 1u);
  EXPECT_EQ(counters(), before);
}

TEST_F(Attacked, NothingBootsIfTheBoardsCounterFails) {
  own_counter_ = &fuses_counter_;
  update();
  fuses_.fails = true;
  EXPECT_EQ(boot(), Status::kNothingToBoot);
  EXPECT_EQ(report_.counter_status, Status::kBackEnd);
  for (const SlotReport& slot : report_.slots) EXPECT_EQ(slot.status, Status::kBackEnd);
  fuses_.fails = false;
  EXPECT_EQ(boot(), Status::kOk);
}

// Such an image would be confirmed without a raise, and older ones stayed bootable.
TEST_F(Attacked, RefusesACounterAboveTheBoardsLargest) {
  own_counter_ = &fuses_counter_;
  update();
  run();
  EXPECT_EQ(install(image(3, 17)), Status::kTooLarge);
  ASSERT_EQ(install(image(3, 16)), Status::kOk);
  run();
  EXPECT_EQ(slots_->counter(), 16u);
}

TEST(OneTimeCounters, AreTheHighestBit) {
  SimulatedFlash power(14, 512, 8);
  std::vector<bool> bits(16);
  SimulatedBits fuses(power, bits);
  OneTimeCounter counter(fuses);
  std::uint32_t value = 1;
  ASSERT_EQ(counter.read(value), Status::kOk);
  EXPECT_EQ(value, 0u);
  for (const std::uint32_t next : {1u, 2u, 8u, 9u, 16u}) {
    ASSERT_EQ(counter.raise(next), Status::kOk);
    ASSERT_EQ(counter.read(value), Status::kOk);
    EXPECT_EQ(value, next);
  }
  EXPECT_EQ(std::count(bits.begin(), bits.end(), true), 5);
  EXPECT_EQ(counter.raise(17), Status::kBadArgument);
  EXPECT_EQ(counter.raise(0), Status::kBadArgument);
}

TEST_F(BootSlots, CountersOutliveTheirBlocks) {
  update();
  std::uint32_t release = 2, counter = 1;
  const int each = 512 / 16;  // records per block
  for (int k = 0; k < 5 * each; ++k) {
    run();
    ASSERT_EQ(slots_->counter(), counter);
    ASSERT_EQ(install(image(++release, ++counter)), Status::kOk);
  }
}

TEST_F(BootSlots, InspectingWritesNothing) {
  update();
  const Bytes before = flash_.spoil();
  slots_ = std::make_unique<Slots>(flash_, whole_flash(flash_));
  ASSERT_EQ(slots_->inspect(expectation_, acceptance_, image_, report_), Status::kOk);
  EXPECT_EQ(report_.slot, 1u);
  EXPECT_EQ(flash_.spoil(), before);
}

TEST_F(BootSlots, FlashThatIsWornOutStillBoots) {
  update();
  flash_.worn_out = true;
  expect_fall_back(Status::kBackEnd);
  EXPECT_EQ(slots_->confirm(), Status::kOk) << "was confirmed before";
  EXPECT_EQ(install(image(3, 1)), Status::kBackEnd);
}

TEST_F(BootSlots, PlansThatDoNotFit) {
  const SlotPlan good = whole_flash(flash_);
  const auto boots = [&](const std::function<void(SlotPlan&)>& change) {
    SlotPlan plan = good;
    change(plan);
    return Slots(flash_, plan).boot(expectation_, acceptance_, image_, report_);
  };
  EXPECT_EQ(boots([](SlotPlan&) {}), Status::kNothingToBoot);
  EXPECT_EQ(boots([](SlotPlan& plan) { plan.slots[0] += 8; }), Status::kBadArgument);
  EXPECT_EQ(boots([](SlotPlan& plan) { plan.slots[1] += 512; }), Status::kBadArgument);
  EXPECT_EQ(boots([](SlotPlan& plan) { plan.slots[1] -= 512; }), Status::kBadArgument);
  EXPECT_EQ(boots([](SlotPlan& plan) { plan.slot_bytes = 512; }), Status::kBadArgument);
  EXPECT_EQ(boots([](SlotPlan& plan) { plan.slot_bytes += 4; }), Status::kBadArgument);
  EXPECT_EQ(boots([](SlotPlan& plan) { plan.counters = 512; }), Status::kBadArgument);
  EXPECT_EQ(boots([](SlotPlan& plan) { plan.slots[0] = 0xfffffe00; }), Status::kBadArgument);
  SimulatedFlash coarse(14, 512, 128);
  EXPECT_EQ(Slots(coarse, good).boot(expectation_, acceptance_, image_, report_),
            Status::kBadArgument);
  SimulatedFlash small(3, 512, 8);
  EXPECT_EQ(Slots(small, whole_flash(small)).boot(expectation_, acceptance_, image_, report_),
            Status::kBadArgument);
}

}  // namespace
}  // namespace espalier
