// All-to-all in logarithmically many steps, for short parts: every part travels over some of the
// distances 2^k, as the binary digits of its whole distance say, together with others.
//
// Steps: ceil(log2 p) + 1, the first of which only copies; N = 1. Cost:
// ceil(log2 p) * alpha + sum of |S_k| * beta*m, where m is the bytes of one rank's part for one
// other and S_k are the distances d < p with digit k: p/2 for each k if p is a power of two.
// Scratch: the sum of all |S_k| parts, and the greatest of them once more; 40 parts for p = 16.
// Source: [Bruck97], radix 2, from the highest digit down.
//
// A message must be one piece of memory. So in each step a rank copies the parts of the next S_k
// side by side, in the order of d. From the highest digit down, many of them are neighbours
// already: p = 16 takes 15 or 16 copies. The parts of the last S_k and all others that have arrived
// are copied to OUTPUT in the last step, when INPUT has been used: both may be the same memory. A
// step can have as many copies as there are actions, so it is kTooLarge above 26 ranks.

#include "collectives/algorithms/rows.h"
#include "collectives/build/builder.h"

namespace espalier {
namespace {

constexpr std::uint32_t kMaxBruckRanks = 26;

class Bruck {
 public:
  Bruck(Builder& builder, std::uint32_t p, std::uint32_t me)
      : builder_(builder), p_(p), me_(me), digits_(log2_ceil(p)) {
    std::uint32_t longest = 0;
    for (std::uint32_t digit = 0; digit < digits_; ++digit) {
      const std::uint32_t size = size_of(digit);
      longest = size > longest ? size : longest;
    }
    packed_ = builder.scratch(longest);
  }

  void add() {
    for (std::uint32_t step = 0; step < digits_; ++step) {
      const std::uint32_t digit = digits_ - 1 - step, distance = 1u << digit;
      const std::uint32_t size = size_of(digit), landing = builder_.scratch(size);
      pack(step, digit);
      builder_.send(step + 1, (me_ + distance) % p_, slots(packed_, size), 1);
      builder_.receive(step + 1, (me_ + p_ - distance) % p_, slots(landing, size));
      std::uint32_t slot = landing;
      for (std::uint32_t d = 0; d < p_; ++d) {
        if (has(d, digit)) arrived_[d] = {true, slot++};
      }
    }
    for (std::uint32_t d = 0; d < p_; ++d) {
      const Operand from = held(d, 1);
      builder_.copy(digits_, builder_.output((me_ + p_ - d) % p_), from);
    }
  }

  [[nodiscard]] std::uint32_t steps() const { return digits_ + 1; }

 private:
  // Where the part for distance d is: in INPUT until it has travelled for the first time.
  struct PartAt {
    bool travelled = false;
    std::uint32_t slot = 0;
  };

  [[nodiscard]] static bool has(std::uint32_t d, std::uint32_t digit) {
    return (d >> digit & 1) != 0;
  }
  // |S_digit|
  [[nodiscard]] std::uint32_t size_of(std::uint32_t digit) const {
    std::uint32_t size = 0;
    for (std::uint32_t d = 0; d < p_; ++d) size += has(d, digit) ? 1 : 0;
    return size;
  }
  // The segment of INPUT for distance d.
  [[nodiscard]] std::uint32_t input_of(std::uint32_t d) const { return (me_ + d) % p_; }
  [[nodiscard]] bool are_neighbours(std::uint32_t d, std::uint32_t next) const {
    if (arrived_[d].travelled != arrived_[next].travelled) return false;
    return arrived_[d].travelled ? arrived_[d].slot + 1 == arrived_[next].slot
                                 : input_of(d) + 1 == input_of(next);
  }

  // Copies S_digit side by side; a copy takes all that are neighbours.
  void pack(std::uint32_t step, std::uint32_t digit) {
    std::uint32_t slot = packed_;
    for (std::uint32_t d = 0; d < p_;) {
      if (!has(d, digit)) {
        ++d;
        continue;
      }
      std::uint32_t count = 1;
      while (d + count < p_ && has(d + count, digit) && are_neighbours(d + count - 1, d + count)) {
        ++count;
      }
      // Operands in a fixed order, since each adds to the program's tables.
      const Operand from = held(d, count);
      builder_.copy(step, slots(slot, count), from);
      slot += count;
      d += count;
    }
  }

  // The parts for distances d .. d+count-1, which are neighbours.
  [[nodiscard]] Operand held(std::uint32_t d, std::uint32_t count) {
    if (arrived_[d].travelled) return slots(arrived_[d].slot, count);
    Operand operand = builder_.input(input_of(d));
    operand.segment_count = segment_count(count);
    return operand;
  }
  // In scratch, the segments of an all-to-all only give the lengths, which are all the same.
  [[nodiscard]] Operand slots(std::uint32_t first, std::uint32_t count) {
    Operand operand = builder_.slot(0, {first, 1});
    operand.segment_count = segment_count(count);
    return operand;
  }
  [[nodiscard]] static std::uint16_t segment_count(std::uint32_t count) {
    return static_cast<std::uint16_t>(count == 1 ? 0 : count);
  }

  Builder& builder_;
  std::uint32_t p_, me_, digits_, packed_ = 0;
  PartAt arrived_[kMaxBruckRanks];
};

Status bruck_all_to_all(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                        Program& out) {
  Builder builder(out);
  const Status status =
      builder.begin(parameters, me,
                    {.collective = Collective::kAllToAll, .algorithm = "bruck", .one_block = true});
  if (status != Status::kOk) return status;
  const std::uint32_t p = parameters.ranks;
  if (p == 1) return builder.finish_alone();
  if (p > kMaxBruckRanks) return builder.refuse(Status::kTooLarge);
  Bruck bruck(builder, p, me);
  bruck.add();
  builder.phase(1, static_cast<std::int32_t>(bruck.steps()), 0);
  return builder.finish(static_cast<std::int32_t>(log2_ceil(p)), 0);
}

}  // namespace

const Algorithm kBruckRows[] = {
    row("bruck", Collective::kAllToAll, bruck_all_to_all,
        "one block, parts travel together, at most 26 ranks: ceil(log2 p)+1 steps"),
};

}  // namespace espalier
