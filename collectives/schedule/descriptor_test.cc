// Decoding accepts any bytes, and rejects everything less than a whole descriptor.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>
#include <memory>
#include <vector>

#include "collectives/schedule/testing/sample_program.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Decodes from memory of exactly that size, so that a sanitizer sees every read beyond it.
Status decode(const Bytes& bytes, DecodedProgram& program, std::uint64_t topology = kAnyTopology,
              std::uint32_t node = kAnyNode) {
  const auto exact = std::make_unique<std::uint8_t[]>(bytes.size());
  if (!bytes.empty()) std::memcpy(exact.get(), bytes.data(), bytes.size());
  return decode_program(exact.get(), bytes.size(), topology, node, program);
}

// A field with a value below 128; wire type 0: a number, 2: a length.
Bytes field(std::uint32_t tag, std::uint32_t wire_type, std::uint8_t value) {
  std::uint32_t key = tag << 3 | wire_type;
  Bytes bytes;
  for (; key >= 128; key >>= 7) bytes.push_back(static_cast<std::uint8_t>(key | 128));
  bytes.push_back(static_cast<std::uint8_t>(key));
  bytes.push_back(value);
  return bytes;
}

bool is_clear(const Program& program) {
  const Program clear{};
  return std::memcmp(&program, &clear, sizeof program) == 0;
}

TEST(Descriptor, RoundTrips) {
  const Bytes bytes = encoded(sample_program());
  DecodedProgram program;
  ASSERT_EQ(decode(bytes, program, 0x0123456789abcdefull, 1), Status::kOk);
  EXPECT_EQ(encoded(program), bytes);
  EXPECT_STREQ(program.algorithm, "pipeline");
  EXPECT_EQ(program.actions_count, 4);
  EXPECT_EQ(program.indices[5].coef, -1);
  EXPECT_TRUE(program.actions[2].clamp);
}

// The table points into the descriptor, and is encoded from there.
TEST(Descriptor, TablesAreNotCopied) {
  const Bytes bytes = encoded(sample_program_with_table());
  DecodedProgram program;
  ASSERT_EQ(decode_program(bytes.data(), bytes.size(), kAnyTopology, kAnyNode, program),
            Status::kOk);
  ASSERT_EQ(program.table.size, 12u);
  EXPECT_GE(program.table.bytes, bytes.data());
  EXPECT_LE(program.table.bytes + program.table.size, bytes.data() + bytes.size());
  EXPECT_EQ(table_entry(program.table.bytes, 4), 300);
  EXPECT_EQ(table_entry(program.table.bytes, 5), -2);
  EXPECT_EQ(encoded(program), bytes);
}

// A number in the table's field would leave a pointer into nanopb's own stack.
TEST(Descriptor, TablesAreBytesAndWhole) {
  for (const auto& [wire_type, value] : {std::pair{0u, 4}, {2u, 1}, {2u, 90}}) {
    Bytes bytes = encoded(sample_program());
    const Bytes table = field(espalier_Program_table_tag, wire_type, static_cast<uint8_t>(value));
    bytes.insert(bytes.end(), table.begin(), table.end());
    if (value == 1) bytes.push_back(7);
    DecodedProgram program;
    EXPECT_EQ(decode(bytes, program), value == 1 ? Status::kMalformed : Status::kTruncated);
    EXPECT_TRUE(is_clear(program));
  }
}

TEST(Descriptor, LongestTablesAreWritten) {
  const Bytes entries(kMaxTableBytes, 1);
  OwnedProgram program = sample_program();
  program.table.bytes = entries.data();
  program.table.size = kMaxTableBytes;
  const Bytes bytes = encoded(program);
  DecodedProgram decoded;
  ASSERT_EQ(decode_program(bytes.data(), bytes.size(), kAnyTopology, kAnyNode, decoded),
            Status::kOk);
  EXPECT_EQ(decoded.table.size, kMaxTableBytes);
}

TEST(Descriptor, EncodesIntoWhatRoomThereIs) {
  const Bytes whole = encoded(sample_program());
  for (std::size_t capacity = 0; capacity < whole.size(); ++capacity) {
    Bytes bytes(capacity);
    std::size_t written = 7;
    EXPECT_EQ(encode_program(sample_program(), bytes.data(), capacity, written), Status::kTooLarge);
    EXPECT_EQ(written, 0u);
  }
}

TEST(Descriptor, WritesNothingThatCannotBeLoaded) {
  OwnedProgram program = sample_program();
  program.root = 9;
  Bytes bytes(kMaxDescriptorBytes);
  std::size_t written = 7;
  EXPECT_EQ(encode_program(program, bytes.data(), bytes.size(), written), Status::kMalformed);
  EXPECT_EQ(written, 0u);
}

