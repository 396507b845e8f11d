// Selections: what `compile --algorithm auto` writes, and the commands that take its file.

#include <map>
#include <set>

#include "collectives/schedule/selection_file.h"
#include "collectives/schedule/selection_writer.h"
#include "tests/whole.h"
#include "tools/commands/testing/command_fixture.h"

namespace espalier {
namespace {

class SelectionCommand : public Command {
 protected:
  // Compiles a reduce of 8 ranks for all sizes into s.esp.
  nlohmann::json compile() {
    return json_of("compile --topology complete:8 --collective reduce -o s.esp");
  }
  std::vector<std::uint8_t> bytes_of(const std::string& name) {
    const std::string text = read(directory_ / name);
    return {text.begin(), text.end()};
  }
};

TEST_F(SelectionCommand, CompileWritesSeveralSchedules) {
  const auto compiled = compile();
  ASSERT_GE(compiled["schedules"].size(), 2u);
  EXPECT_EQ(compiled["within_percent"], 5);
  EXPECT_EQ(compiled["verified"], true);
  for (const auto& one : compiled["schedules"]) EXPECT_TRUE(one.contains("proven_for"));
  const auto shown = json_of("show s.esp");
  EXPECT_EQ(shown["selection"], compiled["selection"]);
  ASSERT_EQ(shown["schedules"].size(), compiled["schedules"].size());
  const auto verified = json_of("verify s.esp");
  EXPECT_EQ(verified["valid"], true);
  EXPECT_EQ(verified["selection"], compiled["selection"]);
  EXPECT_EQ(verified["schedules"].size(), compiled["schedules"].size());
  EXPECT_PRED2(contains, expect_success("verify s.esp --topology complete:8"),
               "has a schedule for every size and operator");
  for (const char* command : {"verify", "show", "simulate --bytes 8"}) {
    expect_refused(command + std::string(" s.esp --topology complete:9"),
                   "made for topology complete:8");
  }
}

TEST_F(SelectionCommand, OneScheduleIsAPlainFile) {
  const auto named =
      json_of("compile --topology complete:8 --collective reduce --bytes 64MiB -o one.esp");
  EXPECT_FALSE(named.contains("selection"));
  const auto barrier = json_of("compile --topology complete:8 --collective barrier -o b.esp");
  EXPECT_FALSE(barrier.contains("selection"));
  // One link between two ranks.
  const auto all = json_of("compile --topology complete:2 --collective allgather -o two.esp");
  EXPECT_FALSE(all.contains("selection"));
  EXPECT_PRED2(contains, all["chosen"].get<std::string>(), "chosen for all sizes: within 5 %");
  for (const char* file : {"one.esp", "b.esp", "two.esp"}) {
    const std::vector<std::uint8_t> bytes = bytes_of(file);
    EXPECT_FALSE(is_selection_file(bytes.data(), bytes.size())) << file;
    EXPECT_EQ(run("verify " + std::string(file)).status, 0);
  }
}

// The default constants of fabrics, as a model's file: `compile --run-length R --model` then has
// the block table with which `compile` without both predicts.
constexpr const char* kDefaultModel =
    "link { line { alpha_ps: 20000000 beta_fs_per_byte: 1000000 } }\n";

struct RunLengths {
  const char* topology;
  const char* collective;
  const char* algorithm;
  std::uint32_t longest;
  std::size_t least_schedules;
};

// Without --run-length, the schedule that serves a size is simulated to take at most 5 % more than
// the best of all run lengths.
TEST_F(SelectionCommand, RunLengthsAreChosenBySize) {
  write(directory_ / "model", kDefaultModel);
  std::vector<RunLengths> cases = {{"complete:12", "broadcast", "fractional", 11, 2},
                                   {"mesh:4x8", "broadcast", "fractional", 30, 2},
                                   {"crossbar:4x16", "broadcast", "crossbar-a", 16, 2},
                                   {"mesh:4x8", "broadcast", "fractional-mesh", 2, 1},
                                   {"mesh:4x8", "reduce", "fractional", 20, 2},
                                   {"complete:24", "broadcast", "fractional-direct", 10, 2},
                                   {"complete:30", "broadcast", "fractional-simplex", 29, 2},
                                   {"crossbar:4x16,in=1,out=2", "broadcast", "crossbar-b", 8, 2}};
  if (!whole()) cases.resize(small_sample() ? 1 : 4);
  for (const RunLengths& one : cases) {
    const std::string what = std::string("--topology ") + one.topology + " --collective " +
                             one.collective + " --algorithm " + one.algorithm;
    SCOPED_TRACE(what);
    const auto compiled = json_of("compile " + what + " -o all.esp");
    ASSERT_GE(compiled.value("schedules", nlohmann::json::array({0})).size(), one.least_schedules);
    EXPECT_EQ(json_of("verify all.esp")["valid"], true);
    const auto time_of = [this](const std::string& file, const char* bytes) {
      return json_of("simulate " + file + " --no-data --alpha 20e-6 --beta 1e-9 --bytes " +
                     bytes)["simulated_seconds"]
          .get<double>();
    };
    std::map<std::string, double> best;
    for (std::uint32_t length = 1; length <= one.longest; ++length) {
      // Not each run length fits a mesh's embeddings, or the tables of nodes.
      if (run("compile " + what + " --model model --no-verify -o r.esp --run-length " +
              std::to_string(length))
              .status != 0) {
        continue;
      }
      for (const char* bytes : {"192KiB", "1500000", "100MiB"}) {
        const double time = time_of("r.esp", bytes);
        if (!best.contains(bytes) || time < best[bytes]) best[bytes] = time;
      }
    }
    ASSERT_EQ(best.size(), 3u);
    for (const auto& [bytes, time] : best) {
      EXPECT_LE(time_of("all.esp", bytes.c_str()), 1.05 * time) << bytes;
    }
  }
}

TEST_F(SelectionCommand, OneRunLengthIsOneSchedule) {
  const std::string tree = "compile --topology complete:16 --collective broadcast -o f.esp ";
  const std::string named = tree + "--algorithm fractional ";
  const auto all = json_of(named);
  EXPECT_TRUE(all.contains("selection"));
  EXPECT_EQ(all["within_percent"], 2);
  EXPECT_PRED2(contains, run(named).out, "\nrun length: within 2 % of the best prediction");
  for (const char* given : {"--run-length own", "--run-length 3", "--bytes 4MiB"}) {
    const auto one = json_of(named + given);
    EXPECT_FALSE(one.contains("selection")) << given;
    EXPECT_EQ(one["algorithm"], "fractional");
  }
  EXPECT_PRED2(contains, json_of(named + "--bytes 8")["chosen"].get<std::string>(),
               "fractional, run length 1, chosen for 8 bytes");
  // The algorithm's own depends on the number of ranks alone.
  EXPECT_PRED2(contains,
               run("verify --topology complete:16 --collective broadcast --algorithm fractional "
                   "--run-length own")
                   .out,
               "ceil(N/11)");
  EXPECT_PRED2(contains,
               run("verify --topology complete:16 --collective broadcast --algorithm fractional "
                   "--bytes 64KiB")
                   .out,
               ": 2N+3 steps");
  // An embedding of groups says how long a run is.
  EXPECT_FALSE(json_of("compile --topology mesh:8x16 --collective broadcast --algorithm "
                       "fractional-mesh --embedding mesh-8x16-broadcast-fractional-mesh-r2-h-tree "
                       "-o m.esp")
                   .contains("chosen"));
  expect_refused(named + "--run-length own --bytes 8",
                 "--bytes is for --algorithm auto or no --run-length");
  expect_refused(tree + "--algorithm chain --run-length own", "--run-length is no parameter of");
  expect_refused(named + "--run-length its", "--run-length 'its' is not a whole");
  expect_refused(
      "compile --topology mesh:2x3 --collective broadcast --algorithm fractional-mesh "
      "-o m2.esp",
      "no embedding is known for root 0");
  expect_refused(
      "embed --topology mesh:4x4 --collective broadcast --algorithm fractional "
      "--run-length own -o e.textproto",
      "expected --run-length");
}

// Either side of a crossover, for both classes of operators.
TEST_F(SelectionCommand, SimulateObeysTheTable) {
  const auto compiled = compile();
  std::set<std::string> algorithms;
  for (const auto& row : compiled["selection"]["rows"]) {
    const bool commutes = row["needs_commutative"];
    const std::string op = commutes ? " --op sum --type f64" : " --op affine";
    const std::uint64_t from = row["from_bytes"];
    const std::string bytes = std::to_string(std::max<std::uint64_t>(8, from / 8 * 8));
    const auto found = json_of("simulate s.esp --bytes " + bytes + op);
    EXPECT_EQ(found["algorithm"], row["algorithm"]) << bytes << op;
    EXPECT_PRED2(contains, found["chosen"].get<std::string>(),
                 "from " + std::to_string(from) + " byte");
    EXPECT_EQ(found["right"], true);
    algorithms.insert(found["algorithm"]);
    if (from == 0) continue;
    const auto below = json_of("simulate s.esp --no-data --type f64 --bytes " +
                               std::to_string((from - 1) / 8 * 8));
    if (!commutes) continue;
    EXPECT_NE(below["algorithm"], row["algorithm"]) << from;
  }
  EXPECT_GE(algorithms.size(), 2u);
  EXPECT_PRED2(contains, run("simulate s.esp --bytes 8").out, "  selection  8 bytes: ");
}

TEST_F(SelectionCommand, OneScheduleIsNamedByItsNumber) {
  compile();
  expect_refused("draw s.esp -o s.html",
                 "a drawing is of one schedule, and 's.esp' has 4; expected "
                 "--schedule 0 to 3");
  expect_refused("show s.esp --rank 1", "--rank is of one schedule");
  expect_refused("verify s.esp --picture s.svg", "--picture is of one schedule");
  expect_refused("show s.esp --schedule 4", "--schedule");
  expect_refused("verify --topology complete:4 --collective broadcast --schedule 0",
                 "--schedule is for the file of a selection");
  EXPECT_EQ(run("draw s.esp --schedule 1 --svg s.svg").status, 0);
  EXPECT_EQ(run("verify s.esp --schedule 1 --picture p.svg").status, 0);
  const std::string shown = expect_success("show s.esp --schedule 1 --rank 3");
  EXPECT_EQ(shown.find("schedule 1 of s.esp"), 0u) << shown;
  // A file of one schedule has schedule 0.
  ASSERT_EQ(
      run("compile --topology complete:4 --collective broadcast --algorithm chain -o c.esp").status,
      0);
  EXPECT_EQ(run("show c.esp --schedule 0").out, run("show c.esp").out);
}

// A table that was changed after the proof, its checksums corrected.
TEST_F(SelectionCommand, AnotherTableIsRefused) {
  compile();
  const std::vector<std::uint8_t> bytes = bytes_of("s.esp");
  SelectionFile file;
  ASSERT_EQ(file.open(bytes.data(), bytes.size()), Status::kOk);
  std::vector<std::vector<std::uint8_t>> schedules;
  for (std::uint32_t i = 0; i < file.schedules(); ++i) {
    std::size_t size = 0;
    const std::uint8_t* begin = file.bytes(i, size);
    schedules.emplace_back(begin, begin + size);
  }
  SelectionTable table = file.selected().table;
  std::vector<std::uint8_t> forged;
  ASSERT_EQ(write_selection_file(table, schedules, forged), Status::kOk);
  EXPECT_EQ(forged, bytes) << "the same table, the same bytes";
  ++table.rows[1].from_bytes;
  ASSERT_EQ(write_selection_file(table, schedules, forged), Status::kOk);
  write(directory_ / "forged.esp", std::string(forged.begin(), forged.end()));
  for (const char* command : {"verify", "show", "simulate --bytes 8"}) {
    expect_refused(command + std::string(" forged.esp"),
                   "'forged.esp': a selection whose table breaks the format's rules, or does not "
                   "fit its schedules");
  }
}

TEST_F(SelectionCommand, BoardsHaveRoomIfTheirLimitsSaySo) {
  compile();
  const auto board = [this](const char* name, const char* limits) {
    std::ofstream(directory_ / name)
        << "name: \"b\" fabric { kind: OFI } signature: UNSIGNED " << limits;
  };
  board("none.textproto", "");
  board("few.textproto", "limits { selections: 1 programs: 2 }");
  board("room.textproto", "limits { selections: 1 }");
  const std::string image = "image build s.esp --node 0 --release 1.0.0 -o 0.img --board ";
  expect_refused(image + "none.textproto", "is a selection; board 'b' has room for 0 selections");
  expect_refused(image + "few.textproto", "4 schedules; board 'b' has room for 2 programs");
  expect_refused("image build s.esp s.esp --node 0 --release 1.0.0 -o 0.img --board room.textproto",
                 "board 'b' has room for 1 selection");
  ASSERT_EQ(run(image + "room.textproto").status, 0);
  EXPECT_PRED2(contains, run("image show 0.img").out, "selection 0: reduce");
  EXPECT_EQ(json_of("image show 0.img")["selections"][0]["status"], "ok");
  EXPECT_EQ(run("image check 0.img --unsigned").status, 0);
  const std::string compile = "compile --topology complete:8 --collective reduce -o c.esp --board ";
  EXPECT_FALSE(json_of(compile + "none.textproto").contains("selection"));
  EXPECT_EQ(json_of(compile + "few.textproto")["schedules"].size(), 2u);
  EXPECT_EQ(json_of(compile + "room.textproto")["schedules"].size(), 4u);
}

}  // namespace
}  // namespace espalier
