// Members that fail, come late or are strangers.

#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/testing/results.h"
#include "bootstrap/testing/members.h"

namespace espalier::bootstrap {
namespace {

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// A rank is silent: the fences of the others time out, and all of them rejoin.
TEST(Membership, RejoinAfterFencesThatTimedOut) {
  const auto server = start(3);
  auto silent = member(*server, 2, 3, milliseconds(20'000));
  std::vector<std::unique_ptr<Bootstrap>> jobs;
  for (std::uint32_t rank : {0u, 1u}) jobs.push_back(*member(*server, rank, 3, milliseconds(500)));
  const auto both = [&](auto body) {
    std::thread other([&] { body(*jobs[1]); });
    body(*jobs[0]);
    other.join();
  };
  both([](Bootstrap& job) { EXPECT_FALSE(job.fence()); });
  both([](Bootstrap& job) {
    const auto survivors = job.rejoin();
    EXPECT_TRUE(survivors) << "rank " << job.rank() << ": " << survivors.error().message;
  });
}

// A member is killed inside a message.
TEST(Membership, MemberEndsInsideAMessage) {
  const auto server = start(2);
  auto stays = *member(*server, 0, 2, milliseconds(2'000));
  ASSERT_EQ(::send(killed_member(*server, 1, 2).descriptor(), "\x40\0\0", 3, 0), 3);
  const double before = processor_seconds();
  EXPECT_EQ(message_of(stays->fence()), "rank 1 has ended");
  EXPECT_LT(processor_seconds() - before, 0.5) << "processor seconds of the server";
}

// Strangers hold connections, and say nothing.
TEST(Membership, SilentStrangersKeepNoMemberOut) {
  const auto server = start(2);
  std::vector<int> held;
  for (int i = 0; i < 80; ++i) held.push_back(connect_raw(*server));
  std::this_thread::sleep_for(milliseconds(300));
  const auto job = member(*server, 0, 2, milliseconds(20'000));
  EXPECT_TRUE(job) << job.error().message;
  for (const int one : held) close(one);
}

// A process whose rank was left out comes late.
TEST(Membership, NoMemberAfterItWasLeftOut) {
  const auto server = start(2);
  auto stays = *member(*server, 0, 2, milliseconds(300));
  EXPECT_EQ(or_throw(stays->rejoin()).ranks, std::vector<std::uint32_t>{0});
  EXPECT_FALSE(member(*server, 1, 2, milliseconds(300))) << "rank 1 joined after it was left out";
}

// One process calls rejoin() and is killed; the others never called it.
TEST(Membership, RejoinOfAProcessThatEnded) {
  const auto server = start(3);
  auto first = *member(*server, 0, 3, milliseconds(1'000));
  auto second = *member(*server, 1, 3, milliseconds(1'000));
  killed_member(*server, 2, 3, {{.kind = Kind::kRejoin, .a = 300}});
  std::this_thread::sleep_for(milliseconds(1'000));
  const auto put = first->put("key", "value");
  EXPECT_TRUE(put) << "rank 0: " << put.error().message;
  const auto put_too = second->put("key", "value");
  EXPECT_TRUE(put_too) << "rank 1: " << put_too.error().message;
}

// Processes leave, and join again, while others are still in the job.
TEST(Membership, AllLeaveAndJoinAgain) {
  const auto server = start(3);
  std::vector<std::thread> ranks;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&server, rank] {
      for (std::uint32_t round = 0; round < 50; ++round) {
        auto job = or_throw(member(*server, rank, 3, milliseconds(600'000)));
        ASSERT_TRUE(job->put("key", std::to_string(round)));
        or_throw(job->fence());
        EXPECT_EQ(job->get((rank + 1) % 3, "key").value_or("none"), std::to_string(round));
        if (round % 3 == rank) std::this_thread::sleep_for(milliseconds(5));
        ASSERT_TRUE(job->fence());
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

TEST(Membership, JoinsAgainOnlyWhenAllHaveLeft) {
  const auto server = start(2);
  auto stays = *member(*server, 0, 2, milliseconds(20'000));
  (*member(*server, 1, 2, milliseconds(20'000))).reset();
  EXPECT_EQ(message_of(member(*server, 1, 2, milliseconds(500))),
            "rank 0 of 2 did not leave the job within 500 ms; expected all to end each of its "
            "communicators before this one joins again");
  stays.reset();
  EXPECT_TRUE(member(*server, 1, 2, milliseconds(20'000)));
}

TEST(Membership, NoneJoinsAgainAfterARankDied) {
  const auto server = start(2);
  (*member(*server, 1, 2, milliseconds(20'000))).reset();
  killed_member(*server, 0, 2);
  std::string reason;
  while (!reason.starts_with("rank 0 ended")) {  // until the server has seen its end
    const auto again = member(*server, 1, 2, milliseconds(100));
    ASSERT_FALSE(again);
    reason = again.error().message;
  }
  EXPECT_EQ(reason, "rank 0 ended without leaving the job, so no process can join it again");
}

// A child would keep the connection open after its parent is killed.
TEST(Membership, AChildHoldsNoConnection) {
  auto server = start(2);
  auto stays = *member(*server, 0, 2, milliseconds(600'000));
  int pipes[2];  // its end ends the child, which has this test's output
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    close(pipes[1]);
    auto dies = *member(*server, 1, 2, milliseconds(600'000));
    if (const pid_t child = fork(); child == 0) {
      const bool is_inert = !dies->fence();
      dies.reset();
      char none = 0;
      if (is_inert) (void)!read(pipes[0], &none, 1);
      _exit(0);
    }
    _exit(0);
  }
  const auto fenced = stays->fence();
  EXPECT_EQ(message_of(fenced), "rank 1 has ended");
  waitpid(parent, nullptr, 0);
  for (const int end : pipes) close(end);
}

// A child would keep the port of its parent's server after the parent is killed.
TEST(Membership, AChildHoldsNoPort) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const auto server = start(2);
    if (fork() == 0) {  // has closed what it must not hold
      const std::string said = server->address() + ' ' + std::to_string(getpid()) + '\n';
      (void)!write(pipes[1], said.data(), said.size());
      sleep(60);
      _exit(0);
    }
    sleep(60);
    _exit(1);
  }
  std::string said;
  for (char next = 0; read(pipes[0], &next, 1) == 1 && next != '\n';) said += next;
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  const std::size_t space = said.find(' ');
  ASSERT_NE(space, std::string::npos) << said;
  EXPECT_EQ(message_of(Server::start(said.substr(0, space), 2, JobSecret{})), "");
  kill(std::stoi(said.substr(space)), SIGKILL);
  for (const int end : pipes) close(end);
}

// fork() can return in the parent before the child has closed its copies.
TEST(Membership, ACopyInAChildThatDoesNotRunYetHoldsNoPort) {
  auto server = start(2);
  const std::string address = server->address();
  const pid_t child = _Fork();  // closes nothing
  if (child == 0) {
    sleep(60);
    _exit(0);
  }
  ASSERT_GT(child, 0);
  server.reset();
  EXPECT_EQ(message_of(Server::start(address, 2, JobSecret{})), "");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// Another user of the shared folder made the hidden file first, readable by all.
TEST(Membership, FolderSecretIsNeverReadableByOthers) {
  const std::string folder = std::filesystem::temp_directory_path() / "espalier-defects";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/espalier-job.part").put('x');
  chmod((folder + "/espalier-job.part").c_str(), 0644);
  Options options{.job = "job", .folder = folder, .rank = 0, .size = 1};
  {
    const auto job = join(options);
    struct stat status {};
    if (job && stat((folder + "/espalier-job").c_str(), &status) == 0) {
      EXPECT_EQ(status.st_mode & 0777, 0600u) << std::oct << (status.st_mode & 0777);
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder + "/espalier-job")) << "the secret outlives the job";
  std::filesystem::remove_all(folder);
}

// The zeros are not a secret.
TEST(Membership, AloneHasASecret) {
  const auto job = *join(Options{.method = Method::kAlone});
  EXPECT_TRUE(!job->is_secret() || job->secret() != JobSecret{});
}

}  // namespace
}  // namespace espalier::bootstrap
