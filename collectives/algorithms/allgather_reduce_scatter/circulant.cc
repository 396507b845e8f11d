// Allgather, reduce-scatter and allreduce on circulant graphs ([Traff24b]), and Bruck's allgather
// ([Bruck97]): any number of ranks, the fewest messages, and the fewest bytes; one block.
//
// Let sizes[0] = 1 < ... < sizes[q] = p, q = ceil(log2 p), where no size is more than twice the one
// before. Circulant: sizes[i-1] = ceil(sizes[i] / 2). Bruck: sizes[i] = min(2^i, p).
//   * Allgather: before round i a rank has sizes[i] segments, from its own onward (modulo p). It
//     sends the first sizes[i+1] - sizes[i] of them to the rank sizes[i] before it, and receives as
//     many, which follow its last one, from the rank sizes[i] after it.
//   * Reduce-scatter: the allgather reversed in time. A rank begins with its inputs of all p
//     segments, from its own onward, gives away the last sizes[i+1] - sizes[i] sums and adds what
//     it receives to the first of the others. The operator must commute.
//   * Allreduce: the reduce-scatter, then the allgather, in two phases.
//
// Steps: allgather q; reduce-scatter q + c; allreduce 2q + c. c = 1 for p > 3, otherwise 0: a step
// without messages, because the first message of some ranks has segments from both ends of INPUT,
// and these ranks copy them side by side first. Cost, where m is the bytes of the whole message:
// q * alpha + (p-1)/p * beta*m, allreduce twice that, and a copy of at most m/2 bytes.
//
// SCRATCH is rotated (docs/descriptor.md): so every message is one piece of memory. It holds
//   * the area of the sums or parts: all p segments; in a reduce-scatter without the copy only the
//     first sizes[q-1];
//   * for each round of a reduce-scatter except the first, an area for what is received.
// kTooLarge above kMaxGatheringRounds, kMaxScatteringRounds and kMaxAllreduceRounds rounds: the
// tables of a program are too small.

#include "collectives/algorithms/rows.h"
#include "collectives/build/builder.h"
#include "collectives/build/one_block.h"

namespace espalier {
namespace {

constexpr std::uint32_t kMaxGatheringRounds = 15, kMaxScatteringRounds = 12,
                        kMaxAllreduceRounds = 11;

// Positions first .. end-1, counted from the own segment.
struct Positions {
  std::uint32_t first, end;
};

class RotatedSegments {
 public:
  RotatedSegments(Builder& builder, std::uint32_t p, std::uint32_t me, bool doubles)
      : builder_(builder), p_(p), me_(me), rounds_(log2_ceil(p)) {
    for (std::uint32_t round = rounds_, size = p; round > 0; size = sizes_[round]) {
      sizes_[round--] = size;
      sizes_[round] = doubles ? 1u << round : size - size / 2;
    }
  }

  [[nodiscard]] std::uint32_t rounds() const { return rounds_; }
  // The steps before the first message of a reduce-scatter.
  [[nodiscard]] std::uint32_t copies() const { return p_ > 3 ? 1 : 0; }

  // Reduces and scatters. The sum of the own segment ends in OUTPUT or, with `in_scratch`, at the
  // beginning of the area of parts.
  void scatter(bool in_scratch) {
    const Positions given{sizes_[rounds_ - 1], p_}, sums{0, given.end - given.first};
    const bool copies = given.end - given.first > 1 && splits(given);
    parts_ = builder_.scratch(copies || in_scratch ? p_ : given.first);
    if (copies) copy(0, Buffer::kScratch, Buffer::kInput, given);
    copy(0, Buffer::kScratch, Buffer::kInput, {sums.end, given.first});
    for (std::uint32_t round = rounds_; round-- > 0;) {
      const Positions sent{sizes_[round], sizes_[round + 1]}, kept{0, sent.end - sent.first};
      const bool first = round + 1 == rounds_, from_input = first && !copies;
      const std::uint32_t step = step_of(round), skip = sizes_[round];
      builder_.send(step, (me_ + skip) % p_,
                    at(from_input ? Buffer::kInput : Buffer::kScratch, sent),
                    from_input ? 0 : step - last_write(round));
      const std::uint32_t area = first ? parts_ : builder_.scratch(kept.end);
      builder_.receive(step, (me_ + p_ - skip) % p_, in_area(area, kept));
      add(step, area, kept, first, round == 0 && !in_scratch);
    }
  }

