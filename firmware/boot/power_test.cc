// Power fails at every write and erase of a node's lifetime, and again at each later write and
// erase. If a board has one-time bits for its counter, power also fails at every bit that it sets.
// The node always boots a valid image, never an older one than it confirmed. Its counter never
// decreases, and has the value of a confirmed image at the next boot at the latest.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "firmware/boot/slots.h"
#include "firmware/boot/testing/simulated_flash.h"
#include "firmware/image/testing/sample_image.h"
#include "tests/whole.h"

namespace espalier {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kLastRelease = 4;

// A node, its updates, and the state that it must never lose.
struct Lifetime {
  Lifetime(std::uint32_t blocks, std::uint32_t block_bytes, std::uint32_t unit_bytes,
           const Authority& who, const SampleKey* key)
      : flash(blocks, block_bytes, unit_bytes), authority(who) {
    expectation.board = kSampleBoard;
    expectation.topology_digest = kSampleTopology;
    expectation.node = kSampleNode;
    for (std::uint32_t release = 1; release <= kLastRelease; ++release) {
      ImageContent content = sample_content(release, release);
      content.programs.resize(1);
      images.push_back(sample_image(content, key));
    }
  }

  void install(Slots& slots, std::uint32_t release) {
    const Bytes& bytes = images[release - 1];
    ASSERT_EQ(slots.begin(static_cast<std::uint32_t>(bytes.size())), Status::kOk);
    ASSERT_EQ(slots.append(bytes.data(), static_cast<std::uint32_t>(bytes.size())), Status::kOk);
    ASSERT_EQ(slots.finish(expectation, {}), Status::kOk);
    installed = release;
  }

  // Installs release 1, as the factory does, without a power failure.
  void begin() {
    expectation.authority = &authority;
    SimulatedBits fuses(flash, bits);
    OneTimeCounter own_counter(fuses);
    Slots slots(flash, whole_flash(flash), bits.empty() ? nullptr : &own_counter);
    Image image;
    BootReport report;
    ASSERT_EQ(slots.boot(expectation, {}, image, report), Status::kNothingToBoot);
    install(slots, 1);
  }

  // Boots, confirms and updates until the last release is confirmed. Ends early by PowerLost.
  void live() {
    expectation.authority = &authority;
    SimulatedBits fuses(flash, bits);
    OneTimeCounter own_counter(fuses);
    for (int boots = 0; boots < 20; ++boots) {
      Slots slots(flash, whole_flash(flash), bits.empty() ? nullptr : &own_counter);
      Image image;
      BootReport report;
      ASSERT_GE(slots.counter(), counter);
      counter = slots.counter();
      ASSERT_EQ(slots.boot(expectation, {}, image, report), Status::kOk)
          << status_name(report.slots[0].status) << ", " << status_name(report.slots[1].status);
      // The running image is complete, one of the two candidates, and not older than the confirmed
      // one.
      const Bytes& running = images.at(image.release - 1);
      ASSERT_TRUE(image.size == running.size() &&
                  std::equal(running.begin(), running.end(), image.bytes));
      ASSERT_GE(image.release, confirmed);
      ASSERT_GE(image.release + 1, installed);
      ASSERT_GE(slots.counter(), counter);
      ASSERT_TRUE(confirmed == 0 || !report.last_resort);
      ASSERT_TRUE(report.trial || slots.counter() == image.counter);
      ASSERT_EQ(slots.confirm(), Status::kOk);
      confirmed = image.release;
      ASSERT_EQ(slots.counter(), image.counter);
      counter = image.counter;
      if (image.release == kLastRelease) return;
      install(slots, image.release + 1);
    }
    FAIL() << "it never gets there";
  }

  // As above, until power fails. Returns whether it failed.
  bool lives_until_cut() {
    try {
      live();
    } catch (const PowerLost&) {
      return true;
    }
    return false;
  }

