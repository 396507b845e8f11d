#pragma once
// The program as a value: evaluates its counts and indices, and cuts a message into segments and
// blocks. Freestanding. A program stores one period of a modulo schedule: docs/descriptor.md, "One
// descriptor, every message size".

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "espalier/base/status.h"
#include "espalier/internal/base/limits.h"
#include "espalier/internal/collectives/schedule/element_counts.h"
#include "espalier/internal/collectives/schedule/enumerations.h"
#include "espalier/internal/proto/schedule.pb.h"

namespace espalier {

// The messages of proto/schedule.proto, which explains their fields: Action, Operand, Phase, Count,
// Index (of Terms), Term, BlockRule. The enumerations are in enumerations.h.
using Action = espalier_Action;
using Operand = espalier_Operand;
using Phase = espalier_Phase;
using Count = espalier_Count;
using Index = espalier_Index;
using Term = espalier_Term;
using BlockRule = espalier_BlockRule;

// One node's part of a schedule. The object's type determines the memory that `table` points to:
//   DecodedProgram  the descriptor's bytes, which must outlive the object (in flash on nodes);
//   OwnedProgram    the object's own memory, on hosts (espalier/collectives/schedule/programs.h);
//   StoredProgram   a store's memory; the store must outlive the object (program_store.h);
//   Program         no table: generators make none.
// A Program reference may refer to any of these. A copy would share the table without keeping it
// alive, so a Program is never copied; OwnedProgram makes deep copies.
struct Program : espalier_Program {
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  // Sets every field to 0.
  void clear() { std::memset(static_cast<espalier_Program*>(this), 0, sizeof(espalier_Program)); }
};
// A Program whose table is inside its descriptor's bytes.
struct DecodedProgram : Program {};

// kFormatVersion: the only format_version that is accepted. kKnownFeatures: the bits that
// required_features may have in this build. kRotatedScratch: the program's scratch is rotated
// (Layout::rotation).
inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::uint32_t kRotatedScratch = 1;
inline constexpr std::uint32_t kKnownFeatures = ESPALIER_ROTATED_SCRATCH != 0 ? kRotatedScratch : 0;

// Bounds that check_program and make_layout enforce, so that no sum in this file overflows 64 bits.
inline constexpr std::int32_t kMaxField = 1 << 30;             // any number in a count or an index
inline constexpr std::int32_t kMaxSlope = 1 << 20;             // b and c of a count
inline constexpr std::uint32_t kMaxNodes = 1u << 30;           // nodes of a schedule
inline constexpr std::uint32_t kMaxTicks = 64;                 // S and L of the postal model
inline constexpr std::uint32_t kMaxScratchBlocks = 1u << 20;   // scratch slots of a program
inline constexpr std::uint32_t kMaxTableBytes = 1u << 18;      // 131072 entries
inline constexpr std::uint64_t kMaxMessageBytes = 1ull << 40;  // bytes of a whole message: 1 TiB
inline constexpr std::uint32_t kMaxBlocks = 1u << 29;  // N; proofs for every N hold up to here

// Returns the value of a count for N = `blocks` blocks per segment.
[[nodiscard]] std::int64_t count_value(const Count& count, std::int64_t blocks);

// Returns program.indices[ref] at instance i by its formula, with divisions. IndexCursor computes
// the same values step by step without them.
[[nodiscard]] std::int64_t index_value(const Program& program, std::uint32_t ref, std::int64_t i);
// Returns the value of a term at instance i, multiplied by its coefficient.
[[nodiscard]] std::int64_t term_value(const Program& program, const Term& term, std::int64_t i);
// Returns the first entry in Program.table of a term with a table.
[[nodiscard]] inline const std::uint8_t* table_entries(const Program& program, const Term& term) {
  return program.table.bytes + std::size_t{2} * (term.table - 1);
}
// Returns entry x of a term's table, 0 <= x < mod.
[[nodiscard]] inline std::int16_t table_entry(const std::uint8_t* entries, std::int64_t x) {
  return static_cast<std::int16_t>(entries[2 * x] | entries[2 * x + 1] << 8);
}

// Returns the sum of all phases' steps, for N = `blocks` blocks per segment.
[[nodiscard]] std::int64_t phase_steps(const Program& program, std::int64_t blocks);

// Returns the number of nodes with a program: the ranks, then, if routers run programs, the
// routers.
[[nodiscard]] constexpr std::uint32_t program_nodes(const Program& program) {
  return program.nodes == 0 ? program.ranks : program.nodes;
}
// Whether the program is for a router.
[[nodiscard]] constexpr bool is_router(const Program& program) {
  return program.node >= program.ranks;
}

// Returns the number of the program's links: the entries of `peers`, or `ring_peers`.
[[nodiscard]] constexpr std::uint32_t links_count(const Program& program) {
  return program.ring_peers != 0 ? program.ring_peers : program.peers_count;
}
// Returns the node at the other end of a link, link < links_count: from `peers`, or by the rule of
// `ring_peers`.
[[nodiscard]] constexpr std::uint32_t peer_of(const Program& program, std::uint32_t link) {
  if (program.ring_peers == 0) return program.peers[link];
  const std::uint32_t after = program.node + 1 + link;  // below 2 * ranks
  return after < program.ranks ? after : after - program.ranks;
}

// Returns the number of consecutive segments of an operand.
[[nodiscard]] constexpr std::uint32_t operand_segment_count(const Operand& operand) {
  return operand.segment_count == 0 ? 1 : operand.segment_count;
}

// Whether runs of segments in SCRATCH continue after the last segment with segment 0.
[[nodiscard]] constexpr bool has_rotated_scratch(const Program& program) {
  return (program.required_features & kKnownFeatures & kRotatedScratch) != 0;
}

// Whether an element count refers to one rank's part: scatter, gather, allgather, reduce-scatter,
// all-to-all. The message then has `ranks` segments of that count. Otherwise a count refers to the
// whole message.
[[nodiscard]] constexpr bool counts_per_rank(Collective collective) {
  return collective >= Collective::kScatter && collective <= Collective::kAllToAll;
}

// Returns "broadcast", "reduce", "allreduce", "scan", "exscan", "scatter", "gather", "allgather",
// "reduce-scatter", "all-to-all" or "barrier"; otherwise "unknown".
[[nodiscard]] const char* collective_name(Collective collective);

// Whether one rank alone, Program.root, provides the message or gets it. Otherwise root is 0.
[[nodiscard]] constexpr bool has_root(Collective collective) {
  return collective == Collective::kBroadcast || collective == Collective::kReduce ||
         collective == Collective::kScatter || collective == Collective::kGather;
}

// How much of the message the caller's buffer holds on program.node. kOwn: only the segment of that
// rank, at the buffer's beginning; operands in it name that segment only.
enum class Extent : std::uint8_t { kNothing = 0, kOwn = 1, kWhole = 2 };

// Returns the extent of INPUT or OUTPUT on program.node:
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
// Routers have neither. A buffer that only the root uses may be null elsewhere; a buffer that only
// the others use may be null at the root.
[[nodiscard]] Extent buffer_extent(const Program& program, Buffer::Value buffer);

inline namespace ESPALIER_PROGRAM_BUILD {
// How one message is cut. Lengths are in elements. A segment or block past the end of the message
// is empty.
struct Layout {
  // Elements of the whole message (all ranks' parts). With unequal counts: ranks * the largest.
  std::uint64_t count = 0;
  std::uint32_t element_bytes = 1;
  std::uint32_t segments = 1;
  // ceil(count / segments); the last segments may be shorter. With unequal counts: the largest.
  std::uint64_t segment_elements = 0;
  std::uint64_t block_elements = 0;  // ceil(segment_elements / blocks)
  std::uint32_t blocks = 1;          // N: blocks per segment, >= 1
  // 1 + the node, if the program's scratch is rotated; otherwise 0. Rotated scratch consists of
  // areas. An area has the segments from the node's own onward, without gaps, one per slot; after
  // the last segment comes segment 0.
#if ESPALIER_ROTATED_SCRATCH
  std::uint32_t rotation = 0;
#else
  // This build knows no rotated scratch. NOLINTNEXTLINE(readability-identifier-naming): a member.
  static constexpr std::uint32_t rotation = 0;
#endif
#if ESPALIER_UNEQUAL_COUNTS
  // Unequal counts: the first element of each segment in the whole message, and the end. Null: all
  // counts are equal. Input and output differ only in an all-to-all; scratch is as the output.
  const std::uint64_t* input_offsets = nullptr;
  const std::uint64_t* output_offsets = nullptr;
  SlotGroups slot_groups = {};  // of unequal counts
#endif
};
}  // namespace ESPALIER_PROGRAM_BUILD

// Cuts `counts` elements of `element_bytes` by the program's block table (which is indexed by the
// bytes of the whole message) and its residue rule. Unequal counts are cut as if all were the
// largest: N and the length of a block are the same, and shorter segments have empty blocks at
// their end. Errors:
//   kTooLarge     N > kMaxBlocks, or the message is longer than kMaxMessageBytes (if all counts
//                 were the largest)
//   kBadArgument  element_bytes is 0; a barrier has elements; unequal counts in a collective
//                 without a count per rank, not as many as it takes, or without memory
//   kMalformed    the program has no segments
//   kUnsupported  the program cannot have unequal counts: takes_unequal_counts()
[[nodiscard]] Status make_layout(const Program& program, ElementCounts counts,
                                 std::uint32_t element_bytes, Layout& layout);

#if ESPALIER_UNEQUAL_COUNTS
// Whether the program, which has passed check_program, can run with a count for each rank. Sets
// `groups` (Layout). False:
//  * Counts of the collective are not per rank.
//  * All-to-all: an action reads anything except INPUT, or writes anything except OUTPUT. Only
//    there an operand names both origin and destination, and so a length: one is the node itself.
//  * The slots of operands with several segments form more than SlotGroups::kMax groups (slots of
//    one operand are in one group), or a group is not as SlotGroup says. Otherwise parts of an
//    operand, which is one piece of memory, have no known position in it. Rotated scratch needs no
//    groups, and sets none.
[[nodiscard]] bool takes_unequal_counts(const Program& program, SlotGroups& groups);
#endif

// A byte range of the whole message; 0 <= offset <= the end of the message.
struct Span {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;  // bytes / element_bytes
};
// Returns the range of block `block` of segment `segment`, or, with segment_count > 1, of that many
// consecutive segments of one block each. bytes is 0 for an empty block and for a block outside the
// layout, and for segments past the last one, except in rotated scratch: there they continue with
// segment 0, and the offset is of no use. `buffer` matters only there, and in an all-to-all with
// unequal counts.
[[nodiscard]] Span block_span(const Layout& layout, std::uint32_t segment, std::uint32_t block,
                              std::uint32_t segment_count = 1,
                              Buffer::Value buffer = Buffer::kOutput);

// Returns the bytes of one scratch slot: the length of the longest block.
[[nodiscard]] std::uint64_t slot_bytes(const Layout& layout);

// Returns the position of a segment in the areas of rotated scratch; without rotation, the segment.
// Requires segment < layout.segments.
[[nodiscard]] std::uint32_t rotated_position(const Layout& layout, std::uint32_t segment);

// Returns where an operand that begins with this segment in this slot is in scratch, in bytes from
// its beginning. Operands of all slots of a program are inside scratch_blocks * slot_bytes().
// Requires, in rotated scratch, slot >= rotated_position(segment).
[[nodiscard]] std::uint64_t slot_offset(const Layout& layout, std::uint32_t segment,
                                        std::uint32_t slot);

// Returns the byte range of the whole message that the caller's buffer on program.node holds; empty
// if the node has no such buffer.
[[nodiscard]] Span buffer_span(const Program& program, const Layout& layout, Buffer::Value buffer);
// Returns the size of that buffer in bytes.
[[nodiscard]] std::uint64_t buffer_bytes(const Program& program, const Layout& layout,
                                         Buffer::Value buffer);

// The loader's own checks. Uses no memory. kBadVersion: another format version. kUnknownFeature: an
// unknown required feature. kMalformed unless all of these hold:
//  * Every reference is inside its table; constant links, segments and slots are inside theirs.
//  * Enumerators are known; producer and algorithm are terminated printable ASCII.
//  * An action has exactly the operands of its kind, and none writes INPUT.
//  * Block rules ascend from 0. residue < residue_mod, or both are 0.
//  * The phases' actions add up to all actions.
//  * Peers differ from each other and from the node; or there are none, the node is a rank, and
//    ring_peers < ranks.
//  * An operand has more than one segment only if N is always 1; all operands of an action have the
//    same number of segments.
//  * Routers' programs name SCRATCH only.
//  * Rotated scratch: N is always 1, segments = ranks, and the node is a rank.
//  * S <= L <= kMaxTicks. Window, segments and periods are at least 1.
//  * Where counts are per rank, segments = ranks.
//  * The schedule has the node.
//  * A digit reversal has mod = base^digits.
//  * Program.table consists of whole entries; a term's table is mod >= 1 entries inside it.
//  * A pace never decreases: by its coefficient, or by the values within its tables.
//  * Numbers keep the bounds above.
// Values that change with the instance are checked where they are used.
[[nodiscard]] Status check_program(const Program& program);

// kAnyNode and kAnyTopology: arguments of decode_program() that accept every node and topology.
inline constexpr std::uint32_t kAnyNode = 0xffffffffu;
inline constexpr std::uint64_t kAnyTopology = 0;
// Decodes a descriptor into `program` and checks it. Accepts any bytes. Program.table points into
// `bytes`, because a table may be longer than the rest of the program and is in flash: `bytes` must
// outlive `program` unchanged. Errors, on which `program` is cleared:
//   kTruncated      the bytes end early or do not decode
//   kTooLarge       a table or number exceeds schedule.options or the board's limits
//   kWrongTopology  another topology_digest, unless kAnyTopology was passed
//   kWrongNode      another node, unless kAnyNode was passed
//   and check_program's errors
[[nodiscard]] Status decode_program(const std::uint8_t* bytes, std::size_t size,
                                    std::uint64_t topology_digest, std::uint32_t node,
                                    DecodedProgram& program);

// Encodes `program`; `written` is its size, 0 on error. kTooLarge: `capacity` is too small.
// check_program's errors: a program that cannot be loaded is not written.
[[nodiscard]] Status encode_program(const Program& program, std::uint8_t* bytes,
                                    std::size_t capacity, std::size_t& written);
// No field or row encodes to more than four times its size in memory: a one-byte number takes a tag
// and two bytes, a row a tag and its length.
inline constexpr std::size_t kMaxDescriptorBytes = 4 * sizeof(Program) + kMaxTableBytes;
static_assert(espalier_Action_size + 4 <= 4 * sizeof(Action));
static_assert(espalier_Phase_size + 4 <= 4 * sizeof(Phase));
static_assert(espalier_Term_size + 4 <= 4 * sizeof(Term));
static_assert(espalier_Index_size + 4 <= 4 * sizeof(Index));
static_assert(espalier_Count_size + 4 <= 4 * sizeof(Count));
static_assert(espalier_BlockRule_size + 4 <= 4 * sizeof(BlockRule));

}  // namespace espalier