  // Gathers the segments of all ranks in OUTPUT. The own one is in INPUT or, with `in_scratch`, at
  // the beginning of the area of parts.
  void gather(bool in_scratch) {
    const Positions own{0, 1};
    if (!in_scratch) parts_ = builder_.scratch(p_);
    const Operand begin = at(in_scratch ? Buffer::kScratch : Buffer::kInput, own);
    if (!in_scratch && rounds_ > 1) builder_.copy(0, at(Buffer::kScratch, own), begin);
    for (std::uint32_t round = 0; round < rounds_; ++round) {
      const Positions sent{0, sizes_[round + 1] - sizes_[round]};
      const std::uint32_t skip = sizes_[round];
      const bool only_own = sent.end == 1;
      builder_.send(round, (me_ + p_ - skip) % p_, only_own ? begin : at(Buffer::kScratch, sent),
                    only_own ? 0 : round - last_receive(round));
      builder_.receive(round, (me_ + skip) % p_,
                       at(Buffer::kScratch, {sizes_[round], sizes_[round + 1]}));
    }
    // All except the last message go to OUTPUT while the last one is on its way. A send waits for
    // the receives of one step only. The copies of the own segment ensure that all earlier receives
    // are complete: there is one in each step of a receive, and copies run in order.
    const std::uint32_t last = rounds_ - 1;
    copy(last, Buffer::kOutput, Buffer::kScratch, {1, sizes_[last]}, 1);
    repeat_block(builder_, builder_.copy(0, at(Buffer::kOutput, own), begin), last > 0 ? last : 1);
    copy(last, Buffer::kOutput, Buffer::kScratch, {sizes_[last], p_});
  }

 private:
  [[nodiscard]] std::uint32_t segment(std::uint32_t position) const {
    return (me_ + position) % p_;
  }
  // Whether segment 0 is among the positions after the first.
  [[nodiscard]] bool splits(const Positions& all) const {
    const std::uint32_t zero = p_ - me_;
    return all.first < zero && zero < all.end;
  }
  [[nodiscard]] std::uint32_t step_of(std::uint32_t round) const {
    return copies() + rounds_ - 1 - round;
  }

  // The positions in scratch, in an area that begins at slot `area`.
  [[nodiscard]] Operand in_area(std::uint32_t area, const Positions& all) {
    return run(builder_.slot(segment(all.first), {area + all.first, 1}), all);
  }
  // The positions in a buffer of the caller, which must not be split, or in the area of parts.
  [[nodiscard]] Operand at(Buffer::Value buffer, const Positions& all) {
    if (buffer == Buffer::kScratch) return in_area(parts_, all);
    return run(Builder::operand(buffer, builder_.constant(segment(all.first))), all);
  }
  [[nodiscard]] static Operand run(Operand operand, const Positions& all) {
    const std::uint32_t count = all.end - all.first;
    operand.segment_count = static_cast<std::uint16_t>(count == 1 ? 0 : count);
    return operand;
  }

  // Calls visit(positions) for the parts of `all` that are each one piece of the caller's buffers.
  template <typename Visit>
  void for_pieces(const Positions& all, Visit visit) const {
    const std::uint32_t middle = splits(all) ? p_ - me_ : all.end;
    if (all.first < middle) visit(Positions{all.first, middle});
    if (middle < all.end) visit(Positions{middle, all.end});
  }

  void copy(std::uint32_t step, Buffer::Value into, Buffer::Value from, const Positions& all,
            std::uint32_t after = 0) {
    for_pieces(all, [&](const Positions& piece) {
      const Operand target = at(into, piece), source = at(from, piece);
      builder_.copy(step, target, source).after = static_cast<std::uint16_t>(after);
    });
  }

  // Adds what was received to the sums, which in the first round are the inputs.
  void add(std::uint32_t step, std::uint32_t area, const Positions& all, bool inputs,
           bool to_output) {
    const auto add_piece = [&](const Positions& piece) {
      const Operand sums = at(inputs ? Buffer::kInput : Buffer::kScratch, piece);
      const Operand into = to_output ? at(Buffer::kOutput, piece) : at(Buffer::kScratch, piece);
      builder_.combine(step, into, sums, in_area(area, piece));
    };
    if (inputs) return for_pieces(all, add_piece);
    add_piece(all);
  }