  SimulatedFlash flash;
  std::vector<bool> bits;  // of a board with one-time bits
  Authority authority;
  Expectation expectation;
  std::vector<Bytes> images;
  std::uint32_t confirmed = 0, installed = 0, counter = 0;
};

// Calls cut(operation) for every operation of a lifetime, which are more than `least`, or for one
// `of` so many (tests/whole.h).
template <typename Cut>
void at_operations(const Lifetime& born, int least, std::uint32_t of, const Cut& cut) {
  Lifetime uncut = born;
  const int before = uncut.flash.operations();
  ASSERT_FALSE(uncut.lives_until_cut());
  const int operations = uncut.flash.operations() - before;
  ASSERT_GT(operations, least);
  int cuts = 0;
  for (int operation = 0; operation < operations; ++operation) {
    if (of > 1 && !sampled(static_cast<std::uint64_t>(operation), of)) continue;
    ++cuts;
    cut(operation);
    ASSERT_FALSE(testing::Test::HasFailure()) << "operation " << operation;
  }
  std::printf("  power cut at %d of %d writes and erases\n", cuts, operations);
}

// Power fails at the operations, with every kind of torn write.
void cut_everywhere(const Lifetime& born, std::uint32_t of) {
  at_operations(born, 50, of, [&](int operation) {
    for (const Tear tear : kTears) {
      for (std::uint32_t seed = 0; seed < (tear == Tear::kSomeBits ? 4u : 2u); ++seed) {
        Lifetime life = born;
        life.flash.cut(operation, tear, seed);
        ASSERT_TRUE(life.lives_until_cut());
        ASSERT_FALSE(life.lives_until_cut());
        ASSERT_FALSE(testing::Test::HasFailure())
            << "tear " << static_cast<int>(tear) << ", seed " << seed;
      }
    }
  });
}

// Power fails at the operations, then at every later one.
void cut_twice(const Lifetime& born, std::uint32_t of) {
  std::uint64_t lives = 0;
  at_operations(born, 40, of, [&](int operation) {
    for (const Tear tear : kTears) {
      Lifetime torn = born;
      torn.flash.cut(operation, tear, static_cast<std::uint32_t>(operation));
      ASSERT_TRUE(torn.lives_until_cut());
      bool is_cut = true;
      for (int again = 0; is_cut; ++again) {
        for (const Tear then : kTears) {
          Lifetime life = torn;
          life.flash.cut(again, then, static_cast<std::uint32_t>(again));
          ++lives;
          is_cut = life.lives_until_cut();
          if (!is_cut) break;
          ASSERT_FALSE(life.lives_until_cut());
          ASSERT_FALSE(testing::Test::HasFailure())
              << "tear " << static_cast<int>(tear) << ", then " << again << ", tear "
              << static_cast<int>(then);
        }
      }
    }
  });
  std::printf("  then at each that follows: %llu lives\n", static_cast<unsigned long long>(lives));
}

// A node with its first image. `key`: it takes only images that this key signed. `bits`: those of a
// counter of the board.
Lifetime begun(std::uint32_t blocks, std::uint32_t block_bytes, std::uint32_t unit_bytes,
               const SampleKey* key = nullptr, std::size_t bits = 0) {
  Lifetime life(blocks, block_bytes, unit_bytes,
                key != nullptr ? ed25519_authority(key->public_key) : kTakesUnsigned, key);
  life.bits.assign(bits, false);
  life.begin();
  return life;
}

TEST(Power, MayGoAtEveryWriteAndBitOfACounter) {
  const SampleKey key(9);
  for (const Lifetime& life :
       {begun(14, 512, 8), begun(14, 512, 32, &key), begun(14, 512, 32, &key, 64)}) {
    cut_everywhere(life, small_sample() ? 5 : 1);
  }
}

// The flash of a board: bytes, block, unit.
TEST(Power, MayGoAtEveryWriteOfABoard) {
  const SampleKey key(9);
  for (const auto& [bytes, block, unit] :
       {std::array<std::uint32_t, 3>{ESPALIER_FLASH_OF_MICROBIT}, {ESPALIER_FLASH_OF_VIRT_RV32}}) {
    cut_everywhere(begun(bytes / block, block, unit, &key), small_sample() ? 400 : 100);
  }
}

TEST(Power, MayGoTwice) {
  for (const std::size_t bits : {0, 8}) {
    cut_twice(begun(14, 512, 64, nullptr, bits), small_sample() ? 5 : 1);
  }
}

// Power fails while the node boots its first image, for which there is no fall-back.
TEST(Power, MayGoBeforeTheFirstConfirmation) {
  Lifetime life = begun(14, 512, 64);
  for (int again = 0; again < 3; ++again) {
    life.flash.cut(0, Tear::kSomeBits, static_cast<std::uint32_t>(again));
    ASSERT_TRUE(life.lives_until_cut());
  }
  EXPECT_FALSE(life.lives_until_cut());
}

}  // namespace
}  // namespace espalier
