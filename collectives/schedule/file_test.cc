// Schedule files: any flipped or missing bit is an error.

#include "espalier/collectives/schedule/file.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/crc32.h"
#include "collectives/schedule/testing/sample_program.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier {
namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr std::uint64_t kTopology = 0x0123456789abcdefull;

OwnedProgram program_of(std::uint32_t node) {
  OwnedProgram program = sample_program();
  program.node = node;
  program.peers[0] = (node + 1) % 3;
  program.peers[1] = (node + 2) % 3;
  return program;
}

Bytes sample_file() {
  ScheduleFileWriter writer("complete:3", kTopology, 3, 3);
  for (std::uint32_t node = 0; node < 3; ++node) {
    EXPECT_EQ(writer.add(program_of(node)), Status::kOk);
  }
  Bytes file;
  EXPECT_EQ(writer.finish(file), Status::kOk);
  return file;
}

// Opens the file and loads all its programs, from memory of exactly the file's size.
Status load(const Bytes& bytes) {
  const auto exact = std::make_unique<std::uint8_t[]>(bytes.size());
  if (!bytes.empty()) std::memcpy(exact.get(), bytes.data(), bytes.size());
  ScheduleFile file;
  Status status = file.open(exact.get(), bytes.size());
  const auto program = std::make_unique<DecodedProgram>();
  for (std::uint32_t node = 0; status == Status::kOk && node < file.nodes(); ++node) {
    status = file.program(node, *program);
  }
  return status;
}

// Corrects the header's checksum, as a careful forger would.
void reseal(Bytes& bytes, std::size_t table_end) {
  const std::uint32_t crc = crc32(0, bytes.data() + 16, table_end - 16);
  for (int i = 0; i < 4; ++i) bytes[12 + i] = static_cast<std::uint8_t>(crc >> (8 * i));
}

TEST(ScheduleFile, HoldsWhatWasWritten) {
  const Bytes bytes = sample_file();
  ScheduleFile file;
  ASSERT_EQ(file.open(bytes.data(), bytes.size()), Status::kOk);
  EXPECT_EQ(file.nodes(), 3u);
  EXPECT_EQ(file.ranks(), 3u);
  EXPECT_EQ(file.topology_digest(), kTopology);
  EXPECT_EQ(std::string(file.spec(), file.spec_size()), "complete:3");
  DecodedProgram program;
  for (std::uint32_t node = 0; node < 3; ++node) {
    ASSERT_EQ(file.program(node, program), Status::kOk);
    EXPECT_EQ(program.node, node);
    EXPECT_EQ(program.peers[0], (node + 1) % 3);
  }
  EXPECT_EQ(file.program(3, program), Status::kBadArgument);
  const std::uint8_t* descriptor = nullptr;
  std::size_t size = 0;
  EXPECT_EQ(file.descriptor(0xffffffffu, descriptor, size), Status::kBadArgument);
}

TEST(ScheduleFile, TruncatedAnywhereIsRefused) {
  const Bytes whole = sample_file();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(load(Bytes(whole.begin(), whole.begin() + size)), Status::kTruncated) << size;
  }
}

TEST(ScheduleFile, LongerIsRefused) {
  Bytes bytes = sample_file();
  bytes.push_back(0);
  EXPECT_EQ(load(bytes), Status::kCorrupt);
}

TEST(ScheduleFile, AnyFlippedBitIsRefused) {
  const Bytes whole = sample_file();
  ASSERT_EQ(load(whole), Status::kOk);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    Bytes bytes = whole;
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    const Status status = load(bytes);
    if (bit < 8 * 8) {
      EXPECT_EQ(status, Status::kMalformed) << bit;
    } else if (bit < 12 * 8) {
      EXPECT_EQ(status, Status::kBadVersion) << bit;
    } else {
      EXPECT_TRUE(status == Status::kCorrupt || status == Status::kTruncated)
          << bit << ": " << status_name(status);
    }
  }
}

TEST(ScheduleFile, AnyBytesAreSurvived) {
  EXPECT_TRUE(rc::check("opening is total", [](const Bytes& tail) {
    Bytes bytes(kScheduleMagic, kScheduleMagic + sizeof kScheduleMagic);
    bytes.insert(bytes.end(), {1, 0, 0, 0});
    bytes.insert(bytes.end(), tail.begin(), tail.end());
    RC_ASSERT(load(bytes) != Status::kOk);
  }));
}

// Correct checksums do not make an incorrect table valid.
TEST(ScheduleFile, ForgedTablesAreRefused) {
  const Bytes whole = sample_file();
  constexpr std::size_t kTable = 56;  // 44 + "complete:3", padded to 8
  constexpr std::size_t kTableEnd = kTable + 3 * 16;
  for (std::size_t i = kTable; i < kTableEnd; ++i) {
    Bytes bytes = whole;
    bytes[i] ^= 0x40;
    reseal(bytes, kTableEnd);
    const bool checksum_of_descriptor = (i - kTable) % 16 >= 12;
    EXPECT_EQ(load(bytes), checksum_of_descriptor ? Status::kCorrupt : Status::kMalformed) << i;
  }
  Bytes ranks = whole;
  ranks[20] = 2;
  reseal(ranks, kTableEnd);
  EXPECT_EQ(load(ranks), Status::kMalformed);
  ranks[20] = 4;
  reseal(ranks, kTableEnd);
  EXPECT_EQ(load(ranks), Status::kMalformed);
  Bytes topology = whole;
  topology[24] ^= 1;
  reseal(topology, kTableEnd);
  EXPECT_EQ(load(topology), Status::kWrongTopology);
}

TEST(ScheduleFileWriter, TakesEachNodeOnceInOrder) {
  ScheduleFileWriter writer("complete:3", kTopology, 3, 3);
  Bytes file;
  EXPECT_EQ(writer.finish(file), Status::kBadArgument);
  EXPECT_EQ(writer.add(program_of(1)), Status::kBadArgument);
  OwnedProgram other = program_of(0);
  other.topology_digest = 1;
  EXPECT_EQ(writer.add(other), Status::kBadArgument);
  other = program_of(0);
  other.ranks = 4;
  EXPECT_EQ(writer.add(other), Status::kBadArgument);
  other = program_of(0);
  other.nodes = 4;
  EXPECT_EQ(writer.add(other), Status::kBadArgument) << "a router is missing";
  other = program_of(0);
  other.window = 0;
  EXPECT_EQ(writer.add(other), Status::kMalformed);
  for (std::uint32_t node = 0; node < 3; ++node) {
    ASSERT_EQ(writer.add(program_of(node)), Status::kOk);
  }
  EXPECT_EQ(writer.add(program_of(2)), Status::kBadArgument);
  EXPECT_EQ(writer.finish(file), Status::kOk);
  EXPECT_EQ(file, sample_file());
}

}  // namespace
}  // namespace espalier
