#include "firmware/node/schedule_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>

#include "base/digest.h"
#include "base/testing/contains.h"
#include "base/testing/results.h"
#include "collectives/schedule/selection_file.h"
#include "collectives/schedule/selection_writer.h"
#include "collectives/schedule/testing/sample_program.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "tests/directory_test.h"
#include "tests/whole.h"

namespace espalier::node {
namespace {

constexpr char kSpec[] = "complete:5";

std::vector<std::uint8_t> schedule(const char* spec, std::uint32_t ranks, const char* algorithm) {
  const std::uint64_t digest =
      digest_bytes(kDigestSeed, spec, std::char_traits<char>::length(spec));
  ScheduleFileWriter writer(spec, digest, ranks, ranks);
  const Algorithm* chosen = find_algorithm(Collective::kBroadcast, algorithm);
  EXPECT_NE(chosen, nullptr);
  const auto program = std::make_unique<Program>();
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    program->clear();
    EXPECT_EQ(chosen->generate({.ranks = ranks, .topology_digest = digest}, rank, *program),
              Status::kOk);
    EXPECT_EQ(writer.add(*program), Status::kOk);
  }
  std::vector<std::uint8_t> file;
  EXPECT_EQ(writer.finish(file), Status::kOk);
  return file;
}

class ScheduleFiles : public DirectoryTest {
 protected:
  ScheduleFiles() { options_.topology = kSpec; }

  std::string write(const char* name, const std::vector<std::uint8_t>& bytes) {
    const std::string path = (directory_ / name).string();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path;
  }

  // The error of loading these schedules; empty if they load.
  std::string load(const std::vector<std::string>& paths) {
    options_.schedules = paths;
    programs_ = std::make_unique<Programs>();
    const std::string error = message_of(load_programs(options_, node_, *programs_));
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    return error;
  }

