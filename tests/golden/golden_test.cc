// The bytes of descriptors and schedule files are a contract: nodes boot files that were written
// long ago. encodings/ has one program of each algorithm, and a whole file; the code must write and
// read these bit for bit. ESPALIER_UPDATE_GOLDEN=1 in the environment writes them anew instead.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/generate_all.h"
#include "collectives/schedule/selection_file.h"
#include "collectives/schedule/selection_writer.h"
#include "collectives/schedule/testing/sample_program.h"
#include "espalier/collectives/lower/lower.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/collectives/search.h"
#include "espalier/topology/topology.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

const fs::path kGolden = fs::path(ESPALIER_SOURCE_ROOT) / "tests/golden/encodings";
constexpr std::uint32_t kRanks = 13;
constexpr std::uint32_t kRank = 5;
constexpr std::uint32_t kArity = 3, kHeight = 2, kRouter = 10;  // a fat tree of 9 ranks
constexpr BlockRule kBlocks[] = {{0, 4096}, {1048576, 16384}};
constexpr const char* kSpec = "complete:13";
constexpr std::uint32_t kHosts = 3, kHostRanks = 4;
constexpr const char* kFatTreeSpec = "fattree:k=3,h=2,c=1";
constexpr const char* kHostsSpec = "hosts:3x4";
constexpr std::uint32_t kRows = 3, kColumns = 4;
constexpr const char* kMeshSpec = "mesh:3x4";
constexpr const char* kTorusSpec = "torus:3x4";
constexpr std::uint32_t kTorus[] = {3, 4};
constexpr const char* kPackedPaths = "all-to-all-packed-paths";  // only with Clp

bool updating() { return std::getenv("ESPALIER_UPDATE_GOLDEN") != nullptr; }

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// The bytes that `protoc` makes of its own text for the file. Text for an unknown field cannot be
// encoded.
std::string decoded_and_encoded(const fs::path& input, const std::string& message = "Program") {
  const std::string root = ESPALIER_SOURCE_ROOT;
  const std::string protoc =
      std::string(ESPALIER_PROTOC) + " --proto_path='" + root + "/proto' schedule.proto ";
  const std::string command = protoc + "--decode=espalier." + message + " < '" + input.string() +
                              "' | " + protoc + "--encode=espalier." + message;
  FILE* pipe = popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::string out;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) out += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return out;
}

std::string descriptor_of(const Program& program) {
  const std::vector<std::uint8_t> bytes = encoded(program);
  return {bytes.begin(), bytes.end()};
}

CollectiveParameters golden_parameters(Where where) {
  CollectiveParameters parameters;
  const bool tree = where == Where::kFatTree;
  const bool hosts = where == Where::kHosts, torus = where == Where::kTorus;
  const bool mesh = where == Where::kGrid;
  const auto topology = or_throw(topology::parse(tree    ? kFatTreeSpec
                                                 : hosts ? kHostsSpec
                                                 : mesh  ? kMeshSpec
                                                 : torus ? kTorusSpec
                                                         : kSpec));
  parameters.ranks = topology->ranks();
  parameters.topology_digest = topology->digest();
  if (tree) parameters.arity = kArity, parameters.height = kHeight;
  if (hosts) parameters.hosts = kHosts, parameters.host_ranks = kHostRanks;
  if (torus) parameters.grid = kTorus, parameters.dimensions = 2, parameters.wraps = true;
  if (mesh) parameters.rows = kRows, parameters.columns = kColumns;
  parameters.window = 8;
  parameters.blocks = kBlocks;
  parameters.blocks_count = std::size(kBlocks);
  return parameters;
}

// A fixed producer, so that a new version of the library does not change the bytes.
void set_producer(Program& program) {
  std::snprintf(program.producer, sizeof program.producer, "golden");
}

Status generate(const Algorithm& algorithm, std::uint32_t node, Program& program) {
  program.clear();
  const Status status = algorithm.generate(golden_parameters(algorithm.where), node, program);
  set_producer(program);
  return status;
}

