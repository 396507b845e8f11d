// Real machines on a faulty fabric: with every fault x algorithm x seed, every node ends with the
// correct result or a named failure, within its deadline.

#include <gtest/gtest.h>

#include <string>

#include "base/testing/results.h"
#include "collectives/simulation/testing/job_cluster.h"
#include "espalier/hal/fault/fault_endpoint.h"

namespace espalier::fault {
namespace {

constexpr std::uint64_t kDeadline = 1'000'000'000;  // ns
constexpr int kRounds = 3;                          // collectives of one run

struct Subject {
  Collective collective;
  const char* algorithm;
};
constexpr Subject kSubjects[] = {
    {Collective::kBroadcast, "binomial"}, {Collective::kBroadcast, "chain"},
    {Collective::kBroadcast, "binary"},   {Collective::kBroadcast, "two-tree"},
    {Collective::kReduce, "chain"},       {Collective::kReduce, "two-tree"},
    {Collective::kAllreduce, "chain"},    {Collective::kAllreduce, "two-tree"},
};

struct Trial {
  Subject subject;
  std::string faults;         // at `culprit`'s endpoint; "" at all others
  std::uint32_t culprit = 0;  // if >= ranks, all nodes have the faults
  std::uint32_t ranks = 6;
  std::uint64_t count = 300;
  std::vector<std::uint64_t> counts = {};  // a count for each rank instead; empty: `count`
  bool check_blocks = true;
  double jitter = 0;
  std::uint64_t seed = 1;
  bool eager_copies = true;

  [[nodiscard]] std::string text() const {
    return std::string(collective_name(subject.collective)) + " " + subject.algorithm + " on " +
           std::to_string(ranks) + ", node " + std::to_string(culprit) + ": " + faults +
           ", jitter seed " + std::to_string(seed) + (eager_copies ? "" : ", no eager copies");
  }
};

// The outcome of a run.
struct Outcome {
  bool all_right = true;  // every collective on every node succeeded
  bool struck = false;    // at least one fault other than kDelay happened
  std::vector<Status> statuses;
  std::vector<Cause> causes;
  // By live node: the lowest node that it reaches over live nodes.
  std::vector<std::uint32_t> parts;
  std::string silent_error;  // a node that ended a collective with kOk and an incorrect result
  double seconds = 0;        // virtual, of the longest collective
  std::string message;       // the runner's message
  bool dead = false;         // whether the culprit is dead
};

class Attempt {
 public:
  explicit Attempt(const Trial& trial) : trial_(trial) {
    faults_ = or_throw(parse_faults(trial.faults));
    options_.model.eager_bytes = 64;
    options_.model.jitter = trial.jitter;
    options_.model.seed = trial.seed;
    options_.model.eager_copies = trial.eager_copies;
    options_.config.deadline_ns = kDeadline;
    options_.config.check_blocks = trial.check_blocks;
    rules_[0] = {0, 16};  // both sides of eager_bytes
    rules_[1] = {1000, 128};
    parameters_.ranks = trial.ranks;
    parameters_.blocks = rules_;
    parameters_.blocks_count = 2;
    endpoints_.resize(trial.ranks);
  }

