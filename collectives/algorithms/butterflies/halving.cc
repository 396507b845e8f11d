// Reduce-scatter by recursive halving, allreduce by recursive halving and doubling, and reduce by
// recursive halving and a binomial gather ("Rabenseifner"): for long messages in logarithmically
// many steps; one block.
//
// Let g = 2^levels be the groups (folding.h), levels = floor(log2 p), and f = 0 if p is a power of
// two, otherwise 1. Steps: allreduce 2*levels + 2f; reduce 2*levels + f; reduce-scatter
// levels + 1 + 2f, one less for p = 2 and 3. Cost: allreduce steps * alpha +
// (2(g-1)/g + 2f) * beta*m, where m is the bytes of the message; reduce steps * alpha +
// (2(g-1)/g + f) * beta*m. Reduce-scatter, where m is the bytes of one rank's part: steps * alpha +
// p * beta*m if p is a power of two, otherwise less than steps * alpha + 3p * beta*m. Source:
// [TRG05]; the reduce is the butterfly of [SST09] section 6.2. There partners are far apart first,
// so that operators must be commutative.
//
// Here partners are adjacent first: after step l a leader has the sum of 2^(l+1) consecutive
// groups, so operators need not be commutative. A leader keeps the lower half of its part of the
// message if it is in the lower half of these groups. So group v ends with part number rev(v),
// where rev reverses `levels` binary digits. The doubling takes the same way back. So does the
// gather of a reduce, in which the partner on the side of the root's group gets the parts of the
// other one. The reduce-scatter instead exchanges part rev(v) for part v in one more step.
//
// In the allreduce and the reduce the parts are g segments. In the reduce-scatter part v consists
// of the segments of the ranks of group v. kTooLarge above 4095 ranks: the tables of a program are
// too small.

#include "collectives/algorithms/butterflies/folding.h"
#include "collectives/algorithms/rows.h"
#include "collectives/build/builder.h"
#include "collectives/build/one_block.h"

namespace espalier {
namespace {

constexpr std::uint32_t kMaxHalvingRanks = 4095;

// Consecutive parts.
struct HeldParts {
  std::uint32_t first, count;
};

// Where a leader holds sums: in a buffer of the caller, or in scratch from `slot` onward, which
// has the segment `segment`.
struct HeldSums {
  Buffer::Value buffer;
  std::uint32_t slot, segment;
};

class Halving {
 public:
  Halving(Builder& builder, const Folding& folding, Collective collective)
      : builder_(builder),
        folding_(folding),
        scatters_(collective == Collective::kReduceScatter),
        gathers_(collective == Collective::kReduce),
        in_output_(!scatters_ && (!gathers_ || folding.root_level() == folding.levels())) {}

  // Step 0: adds the mate's inputs.
  void fold() {
    const HeldSums news = scratch(all());
    const HeldSums sums = in_output_ ? kOutput : news;
    builder_.receive(0, folding_.mate(), operand(news, all()));
    // Operands in a fixed order, since each adds to the program's tables.
    const Operand received = operand(news, all()), own = operand(kInput, all());
    const bool mate_first = !folding_.is_first();
    builder_.combine(0, operand(sums, all()), mate_first ? received : own,
                     mate_first ? own : received);
    sums_ = sums;
  }

  // The steps after that.
  void halve() {
    for (std::uint32_t level = 0; level < folding_.levels(); ++level) {
      const HeldParts kept = half(level, folding_.is_upper(level));
      const HeldParts given = half(level, !folding_.is_upper(level));
      const std::uint32_t step = folding_.folds() + level, partner = folding_.partner(level);
      builder_.send(step, partner, operand(sums_, given), sums_.buffer == Buffer::kInput ? 0 : 1);
      const HeldSums news = scratch(kept);
      const Operand received = operand(news, kept), before = operand(sums_, kept);
      builder_.receive(step, partner, received);
      const bool last = level + 1 == folding_.levels();
      const bool to_output =
          in_output_ || (scatters_ && last && ends_with_own() && !folding_.in_pair());
      // A gather needs the sums of all later levels in one piece.
      const bool in_place = gathers_ && level > folding_.root_level();
      const HeldSums sums = to_output ? kOutput : in_place ? sums_ : news;
      const bool upper = folding_.is_upper(level);
      builder_.combine(step, operand(sums, kept), upper ? received : before,
                       upper ? before : received);
      sums_ = sums;
      held_ = kept;
    }
  }

