// Newcomers of a job: how members and the server agree on them, and job files.

#include "bootstrap/newcomers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

#include "base/testing/contains.h"
#include "base/testing/results.h"
#include "bootstrap/testing/members.h"
#include "tests/directory_test.h"

namespace espalier::bootstrap {
namespace {

constexpr milliseconds kLong(20'000), kNone(0);

using Job = std::unique_ptr<Bootstrap>;

Job newcomer(const Server& server, milliseconds deadline = kLong) {
  Place place{.method = Method::kNewcomer, .address = server.address(), .secret = kSecret};
  place.is_newcomer = true;
  return or_throw(connect(std::move(place), deadline));
}

std::vector<Job> members(const Server& server, std::uint32_t size, milliseconds deadline = kLong) {
  std::vector<Job> all;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    all.push_back(or_throw(member(server, rank, size, deadline)));
  }
  return all;
}

// Runs `body` for each of these processes at once.
void on_all(const std::vector<Bootstrap*>& jobs, const std::function<void(Bootstrap&)>& body) {
  std::vector<std::thread> threads;
  for (Bootstrap* const job : jobs) threads.emplace_back([&, job] { body(*job); });
  for (std::thread& thread : threads) thread.join();
}
std::vector<Bootstrap*> with(const std::vector<Job>& jobs, std::vector<Bootstrap*> more = {}) {
  for (const Job& job : jobs) more.push_back(job.get());
  return more;
}

using Ranks = std::vector<std::uint32_t>;

// They have numbers after the members', see what those publish, and take part in fences.
TEST(Newcomers, BecomeMembers) {
  const auto server = start(2);
  auto jobs = members(*server, 2);
  jobs.push_back(newcomer(*server));
  jobs.push_back(newcomer(*server));
  on_all(with(jobs), [](Bootstrap& job) {
    const bool was_newcomer = job.is_newcomer();
    const auto accepted = or_throw(job.accept(2, kLong));
    EXPECT_EQ(accepted.ranks, Ranks({0, 1, 2, 3}));
    EXPECT_EQ(accepted.generation, 1U);
    EXPECT_EQ(job.size(), 2U);
    EXPECT_EQ(job.rank() >= 2, was_newcomer);
    EXPECT_EQ(message_of(job.complete(accepted, "")), "");
    EXPECT_FALSE(job.is_newcomer());
    EXPECT_EQ(message_of(job.put("key", std::to_string(job.rank()))), "");
    EXPECT_EQ(message_of(job.fence()), "");
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(or_throw(job.get(rank, "key")), std::to_string(rank));
    }
  });
}

// Each of these is the same line on all members, and changes nothing.
TEST(Newcomers, MembersThatDoNotAgree) {
  const auto server = start(2);
  const auto jobs = members(*server, 2, milliseconds(500));
  on_all(with(jobs), [](Bootstrap& job) {
    EXPECT_EQ(message_of(job.accept(1, milliseconds(20))),
              "0 of 1 newcomer came within 20 ms; expected more processes that join through the "
              "job file");
  });
  on_all(with(jobs), [](Bootstrap& job) {
    EXPECT_PRED2(contains, message_of(job.accept(1 + job.rank(), kLong)), "another one for");
  });
  const std::string late = "rank 1 did not call accept() in time";
  EXPECT_EQ(message_of(jobs[0]->accept(0, kNone)), late);
  EXPECT_EQ(message_of(jobs[1]->accept(0, kNone)), late) << "the same call, only later";
  // A member that will not call it, before and while the other does.
  EXPECT_EQ(message_of(jobs[1]->complete({}, "cancelled")), "cancelled");
  EXPECT_EQ(message_of(jobs[0]->accept(0, kNone)), "cancelled");
  std::thread waits([&] { EXPECT_EQ(message_of(jobs[0]->accept(0, kLong)), "not now"); });
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(message_of(jobs[1]->complete({}, "not now")), "not now");
  waits.join();
  std::thread other([&] { EXPECT_TRUE(jobs[1]->rejoin()); });
  EXPECT_EQ(message_of(jobs[0]->accept(0, kLong)), "a process of the job calls rejoin()");
  EXPECT_TRUE(jobs[0]->rejoin());
  other.join();
  on_all(with(jobs), [](Bootstrap& job) {
    const auto accepted = or_throw(job.accept(0, kNone));
    EXPECT_EQ(accepted.ranks, Ranks({0, 1}));
    EXPECT_EQ(message_of(job.complete(accepted, "")), "");
  });
}

// A process that cannot connect, or ends, leaves all with the job as it was and with one line. The
// newcomer is taken by the next accept().
TEST(Newcomers, AllOrNone) {
  const auto server = start(2);
  auto jobs = members(*server, 2);
  jobs.push_back(newcomer(*server));
  for (const std::uint32_t fails : {0U, 2U}) {
    on_all(with(jobs), [&](Bootstrap& job) {
      const auto accepted = or_throw(job.accept(1, kLong));
      const std::string failure = job.rank() == fails ? "no descriptors" : "";
      EXPECT_EQ(message_of(job.complete(accepted, failure)),
                "rank " + std::to_string(fails) + ": no descriptors");
    });
    EXPECT_TRUE(jobs[2]->is_newcomer());
  }
  // One that dies between its acceptance and its vote; others wait in a fence.
  {
    auto dies = newcomer(*server);
    std::atomic<int> accepted_by = 0;
    on_all(with(jobs, {dies.get()}), [&](Bootstrap& job) {
      const auto accepted = or_throw(job.accept(2, kLong));
      EXPECT_EQ(accepted.ranks.size(), 4U);
      ++accepted_by;
      if (&job == dies.get()) return;
      EXPECT_EQ(message_of(job.put("espalier.address", "x")), "");
      while (accepted_by != 4) std::this_thread::sleep_for(milliseconds(1));
      if (job.rank() == 0) dies.reset();
      EXPECT_PRED2(contains, message_of(job.complete(accepted, "")), " has ended");
    });
  }
  on_all(with(jobs), [](Bootstrap& job) {
    const auto accepted = or_throw(job.accept(1, kLong));
    EXPECT_EQ(accepted.ranks, Ranks({0, 1, 2}));
    EXPECT_EQ(message_of(job.complete(accepted, "")), "");
    EXPECT_EQ(message_of(job.put("espalier.address", "y")), "") << "values of before are gone";
    EXPECT_EQ(message_of(job.fence()), "");
  });
}

// A member that has failed comes to no fence any more: the others learn why in theirs.
TEST(Newcomers, FenceAfterAFailure) {
  const auto server = start(2);
  auto jobs = members(*server, 2);
  jobs.push_back(newcomer(*server));
  on_all(with(jobs), [](Bootstrap& job) {
    const auto accepted = or_throw(job.accept(1, kLong));
    const std::string expected = "rank 1: no descriptors";
    if (job.rank() == 1) {
      EXPECT_EQ(message_of(job.complete(accepted, "no descriptors")), expected);
      return;
    }
    if (job.rank() == 0) std::this_thread::sleep_for(milliseconds(300));
    EXPECT_EQ(message_of(job.fence()), expected);
    EXPECT_EQ(message_of(job.complete(accepted, expected)), expected);
  });
  // A fence that belongs to nothing of this waits as always.
  on_all({jobs[0].get(), jobs[1].get()},
         [](Bootstrap& job) { EXPECT_EQ(message_of(job.fence()), ""); });
}

// A member ends accept(), while it waits for another member or when all connect. The newcomer is
// taken by the next one.
TEST(Newcomers, AMemberEndsAccept) {
  const auto server = start(3);
  auto jobs = members(*server, 3);
  jobs.push_back(newcomer(*server));
  for (const bool is_connecting : {false, true}) {
    std::atomic<int> returned = 0;
    std::atomic<bool> ends = false;
    on_all(with(jobs), [&](Bootstrap& job) {
      const bool is_newcomer = job.is_newcomer();
      if (is_newcomer && !is_connecting) return;
      if (!is_newcomer && job.rank() == 1) {
        job.end_accept_by([&ends] { return ends ? "it is cancelled" : ""; });
      }
      const auto failed = [&](const auto& result) {
        EXPECT_EQ(message_of(result), "it is cancelled");
        ++returned;
      };
      if (!is_connecting) {
        if (job.rank() == 1) ends = true;
        if (job.rank() == 2) {  // which calls once the others have returned
          while (returned != 2) std::this_thread::sleep_for(milliseconds(1));
        }
        failed(job.accept(1, kLong));
        return;
      }
      const auto accepted = or_throw(job.accept(1, kLong));
      if (job.rank() == 1) {
        ends = true;
        return failed(job.complete(accepted, ""));
      }
      failed(job.rank() == 0 ? job.fence() : job.complete(accepted, ""));
      if (job.rank() == 0) failed(job.complete(accepted, ""));
    });
    for (int rank = 0; rank < 3; ++rank) jobs[static_cast<std::size_t>(rank)]->end_accept_by({});
  }
  on_all(with(jobs), [](Bootstrap& job) {
    const auto accepted = or_throw(job.accept(1, kLong));
    EXPECT_EQ(accepted.ranks, Ranks({0, 1, 2, 3}));
    EXPECT_EQ(message_of(job.complete(accepted, "")), "");
  });
}

// After rejoin() a newcomer has the number of a member that ended, with values of its own.
TEST(Newcomers, TakeFreeNumbers) {
  const auto server = start(3);
  auto jobs = members(*server, 3);
  on_all(with(jobs), [](Bootstrap& job) {
    EXPECT_EQ(message_of(job.put("key", "old")), "");
    EXPECT_EQ(message_of(job.fence()), "");
  });
  jobs.erase(jobs.begin() + 1);
  on_all(with(jobs), [](Bootstrap& job) {
    EXPECT_EQ(message_of(job.accept(0, kNone)),
              "rank 1 has ended; expected rejoin() before accept()");
    EXPECT_EQ(or_throw(job.rejoin()).ranks, Ranks({0, 2}));
  });
  jobs.push_back(newcomer(*server));
  on_all(with(jobs), [](Bootstrap& job) {
    const auto accepted = or_throw(job.accept(1, kLong));
    EXPECT_EQ(accepted.ranks, Ranks({0, 1, 2}));
    EXPECT_EQ(accepted.generation, 2U);
    EXPECT_EQ(message_of(job.complete(accepted, "")), "");
    EXPECT_FALSE(job.get(1, "key"));
    EXPECT_EQ(or_throw(job.get(2, "key")), "old");
  });
  EXPECT_EQ(jobs.back()->rank(), 1U);
  // And the job may end and begin anew with its first ranks.
  jobs.clear();
  EXPECT_TRUE(member(*server, 1, 3, kLong));
}

// A newcomer that no accept() takes gives up, and one that gave up is not taken.
TEST(Newcomers, GiveUp) {
  const auto server = start(1);
  const auto job = or_throw(member(*server, 0, 1, kLong));
  {
    const auto late = newcomer(*server, milliseconds(50));
    EXPECT_PRED2(
        contains, message_of(late->accept(0, kNone)),
        "did not accept this process within 50 ms; expected all its ranks to call accept()");
  }
  EXPECT_PRED2(contains, message_of(job->accept(1, milliseconds(20))), "0 of 1 newcomer");
}

// A newcomer learns that no process is left. If all have left as they should, the job may begin
// anew, and it waits.
TEST(Newcomers, OfAJobWithoutProcesses) {
  const std::string expected =
      "rank 1 has ended, and no process of the job is left that calls accept()";
  const auto server = start(2);
  auto rank = or_throw(member(*server, 0, 2, kLong));
  std::optional<Stream> killed = killed_member(*server, 1, 2);
  const auto waiting = newcomer(*server);
  std::thread end([&] {
    std::this_thread::sleep_for(milliseconds(50));
    killed.reset();
    rank.reset();
  });
  EXPECT_EQ(message_of(waiting->accept(0, kNone)), expected);
  end.join();
  EXPECT_EQ(message_of(newcomer(*server)->accept(0, kNone)), expected);

  const auto other = start(1);
  or_throw(member(*other, 0, 1, kLong)).reset();
  EXPECT_PRED2(contains, message_of(newcomer(*other, milliseconds(100))->accept(0, kNone)),
               "did not accept this process within 100 ms");
}

class JobFile : public DirectoryTest {
 protected:
  void SetUp() override {
    DirectoryTest::SetUp();
    for (const char* name : {"ESPALIER_RANK", "ESPALIER_SIZE", "ESPALIER_ADDRESS", "ESPALIER_JOIN",
                             "ESPALIER_JOB_FILE"}) {
      unsetenv(name);
    }
    file_ = directory_ / "job";
  }
  void TearDown() override {
    unsetenv("ESPALIER_JOIN");
    DirectoryTest::TearDown();
  }
  std::string file_;
};

// A job of one process with a job file has a server, and removes the file at its end.
TEST_F(JobFile, IsThereWhileTheJobIs) {
  {
    const auto first = or_throw(join({.method = Method::kAlone, .job_file = file_}));
    struct stat status {};
    ASSERT_EQ(stat(file_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U);
    setenv("ESPALIER_JOIN", file_.c_str(), 1);
    const auto second = or_throw(join({}));
    EXPECT_EQ(second->method(), Method::kNewcomer);
    EXPECT_TRUE(second->is_secret());
    EXPECT_EQ(second->secret(), first->secret());
    on_all({first.get(), second.get()}, [](Bootstrap& job) {
      const auto accepted = or_throw(job.accept(1, kLong));
      EXPECT_EQ(message_of(job.complete(accepted, "")), "");
    });
    EXPECT_EQ(second->rank(), 1U);
  }
  EXPECT_FALSE(std::filesystem::exists(file_));
}

// What is wrong with a job file, or with the options beside it.
TEST_F(JobFile, Refusals) {
  const auto refusal = [this](const Options& options = {.method = Method::kNewcomer}) {
    Options with_file = options;
    if (with_file.job_file.empty()) with_file.job_file = file_;
    return message_of(join(with_file));
  };
  EXPECT_PRED2(contains, refusal(), "No such file");
  std::ofstream(file_) << "x";
  EXPECT_PRED2(contains, refusal(), "is not this user's alone; expected mode 0600");
  ASSERT_EQ(chmod(file_.c_str(), 0600), 0);
  EXPECT_PRED2(contains, refusal(), "is malformed; expected the file that a job wrote");
  std::ofstream(file_) << "127.0.0.1:1/00\n";
  EXPECT_PRED2(contains, refusal(), "is malformed; expected the file that a job wrote");
  EXPECT_PRED2(contains, refusal({.method = Method::kNewcomer, .job_file = directory_}),
               "is not a regular file");
  EXPECT_PRED2(contains, refusal({.method = Method::kNewcomer, .rank = 1}), "'rank and size'");
  EXPECT_PRED2(contains, refusal({.method = Method::kAlone, .job_file = file_ + "/no"}),
               "cannot write");
  setenv("ESPALIER_JOIN", file_.c_str(), 1);
  setenv("ESPALIER_RANK", "0", 1);
  EXPECT_PRED2(contains, message_of(join({})), "ESPALIER_JOIN contradicts ESPALIER_RANK");
  unsetenv("ESPALIER_RANK");
  EXPECT_EQ(message_of(or_throw(join({.method = Method::kAlone}))->accept(1, kNone)),
            "a job of one process without a job file takes no newcomers; expected "
            "ESPALIER_JOB_FILE, or a launcher");
}

}  // namespace
}  // namespace espalier::bootstrap