// All programs of a schedule that is lowered onto the fat tree.
Programs lower_onto_tree(Collective collective, const char* name) {
  const auto topology = or_throw(topology::parse(kFatTreeSpec));
  const CollectiveParameters parameters = golden_parameters(Where::kFatTree);
  const Programs routed = must_generate(collective, name, parameters);
  lower::Report report;
  Programs lowered =
      or_throw(lower::lower(*topology, parameters, PortModel::kMultiport, routed, report));
  for (Program& program : lowered) set_producer(program);
  return lowered;
}

Programs search_on(const char* spec, Where where, Collective collective, const char* name) {
  const auto topology = or_throw(topology::parse(spec));
  const auto* algorithm = searched::find_searched(collective, name);
  Programs found = or_throw(algorithm->search(*topology, golden_parameters(where)));
  for (Program& program : found) set_producer(program);
  return found;
}

// Every golden program by the name of its files.
std::map<std::string, OwnedProgram> programs() {
  std::map<std::string, OwnedProgram> all = {{"sample", sample_program()},
                                             {"table", sample_program_with_table()}};
  for (const Algorithm& algorithm : algorithms()) {
    const std::string name =
        std::string(collective_name(algorithm.collective)) + "-" + algorithm.name;
    EXPECT_EQ(generate(algorithm, kRank, all[name]), Status::kOk) << name;
    if (algorithm.where != Where::kFatTree) continue;
    EXPECT_EQ(generate(algorithm, kRouter, all[name + "-router"]), Status::kOk) << name;
  }
  all["all-to-all-mesh-balanced"] =
      search_on(kMeshSpec, Where::kGrid, Collective::kAllToAll, "mesh-balanced")[kRank];
  const char* missing = searched::find_searched(Collective::kAllToAll, "packed-paths")->missing();
  if (missing == nullptr) {
    all[kPackedPaths] =
        search_on(kMeshSpec, Where::kGrid, Collective::kAllToAll, "packed-paths")[kRank];
  } else {
    std::printf("no %s: %s\n", kPackedPaths, missing);
  }
  for (const Collective collective : {Collective::kAllreduce, Collective::kScan}) {
    const Programs found = search_on(kFatTreeSpec, Where::kFatTree, collective, "in-network");
    const std::string name = std::string(collective_name(collective)) + "-in-network";
    all[name] = found[kRank];
    all[name + "-router"] = found[kRouter];
  }
  const Programs exchange = lower_onto_tree(Collective::kAllToAll, "pairwise");
  const Programs trees = lower_onto_tree(Collective::kAllreduce, "two-tree");
  all["lowered-all-to-all-pairwise"] = exchange[kRank];
  all["lowered-all-to-all-pairwise-router"] = exchange[kRouter];
  all["lowered-allreduce-two-tree"] = trees[kRank];
  all["lowered-allreduce-two-tree-router"] = trees[kRouter];
  return all;
}

std::uint64_t schedule_digest(const char* algorithm) {
  Program program{};
  EXPECT_EQ(generate(*find_algorithm(Collective::kBroadcast, algorithm), 0, program), Status::kOk);
  return program.schedule_digest;
}

// The schedule file of a broadcast, of a selection unless its digest is 0.
std::vector<std::uint8_t> schedule_file(const char* name, std::uint64_t selection) {
  const CollectiveParameters parameters = golden_parameters(Where::kAnywhere);
  const Algorithm* algorithm = find_algorithm(Collective::kBroadcast, name);
  ScheduleFileWriter writer(kSpec, parameters.topology_digest, kRanks, kRanks);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    Program program{};
    EXPECT_EQ(generate(*algorithm, rank, program), Status::kOk);
    if (selection != 0) {
      program.schedule_digest = digest_in_selection(selection, program.schedule_digest);
    }
    EXPECT_EQ(writer.add(program), Status::kOk);
  }
  std::vector<std::uint8_t> bytes;
  EXPECT_EQ(writer.finish(bytes), Status::kOk);
  return bytes;
}