  Outcome go() {
    Outcome outcome;
    const Algorithm* algorithm =
        find_algorithm(trial_.subject.collective, trial_.subject.algorithm);
    if (algorithm == nullptr) {
      outcome.message = "no such algorithm";
      return outcome;
    }
    sim::Network* network = nullptr;
    options_.wrap = [&](std::uint32_t v, Endpoint& inner) -> Endpoint& {
      FaultEndpoint::Hooks hooks;
      hooks.wake = [&network, v](std::uint64_t at) { network->wake(v, at); };
      hooks.killed = [&network, v] { network->kill(v); };
      const bool broken = trial_.culprit == v || trial_.culprit >= trial_.ranks;
      endpoints_[v] = std::make_unique<FaultEndpoint>(inner, broken ? faults_ : Faults(), hooks);
      return *endpoints_[v];
    };
    const Programs programs = testing::programs_of(*algorithm, parameters_);
    testing::JobCluster cluster(programs, options_);
    network = &cluster.network();
    for (int round = 0; round < kRounds && outcome.message.empty(); ++round) {
      testing::Job job = testing::sum_job(programs, parameters_.root,
                                          round % 2 == 0 ? trial_.count : trial_.count / 8);
      job.seed = static_cast<unsigned>(round);
      job.counts = trial_.counts;
      cluster.start_all(job);
      const sim::RunResult result = cluster.run();
      outcome.message = result.message;
      outcome.seconds = std::max(outcome.seconds, result.seconds);
      for (std::uint32_t v = 0; v < trial_.ranks; ++v) {
        if (!network->alive(v)) continue;
        const bool right = cluster.wrong(v).empty();
        outcome.all_right = outcome.all_right && right;
        if (!right && cluster.machine(v).poll() == Status::kOk && outcome.silent_error.empty()) {
          outcome.silent_error = "round " + std::to_string(round) + ": node " + std::to_string(v);
        }
      }
      if (result.status != Status::kOk) break;
    }
    // Controls about a failure may still be in flight to machines that had ended successfully.
    for (int i = 0; i < 10'000 && network->advance(UINT64_MAX); ++i) poll_all(cluster);
    for (std::uint32_t v = 0; v < trial_.ranks; ++v) {
      for (const Kind kind :
           {Kind::kDrop, Kind::kDuplicate, Kind::kReorder, Kind::kCorrupt, Kind::kKill}) {
        outcome.struck = outcome.struck || endpoints_[v]->struck(kind) > 0;
      }
      outcome.dead = outcome.dead || !network->alive(v);
      if (!network->alive(v)) continue;
      outcome.statuses.push_back(cluster.machine(v).poll());
      outcome.causes.push_back(cluster.machine(v).cause());
      outcome.parts.push_back(part(*network, v));
    }
    return outcome;
  }

 private:
  void poll_all(testing::JobCluster& cluster) {
    for (std::uint32_t v = 0; v < trial_.ranks; ++v) {
      if (cluster.network().alive(v)) (void)cluster.machine(v).poll();
    }
  }

  static std::uint32_t part(sim::Network& network, std::uint32_t v) {
    std::vector<bool> seen(network.nodes(), false);
    std::vector<std::uint32_t> list = {v};
    seen[v] = true;
    for (std::size_t i = 0; i < list.size(); ++i) {
      Endpoint& endpoint = network.endpoint(list[i]);
      for (std::uint32_t link = 0; link < endpoint.links(); ++link) {
        const std::uint32_t u = endpoint.peer(link);
        if (seen[u] || !network.alive(u)) continue;
        seen[u] = true;
        list.push_back(u);
      }
    }
    return *std::min_element(list.begin(), list.end());
  }

  const Trial& trial_;
  Faults faults_;
  testing::JobCluster::Options options_;
  BlockRule rules_[2] = {};
  CollectiveParameters parameters_;
  std::vector<std::unique_ptr<FaultEndpoint>> endpoints_;
};

// Conditions that every run must satisfy, regardless of the fault.
void check_common(const Trial& trial, const Outcome& outcome) {
  const std::string text = trial.text();
  EXPECT_EQ(outcome.message, "") << text;
  EXPECT_EQ(outcome.silent_error, "") << text << ": incorrect result with status kOk";
  EXPECT_LT(outcome.seconds, (outcome.dead ? 2 : 2.5) * kDeadline * 1e-9) << text;
  for (const Status status : outcome.statuses) EXPECT_NE(status, Status::kBusy) << text;
}

// All nodes that reach each other over live links end alike: all successfully, or all with one
// cause.
void check_same_cause(const Trial& trial, const Outcome& outcome) {
  for (std::size_t i = 0; i < outcome.causes.size(); ++i) {
    std::size_t first = 0;
    while (outcome.parts[first] != outcome.parts[i]) ++first;
    const Cause& cause = outcome.causes[i];
    EXPECT_EQ(outcome.statuses[i], cause.status) << trial.text();
    EXPECT_EQ(cause.status, outcome.causes[first].status) << trial.text();
    EXPECT_EQ(cause.detector, outcome.causes[first].detector) << trial.text();
    EXPECT_EQ(cause.peer, outcome.causes[first].peer) << trial.text();
  }
}

bool any_failed(const Outcome& outcome) {
  for (const Status status : outcome.statuses) {
    if (status != Status::kOk) return true;
  }
  return false;
}

TEST(Matrix, NoFaultNoHarm) {
  for (const Subject& subject : kSubjects) {
    Trial trial;
    trial.subject = subject;
    const Outcome outcome = Attempt(trial).go();
    check_common(trial, outcome);
    EXPECT_TRUE(outcome.all_right) << trial.text();
    EXPECT_FALSE(any_failed(outcome)) << trial.text();
  }
}

TEST(Matrix, DelaysOnlyDelay) {
  for (const Subject& subject : kSubjects) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      Trial trial;
      trial.subject = subject;
      trial.culprit = UINT32_MAX;
      trial.jitter = 2;
      trial.seed = seed;
      trial.faults =
          "random seed=" + std::to_string(seed) + " delay=0.2 ns=" + std::to_string(seed * 40'000);
      const Outcome outcome = Attempt(trial).go();
      check_common(trial, outcome);
      EXPECT_TRUE(outcome.all_right) << trial.text();
      EXPECT_FALSE(any_failed(outcome)) << trial.text();
    }
  }
}

// One fault at one message, at every position.
void check_single(const char* kind, const std::vector<Status>& allowed, bool must_fail) {
  std::uint32_t strikes = 0;
  for (const Subject& subject : kSubjects) {
    for (std::uint32_t culprit = 0; culprit < 6; ++culprit) {
      for (std::uint32_t link = 0; link < 3; ++link) {
        for (const std::uint32_t message : {0, 1, 5, 9, 14}) {
          Trial trial;
          trial.subject = subject;
          trial.culprit = culprit;
          trial.seed = culprit + 10 * link + 100 * message;
          trial.jitter = 0.5;
          trial.eager_copies = (link + message) % 2 == 0;
          trial.faults = std::string(kind) + " link=" + std::to_string(link) +
                         " message=" + std::to_string(message);
          const Outcome outcome = Attempt(trial).go();
          check_common(trial, outcome);
          if (!outcome.struck) {
            EXPECT_TRUE(outcome.all_right) << trial.text();
            EXPECT_FALSE(any_failed(outcome)) << trial.text();
            continue;
          }
          ++strikes;
          EXPECT_TRUE(any_failed(outcome) || !must_fail) << trial.text();
          if (!any_failed(outcome)) {
            EXPECT_TRUE(outcome.all_right) << trial.text();
            continue;
          }
          check_same_cause(trial, outcome);
          const Status status = outcome.causes[0].status;
          EXPECT_NE(std::find(allowed.begin(), allowed.end(), status), allowed.end())
              << trial.text() << ": " << status_name(status);
        }
      }
    }
  }
  EXPECT_GT(strikes, 50u) << "the matrix is not empty";
}

TEST(Matrix, ADroppedMessageIsFound) {
  check_single("drop", {Status::kMismatch, Status::kStalled, Status::kNotInSchedule}, true);
}

TEST(Matrix, ADuplicateIsFoundOrDoesNoHarm) {
  check_single("duplicate", {Status::kMismatch, Status::kNotInSchedule}, false);
}

TEST(Matrix, ASwapIsFoundOrDoesNoHarm) {
  check_single("reorder", {Status::kMismatch, Status::kNotInSchedule}, false);
}

TEST(Matrix, ACorruptBlockIsFound) {
  // An empty block has no bits to corrupt.
  check_single("corrupt", {Status::kCorrupt}, false);
}

TEST(Matrix, WithoutCheckWordsCorruptionPasses) {
  Trial trial;
  trial.subject = {Collective::kBroadcast, "chain"};
  trial.faults = "corrupt link=0 message=1 bit=9";
  trial.check_blocks = false;
  const Outcome outcome = Attempt(trial).go();
  EXPECT_FALSE(outcome.all_right) << "otherwise the test above checks nothing";
  EXPECT_FALSE(any_failed(outcome));
}

TEST(Matrix, ADeadNodeIsNamedByAll) {
  std::uint32_t kills = 0;
  for (const Subject& subject : kSubjects) {
    for (std::uint32_t culprit = 0; culprit < 6; ++culprit) {
      for (const std::uint32_t after : {0, 1, 2, 7, 20, 45}) {
        for (const bool eager_copies : {true, false}) {
          Trial trial;
          trial.subject = subject;
          trial.culprit = culprit;
          trial.jitter = 0.5;
          trial.seed = after;
          trial.eager_copies = eager_copies;
          trial.faults = "kill after=" + std::to_string(after);
          const Outcome outcome = Attempt(trial).go();
          check_common(trial, outcome);
          kills += outcome.dead ? 1 : 0;
          if (!outcome.dead || !any_failed(outcome)) {
            EXPECT_TRUE(outcome.all_right) << trial.text();
            continue;
          }
          check_same_cause(trial, outcome);
          for (const Cause& cause : outcome.causes) {
            // A part that no longer needed the dead node.
            if (cause.status == Status::kOk) continue;
            EXPECT_EQ(cause.status, Status::kDeadLink) << trial.text();
            EXPECT_EQ(cause.peer, culprit) << trial.text() << ": a live node is declared dead";
          }
        }
      }
    }
  }
  EXPECT_GT(kills, 200u) << "the matrix is not empty";
}

// A sample of all this, with blocks of unequal lengths and of none.
TEST(Matrix, WithACountForEachRank) {
  constexpr Subject kUnequal[] = {{Collective::kScatter, "binomial"},
                                  {Collective::kGather, "binomial"},
                                  {Collective::kAllgather, "ring"},
                                  {Collective::kReduceScatter, "ring"},
                                  {Collective::kAllToAll, "pairwise"}};
  std::uint32_t struck = 0;
  for (const Subject& subject : kUnequal) {
    for (const char* faults :
         {"drop link=1 message=1", "duplicate link=0 message=1", "reorder link=1 message=0",
          "kill after=3", "random seed=5 drop=0.01 corrupt=0.01 delay=0.1 ns=50000"}) {
      for (std::uint32_t culprit = 0; culprit < 6; ++culprit) {
        Trial trial;
        trial.subject = subject;
        trial.culprit = culprit;
        trial.jitter = 0.5;
        trial.seed = culprit;
        trial.faults = faults;
        trial.counts.resize(subject.collective == Collective::kAllToAll ? 36 : 6);
        for (std::size_t k = 0; k < trial.counts.size(); ++k) trial.counts[k] = k * 53 % 4 * 40;
        const Outcome outcome = Attempt(trial).go();
        check_common(trial, outcome);
        struck += outcome.struck ? 1 : 0;
        if (any_failed(outcome)) {
          EXPECT_TRUE(outcome.struck) << trial.text();
          check_same_cause(trial, outcome);
        } else {
          EXPECT_TRUE(outcome.all_right) << trial.text();
        }
      }
    }
  }
  EXPECT_GT(struck, 50u) << "the sample is not empty";
}

TEST(Matrix, RandomFaultsEverywhereNeverPassUnseen) {
  std::uint32_t failures = 0, survived = 0;
  for (const Subject& subject : kSubjects) {
    for (std::uint64_t seed = 1; seed <= 25; ++seed) {
      Trial trial;
      trial.subject = subject;
      trial.culprit = UINT32_MAX;
      trial.ranks = 3 + static_cast<std::uint32_t>(seed % 9);
      trial.jitter = 1;
      trial.seed = seed;
      trial.eager_copies = seed % 3 != 0;
      trial.faults = "random seed=" + std::to_string(seed) +
                     " drop=0.001 duplicate=0.001 reorder=0.001 corrupt=0.001 delay=0.02 ns=50000";
      const Outcome outcome = Attempt(trial).go();
      check_common(trial, outcome);
      if (any_failed(outcome)) {
        EXPECT_TRUE(outcome.struck) << trial.text();
        ++failures;
      } else {
        EXPECT_TRUE(outcome.all_right) << trial.text();
        ++survived;
      }
    }
  }
  EXPECT_GT(failures, 20u);
  EXPECT_GT(survived, 20u);
}

}  // namespace
}  // namespace espalier::fault
