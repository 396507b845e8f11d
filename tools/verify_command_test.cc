// `espalier verify` from outside: what is valid, wrong, or no schedule, and what it says of it.

#include <functional>
#include <nlohmann/json.hpp>

#include "collectives/algorithms/algorithms.h"
#include "collectives/schedule/file_writer.h"
#include "tools/command_fixture.h"
#include "topology/topology.h"

namespace espalier {
namespace {

using VerifyCommand = Command;

// A file in good form of the sum along a chain, each program changed.
std::string changed_sum(const std::function<void(Program&)>& change) {
  std::string error;
  Group group;
  group.ranks = 3;
  group.topology_digest = topology::parse("complete:3", error)->digest();
  ScheduleFileWriter writer("complete:3", group.topology_digest, 3, 3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    Program program{};
    EXPECT_EQ(find_algorithm(espalier_Collective_REDUCE, "chain")->generate(group, rank, program),
              Status::kOk);
    change(program);
    EXPECT_EQ(writer.add(program), Status::kOk);
  }
  std::vector<std::uint8_t> bytes;
  EXPECT_EQ(writer.finish(bytes), Status::kOk);
  return {bytes.begin(), bytes.end()};
}

// The second rank adds its own number twice.
TEST_F(VerifyCommand, AWrongScheduleIsStatusOne) {
  write(directory_ / "wrong", changed_sum([](Program& program) {
          for (Action& action : program.actions) {
            if (program.node != 1 || action.kind != espalier_Kind_COMBINE) continue;
            const bool left = action.a.buffer == espalier_Buffer_INPUT;
            (left ? action.b : action.a) = left ? action.a : action.b;
          }
        }));
  expect_refused("verify wrong", "'wrong' is not valid: ", 1);
  expect_refused("simulate wrong --bytes 40", "wrong result on rank 0", 1);
  const Result result = run("verify wrong --format json");
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(nlohmann::json::parse(result.out)["valid"], false);
  compile("mesh", "mesh:4x4", "broadcast", "two-tree", "--embedding none");
  expect_refused("verify mesh --loads", "'mesh' is not valid: links: ", 1);
  EXPECT_EQ(run("verify mesh").status, 0);
}

// Compiled when the claim of allgather by leaf did not count the lanes of the branches.
TEST_F(VerifyCommand, ABoundThatLanesRefuteIsRefused) {
  const std::string file = std::string(ESPALIER_REFUSED) + "/allgather-leaf-c23.esp";
  expect_refused("verify '" + file + "'",
                 "steps: N = 2: a lower bound of 7 steps is claimed; bounds prove 5", 1);
}

// Neither valid nor wrong: to find out would take too long.
TEST_F(VerifyCommand, ATooLargeScheduleIsStatusTwo) {
  write(directory_ / "large", changed_sum([](Program& program) { program.segments = 1 << 30; }));
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
    const Result sound = run("verify " + name + "-sound.esp");
    EXPECT_EQ(sound.status, 0) << sound.err;
    EXPECT_NE(sound.out.find(": valid: "), std::string::npos) << sound.out;
    EXPECT_EQ(sound.err, "");
    const Result wrong = run("verify " + name + ".esp --picture again.svg");
    EXPECT_EQ(wrong.status, 1) << name;
    EXPECT_EQ(wrong.out, "");
    const std::string head = "espalier: '" + name + ".esp' is not valid: ";
    ASSERT_EQ(wrong.err.rfind(head, 0), 0u) << wrong.err;
    const std::string line = wrong.err.substr(head.size());
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    EXPECT_NE(read(directory_ / "lines").find(line), std::string::npos) << line;
    EXPECT_EQ(read(directory_ / "again.svg"), read(entry.path())) << name;
    EXPECT_EQ(run("verify " + name + ".svg").status, 2);
    fs::remove(directory_ / "again.svg");
  }
  EXPECT_EQ(broken, 10);
  const Result cycle = run("verify wait-cycle.esp --explain --format json");
  EXPECT_EQ(nlohmann::json::parse(cycle.out)["counterexample"]["cycle"].size(), 2u);
}

TEST_F(VerifyCommand, ExplainsWhatItProved) {
  compile("r", "mesh:4x4", "reduce", "chain", "--root 15");
  const Result explained = run("verify r --explain --picture r.svg");
  EXPECT_EQ(explained.status, 0) << explained.err;
  for (const char* words :
       {"r: valid: reduce by chain on mesh:4x4", "\n  form ", "16 programs", "\n  matching ",
        "\n  ports ", "one-port duplex", "\n  links ", "\n  deadlock ", "\n  hazards ",
        "\n  claims ", "0 to 9 blocks", "\n  data flow ", "rank 15's output", "in rank order",
        "\n  in place ", "\n  steps ", "N+14 exactly: 15 for", "\n  bound ", "\n  not proven "}) {
    EXPECT_NE(explained.out.find(words), std::string::npos) << words << explained.out;
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
    auto filed = nlohmann::json::parse(run("verify s --format json").out);
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
