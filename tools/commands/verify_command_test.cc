// `espalier verify` from outside: valid schedules, wrong ones and files that are not schedules, and
// its verdicts.

#include <functional>
#include <tuple>
#include <vector>

#include "planner/files/testing/changed_sum.h"
#include "tools/commands/testing/command_fixture.h"

namespace espalier {
namespace {

using VerifyCommand = Command;

// Returns the file of planner::changed_sum() as the text that write() takes.
std::string changed_file(const std::function<void(Program&)>& change) {
  const std::vector<std::uint8_t> bytes = planner::changed_sum(change);
  return {bytes.begin(), bytes.end()};
}

// The second rank adds its own number twice.
TEST_F(VerifyCommand, AWrongScheduleIsStatusOne) {
  write(directory_ / "wrong", changed_file([](Program& program) {
          for (Action& action : program.actions) {
            if (program.node != 1 || action.kind != ActionKind::kCombine) continue;
            const bool left = action.a.buffer == Buffer::kInput;
            (left ? action.b : action.a) = left ? action.a : action.b;
          }
        }));
  expect_refused("verify wrong", "'wrong' is not valid: ", 1);
  expect_refused("simulate wrong --bytes 40", "wrong result on rank 0", 1);
  const CommandResult result = run("verify wrong --format json");
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(nlohmann::json::parse(result.out)["valid"], false);
  compile("mesh", "mesh:4x4", "broadcast", "two-tree", "--embedding none");
  expect_refused("verify mesh --loads", "'mesh' is not valid: links: ", 1);
  EXPECT_EQ(run("verify mesh").status, 0);
}

// Rank 2's program is of a broadcast, where only the root has input.
TEST_F(VerifyCommand, SimulateRefusesProgramsThatDisagree) {
  write(directory_ / "two", changed_file([](Program& program) {
          if (program.node == 2) program.collective = Collective::kBroadcast;
        }));
  expect_refused(
      "simulate two --bytes 40",
      "not a schedule for its topology: form: rank 2: collective is 1, but 2 in rank 0's "
      "program");
}

// A peer that does not exist: every command that opens the file refuses it before it starts.
TEST_F(VerifyCommand, WhateverOpensAScheduleChecksItsForm) {
  write(directory_ / "astray", changed_file([](Program& program) {
          if (program.node == 0) program.peers[0] = 1048575;
        }));
  for (const char* command :
       {"show astray", "show astray --format json", "draw astray -o page",
        "draw astray --svg picture", "simulate astray --bytes 40",
        "simulate astray --bytes 40 --trace trace", "export msccl astray -o out",
        "export goal astray --bytes 40 -o out"}) {
    expect_refused(command,
                   "'astray': not a schedule for its topology: links: rank 0, link rank 0 "
                   "-> node 1048575: complete:3 has no such link");
  }
  expect_refused("verify astray", "'astray' is not valid: links: ", 1);
  // Steps without end: nothing is expanded.
  write(directory_ / "endless", changed_file([](Program& program) {
          program.counts[program.phases[0].steps_ref].a = 1 << 29;
        }));
  expect_refused("draw endless -o page", "it cannot be expanded: form: N = ");
  expect_refused("simulate endless --bytes 40", "it cannot be expanded: form: N = ");
  // More than a drawing can show, though it could be expanded.
  write(directory_ / "many", changed_file([](Program& program) {
          program.counts[program.actions[0].instances_ref].a = 1 << 21;
        }));
  expect_refused("draw many -o page", "'many' cannot be drawn: for N = ");
  expect_refused("draw many --svg picture --show load", "expected at most 1097728 of all nodes");
}

// A link that leads one way carries messages that way, also if routers have programs.
TEST_F(VerifyCommand, OneWayLinksWithRouters) {
  const std::string link = " one_way: true } link { from: ";
  write(directory_ / "one.textproto", "name: \"one\" ranks: 2 routers: 1 link { from: 0 to: 1" +
                                          link + "1 to: 2" + link + "2 to: 0 one_way: true }");
  for (const char* collective : {"broadcast", "allgather"}) {
    const std::string algorithm = collective[0] == 'b' ? "chain" : "ring";
    compile("x", "file:one.textproto", collective, algorithm, "--links hop-by-hop");
    EXPECT_PRED2(contains, expect_success("verify x"), "proven for every N");
    EXPECT_EQ(run("simulate x --bytes 1000").status, 0);
  }
}

// Lock step keeps the link for N = 1, the N of the counterexample, and not for N = 2.
TEST_F(VerifyCommand, SaysWhatHoldsForEveryN) {
  const CommandResult result = run(
      "verify --topology mesh:1x4 --collective broadcast --algorithm two-tree --embedding none");
  EXPECT_PRED2(contains, result.out, "links: N = 1,");
  EXPECT_PRED2(contains, result.out,
               "ASYNC is claimed, and SLOT does not hold either, from N = 2 onward");
}

// tests/bounds/check.py checks the witnesses themselves.
TEST_F(VerifyCommand, PrintsTheWitnessOfEachBound) {
  compile("snake", "mesh:2x4", "broadcast", "chain", "--links hop-by-hop");
  for (const std::string command : {"verify", "show"}) {
    const auto json = nlohmann::json::parse(run(command + " snake --format json").out);
    const auto& certificate = json["certificate"];
    EXPECT_EQ(certificate["neighbours_only"], true);
    EXPECT_EQ(certificate["links_suffice"], command == "verify");
    EXPECT_FALSE(certificate.contains("limited"));
    bool cut = false;
    for (const auto& bound : certificate["bounds"]) {
      const auto& witness = bound["witness"];
      cut = cut || (witness["kind"] == "cut" && (witness.contains("links") ||  //
                                                 witness.contains("nodes")));
    }
    EXPECT_TRUE(cut) << certificate;
  }
}

// A search that ends early is not kept from the reader.
TEST_F(VerifyCommand, SaysThatGreaterBoundsMayExist) {
  compile("large", "mesh:32x32", "scan", "chain", "--links hop-by-hop --no-verify");
  EXPECT_PRED2(contains, run("verify --explain large").out, "not all: distances are taken only");
  EXPECT_TRUE(json_of("verify large")["certificate"].contains("limited"));
}

// Prints the greatest of all lower bounds, regardless of the one that the schedule claims.
TEST_F(VerifyCommand, PrintsTheGreatestLowerBound) {
  compile("trees", "complete:14", "broadcast", "two-tree-simplex");
  compile("runs", "complete:14", "broadcast", "fractional-simplex", "--run-length 2");
  compile("one", "complete:14", "broadcast", "binomial");
  for (const auto& [file, bound, claimed, numbers] :
       {std::tuple("trees", "max(2N+3, ceil(26N/7))", "4N-ceil((N-2)/3)",
                   R"({"a":3,"b":2,"d":1}{"a":0,"b":26,"d":7})"),
        std::tuple("runs", "max(N+3, ceil(13N/7))", "2N-ceil((N-6)/7)",
                   R"({"a":3,"b":1,"d":1}{"a":0,"b":13,"d":7})"),
        std::tuple("one", "4", "N+3", R"({"a":3,"b":1,"d":1})")}) {
    const std::string name = file;
    const std::string line = std::string(", at least ") + bound + ";";
    EXPECT_PRED2(contains, run("verify " + name).out, line);
    EXPECT_PRED2(contains, run("show " + name).out, line);
    const std::string why = run("verify --explain " + name).out;
    EXPECT_PRED2(contains, why, std::string("fewer than ") + bound + " steps\n");
    const auto verified = nlohmann::json::parse(run("verify " + name + " --format json").out);
    EXPECT_EQ(verified["bound"], bound);
    EXPECT_EQ(verified["claimed_bound"], claimed);
    const auto shown = nlohmann::json::parse(run("show " + name + " --format json").out);
    std::string bounds;
    for (const auto& one : shown["bounds"]) bounds += one.dump();
    EXPECT_EQ(bounds, numbers);
    EXPECT_EQ(run("draw " + name + " -o x.html").status, 0);
    EXPECT_PRED2(contains, read(directory_ / "x.html"), std::string("at least ") + bound + ",");
  }
  const auto simulated = json_of("simulate trees --bytes 8");
  EXPECT_EQ(simulated["blocks"], 1);
  EXPECT_EQ(simulated["bound_steps"], 5) << "2N+3, not ceil(26N/7) = 4";
}

// Lanes that cannot be filled stay empty; ranks may have several.
TEST_F(VerifyCommand, ProvesTotalExchangeOnWideBranches) {
  for (const auto& [lanes, steps] :
       {std::pair("k=2,h=3,c=1,5,5", "7N+5"), std::pair("k=2,h=2,c=2,3", "3N+3"),
        std::pair("k=3,h=2,c=3,9", "3N+3"), std::pair("k=3,h=2,c=2,1", "19N+3")}) {
    const std::string result =
        expect_success(std::string("verify --loads --collective all-to-all --algorithm leaf "
                                   "--blocks 9 --topology fattree:") +
                       lanes);
    EXPECT_PRED2(contains, result, std::string(" up to 9: ") + steps + " steps");
  }
}

// The lower bounds and the claim repeat after as many blocks as there are ranks, or a quarter of
// them.
TEST_F(VerifyCommand, ProvesManyRanksForEveryBlocks) {
  for (const char* schedule :
       {"broadcast --algorithm two-tree-simplex", "broadcast --algorithm fractional-simplex",
        "allreduce --algorithm two-tree"}) {
    const CommandResult result =
        run(std::string("verify --topology complete:20000 --collective ") + schedule);
    EXPECT_PRED2(contains, result.out, "proven for every N:");
  }
}

// Compiled when the claim of allgather by leaf did not count the lanes of the branches.
TEST_F(VerifyCommand, ABoundThatLanesRefuteIsRefused) {
  const std::string file = std::string(ESPALIER_REFUSED) + "/allgather-leaf-c23.esp";
  expect_refused("verify '" + file + "'",
                 "steps: N = 2: a lower bound of 7 steps is claimed; bounds prove 5", 1);
}

// Neither valid nor wrong: to find out would take too long.
TEST_F(VerifyCommand, ATooLargeScheduleIsStatusTwo) {
  write(directory_ / "large", changed_file([](Program& program) { program.segments = 1 << 30; }));
  expect_refused("verify large --format json", "'large' cannot be verified: form: N = 1, rank 0: ");
}

// Valid 0, wrong 1, no schedule 2; the wrong one's line says what a person needs.
TEST_F(VerifyCommand, VerifiesWhatWasBrokenByHand) {
  const std::string write_them = std::string("'") + ESPALIER_BROKEN + "' '" + directory_.string() +
                                 "' > '" + (directory_ / "lines").string() + "'";
  ASSERT_EQ(std::system(write_them.c_str()), 0);
  int broken = 0;
  for (const auto& entry : fs::directory_iterator(directory_)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".svg") continue;
    ++broken;
    const CommandResult sound = run("verify " + name + "-sound.esp");
    EXPECT_EQ(sound.status, 0) << sound.err;
    EXPECT_PRED2(contains, sound.out, ": valid: ");
    EXPECT_EQ(sound.err, "");
    const CommandResult wrong = run("verify " + name + ".esp --picture again.svg");
    EXPECT_EQ(wrong.status, 1) << name;
    EXPECT_EQ(wrong.out, "");
    const std::string head = "espalier: '" + name + ".esp' is not valid: ";
    ASSERT_EQ(wrong.err.rfind(head, 0), 0u) << wrong.err;
    const std::string line = wrong.err.substr(head.size());
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    EXPECT_PRED2(contains, read(directory_ / "lines"), line);
    EXPECT_EQ(read(directory_ / "again.svg"), read(entry.path())) << name;
    EXPECT_EQ(run("verify " + name + ".svg").status, 2);
    fs::remove(directory_ / "again.svg");
  }
  EXPECT_EQ(broken, 10);
  const CommandResult cycle = run("verify wait-cycle.esp --format json");
  EXPECT_EQ(nlohmann::json::parse(cycle.out)["counterexample"]["cycle"].size(), 2u);
}

TEST_F(VerifyCommand, ExplainsWhatItProved) {
  compile("r", "mesh:4x4", "reduce", "chain", "--root 15");
  const std::string explained = expect_success("verify r --explain --picture r.svg");
  for (const char* words :
       {"r: valid: reduce by chain on mesh:4x4", "\n  form ", "16 programs", "\n  matching ",
        "\n  ports ", "one-port duplex", "\n  links ", "\n  deadlock ", "\n  hazards ",
        "\n  claims ", "0 to 9 blocks", "\n  data flow ", "rank 15's output", "in rank order",
        "\n  in place ", "\n  steps ", "N+14 exactly: 15 for", "\n  bound ", "\n  not proven "}) {
    EXPECT_PRED2(contains, explained, words);
  }
  const std::string svg = read(directory_ / "r.svg");
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  EXPECT_EQ(svg.find("class=\"fault\""), std::string::npos);
  expect_refused("verify r --picture no/such.svg", "cannot write 'no/such.svg'");
}

// A file and a generator, asked again and again, get the same verdict.
TEST_F(VerifyCommand, VerifiesGeneratorsWithoutAFile) {
  for (const char* algorithm : {"chain", "two-tree"}) {
    compile("s", "mesh:2x3", "allreduce", algorithm, "--root 0");
    auto filed = json_of("verify s");
    const std::string selected = std::string("--topology mesh:2x3 --collective allreduce ") +
                                 "--algorithm " + algorithm + " --root 0 --format json";
    auto generated = nlohmann::json::parse(run("verify " + selected).out);
    EXPECT_EQ(generated["file"], std::string(algorithm) + ", root 0");
    filed.erase("file");
    generated.erase("file");
    EXPECT_EQ(filed, generated);
    EXPECT_EQ(filed["valid"], true);
  }
}

}  // namespace
}  // namespace espalier
