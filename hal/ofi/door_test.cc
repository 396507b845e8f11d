// Locks in shared memory that are taken before a call, and processes that do not run.

#include "hal/ofi/door.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

#include "hal/ofi/peer_process.h"

namespace espalier::ofi {
namespace {

// As libfabric does: a file in /dev/shm with a lock somewhere in it.
class DoorTest : public testing::Test {
 protected:
  DoorTest() : file_(std::to_string(getpid()) + ":door") {
    const int file = shm_open(("/" + file_).c_str(), O_CREAT | O_RDWR, 0600);
    EXPECT_EQ(ftruncate(file, 8192), 0);
    void* bytes = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    EXPECT_NE(bytes, MAP_FAILED);
    close(file);
    lock_ = reinterpret_cast<pthread_spinlock_t*>(static_cast<char*>(bytes) + 4160);
    pthread_spin_init(lock_, PTHREAD_PROCESS_SHARED);
    pthread_spin_init(&other_, PTHREAD_PROCESS_PRIVATE);
  }
  ~DoorTest() override { shm_unlink(("/" + file_).c_str()); }

  void learn(Door& door) {
    Entry entry(door);
    EXPECT_TRUE(entry.open());
    pthread_spin_lock(&other_);
    pthread_spin_lock(lock_);
    pthread_spin_unlock(lock_);
    pthread_spin_unlock(&other_);
    entry.done();
  }
  // Whether another thread gets the lock now.
  [[nodiscard]] bool free() {
    int error = -1;
    std::thread([&] {
      error = pthread_spin_trylock(lock_);
      if (error == 0) pthread_spin_unlock(lock_);
    }).join();
    return error == 0;
  }

  std::string file_;
  pthread_spinlock_t* lock_ = nullptr;
  pthread_spinlock_t other_ = {};
};

TEST_F(DoorTest, IsTheLockInItsFile) {
  Door door(file_);
  {
    Entry entry(door);
    pthread_spin_lock(&other_);
    pthread_spin_unlock(&other_);
    entry.done();
  }
  EXPECT_FALSE(door.known());
  learn(door);
  EXPECT_TRUE(door.known());
  Door elsewhere(file_ + "s");
  learn(elsewhere);
  EXPECT_FALSE(elsewhere.known());
}

TEST_F(DoorTest, SettledItLearnsNoMore) {
  Door door(file_);
  door.settle();
  learn(door);
  EXPECT_FALSE(door.known());
}

TEST_F(DoorTest, IsHeldUntilTheCallHasReturned) {
  Door door(file_);
  learn(door);
  {
    const Entry entry(door);
    ASSERT_TRUE(entry.open());
    EXPECT_FALSE(free());
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(pthread_spin_lock(lock_), 0);
      EXPECT_EQ(pthread_spin_trylock(lock_), EBUSY);
      EXPECT_EQ(pthread_spin_unlock(lock_), 0);
      EXPECT_EQ(pthread_spin_trylock(lock_), 0);
      EXPECT_EQ(pthread_spin_unlock(lock_), 0);
      EXPECT_FALSE(free());
    }
    EXPECT_EQ(pthread_spin_trylock(&other_), 0);
    EXPECT_EQ(pthread_spin_trylock(&other_), EBUSY);
    EXPECT_EQ(pthread_spin_unlock(&other_), 0);
  }
  EXPECT_TRUE(free());
}

TEST_F(DoorTest, IsNotWaitedForEndlessly) {
  Door door(file_);
  learn(door);
  pthread_spin_lock(lock_);  // without an Entry: as another process would
  {
    const Entry entry(door);
    EXPECT_FALSE(entry.open());
  }
  EXPECT_FALSE(free()) << "an Entry that was not let in must not unlock";
  pthread_spin_unlock(lock_);
  const Entry entry(door);
  EXPECT_TRUE(entry.open());
}

TEST_F(DoorTest, WithoutALockIsAlwaysOpen) {
  Door door;
  const Entry entry(door);
  EXPECT_TRUE(entry.open());
  EXPECT_TRUE(free());
}

TEST(PeerProcessTest, RunsUntilItIsStoppedOrEnds) {
  const pid_t child = fork();
  if (child == 0) {
    while (true) pause();
  }
  const PeerProcess process(child);
  EXPECT_TRUE(process.runs());
  kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_FALSE(process.runs());
  EXPECT_FALSE(PeerProcess(child).runs());
  kill(child, SIGCONT);
  ASSERT_EQ(waitpid(child, &status, WCONTINUED), child);
  EXPECT_TRUE(process.runs());
  kill(child, SIGKILL);
  siginfo_t info = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(process.runs()) << "a zombie";
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(process.runs());
}

TEST(PeerProcessTest, WhatIsNotSeenRuns) {
  EXPECT_TRUE(PeerProcess().runs());
  EXPECT_TRUE(PeerProcess(INT32_MAX).runs());
  EXPECT_TRUE(PeerProcess(getpid()).runs());
}

}  // namespace
}  // namespace espalier::ofi