  // The way back. A send waits for the receives of one step only. The copies of the own part onto
  // itself ensure that all earlier receives are complete: there is one in each step of a receive,
  // and copies run in order.
  void double_back() {
    const std::uint32_t levels = folding_.levels();
    const std::uint32_t copies = levels - 1 + (folding_.in_pair() ? 1 : 0);
    const Operand own = operand(kOutput, held_);
    if (copies > 0) repeat_block(builder_, builder_.copy(0, own, own), copies);
    for (std::uint32_t step = 0; step < levels; ++step) {
      const std::uint32_t level = levels - 1 - step, partner = folding_.partner(level);
      const bool upper = folding_.is_upper(level);
      const std::uint32_t after = step == 0 ? 0 : 1;
      builder_.send(step, partner, operand(kOutput, half(level, upper)), after);
      builder_.receive(step, partner, operand(kOutput, half(level, !upper)));
    }
    if (folding_.in_pair()) builder_.send(levels, folding_.mate(), operand(kOutput, all()), 1);
  }

  // The way back of a reduce: of two partners one gives its parts to the other, which got the other
  // half when they halved. Copies: as above.
  void gather() {
    const std::uint32_t levels = folding_.levels(), end = folding_.root_level();
    const Operand own = operand(sums_, held_);
    if (end < levels && levels - 1 - end > 1) {
      repeat_block(builder_, builder_.copy(0, own, own), levels - 1 - end);
    }
    for (std::uint32_t step = 0; step < levels; ++step) {
      const std::uint32_t level = levels - 1 - step, partner = folding_.partner(level);
      const bool upper = folding_.is_upper(level);
      if (level == end) {
        const std::uint32_t after = step == 0 ? 0 : 1;
        return (void)builder_.send(step, partner, operand(sums_, half(level, upper)), after);
      }
      builder_.receive(step, partner, operand(sums_, half(level, !upper)));
    }
  }

  // Part rev(v) goes to its group if that is another one. Then the mate gets its segment.
  void exchange(std::uint32_t exchanges) {
    const std::uint32_t v = folding_.group();
    const bool paired = folding_.in_pair(), stays = ends_with_own();
    if (!stays) {
      const std::uint32_t partner = folding_.first(held_.first);
      builder_.send(0, partner, operand(sums_, held_), 0);
      held_ = {v, 1};
      sums_ = paired ? scratch(held_) : kOutput;
      builder_.receive(0, partner, operand(sums_, held_));
    }
    if (!paired) return;
    const std::uint32_t me = folding_.first(v);
    const Operand sum = segments(sums_, me, 1);
    builder_.copy(0, builder_.output(me), sum);
    builder_.send(exchanges, folding_.mate(), segments(sums_, folding_.mate(), 1), stays ? 0 : 1);
  }

  // The program of the mate `me`. It gets all sums, or its own.
  void send_to_leader() { builder_.send(0, folding_.mate(), operand(kInput, all()), 0); }
  void receive_from_leader(std::uint32_t me, std::uint32_t step) {
    const Operand result = scatters_ ? builder_.output(me) : operand(kOutput, all());
    builder_.receive(step, folding_.mate(), result);
  }

 private:
  static constexpr HeldSums kInput{Buffer::kInput, 0, 0};
  static constexpr HeldSums kOutput{Buffer::kOutput, 0, 0};

  [[nodiscard]] HeldParts all() const { return {0, folding_.groups()}; }
  // The lower or upper half of the parts that this leader has before `level`.
  [[nodiscard]] HeldParts half(std::uint32_t level, bool upper) const {
    std::uint32_t first = 0, count = folding_.groups() / 2;
    for (std::uint32_t l = 0; l < level; ++l, count /= 2) {
      if (folding_.is_upper(l)) first += count;
    }
    return {upper ? first + count : first, count};
  }
  [[nodiscard]] bool ends_with_own() const {
    const std::uint32_t levels = folding_.levels();
    return half(levels - 1, folding_.is_upper(levels - 1)).first == folding_.group();
  }

