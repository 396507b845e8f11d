#pragma once
// The program as a value: reading its counts and indices, and how a message is cut into segments
// and blocks. Freestanding. A program stores one period of a modulo schedule: docs/descriptor.md,
// "One descriptor, every message size".

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "espalier/base/status.h"
#include "espalier/proto/schedule.pb.h"

namespace espalier {

using Action = espalier_Action;
using Place = espalier_Place;
using Phase = espalier_Phase;
using Count = espalier_Count;
using Index = espalier_Index;
using Term = espalier_Term;
using Kind = espalier_Kind;
using Buffer = espalier_Buffer;
using Collective = espalier_Collective;
using PortModel = espalier_PortModel;
using Grade = espalier_Grade;
using BlockRule = espalier_BlockRule;

// One node's part of a schedule. `table` points to memory that the type of the object names:
//   DecodedProgram  the descriptor's bytes, which must outlive it (on nodes they lie in flash);
//   OwnedProgram    the object's own, on hosts (include/espalier/collectives/schedule/programs.h);
//   StoredProgram   a store's, which must outlive it (collectives/schedule/program_store.h);
//   Program         no table: generators make none. A reference may be to any of them.
// A copy would share the table without keeping it alive, so a Program is never copied. OwnedProgram
// makes deep copies.
struct Program : espalier_Program {
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  // Sets every field to 0.
  void clear() { std::memset(static_cast<espalier_Program*>(this), 0, sizeof(espalier_Program)); }
};
struct DecodedProgram : Program {};

inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::uint32_t kKnownFeatures = 0;

// Bounds that check_program and make_layout hold, so that no sum below overflows 64 bits.
inline constexpr std::int32_t kMaxField = 1 << 30;       // any number of a count or an index
inline constexpr std::int32_t kMaxSlope = 1 << 20;       // b and c of a count
inline constexpr std::uint32_t kMaxNodes = 1u << 30;     // nodes of a schedule
inline constexpr std::uint32_t kMaxFieldWindow = 65535;  // window a program may state
inline constexpr std::uint32_t kMaxTicks = 64;           // S and L of the postal model
inline constexpr std::uint32_t kMaxScratchBlocks = 1u << 20;
inline constexpr std::uint32_t kMaxTableBytes = 1u << 17;  // 65536 entries
inline constexpr std::uint64_t kMaxMessageBytes = 1ull << 40;
inline constexpr std::uint32_t kMaxBlocks = 1u << 29;  // N, as far as proofs for every N reach

// value of a count for N blocks a segment.
[[nodiscard]] std::int64_t count_value(const Count& count, std::int64_t blocks);

// value of program.indices[ref] at instance i, by the formula (with divisions; IndexCursor steps it
// without).
[[nodiscard]] std::int64_t index_value(const Program& program, std::uint32_t ref, std::int64_t i);
// One of its terms at instance i, its coefficient included.
[[nodiscard]] std::int64_t term_value(const Program& program, const Term& term, std::int64_t i);
// Where the entries of a term with a table begin in Program.table, and the one at x, 0 <= x < mod.
[[nodiscard]] inline const std::uint8_t* table_entries(const Program& program, const Term& term) {
  return program.table.bytes + std::size_t{2} * (term.table - 1);
}
[[nodiscard]] inline std::int16_t table_entry(const std::uint8_t* entries, std::int64_t x) {
  return static_cast<std::int16_t>(entries[2 * x] | entries[2 * x + 1] << 8);
}

// Steps of all phases together, for N blocks a segment: the sum of the phases' steps.
[[nodiscard]] std::int64_t phase_steps(const Program& program, std::int64_t blocks);

// Nodes that have a program: ranks, then (in schedules whose routers run programs) routers.
[[nodiscard]] constexpr std::uint32_t program_nodes(const Program& program) {
  return program.nodes == 0 ? program.ranks : program.nodes;
}
[[nodiscard]] constexpr bool is_router(const Program& program) {
  return program.node >= program.ranks;
}

// The program's links, and the node at the other end of one, link < links_count: of `peers`, or by
// the rule of `ring_peers`.
[[nodiscard]] constexpr std::uint32_t links_count(const Program& program) {
  return program.ring_peers != 0 ? program.ring_peers : program.peers_count;
}
[[nodiscard]] constexpr std::uint32_t peer_of(const Program& program, std::uint32_t link) {
  if (program.ring_peers == 0) return program.peers[link];
  const std::uint32_t after = program.node + 1 + link;  // below 2 * ranks
  return after < program.ranks ? after : after - program.ranks;
}

// How many consecutive segments a place takes.
[[nodiscard]] constexpr std::uint32_t place_run(const Place& place) {
  return place.run == 0 ? 1 : place.run;
}

// Whether element counts are those of one rank's part (scatter, gather, allgather, reduce-scatter,
// all-to-all): the message then has `ranks` segments, all of that count. Else counts are the whole
// message's.
[[nodiscard]] constexpr bool counts_per_rank(Collective collective) {
  return collective >= espalier_Collective_SCATTER && collective <= espalier_Collective_ALL_TO_ALL;
}

// "broadcast", "reduce", "allreduce", "scan", "exscan", "scatter", "gather", "allgather",
// "reduce-scatter", "all-to-all", "barrier"; else "unknown".
[[nodiscard]] const char* collective_name(Collective collective);

// Whether one rank has the message, or gets it: Program.root says which. Else root is 0.
[[nodiscard]] constexpr bool has_root(Collective collective) {
  return collective == espalier_Collective_BROADCAST || collective == espalier_Collective_REDUCE ||
         collective == espalier_Collective_SCATTER || collective == espalier_Collective_GATHER;
}

// How much of the message the caller's buffer holds on program.node. kOwn: the segment of its own
// rank alone, at the buffer's beginning; a place in it names that segment and no other.
enum class Extent : std::uint8_t { kNothing = 0, kOwn = 1, kWhole = 2 };
// | collective     | INPUT                 | OUTPUT                  |
// | broadcast      | whole at the root     | whole, not at the root  |
// | reduce         | whole                 | whole at the root       |
// | allreduce scan | whole                 | whole                   |
// | exscan         | whole                 | whole, not at rank 0    |
// | scatter        | whole at the root     | own                     |
// | gather         | own                   | whole at the root       |
// | allgather      | own                   | whole                   |
// | reduce-scatter | whole                 | own                     |
// | all-to-all     | whole, by destination | whole, by origin        |
// | barrier        | nothing               | nothing                 |
// Routers have neither. What a collective leaves to the root others need not give, nor the root
// what is left to the others.
[[nodiscard]] Extent buffer_extent(const Program& program, Buffer buffer);

// How one message is cut. Lengths in elements; a segment or block past the end of the message is
// empty.
struct Layout {
  std::uint64_t count = 0;  // elements of the whole message (all ranks' parts)
  std::uint32_t element_bytes = 1;
  std::uint32_t segments = 1;
  std::uint64_t segment_elements = 0;  // ceil(count / segments): of all but the last segments
  std::uint64_t block_elements = 0;    // ceil(segment_elements / blocks)
  std::uint32_t blocks = 1;            // N, blocks a segment, >= 1
};

// Cuts `count` elements (of the message, or of one rank's part: counts_per_rank) of
// `element_bytes` as the program's block table, by the whole message's bytes, and its residue rule
// say. kTooLarge if N is above kMaxBlocks or the message is longer than kMaxMessageBytes;
// kBadArgument if element_bytes is 0, or for a barrier of any elements; kMalformed if the program
// has no segments.
[[nodiscard]] Status make_layout(const Program& program, std::uint64_t count,
                                 std::uint32_t element_bytes, Layout& layout);

// Where block `block` of segment `segment` lies in the whole message, in bytes; of a run, where all
// of its segments' blocks do, which are one block each. bytes is 0 for an empty block and for one
// outside the layout; offset never passes the end of the message.
struct Span {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;  // bytes / element_bytes
};
[[nodiscard]] Span block_span(const Layout& layout, std::uint32_t segment, std::uint32_t block,
                              std::uint32_t run = 1);

// Bytes of one scratch slot: the longest block.
[[nodiscard]] std::uint64_t slot_bytes(const Layout& layout);

// Which bytes of the whole message the caller's buffer on program.node holds, from its beginning
// on; none where it has no such buffer.
[[nodiscard]] Span buffer_span(const Program& program, const Layout& layout, Buffer buffer);
// Their number: the bytes of the buffer.
[[nodiscard]] std::uint64_t buffer_bytes(const Program& program, const Layout& layout,
                                         Buffer buffer);

// The loader's own checks (kBadVersion, kUnknownFeature, kMalformed): every reference lies inside
// its table, and constant links, segments and slots inside theirs; enums are known; a kind has
// exactly the places it needs and none writes INPUT; block rules ascend from 0; phases share out
// all actions; peers differ from each other and from the node, or
// follow a rank by ring_peers < ranks; runs above 1 only where N is always
// 1, and one length in an action; routers' programs name SCRATCH only; S <= L <= kMaxTicks; window,
// segments and periods are at least 1, segments are `ranks` where counts are per rank; the node is
// one of the schedule's; a digit reversal has mod = base^digits; a term's table has mod >= 1
// entries inside Program.table, which has whole ones; numbers keep the bounds above. Values that
// change with the instance are checked where they are used. No memory.
[[nodiscard]] Status check_program(const Program& program);

// Decodes a descriptor into `program` and checks it: kTruncated, kTooLarge (a table or a number of
// schedule.options is too small, or of the board's limits), check_program's errors, and
// kWrongTopology / kWrongNode where `topology_digest` / `node` differ. `program` is cleared on any
// error. Any bytes may be given. Program.table points into `bytes` (a table may be longer than all
// the rest, and lies in flash): they, unchanged, must outlive `program`.
inline constexpr std::uint32_t kAnyNode = 0xffffffffu;
inline constexpr std::uint64_t kAnyTopology = 0;
[[nodiscard]] Status decode_program(const std::uint8_t* bytes, std::size_t size,
                                    std::uint64_t topology_digest, std::uint32_t node,
                                    DecodedProgram& program);

// Encodes `program`; `written` is its size, 0 on error. kTooLarge if `capacity` is too small;
// check_program's errors: what cannot be loaded is not written.
[[nodiscard]] Status encode_program(const Program& program, std::uint8_t* bytes,
                                    std::size_t capacity, std::size_t& written);
// Nothing takes more than four times its bytes in memory: a number of one byte has a tag and two, a
// row a tag and its length.
inline constexpr std::size_t kMaxDescriptorBytes = 4 * sizeof(Program) + kMaxTableBytes;
static_assert(espalier_Action_size + 4 <= 4 * sizeof(Action));
static_assert(espalier_Phase_size + 4 <= 4 * sizeof(Phase));
static_assert(espalier_Term_size + 4 <= 4 * sizeof(Term));
static_assert(espalier_Index_size + 4 <= 4 * sizeof(Index));
static_assert(espalier_Count_size + 4 <= 4 * sizeof(Count));
static_assert(espalier_BlockRule_size + 4 <= 4 * sizeof(BlockRule));

}  // namespace espalier