  // The last step before that of `round` which writes a sum that is sent in it. The first of these
  // sums is in every message that has any of them.
  [[nodiscard]] std::uint32_t last_write(std::uint32_t round) const {
    for (std::uint32_t before = round + 1; before < rounds_; ++before) {
      if (sizes_[round] < sizes_[before + 1] - sizes_[before]) return step_of(before);
    }
    return 0;
  }
  // The round of the allgather in which the last of the segments arrives that are sent in `round`.
  [[nodiscard]] std::uint32_t last_receive(std::uint32_t round) const {
    std::uint32_t before = 0;
    while (sizes_[before + 1] < sizes_[round + 1] - sizes_[round]) ++before;
    return before;
  }

  Builder& builder_;
  std::uint32_t p_, me_, rounds_;
  std::uint32_t sizes_[33] = {1};
  std::uint32_t parts_ = 0;  // first slot of the area of sums or parts
};

struct RotatedKind {
  Collective collective;
  std::uint32_t max_rounds;
  bool doubles = false;  // Bruck's sizes
};

Status generate_rotated(const CollectiveParameters& parameters, std::uint32_t me,
                        const RotatedKind& kind, Program& out) {
  Builder builder(out);
  const std::uint32_t p = parameters.ranks;
  const bool gathers = kind.collective != Collective::kReduceScatter;
  const bool scatters = kind.collective != Collective::kAllgather;
  const bool fits = p > 0 && log2_ceil(p) <= kind.max_rounds;
  const Status status = builder.begin(parameters, me,
                                      {.collective = kind.collective,
                                       .algorithm = kind.doubles ? "bruck" : "circulant",
                                       .segments = fits ? p : 1,
                                       .one_block = true,
                                       .needs_commutative = scatters && p > 1,
                                       .rotated_scratch = fits && p > 1});
  if (status != Status::kOk) return status;
  if (p == 1) return builder.finish_alone();
  if (!fits) return builder.refuse(Status::kTooLarge);
  RotatedSegments segments(builder, p, me, kind.doubles);
  const std::uint32_t rounds = segments.rounds();
  if (scatters) {
    segments.scatter(gathers);
    builder.phase(1, static_cast<std::int32_t>(segments.copies() + rounds), 0);
  }
  if (gathers) {
    segments.gather(scatters);
    builder.phase(1, static_cast<std::int32_t>(rounds), 0);
  }
  return builder.finish(static_cast<std::int32_t>(rounds), 0);
}

Status generate_circulant(const CollectiveParameters& parameters, std::uint32_t me,
                          Collective collective, Program& out) {
  const std::uint32_t rounds = collective == Collective::kAllgather       ? kMaxGatheringRounds
                               : collective == Collective::kReduceScatter ? kMaxScatteringRounds
                                                                          : kMaxAllreduceRounds;
  return generate_rotated(parameters, me, {collective, rounds}, out);
}

Status bruck_allgather(const CollectiveParameters& parameters, std::uint32_t me,
                       Collective collective, Program& out) {
  return generate_rotated(parameters, me, {collective, kMaxGatheringRounds, true}, out);
}

}  // namespace

const Algorithm kCirculantRows[] = {
    row("circulant", Collective::kAllreduce, generate_circulant,
        "circulant graph, reduce-scatter, then allgather: 2*ceil(log2 p)+1 steps (p <= 3: one "
        "less), p <= 2^11",
        {.needs_commutative = true}),
    row("circulant", Collective::kAllgather, generate_circulant,
        "circulant graph, parts travel together: ceil(log2 p) steps, p <= 2^15"),
    row("bruck", Collective::kAllgather, bruck_allgather,
        "parts travel together, twice as far each step: ceil(log2 p) steps, p <= 2^15"),
    row("circulant", Collective::kReduceScatter, generate_circulant,
        "circulant graph, sums travel together: ceil(log2 p)+1 steps (p <= 3: one less), p <= 2^12",
        {.needs_commutative = true}),
};

}  // namespace espalier