std::string whole_file() {
  const std::vector<std::uint8_t> bytes = schedule_file("two-tree", 0);
  return {bytes.begin(), bytes.end()};
}

TEST(Golden, ProgramsEncodeToTheSameBytes) {
  for (const auto& [name, program] : programs()) {
    const fs::path binary = kGolden / (name + ".binpb");
    const std::string bytes = descriptor_of(program);
    if (updating()) write(binary, bytes);
    EXPECT_EQ(read(binary), bytes)
        << name << ": ESPALIER_UPDATE_GOLDEN=1 rewrites it, if the change is meant";
  }
}

TEST(Golden, ProgramsDecodeAndEncodeAgain) {
  for (const auto& [name, program] : programs()) {
    const std::string bytes = read(kGolden / (name + ".binpb"));
    DecodedProgram decoded;
    ASSERT_EQ(decode_program(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(),
                             program.topology_digest, program.node, decoded),
              Status::kOk)
        << name;
    EXPECT_EQ(descriptor_of(decoded), bytes) << name;
  }
}

// Google's own implementation reads the same fields and writes the same bytes.
TEST(Golden, ProtocAgrees) {
  for (const auto& [name, program] : programs()) {
    const fs::path binary = kGolden / (name + ".binpb");
    EXPECT_EQ(decoded_and_encoded(binary), read(binary)) << name;
  }
}

TEST(Golden, ScheduleFileIsTheSameBytes) {
  const fs::path path = kGolden / "broadcast-two-tree.esp";
  if (updating()) write(path, whole_file());
  EXPECT_EQ(read(path), whole_file());
}

// A selection of two broadcasts: two-tree, from 65536 bytes on chain.
SelectionTable golden_table() {
  SelectionTable table = {};
  table.format_version = kSelectionVersion;
  table.topology_digest = golden_parameters(Where::kAnywhere).topology_digest;
  table.model_digest = 0x0123456789abcdefull;
  table.collective = Collective::kBroadcast;
  table.schedules_count = 2;
  table.schedules[0] = schedule_digest("two-tree");
  table.schedules[1] = schedule_digest("chain");
  table.rows_count = 2;
  table.rows[1] = {65536, false, 1};
  return table;
}

TEST(Golden, SelectionIsTheSameBytes) {
  const SelectionTable table = golden_table();
  const std::vector<std::uint8_t> bytes = selection_bytes(table);
  const std::string text(bytes.begin(), bytes.end());
  const fs::path binary = kGolden / "selection.binpb";
  const fs::path whole = kGolden / "broadcast-selection.esp";
  const std::uint64_t digest = selection_digest(bytes.data(), bytes.size());
  std::vector<std::uint8_t> file;
  ASSERT_EQ(write_selection_file(
                table, {schedule_file("two-tree", digest), schedule_file("chain", digest)}, file),
            Status::kOk);
  const std::string contents(file.begin(), file.end());
  if (updating()) {
    write(binary, text);
    write(whole, contents);
  }
  EXPECT_EQ(read(binary), text);
  EXPECT_EQ(read(whole), contents);
  EXPECT_EQ(decoded_and_encoded(binary, "Selection"), text);
  SelectionFile opened;
  ASSERT_EQ(opened.open(file.data(), file.size()), Status::kOk);
  DecodedProgram program;
  for (std::uint32_t i = 0; i < 2; ++i) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(opened.program(i, rank, program), Status::kOk);
    }
  }
}

TEST(Golden, NoFileIsLeftOver) {
  std::set<std::string> expected = {"README.md",
                                    "digests.txt",
                                    "broadcast-two-tree.esp",
                                    "broadcast-selection.esp",
                                    "selection.binpb",
                                    std::string(kPackedPaths) + ".binpb"};
  for (const auto& [name, program] : programs()) expected.insert(name + ".binpb");
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(kGolden)) {
    found.insert(entry.path().filename().string());
  }
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace espalier
