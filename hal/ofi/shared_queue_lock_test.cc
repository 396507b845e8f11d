// The shared queue lock in a program with the spin-lock interposer, and processes that do not run.

#include "hal/ofi/shared_queue_lock.h"

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
#include "hal/ofi/spin_lock_interposer.h"
#include "hal/ofi/testing/local_endpoints.h"
#include "hal/ofi/testing/own_symbol.h"

namespace espalier::ofi {
namespace {

// Like libfabric, makes a file in /dev/shm with a lock somewhere in it.
class SharedQueueLockTest : public testing::Test {
 protected:
  SharedQueueLockTest() : file_(std::to_string(getpid()) + ":queue") {
    const int file = shm_open(("/" + file_).c_str(), O_CREAT | O_RDWR, 0600);
    EXPECT_EQ(ftruncate(file, 8192), 0);
    void* bytes = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    EXPECT_NE(bytes, MAP_FAILED);
    close(file);
    lock_ = reinterpret_cast<pthread_spinlock_t*>(static_cast<char*>(bytes) + 4160);
    pthread_spin_init(lock_, PTHREAD_PROCESS_SHARED);
    pthread_spin_init(&other_, PTHREAD_PROCESS_PRIVATE);
  }
  ~SharedQueueLockTest() override { shm_unlink(("/" + file_).c_str()); }

  void find(SharedQueueLock& lock) {
    SharedQueueLockGuard guard(lock);
    EXPECT_TRUE(guard.acquired());
    pthread_spin_lock(&other_);
    pthread_spin_lock(lock_);
    pthread_spin_unlock(lock_);
    pthread_spin_unlock(&other_);
    guard.call_made();
  }
  // Whether another thread can take the lock now.
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

TEST_F(SharedQueueLockTest, FindsTheLockInItsFile) {
  SharedQueueLock queue_lock(file_);
  {
    SharedQueueLockGuard guard(queue_lock);
    pthread_spin_lock(&other_);
    pthread_spin_unlock(&other_);
    guard.call_made();
  }
  EXPECT_FALSE(queue_lock.found());
  find(queue_lock);
  EXPECT_TRUE(queue_lock.found());
  EXPECT_TRUE(queue_lock.bounded());
  SharedQueueLock elsewhere(file_ + "s");
  find(elsewhere);
  EXPECT_FALSE(elsewhere.found());
  EXPECT_FALSE(elsewhere.bounded());
}

TEST_F(SharedQueueLockTest, FindsNothingAfterTheSearchEnded) {
  SharedQueueLock queue_lock(file_);
  queue_lock.stop_searching();
  find(queue_lock);
  EXPECT_FALSE(queue_lock.found());
}

TEST_F(SharedQueueLockTest, IsHeldUntilTheCallHasReturned) {
  SharedQueueLock queue_lock(file_);
  find(queue_lock);
  {
    const SharedQueueLockGuard guard(queue_lock);
    ASSERT_TRUE(guard.acquired());
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

TEST_F(SharedQueueLockTest, IsTriedForABoundedTime) {
  SharedQueueLock queue_lock(file_);
  find(queue_lock);
  pthread_spin_lock(lock_);  // Without a guard, like another process.
  {
    const SharedQueueLockGuard guard(queue_lock);
    EXPECT_FALSE(guard.acquired());
  }
  EXPECT_FALSE(free()) << "a guard that did not acquire the lock must not release it";
  pthread_spin_unlock(lock_);
  const SharedQueueLockGuard guard(queue_lock);
  EXPECT_TRUE(guard.acquired());
}

TEST_F(SharedQueueLockTest, WithoutALockEveryGuardSucceeds) {
  SharedQueueLock queue_lock;
  const SharedQueueLockGuard guard(queue_lock);
  EXPECT_TRUE(guard.acquired());
  EXPECT_TRUE(free());
}

TEST(SpinLockInterposer, ReplacesTheSpinLocksOfTheProgram) {
  EXPECT_TRUE(in_this_program("pthread_spin_lock"));
  EXPECT_TRUE(in_this_program("pthread_spin_trylock"));
  EXPECT_TRUE(in_this_program("pthread_spin_unlock"));
  EXPECT_TRUE(espalier_spin_locks_interposed());
}

// Also checks that this version of libfabric locks as shared_queue_lock.h says.
TEST(SpinLockInterposer, BoundsTheLocksOfConnectedEndpoints) {
  for (const char* provider : {"tcp", "shm"}) {
    for (const bool hop_by_hop : {false, true}) {
      Config config;
      config.provider = provider;
      if (hop_by_hop) config.lanes = {{2, 1}};
      LocalEndpoints endpoints(config, {{1, 2}, {0, 2}, {0, 1}});
      ASSERT_EQ(endpoints.error, "");
      for (const auto& node : endpoints.nodes) {
        EXPECT_EQ(node->spin_locks_bounded(), finds_spin_locks(provider)) << provider;
      }
    }
  }
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

TEST(PeerProcessTest, AnUnknownProcessRuns) {
  EXPECT_TRUE(PeerProcess().runs());
  EXPECT_TRUE(PeerProcess(INT32_MAX).runs());
  EXPECT_TRUE(PeerProcess(getpid()).runs());
}

}  // namespace
}  // namespace espalier::ofi
