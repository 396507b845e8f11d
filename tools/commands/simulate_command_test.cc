// espalier simulate over the links of a topology.

#include <cstdint>
#include <utility>

#include "tools/commands/testing/command_fixture.h"

namespace espalier {
namespace {

using nlohmann::json;

TEST_F(Command, SimulateNamesTheFirstConflict) {
  compile("b", "mesh:1x4", "broadcast", "binomial", "--root 1");
  const json good = json_of("simulate b --bytes 8");
  EXPECT_EQ(good["contention_free"], true);
  EXPECT_EQ(good["contention"]["conflicts"], 0);
  EXPECT_EQ(good["residence_lock_step"], json::array({3}));

  compile("a", "mesh:1x4", "all-to-all", "pairwise");
  const json found = json_of("simulate a --bytes 8");
  EXPECT_EQ(found["contention_free"], false);
  EXPECT_EQ(found["right"], true);
  const json& first = found["contention"]["first"];
  EXPECT_EQ(first["step"], 1) << "to the next but one; in step 0 the way back is free";
  EXPECT_EQ(first["from"], 1);
  EXPECT_EQ(first["to"], 2);
  EXPECT_EQ(first["transfers"][0], (json{{"from", 0}, {"to", 2}, {"number", 0}}));
  EXPECT_EQ(first["transfers"][1], (json{{"from", 1}, {"to", 3}, {"number", 0}}));
  const std::string text = run("simulate a --bytes 8").out;
  EXPECT_PRED2(contains, text, "at worst");
  EXPECT_PRED2(contains, text, "first in step 1 on rank 1 ");
}

TEST_F(Command, SimulateCountsWhatLinksCarry) {
  compile("b", "fattree:k=2,h=2,c=k", "gather", "leaf");
  const json out = json_of("simulate b --bytes 1000");
  EXPECT_EQ(out["contention_free"], true);
  const json& links = out["links"];
  EXPECT_EQ(links["all"], 12);
  EXPECT_EQ(links["used"], 6) << "three ranks' up, one up at level 2, two down to rank 0";
  EXPECT_EQ(links["waits"], 0);
  std::uint64_t last = 0, used = 0;
  for (const json& link : links["busiest_first"]) {
    last += link["to"] == 0 ? link["blocks"].get<std::uint64_t>() : 0;
    EXPECT_LE(link["held"], 1.0);
  }
  EXPECT_EQ(last, 3 * out["blocks"].get<std::uint64_t>());
  for (const json& bin : links["histogram"]) used += bin.get<std::uint64_t>();
  EXPECT_EQ(used, 6u);
}

// Hop by hop, the programs contain the order of the messages on each link. So free nodes need the
// time of the link with the most blocks: max(R*floor(C^2/4), C*floor(R^2/4)) per block.
TEST_F(Command, SimulateAllToAllOnMeshesIsWithinFivePercentOfTheLoadBound) {
  const std::pair<const char*, double> bounds[] = {
      {"mesh:4x4", 16}, {"mesh:5x7", 60}, {"mesh:8x8", 128}};
  for (const auto& [mesh, bound] : bounds) {
    compile("a", mesh, "all-to-all", "mesh-balanced", "--links hop-by-hop");
    const json out = json_of("simulate a --bytes 1MiB --alpha 0 --beta 1e-9 --no-data");
    const double least = bound * 1048576 * 1e-9, seconds = out["simulated_seconds"].get<double>();
    EXPECT_GE(seconds, least) << mesh;
    EXPECT_LE(seconds, 1.05 * least) << mesh;
  }
}

// The same counts as a list, from a file, and at random; every result is checked.
TEST_F(Command, SimulateWithACountForEachRank) {
  compile("s", "fattree:k=2,h=2,c=1", "scatter", "leaf");
  write(directory_ / "numbers", "30, 0\n5000\t7\n");
  const json list = json_of("simulate s --counts 30,0,5000,7");
  EXPECT_EQ(list["right"], true);
  EXPECT_EQ(list["bytes"], 5000);
  EXPECT_EQ(list["bytes_are"], "longest part");
  EXPECT_EQ(list["counts"], json::array({30, 0, 5000, 7}));
  EXPECT_EQ(list, json_of("simulate s --counts @numbers"));
  const json equal = json_of("simulate s --bytes 5000");
  EXPECT_EQ(list["simulated_steps"], equal["simulated_steps"]);
  EXPECT_EQ(list["blocks"], equal["blocks"]);
  EXPECT_LT(list["simulated_seconds"], equal["simulated_seconds"]);
  EXPECT_FALSE(equal.contains("counts"));

  compile("a", "complete:3", "all-to-all", "pairwise");
  const std::string random = expect_success("simulate a --counts random:5:100");
  const std::size_t begin = random.find("counts     random:5:100 = ");
  ASSERT_NE(begin, std::string::npos) << random;
  const std::size_t first = begin + std::string("counts     random:5:100 = ").size();
  std::string numbers = random.substr(first, random.find(" elements", first) - first);
  std::erase(numbers, ' ');
  const json again = json::parse(run("simulate a --counts " + numbers + " --format json").out);
  EXPECT_EQ(again, json_of("simulate a --counts random:5:100"));
  EXPECT_EQ(json_of("simulate a --counts random:5:100 --no-data")["simulated_seconds"],
            again["simulated_seconds"]);
}

// Routers that have nothing to do pass no parts on.
TEST_F(Command, SimulateTakesCountsWithIdleRouters) {
  for (const char* hosts : {"hosts:1x2", "hosts:1x3", "hosts:1x4"}) {
    compile("d", hosts, "all-to-all", "hosts-pairwise", "--links hop-by-hop");
    expect_success("simulate d --counts random:7:200");
  }
}

TEST_F(Command, SimulateRefusesCounts) {
  compile("b", "complete:3", "broadcast", "chain");
  compile("a", "fattree:k=2,h=1,c=1", "all-to-all", "leaf");
  compile("r", "complete:3", "reduce-scatter", "ring");
  expect_refused("simulate b --counts 1,2,3", "--counts is for scatter");
  expect_refused("simulate a --counts 1,2,3,4", "passes parts on");
  expect_refused("simulate a --counts 1,2,3", "has 3 numbers, and all-to-all on 2 ranks takes 4");
  expect_refused("simulate r --counts 1,2,3 --bytes 4", "--counts excludes --bytes");
  expect_refused("simulate r --counts 1,2,1.5", "'1.5' is not a whole number");
  expect_refused("simulate r --counts random:1", "random:SEED:MAX");
  expect_refused("simulate r --counts 1,2,1099511627776", "expected at most");
}

// In the postal model a step is a tick: a block holds its sender's port for S of them, and is in
// after L.
TEST_F(Command, SimulatedSecondsHaveLambda) {
  struct Row {
    const char* ranks;
    const char* lambda;
    double microseconds;  // T_lambda(p) of the paper, for blocks that take 1 us
  };
  for (const Row& row :
       {Row{"8", "1", 3}, Row{"8", "2", 5}, Row{"64", "2", 10}, Row{"64", "9/5", 9.2},
        Row{"13", "5/3", 17.0 / 3}, Row{"64", "4", 15}, Row{"14", "5/2", 7.5}}) {
    compile("l", std::string("complete:") + row.ranks, "broadcast", "lambda-tree",
            std::string("--lambda ") + row.lambda);
    const json out = json_of("simulate l --bytes 1000 --alpha 1e-6 --beta 0");
    const double seconds = row.microseconds * 1e-6;
    EXPECT_NEAR(out["predicted_seconds"], seconds, 1e-11) << row.ranks << ' ' << row.lambda;
    EXPECT_NEAR(out["lock_step_seconds"], seconds, 1e-11) << row.ranks << ' ' << row.lambda;
    EXPECT_NEAR(out["simulated_seconds"], seconds, 1e-11) << row.ranks << ' ' << row.lambda;
    const json slow = json_of("simulate l --bytes 1000 --alpha 1e-6 --beta 1e-9");
    EXPECT_NEAR(slow["simulated_seconds"], 2 * seconds, 1e-11) << "alpha + beta x 1000 is 2 us";
  }
}

// It combines into the block that it sends, which it has back when the block has left its port.
TEST_F(Command, CombineTakesThePredictedTime) {
  struct Row {
    const char* ranks;
    const char* lambda;
  };
  for (const Row& row :
       {Row{"8", "1"}, Row{"8", "2"}, Row{"13", "5/3"}, Row{"13", "5/2"}, Row{"64", "4"}}) {
    compile("c", std::string("complete:") + row.ranks, "allreduce", "combine",
            std::string("--lambda ") + row.lambda);
    const json out = json_of("simulate c --bytes 1000 --alpha 1e-6 --beta 0");
    const double predicted = out["predicted_seconds"];
    EXPECT_GT(predicted, 0);
    EXPECT_NEAR(out["lock_step_seconds"], predicted, 1e-11) << row.ranks << ' ' << row.lambda;
    EXPECT_NEAR(out["simulated_seconds"], predicted, 1e-11) << row.ranks << ' ' << row.lambda;
  }
}

// The command's whole report, and the events and the trace that it writes.
TEST_F(Command, WithoutDataAllButTheResultsIsTheSame) {
  compile("lines", "mesh:2x3", "allreduce", "two-tree");
  compile("tree", "fattree:k=2,h=2,c=1", "all-to-all", "leaf");
  compile("hops", "mesh:3x3", "broadcast", "two-tree", "--links hop-by-hop");
  compile("postal", "complete:9", "allreduce", "combine", "--lambda 5/2");
  compile("wait", "complete:5", "barrier", "dissemination");
  for (const std::string file : {"lines", "tree", "hops", "postal", "wait"}) {
    const std::string bytes = file == "wait" ? "" : " --bytes 20000";
    for (const std::string mode : {"", " --switching store-and-forward", " --jitter 0.5 --seed 3",
                                   " --link-jitter 1 --node-jitter 1 --seed 4"}) {
      const std::string command = "simulate " + file + bytes + mode + " --format json";
      const CommandResult data = run(command + " --events a --trace a.json");
      const CommandResult none = run(command + " --no-data --events b --trace b.json");
      EXPECT_EQ(data.status, 0) << data.err;
      EXPECT_EQ(none.status, 0) << none.err;
      json with = json::parse(data.out), without = json::parse(none.out);
      EXPECT_EQ(with["right"], true);
      EXPECT_EQ(without["right"], nullptr);
      for (json* report : {&with, &without}) {
        report->erase("data");
        report->erase("right");
      }
      EXPECT_EQ(with, without) << command;
      EXPECT_NE(read(directory_ / "a.json"), "") << command;
      EXPECT_NE(read(directory_ / "a" / "node-0.events"), "") << command;
      EXPECT_EQ(read(directory_ / "a.json"), read(directory_ / "b.json")) << command;
      for (std::uint32_t node = 0; node < with["nodes"]; ++node) {
        const std::string name = "node-" + std::to_string(node) + ".events";
        EXPECT_EQ(read(directory_ / "a" / name), read(directory_ / "b" / name)) << command;
      }
    }
  }
  const std::string text = run("simulate lines --bytes 8 --no-data").out;
  EXPECT_PRED2(contains, text, "not checked: no byte was moved");
}

TEST_F(Command, SimulateHopsAndJitter) {
  compile("b", "mesh:1x8", "scatter", "binomial");
  const auto seconds = [&](const char* options) {
    const json out = json_of(std::string("simulate b --bytes 64KiB ") + options);
    EXPECT_LT(out["residence"].size(), std::size_t{9}) << "at most W - 1 = 7 steps";
    return out["simulated_seconds"].get<double>();
  };
  const double through = seconds("");
  EXPECT_GT(seconds("--switching store-and-forward"), 1.5 * through);
  EXPECT_GT(seconds("--jitter 0.5"), through);
  EXPECT_GT(seconds("--link-jitter 0.5"), through);
  EXPECT_GT(seconds("--node-jitter 0.5"), through);
  EXPECT_EQ(seconds("--jitter 0.5 --seed 3"), seconds("--jitter 0.5 --seed 3"));
  EXPECT_NE(seconds("--jitter 0.5 --seed 3"), seconds("--jitter 0.5 --seed 4"));
}

}  // namespace
}  // namespace espalier