TEST(Descriptor, OtherTopologyOrNodeIsRefused) {
  const Bytes bytes = encoded(sample_program());
  DecodedProgram program;
  EXPECT_EQ(decode(bytes, program, 1), Status::kWrongTopology);
  EXPECT_TRUE(is_clear(program));
  EXPECT_EQ(decode(bytes, program, kAnyTopology, 2), Status::kWrongNode);
  EXPECT_TRUE(is_clear(program));
}

TEST(Descriptor, TruncatedAnywhereIsRefused) {
  const Bytes whole = encoded(sample_program());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    DecodedProgram program;
    ASSERT_EQ(decode(whole, program), Status::kOk);
    const Status status = decode(Bytes(whole.begin(), whole.begin() + size), program);
    // A cut between two fields leaves a shorter message, which then breaks the rules.
    const bool named = status == Status::kTruncated || status == Status::kMalformed ||
                       status == Status::kBadVersion;
    EXPECT_TRUE(named) << size << ": " << status_name(status);
    EXPECT_TRUE(is_clear(program)) << size;
  }
  DecodedProgram program;
  EXPECT_EQ(decode_program(nullptr, 0, kAnyTopology, kAnyNode, program), Status::kTruncated);
}

// A descriptor alone has no checksum (its file has one). A flipped bit may give another valid
// program, but never a crash.
TEST(Descriptor, AnyFlippedBitIsRefusedOrStillAGoodProgram) {
  const Bytes whole = encoded(sample_program());
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    Bytes bytes = whole;
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    DecodedProgram program;
    if (decode(bytes, program) == Status::kOk) {
      EXPECT_EQ(check_program(program), Status::kOk) << bit;
    } else {
      EXPECT_TRUE(is_clear(program)) << bit;
    }
  }
}

TEST(Descriptor, AnyBytesAreSurvived) {
  EXPECT_TRUE(rc::check("decoding is total", [](const Bytes& bytes) {
    DecodedProgram program;
    const Status status = decode(bytes, program);
    RC_ASSERT(status == Status::kOk || is_clear(program));
  }));
  EXPECT_TRUE(rc::check("with a good beginning", [](const Bytes& tail) {
    Bytes bytes = encoded(sample_program());
    bytes.resize(*rc::gen::inRange<std::size_t>(0, bytes.size() + 1));
    bytes.insert(bytes.end(), tail.begin(), tail.end());
    DecodedProgram program;
    const Status status = decode(bytes, program);
    RC_ASSERT((status == Status::kOk ? check_program(program) == Status::kOk : is_clear(program)));
  }));
}

TEST(Descriptor, LaterVersionsAndFeaturesAreNamed) {
  const Bytes whole = encoded(sample_program());
  DecodedProgram program;
  Bytes later = whole;
  ASSERT_EQ(later[0], 0x08);  // format_version
  later[1] = 2;
  EXPECT_EQ(decode(later, program), Status::kBadVersion);
  Bytes broken = later;  // ... also if the rest does not decode
  broken.resize(broken.size() / 2);
  EXPECT_EQ(decode(broken, program), Status::kBadVersion);
  Bytes feature = whole;
  const Bytes required = field(espalier_Program_required_features_tag, 0, 2);
  feature.insert(feature.end(), required.begin(), required.end());
  EXPECT_EQ(decode(feature, program), Status::kUnknownFeature);
}

TEST(Descriptor, UnknownFieldsAreSkipped) {
  Bytes bytes = encoded(sample_program());
  bytes.insert(bytes.end(), {0xfa, 0x07, 0x02, 0x55, 0x66});  // field 127, two bytes
  DecodedProgram program;
  EXPECT_EQ(decode(bytes, program), Status::kOk);
  EXPECT_EQ(encoded(program), encoded(sample_program()));
}

TEST(Descriptor, TablesTooLongForThisNodeAreTooLarge) {
  const Bytes whole = encoded(sample_program());
  for (const std::uint32_t table :
       {espalier_Program_counts_tag, espalier_Program_indices_tag, espalier_Program_actions_tag,
        espalier_Program_phases_tag, espalier_Program_terms_tag, espalier_Program_blocks_tag,
        espalier_Program_peers_tag}) {
    Bytes bytes = whole;
    const bool packed = table == espalier_Program_peers_tag;
    for (int copy = 0; copy < 130; ++copy) {  // above every table of schedule.options
      const Bytes row = packed ? field(table, 0, 5) : field(table, 2, 0);
      bytes.insert(bytes.end(), row.begin(), row.end());
    }
    DecodedProgram program;
    EXPECT_EQ(decode(bytes, program), Status::kTooLarge) << table;
    EXPECT_TRUE(is_clear(program));
  }
}

}  // namespace
}  // namespace espalier
