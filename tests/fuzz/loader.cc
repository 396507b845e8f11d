// Fuzz target: for any bytes that a node is given at boot, the loader refuses them or returns a
// program that can be stepped. The first byte tells the form of the rest: a descriptor, a schedule
// file, or a schedule file whose checksums, lengths and offsets are corrected first, so that the
// code behind these checks is reached too.

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "espalier/collectives/schedule/file.h"
#include "espalier/internal/collectives/schedule/index_cursor.h"
#include "espalier/topology/topology.h"
#include "tests/fuzz/expect.h"
#include "tests/fuzz/schedule_file.h"

namespace espalier::fuzz {
namespace {

constexpr std::uint32_t kMaxNodes = 32;  // nodes of a file that are examined

// Whether no value of the index can exceed 64 bits in the instances tried here: only then must
// cursor and formula agree.
bool small(const Program& program, const Index& index) {
  const auto is_small = [](std::int32_t value) { return value > -(1 << 20) && value < 1 << 20; };
  bool all = is_small(index.coef) && is_small(index.off);
  for (std::uint32_t k = 0; k < index.terms; ++k) {
    const Term& term = program.terms[index.first_term + k];
    all = all && is_small(term.coef) && is_small(term.mul) && is_small(term.add);
  }
  return all;
}

void step_indices(const Program& program) {
  TermCursor terms[sizeof program.terms / sizeof program.terms[0]];
  for (std::uint32_t ref = 0; ref < program.indices_count; ++ref) {
    IndexCursor cursor;
    cursor.start(program, ref, 0, terms);
    for (std::int64_t i = 0; i < 20; ++i, cursor.advance(program)) {
      const bool same = cursor.value() == index_value(program, ref, i);
      expect(same || !small(program, program.indices[ref]), "a cursor follows its formula");
    }
  }
}

void cut_messages(const Program& program) {
  for (const std::uint64_t count : {0ull, 1ull, 1000ull, 1ull << 32}) {
    Layout layout;
    if (make_layout(program, count, 4, layout) != Status::kOk) continue;
    expect(layout.blocks >= 1, "a segment has a block");
    const Span last = block_span(layout, layout.segments - 1, layout.blocks - 1);
    expect(last.offset + last.bytes <= layout.count * 4, "a block lies inside its message");
    expect(last.bytes <= slot_bytes(layout), "a slot holds a block");
  }
}

// The same with another count for each rank: refused, or every block is inside its buffer.
void cut_unequal_messages(const Program& program) {
  constexpr std::uint32_t kMaxRanks = 64;
  if (program.ranks == 0 || program.ranks > kMaxRanks) return;
  static std::uint64_t elements[kMaxRanks * kMaxRanks], offsets[2 * (kMaxRanks + 1)];
  const std::uint64_t entries = unequal_entries(program.collective, program.ranks);
  for (const std::uint64_t largest : {0ull, 1ull, 1000ull, 1ull << 32}) {
    std::uint64_t sum = 0;
    for (std::uint64_t k = 0; k < entries; ++k) {
      elements[k] = k % 3 == 0 ? largest : largest / 7;
      sum += elements[k];
    }
    Layout layout;
    const ElementCounts counts(elements, entries, offsets);
    if (make_layout(program, counts, 4, layout) != Status::kOk) continue;
    for (std::uint32_t segment = 0; segment < layout.segments; ++segment) {
      for (const Buffer::Value buffer : {espalier_Buffer_INPUT, espalier_Buffer_OUTPUT}) {
        const Span last = block_span(layout, segment, layout.blocks - 1, 1, buffer);
        expect(last.offset + last.bytes <= sum * 4, "a block lies inside its message");
        expect(last.bytes <= slot_bytes(layout), "a slot holds a block");
      }
    }
  }
}

// Uses a loaded program in every way that a node does, and checks that writing preserves it.
void use(const Program& program) {
  expect(check_program(program) == Status::kOk, "what is loaded keeps the rules");
  for (const std::int64_t blocks : {1, 7, 0x7fffffff}) (void)phase_steps(program, blocks);
  step_indices(program);
  cut_messages(program);
  cut_unequal_messages(program);
  static std::uint8_t bytes[kMaxDescriptorBytes], again[kMaxDescriptorBytes];
  std::size_t size = 0, size_again = 0;
  expect(encode_program(program, bytes, sizeof bytes, size) == Status::kOk,
         "what is loaded can be written");
  static DecodedProgram copy;
  expect(decode_program(bytes, size, program.topology_digest, program.node, copy) == Status::kOk,
         "what is written can be loaded");
  expect(encode_program(copy, again, sizeof again, size_again) == Status::kOk &&
             size == size_again && std::memcmp(bytes, again, size) == 0,
         "what is written stays as it is");
}

void load_descriptor(const std::uint8_t* bytes, std::size_t size) {
  static DecodedProgram program;
  if (decode_program(bytes, size, kAnyTopology, kAnyNode, program) == Status::kOk) {
    use(program);
  } else {
    static const DecodedProgram cleared{};
    expect(std::memcmp(&program, &cleared, sizeof program) == 0, "nothing of a bad one is kept");
  }
}

void load_file(const std::uint8_t* bytes, std::size_t size) {
  ScheduleFile file;
  if (file.open(bytes, size) != Status::kOk) {
    expect(file.nodes() == 0 && file.spec_size() == 0, "nothing of a bad file is kept");
    return;
  }
  (void)topology::parse(std::string_view(file.spec(), file.spec_size()));
  for (std::uint32_t node = 0; node < std::min(file.nodes(), kMaxNodes); ++node) {
    static DecodedProgram program;
    if (file.program(node, program) == Status::kOk) use(program);
  }
  const std::uint8_t* found = nullptr;
  std::size_t length = 0;
  expect(file.descriptor(file.nodes(), found, length) == Status::kBadArgument,
         "there is no node after the last");
}

}  // namespace

void run(Input& input) {
  const unsigned kind = input.below(3);
  std::vector<std::uint8_t> rest = input.copied_rest();
  if (kind == 0) {
    load_descriptor(rest.data(), rest.size());
    return;
  }
  if (kind == 2) put_right(rest);
  load_file(rest.data(), rest.size());
}

}  // namespace espalier::fuzz
