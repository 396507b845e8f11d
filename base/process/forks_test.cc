#include "base/process/forks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "base/testing/child.h"

namespace espalier {
namespace {

struct Counted {
  explicit Counted(int& given) : ends(given) {}
  ~Counted() { ++ends; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  int& ends;
};

TEST(Forks, NumbersProcesses) {
  const std::uint32_t own = process_generation();
  EXPECT_EQ(status_of_child([&] { EXPECT_EQ(process_generation(), own + 1); }), 0);
  EXPECT_EQ(process_generation(), own) << "in the parent nothing changes";
}

TEST(Forks, AChildDestroysNothingOfItsParent) {
  int ends = 0;
  auto object = make_of_process<Counted>(ends);
  EXPECT_EQ(status_of_child([&] {
              object.reset();
              EXPECT_EQ(ends, 0);
              make_of_process<Counted>(ends).reset();
              EXPECT_EQ(ends, 1) << "its own";
            }),
            0);
  object.reset();
  EXPECT_EQ(ends, 1);
}

TEST(Forks, AChildClosesTheDescriptorsOfItsParent) {
  const int kept = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int closed = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close_in_children(kept);
  close_in_children(closed);
  forget_descriptor(kept);
  EXPECT_EQ(status_of_child([&] {
              EXPECT_EQ(fcntl(closed, F_GETFD), -1);
              EXPECT_NE(fcntl(kept, F_GETFD), -1);
            }),
            0);
  EXPECT_NE(fcntl(closed, F_GETFD), -1);
  forget_descriptor(closed);
  close(closed);
  close(kept);
}

// A mutex that another thread holds at the fork would stay locked in the child for ever.
TEST(Forks, AChildFindsTheMutexFree) {
  std::atomic<bool> ends = false;
  std::thread other([&] {
    while (!ends) const std::lock_guard lock(fork_safe_mutex());
  });
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(status_of_child([] { const std::lock_guard lock(fork_safe_mutex()); }), 0);
  }
  ends = true;
  other.join();
}

}  // namespace
}  // namespace espalier