  [[nodiscard]] std::uint32_t segment_of(std::uint32_t part) const {
    return scatters_ ? folding_.first(part) : part;
  }
  [[nodiscard]] std::uint32_t size_of(const HeldParts& parts) const {
    return segment_of(parts.first + parts.count) - segment_of(parts.first);
  }
  [[nodiscard]] HeldSums scratch(const HeldParts& parts) {
    return {Buffer::kScratch, builder_.scratch(size_of(parts)), segment_of(parts.first)};
  }
  [[nodiscard]] Operand operand(const HeldSums& sums, const HeldParts& parts) {
    return segments(sums, segment_of(parts.first), size_of(parts));
  }
  [[nodiscard]] Operand segments(const HeldSums& sums, std::uint32_t first, std::uint32_t count) {
    Operand operand = sums.buffer == Buffer::kScratch
                          ? builder_.slot(first, {sums.slot + (first - sums.segment), 1})
                          : Builder::operand(sums.buffer, builder_.constant(first));
    operand.segment_count = static_cast<std::uint16_t>(count == 1 ? 0 : count);
    return operand;
  }

  Builder& builder_;
  const Folding& folding_;
  bool scatters_, gathers_;
  bool in_output_;  // this rank holds its sums in OUTPUT
  HeldSums sums_ = kInput;
  HeldParts held_{};
};

// Two phases: no rank receives results before it has sent its inputs, so INPUT and OUTPUT may be
// the same memory.
void add_halving(Builder& builder, const Folding& folding, std::uint32_t me,
                 Collective collective) {
  const bool scatters = collective == Collective::kReduceScatter;
  const bool gathers = collective == Collective::kReduce;
  const std::uint32_t levels = folding.levels();
  const std::uint32_t back = !scatters ? levels : levels > 1 ? 1 : 0;  // rev(v) = v for one digit
  const std::uint32_t unfolds = gathers ? 0 : folding.folds();
  Halving halving(builder, folding, collective);
  const bool leads = folding.is_leader();
  if (!leads) halving.send_to_leader();
  if (leads && folding.in_pair()) halving.fold();
  if (leads) halving.halve();
  builder.phase(1, static_cast<std::int32_t>(folding.folds() + levels), 0);
  if (back + unfolds == 0) return;
  if (!leads && !gathers) halving.receive_from_leader(me, back);
  if (leads) gathers ? halving.gather() : scatters ? halving.exchange(back) : halving.double_back();
  builder.phase(1, static_cast<std::int32_t>(back + unfolds), 0);
}

Status generate_halving(const CollectiveParameters& parameters, std::uint32_t me,
                        Collective collective, Program& out) {
  Builder builder(out);
  const bool scatters = collective == Collective::kReduceScatter;
  const std::uint32_t p = parameters.ranks;
  const bool fits = p > 0 && p <= kMaxHalvingRanks;
  const Status status = builder.begin(parameters, me,
                                      {.collective = collective,
                                       .algorithm = scatters ? "recursive-halving" : "rabenseifner",
                                       .segments = fits ? 1u << (log2_ceil(p + 1) - 1) : 1,
                                       .one_block = true});
  if (status != Status::kOk) return status;
  if (p == 1) return builder.finish_alone();
  if (!fits) return builder.refuse(Status::kTooLarge);
  const std::uint32_t root = collective == Collective::kReduce ? parameters.root : 0;
  add_halving(builder, Folding(p, me, root), me, collective);
  return builder.finish(static_cast<std::int32_t>(log2_ceil(p)), 0);
}

}  // namespace

const Algorithm kRecursiveHalvingRows[] = {
    row("recursive-halving", Collective::kReduceScatter, generate_halving,
        "halving, then one exchange: at most log2 p + 1 steps; floor(log2 p)+3 if p is not 2^k"),
};

const Algorithm kRabenseifnerRows[] = {
    row("rabenseifner", Collective::kReduce, generate_halving,
        "halving, then a binomial gather: 2*log2 p steps; 2*floor(log2 p)+1 if p is not 2^k"),
    row("rabenseifner", Collective::kAllreduce, generate_halving,
        "halving, then doubling: 2*log2 p steps; 2*floor(log2 p)+2 if p is not 2^k"),
};

}  // namespace espalier
