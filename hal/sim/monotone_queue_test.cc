#include "hal/sim/monotone_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace espalier::sim {
namespace {

// The queue, compared with a sorted list of (key, order of pushing).
class Pair {
 public:
  void push(std::uint64_t key) {
    queue_.push(key, next_);
    sorted_.emplace(key, next_++);  // a multimap keeps equal keys in insertion order
  }
  void pop() {
    ASSERT_FALSE(queue_.empty());
    ASSERT_EQ(queue_.least(), sorted_.begin()->first);
    const std::uint32_t* const ahead = queue_.ahead(0);
    const std::uint32_t expected = sorted_.begin()->second;
    if (ahead != nullptr) {
      EXPECT_EQ(*ahead, expected);
    }
    ASSERT_EQ(queue_.pop(), expected) << "key " << sorted_.begin()->first;
    sorted_.erase(sorted_.begin());
    ASSERT_EQ(queue_.empty(), sorted_.empty());
  }
  [[nodiscard]] bool empty() const { return sorted_.empty(); }
  [[nodiscard]] std::uint64_t least() const { return sorted_.begin()->first; }

 private:
  MonotoneQueue<std::uint32_t> queue_;
  std::multimap<std::uint64_t, std::uint32_t> sorted_;
  std::uint32_t next_ = 0;
};

TEST(MonotoneQueue, PopsByKeyAndThenInTheOrderOfComing) {
  std::mt19937_64 random(1);
  constexpr std::uint64_t kSpreads[] = {1, 3, 100, 1u << 20, 1ull << 62, UINT64_MAX};
  for (const std::uint64_t spread : kSpreads) {
    Pair pair;
    std::uint64_t now = 0;
    for (int round = 0; round < 2000; ++round) {
      for (std::uint64_t more = random() % 8; more > 0; --more) {
        const std::uint64_t ahead = random() % spread;
        pair.push(ahead > UINT64_MAX - now ? UINT64_MAX : now + ahead);
      }
      for (std::uint64_t some = random() % 8; some > 0 && !pair.empty(); --some) {
        now = pair.least();
        pair.pop();
      }
    }
    while (!pair.empty()) pair.pop();
  }
}

TEST(MonotoneQueue, TakesKeysBelowTheLastOnePopped) {
  std::mt19937_64 random(2);
  Pair pair;
  for (int round = 0; round < 5000; ++round) {
    pair.push(1'000'000 + random() % 1000);
    if (round % 7 == 0) pair.push(random() % 1000);
    if (round % 2 == 1) pair.pop();
  }
  while (!pair.empty()) pair.pop();
}

TEST(MonotoneQueue, ManyEqualKeys) {
  Pair pair;
  for (const std::uint64_t key : {5u, 5000u, 70u}) {
    for (int i = 0; i < 5000; ++i) pair.push(key);
  }
  while (!pair.empty()) pair.pop();
}

#ifdef ESPALIER_ASSERTIONS
TEST(MonotoneQueueDeathTest, AnEmptyQueueHasNoLeastEntry) {
  MonotoneQueue<int> queue;
  EXPECT_DEATH((void)queue.least(), "expected !empty\\(\\)");
  EXPECT_DEATH((void)queue.pop(), "expected !empty\\(\\)");
}
#endif

}  // namespace
}  // namespace espalier::sim