  BootOptions options_;
  std::uint32_t node_ = 3;
  std::unique_ptr<Programs> programs_;
};

TEST_F(ScheduleFiles, LoadsItsOwnDescriptorsAndUnitesTheirPeers) {
  const std::string chain = write("chain", schedule(kSpec, 5, "chain"));
  const std::string tree = write("tree", schedule(kSpec, 5, "binomial"));
  ASSERT_EQ(load({chain}), "");
  EXPECT_EQ(programs_->peers, (std::vector<std::uint32_t>{2, 4}));
  EXPECT_EQ(programs_->programs[0].node, 3u);
  ASSERT_EQ(load({tree, chain}), "");
  EXPECT_EQ(programs_->count, 2u);
  EXPECT_STREQ(programs_->programs[1].algorithm, "chain");
  // In the binomial tree rank 3 receives from rank 1.
  EXPECT_EQ(programs_->peers, (std::vector<std::uint32_t>{1, 2, 4}));
}

// A broadcast by binomial, and from 1000 bytes on by chain.
std::vector<std::uint8_t> selection_of_two() {
  const std::vector<std::uint8_t> alone[] = {schedule(kSpec, 5, "binomial"),
                                             schedule(kSpec, 5, "chain")};
  SelectionTable table = {};
  table.format_version = kSelectionVersion;
  table.topology_digest = digest_bytes(kDigestSeed, kSpec, sizeof kSpec - 1);
  table.collective = Collective::kBroadcast;
  table.rows_count = 2;
  table.rows[1] = {1000, false, 1};
  const auto program = std::make_unique<DecodedProgram>();
  for (const auto& bytes : alone) {
    ScheduleFile file;
    EXPECT_EQ(file.open(bytes.data(), bytes.size()), Status::kOk);
    EXPECT_EQ(file.program(0, *program), Status::kOk);
    table.schedules[table.schedules_count++] = program->schedule_digest;
  }
  const std::vector<std::uint8_t> encoded = selection_bytes(table);
  const std::uint64_t digest = selection_digest(encoded.data(), encoded.size());
  std::vector<std::vector<std::uint8_t>> files;
  for (std::uint32_t i = 0; i < 2; ++i) {
    ScheduleFile file;
    EXPECT_EQ(file.open(alone[i].data(), alone[i].size()), Status::kOk);
    ScheduleFileWriter writer(kSpec, table.topology_digest, 5, 5);
    for (std::uint32_t node = 0; node < 5; ++node) {
      EXPECT_EQ(file.program(node, *program), Status::kOk);
      program->schedule_digest = digest_in_selection(digest, table.schedules[i]);
      EXPECT_EQ(writer.add(*program), Status::kOk);
    }
    EXPECT_EQ(writer.finish(files.emplace_back()), Status::kOk);
  }
  std::vector<std::uint8_t> file;
  EXPECT_EQ(write_selection_file(table, files, file), Status::kOk);
  return file;
}

TEST_F(ScheduleFiles, ChoosesByASelection) {
  const std::string ring = write("ring", schedule(kSpec, 5, "two-tree"));
  ASSERT_EQ(load({ring, write("both", selection_of_two())}), "");
  ASSERT_EQ(programs_->count, 3u);
  ASSERT_EQ(programs_->selections_count, 1u);
  EXPECT_EQ(programs_->peers, (std::vector<std::uint32_t>{0, 1, 2, 4})) << "of all schedules";
  const NodeSelection& selection = programs_->selections[0];
  EXPECT_EQ(selection.first_program, 1u);
  const DecodedProgram* found = nullptr;
  CallBySchedule call;
  call.schedule = selection.digest;
  call.element_bytes = 1;
  for (const auto& [count, expected] : {std::pair{0u, 1u}, {999u, 1u}, {1000u, 2u}, {5000u, 2u}}) {
    call.counts = count;
    ASSERT_EQ(find_program(*programs_, call, found), Status::kOk);
    EXPECT_EQ(found, &programs_->programs[expected]) << count;
  }
  call.counts = 125;
  call.element_bytes = 8;
  ASSERT_EQ(find_program(*programs_, call, found), Status::kOk);
  EXPECT_EQ(found, &programs_->programs[2]) << "125 elements of 8 bytes";
  for (std::uint32_t i = 0; i < 3; ++i) {
    call.schedule = programs_->programs[i].schedule_digest;
    ASSERT_EQ(find_program(*programs_, call, found), Status::kOk);
    EXPECT_EQ(found, &programs_->programs[i]) << "a schedule by its own digest";
  }
  call.schedule = 12345;
  EXPECT_EQ(find_program(*programs_, call, found), Status::kBadArgument);
}

TEST_F(ScheduleFiles, RefusesASelectionBeyondItsRoom) {
  const std::string both = write("both", selection_of_two());
  ASSERT_EQ(load(std::vector<std::string>(kMaxSelections, both)), "");
  EXPECT_PRED2(contains, load(std::vector<std::string>(kMaxSelections + 1, both)),
               "one selection more than this node has room for");
  const std::string chain = write("chain", schedule(kSpec, 5, "chain"));
  std::vector<std::string> many(kMaxPrograms - 1, chain);
  many.push_back(both);
  EXPECT_PRED2(contains, load(many), "has more programs than this node has room for");
}

// A program's table outlives the file.
TEST_F(ScheduleFiles, KeepsTables) {
  constexpr char kThree[] = "complete:3";
  const std::uint64_t digest = digest_bytes(kDigestSeed, kThree, sizeof kThree - 1);
  ScheduleFileWriter writer(kThree, digest, 3, 3);
  OwnedProgram program = sample_program_with_table();
  program.topology_digest = digest;
  for (program.node = 0; program.node < 3; ++program.node) {
    for (std::uint32_t link = 0; link < 2; ++link)
      program.peers[link] = (program.node + 1 + link) % 3;
    ASSERT_EQ(writer.add(program), Status::kOk);
  }
  std::vector<std::uint8_t> file;
  ASSERT_EQ(writer.finish(file), Status::kOk);
  options_.topology = kThree;
  node_ = 1;
  const std::string path = write("table", file);
  ASSERT_EQ(load({path, path}), "");
  write("table", std::vector<std::uint8_t>(file.size()));
  for (std::uint32_t i = 0; i < 2; ++i) {
    const Program& loaded = programs_->programs[i];
    ASSERT_EQ(loaded.table.size, program.table.size);
    EXPECT_EQ(std::memcmp(loaded.table.bytes, program.table.bytes, program.table.size), 0);
  }
}

TEST_F(ScheduleFiles, RefusesAnotherTopology) {
  const std::string path = write("chain", schedule("complete:6", 6, "chain"));
  const std::string error = load({path});
  EXPECT_PRED2(contains, error, "complete:6");
  EXPECT_PRED2(contains, error, "complete:5");
  options_.topology.clear();
  EXPECT_EQ(load({path}), "") << "a node that does not know its topology takes any";
}

TEST_F(ScheduleFiles, RefusesANodeThatIsNotThere) {
  node_ = 5;
  EXPECT_PRED2(contains, load({write("chain", schedule(kSpec, 5, "chain"))}), "no node 5");
}

TEST_F(ScheduleFiles, RefusesAFileThatIsNotThereOrNoSchedule) {
  EXPECT_PRED2(contains, load({(directory_ / "nothing").string()}), "No such file");
  EXPECT_PRED2(contains, load({directory_.string()}), "cannot read");
  EXPECT_NE(load({write("empty", {})}), "");
  EXPECT_NE(load({write("text", std::vector<std::uint8_t>(4096, 'x'))}), "");
}

// The checksums are correct, but the specification is another topology's, or not a topology.
TEST_F(ScheduleFiles, RefusesASpecificationThatIsNotItsTopologys) {
  for (const char* spec : {"complete:4", "no topology at all"}) {
    ScheduleFileWriter writer(spec, digest_bytes(kDigestSeed, kSpec, sizeof kSpec - 1), 5, 5);
    const std::vector<std::uint8_t> whole = schedule(kSpec, 5, "chain");
    ScheduleFile file;
    ASSERT_EQ(file.open(whole.data(), whole.size()), Status::kOk);
    const auto program = std::make_unique<DecodedProgram>();
    for (std::uint32_t node = 0; node < 5; ++node) {
      ASSERT_EQ(file.program(node, *program), Status::kOk);
      ASSERT_EQ(writer.add(*program), Status::kOk);
    }
    std::vector<std::uint8_t> bytes;
    ASSERT_EQ(writer.finish(bytes), Status::kOk);
    EXPECT_PRED2(contains, load({write("garbage", bytes)}),
                 "is not consistent: its topology's digest");
  }
}

// A node does not check other nodes' descriptors: docs/verifier.md, "What a node checks itself".
TEST_F(ScheduleFiles, LooksAtItsOwnDescriptorOnly) {
  std::vector<std::uint8_t> bytes = schedule(kSpec, 5, "chain");
  bytes.back() ^= 1;  // of the last node's descriptor
  const std::string path = write("damaged", bytes);
  for (node_ = 0; node_ < 4; ++node_) EXPECT_EQ(load({path}), "") << node_;
  node_ = 4;
  EXPECT_PRED2(contains, load({path}), "a checksum does not match");
}

TEST_F(ScheduleFiles, RefusesEveryTruncation) {
  const std::vector<std::uint8_t> whole = schedule(kSpec, 5, "chain");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::uint8_t> part(whole.begin(),
                                         whole.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_NE(load({write("part", part)}), "") << "the first " << size << " bytes";
  }
}

// The nodes of one file read different bytes of it. At least one node must detect each flipped bit.
TEST_F(ScheduleFiles, SomeNodeRefusesEveryFlippedBit) {
  std::vector<std::uint8_t> bytes = schedule(kSpec, 5, "chain");
  for (std::size_t bit = 0; bit < bytes.size() * 8; bit += small_sample() ? 7 : 1) {
    const auto mask = static_cast<std::uint8_t>(1u << (bit % 8));
    bytes[bit / 8] ^= mask;
    const std::string path = write("flipped", bytes);
    bool refused = false;
    for (node_ = 0; node_ < 5 && !refused; ++node_) refused = !load({path}).empty();
    ASSERT_TRUE(refused) << "bit " << bit % 8 << " of byte " << bit / 8;
    bytes[bit / 8] ^= mask;
  }
}

}  // namespace
}  // namespace espalier::node
