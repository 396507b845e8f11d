// `espalier explain`, and --algorithm auto of the other commands.

#include <set>
#include <utility>

#include "tests/whole.h"
#include "tools/commands/testing/command_fixture.h"

namespace espalier {
namespace {

class ExplainCommand : public Command {
 protected:
  nlohmann::json explained(const std::string& arguments) { return json_of("explain " + arguments); }
};

TEST_F(ExplainCommand, RanksByPredictedTime) {
  const auto json = explained("--topology complete:8 --collective broadcast --bytes 8,64MiB");
  ASSERT_EQ(json["sizes"].size(), 2u);
  for (const auto& size : json["sizes"]) {
    std::uint64_t before = 0;
    ASSERT_GE(size["ranking"].size(), 10u);
    for (const auto& one : size["ranking"]) {
      EXPECT_GE(one["predicted_ps"], before);
      before = one["predicted_ps"];
      EXPECT_GE(one["times_bound"], 1.0) << one.dump();
      EXPECT_GE(one["times_best"], 1.0);
      EXPECT_GE(one["steps"], 1);
    }
  }
  // ceil(log2 8) sends of 20.008 us.
  EXPECT_EQ(json["sizes"][0]["ranking"][0]["predicted_ps"], 60'024'000u);
  // Messages of several segments could be shorter in some steps.
  EXPECT_GE(json["sizes"][0]["bound_ps"], 60'000'000u);
  EXPECT_LE(json["sizes"][0]["bound_ps"], 60'024'000u);
  EXPECT_NE(json["sizes"][0]["ranking"][0]["candidate"],
            json["sizes"][1]["ranking"][0]["candidate"]);
  EXPECT_EQ(json["crossovers"].size(), 1u);
}

TEST_F(ExplainCommand, OneRankDoesNothing) {
  for (const char* const collective : {"broadcast", "allreduce", "scatter", "all-to-all"}) {
    const auto json =
        explained(std::string("--topology complete:1 --bytes 8,64MiB --collective ") + collective);
    for (const auto& size : json["sizes"]) EXPECT_EQ(size["bound_ps"], 0) << collective;
  }
}

TEST_F(ExplainCommand, TakesWhatWasFastestInRuns) {
  write(directory_ / "model",
        "link { line { alpha_ps: 20000000 beta_fs_per_byte: 1000000 } }\n"
        "tuning { topology: \"complete:8\" collective: \"broadcast\"\n"
        "  size { bytes: 8 factor { candidate: \"binomial\" permille: 1500 }\n"
        "                  factor { candidate: \"knomial, radix 3\" permille: 1000 } } }");
  const auto best = [this](const std::string& more) {
    const auto json = explained("--collective broadcast --model model --bytes 8 " + more);
    return json["sizes"][0]["ranking"][0]["candidate"].get<std::string>() +
           (json["tuned"].get<bool>() ? ", tuned" : "");
  };
  EXPECT_EQ(best("--topology complete:8"), "knomial, radix 3, tuned");
  EXPECT_EQ(best("--topology complete:8 --root 3"), "knomial, radix 3, tuned");
  EXPECT_EQ(best("--topology complete:9").find("tuned"), std::string::npos);
  // A factor is of a replay, so no candidate is left at its steps.
  const auto all =
      explained("--collective broadcast --model model --bytes 8 --topology complete:8");
  for (const auto& one : all["sizes"][0]["ranking"]) EXPECT_FALSE(one["by_steps"]) << one.dump();
  // Runs are of nodes with all links, and of schedules with their own windows.
  for (const char* const other :
       {"--links hop-by-hop --ports single-send", "--window 2", "--links hop-by-hop"}) {
    EXPECT_EQ(best(std::string("--topology complete:8 ") + other).find("tuned"), std::string::npos)
        << other;
  }
}

TEST_F(ExplainCommand, SaysWhyCandidatesAreDropped) {
  const auto reasons = [this](const std::string& arguments) {
    std::string all;
    const auto json = explained(arguments);
    for (const auto& one : json["dropped"]) {
      all += one["candidate"].get<std::string>() + ": " + one["reason"].get<std::string>() + "\n";
    }
    return all;
  };
  std::string found = reasons("--topology complete:8 --collective broadcast");
  EXPECT_PRED2(contains, found, "two-tree-mirror: ");
  EXPECT_PRED2(contains, found, "odd number of ranks");
  EXPECT_PRED2(contains, found, "leaf: ");
  found = reasons("--topology complete:8 --collective allreduce --op affine");
  EXPECT_PRED2(contains, found, "operator 'affine' does not commute");
  found = reasons("--topology complete:8 --collective broadcast --node-ports simplex");
  EXPECT_PRED2(contains, found, "chain: it needs more ports");
  found = reasons("--topology complete:8 --collective broadcast --run-length 3");
  EXPECT_PRED2(contains, found, "--run-length is no parameter of algorithm 'chain'");
  write(directory_ / "board.textproto",
        "name: \"b\" limits { actions: 2 blocks: 3 } fabric { kind: MEMORY } signature: UNSIGNED\n"
        "timing { alpha: 1e-6 beta: 1e-9 }\n");
  found = reasons("--topology complete:8 --collective broadcast --board board.textproto");
  EXPECT_PRED2(contains, found, "two-tree: on this board: ");
  EXPECT_EQ(found.find("\nchain: "), std::string::npos) << found;
  write(
      directory_ / "board.textproto",
      "name: \"b\" limits { rotated_scratch: false } fabric { kind: MEMORY } signature: UNSIGNED\n"
      "timing { alpha: 1e-6 beta: 1e-9 }\n");
  found = reasons("--topology complete:8 --collective allgather --board board.textproto");
  EXPECT_PRED2(contains, found, "bruck: on this board: ");
  EXPECT_PRED2(contains, found, "has rotated scratch, which needs rotated_scratch: true");
  EXPECT_EQ(("\n" + found).find("\nring: "), std::string::npos) << found;
}

TEST_F(ExplainCommand, ModelDecides) {
  const auto best = [&](const std::string& model) {
    write(directory_ / "model", model);
    const auto json =
        explained("--topology complete:16 --collective broadcast --bytes 64KiB --model model");
    return json["sizes"][0]["ranking"][0]["candidate"].get<std::string>();
  };
  const std::string slow_start =
      best("link { line { alpha_ps: 1000000000 beta_fs_per_byte: 1000000 } }");
  const std::string slow_bytes = best("link { line { alpha_ps: 1000 beta_fs_per_byte: 1000000 } }");
  EXPECT_EQ(slow_start, "binomial");
  EXPECT_NE(slow_bytes, "binomial");
}

// Eight ranks on one processor take turns, so the schedule with the fewest messages wins.
TEST_F(ExplainCommand, RanksOfAHostTakeTurns) {
  write(directory_ / "model",
        "link { line { alpha_ps: 1000 beta_fs_per_byte: 1000 } } overhead_ps: 1000000 cores: 1");
  const auto best = [this](const std::string& more) {
    const auto json = explained("--topology complete:8 --collective allreduce --bytes 8 " + more);
    return json["sizes"][0]["ranking"][0]["candidate"].get<std::string>();
  };
  EXPECT_EQ(best("--model model"), "recursive-doubling");
  EXPECT_EQ(best("--model model --ranks-per-host 1"), "recursive-doubling");
  EXPECT_EQ(best("--model model --ranks-per-host 8"), "dual-root");
  const std::string what = "explain --topology complete:8 --collective allreduce --ranks-per-host ";
  expect_refused(what + "8", "is for a model that says how many processors a host has");
  expect_refused(what + "0 --model model", "--ranks-per-host");
}

// On a mesh: the algorithms for it, snakes and Z-order; without the last two for an operator that
// does not commute.
TEST_F(ExplainCommand, TriesTheOrdersOfAMesh) {
  const auto candidates = [this](const std::string& arguments) {
    std::set<std::string> names;
    const auto json = explained("--topology mesh:4x4 --bytes 1MiB " + arguments);
    for (const auto& one : json["sizes"][0]["ranking"]) names.insert(one["candidate"]);
    return names;
  };
  std::set<std::string> names = candidates("--collective allreduce");
  for (const char* name : {"bucket", "rabenseifner, embedding z-order", "ring, embedding snake",
                           "chain, embedding snake"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  names = candidates("--collective allreduce --op affine");
  EXPECT_TRUE(names.contains("chain") && names.contains("rabenseifner"));
  for (const std::string& name : names) {
    EXPECT_EQ(name.find("snake"), std::string::npos) << name;
    EXPECT_EQ(name.find("z-order"), std::string::npos) << name;
  }
  EXPECT_TRUE(candidates("--collective reduce").contains("chain, embedding snake"));
  EXPECT_TRUE(candidates("--collective all-to-all").contains("mesh-balanced"));
}

// On meshes, placed schedules win large messages; for an operator that does not commute, schedules
// in the order of ranks remain.
TEST_F(ExplainCommand, PlacesRanksOnMeshes) {
  for (const char* mesh : {"mesh:6x6", "mesh:5x7"}) {
    const std::string what = std::string("--topology ") + mesh + " --collective ";
    double placed = 0, as_numbered = 0;
    const auto json = explained(what + "broadcast --algorithm two-tree --bytes 1MiB --all");
    for (const auto& row : json["sizes"][0]["ranking"]) {
      const bool is_placed = row["candidate"] == "two-tree";
      (is_placed ? placed : as_numbered) = row["predicted_ps"];
    }
    EXPECT_GT(as_numbered, 1.5 * placed) << mesh;
    EXPECT_GT(placed, 0) << mesh;
  }
  const auto ordered = explained(
      "--topology mesh:5x7 --collective reduce --algorithm two-tree --op affine --bytes 64KiB");
  ASSERT_EQ(ordered["sizes"][0]["ranking"].size(), 1u) << ordered;
  EXPECT_EQ(ordered["sizes"][0]["ranking"][0]["candidate"], "two-tree, embedding none");
}

TEST_F(ExplainCommand, DrawsThePlot) {
  const std::string result = expect_success(
      "explain --topology complete:8 --collective allreduce --bytes 8,64MiB --plot p.svg");
  EXPECT_PRED2(contains, result, "is faster than");
  const std::string svg = read(directory_ / "p.svg");
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  for (const char* text : {"two-tree", "chain", "combine", "<circle", ">32 KiB<", ">16 MiB<"}) {
    EXPECT_PRED2(contains, svg, text);
  }
}

TEST_F(ExplainCommand, Refusals) {
  expect_refused(
      "",
      {{"explain --topology complete:4", "--collective"},
       {"explain --topology complete:4 --collective shout", "unknown collective"},
       {"explain --topology complete:4 --collective barrier --bytes 8", "no bytes"},
       {"explain --topology complete:4 --collective broadcast --algorithm magic",
        "unknown algorithm 'magic'"},
       {"explain --topology complete:4 --collective broadcast --node-ports two",
        "unknown --node-ports"},
       {"explain --topology complete:4 --collective broadcast --op sum", "combines nothing"},
       {"explain --topology complete:4 --collective broadcast --root 4", "--root"},
       {"explain --topology complete:4 --collective allreduce --algorithm two-tree --op "
        "affine --run-length 2",
        "no algorithm can do"},
       {"explain --topology complete:4 --collective broadcast --model none", "cannot read 'none'"},
       {"explain --topology complete:4 --collective broadcast --plot no/p.svg", "no/p.svg"},
       {"compile --topology complete:4 --collective broadcast --algorithm chain --bytes "
        "8 -o c.esp",
        "--bytes is for --algorithm auto"},
       {"compile --topology complete:4 --collective allreduce --algorithm chain --op "
        "sum -o c.esp",
        "--op is for --algorithm auto"}});
}

TEST_F(ExplainCommand, AutoCompilesWhatExplainTakes) {
  std::uint64_t turn = 0;
  for (const char* collective :
       {"broadcast", "reduce", "allreduce", "scan", "exscan", "scatter", "gather", "allgather",
        "reduce-scatter", "all-to-all", "barrier"}) {
    if (small_sample() && !sampled(turn++, 4)) continue;
    const std::string what = std::string("--topology mesh:3x3 --collective ") + collective;
    const bool barrier = std::string(collective) == "barrier";
    const std::string bytes = barrier ? "" : " --bytes 64KiB";
    const auto json = explained(what + bytes);
    const std::string result =
        expect_success("compile " + what + (barrier ? "" : bytes) + " -o " + collective + ".esp");
    const auto best = json["sizes"][0]["ranking"][0]["candidate"].get<std::string>();
    EXPECT_PRED2(contains, result, "auto: " + best + ", chosen for");
    EXPECT_PRED2(contains, result, "default constants");
    EXPECT_EQ(run(std::string("simulate ") + collective + ".esp" + bytes).status, 0) << collective;
  }
  expect_success("verify --topology complete:8 --collective allreduce");
}

TEST_F(ExplainCommand, BlockTableFitsModelAndBoard) {
  const std::string what = "--topology complete:8 --collective broadcast --algorithm chain ";
  write(directory_ / "model", "link { line { alpha_ps: 1000000000 beta_fs_per_byte: 1000000 } }");
  write(directory_ / "board.textproto",
        "name: \"b\" limits { blocks: 3 } fabric { kind: MEMORY } signature: UNSIGNED\n");
  ASSERT_EQ(run("compile " + what + "-o own.esp").status, 0);
  ASSERT_EQ(run("compile " + what + "--model model -o model.esp").status, 0);
  ASSERT_EQ(run("compile " + what + "--board board.textproto -o board.esp").status, 0);
  const auto rows = [this](const std::string& file) {
    const std::string text = run("show " + file).out;
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find(" bytes blocks of ", at)) != std::string::npos; ++at)
      ++count;
    return std::pair(text, count);
  };
  EXPECT_NE(rows("own.esp").first, rows("model.esp").first);
  EXPECT_GT(rows("model.esp").second, 4u);
  EXPECT_LE(rows("board.esp").second, 3u);
}

}  // namespace
}  // namespace espalier
