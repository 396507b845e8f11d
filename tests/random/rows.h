#pragma once
// Writes the rows of a program's tables in one of the many ways that give the same values.

#include <cstdint>
#include <vector>

#include "base/splitmix64.h"
#include "espalier/collectives/schedule/programs.h"
#include "tests/random/plan.h"

namespace espalier::random {

// Dice whose seed costs nothing, unlike the seed of a Mersenne twister: every row of a table has
// its own.
class QuickDice {
 public:
  explicit QuickDice(std::uint64_t seed) : state_(seed) {}
  // from .. to
  std::uint32_t number(std::uint32_t from, std::uint32_t to) {
    return from + static_cast<std::uint32_t>(next() % (to - from + 1));
  }
  bool one_in(std::uint32_t many) { return number(1, many) == 1; }

 private:
  std::uint64_t next() {
    const std::uint64_t drawn = splitmix64(state_);
    state_ += kSplitmix64Step;
    return drawn;
  }
  std::uint64_t state_;
};

// Two dice in step. Ranks that share the first and throw the second seldom have programs that
// differ in few choices.
class Choice {
 public:
  // About one number in `own_share` is from `own`; 0: none.
  Choice(std::uint64_t shared, std::uint64_t own, std::uint32_t own_share)
      : shared_seed_(shared), own_seed_(own), shared_(shared), own_(own), own_share_(own_share) {}
  // Begins again, so that nodes that went different ways before are in step again.
  void go_to(std::uint64_t mark) {
    // Not the generator's own increment, otherwise one mark's numbers would repeat at the next
    // mark.
    shared_ = QuickDice(shared_seed_ + 0xd1342543de82ef95ull * mark);
    own_ = QuickDice(own_seed_ + 0xd1342543de82ef95ull * mark);
  }
  std::uint32_t number(std::uint32_t from, std::uint32_t to) {
    const std::uint32_t shared = shared_.number(from, to), own = own_.number(from, to);
    const bool mine = own_share_ != 0 && own_.one_in(own_share_);
    return mine ? own : shared;
  }
  bool one_in(std::uint32_t many) { return number(1, many) == 1; }
  // By the node's own dice, regardless of their share.
  bool own_one_in(std::uint32_t many) { return own_.one_in(many); }

 private:
  std::uint64_t shared_seed_, own_seed_;
  QuickDice shared_, own_;
  std::uint32_t own_share_;
};

// Values of a row: at instance i, with round = floor(i / q) and L = values.size(), a multiple of q,
//   base + ((slope * round + values[i mod L]) mod ring)      (ring = 0: no mod)
// for i mod q that are alive. At others the value does not matter, or with `far` is negative for
// every number of blocks.
struct RowShape {
  std::int64_t q = 1, slope = 0, ring = 0, base = 0;
  std::vector<std::int64_t> values;
  std::vector<bool> alive;  // q of them
  bool far = false;
};

class RowWriter {
 public:
  RowWriter(Program& program, Choice& choice) : program_(program), choice_(choice) {}

  // Positions of the rows. `failed()` once a table has no room, or no way was found.
  std::uint8_t index(const RowShape& shape);
  // `as_it_is`: without numbers that cancel.
  std::uint8_t count(Count count, bool as_it_is = false);
  std::uint8_t constant(std::int64_t value);
  [[nodiscard]] bool failed() const { return failed_; }
  // The fill of the tables at a moment; go_back() returns to it.
  struct Mark {
    std::uint32_t counts = 0, terms = 0, indices = 0;
    std::size_t entries = 0;
  };
  [[nodiscard]] Mark mark() const;
  void go_back(const Mark& mark);
  // The entries that terms look up. To be given to the program once all rows are written.
  [[nodiscard]] const std::vector<std::int16_t>& table() const { return table_; }

 private:
  struct Draft {
    Index index{};
    std::vector<Term> terms;
    std::vector<std::int64_t> values;  // the rest still to add, by i mod L
  };
  void add_far(Draft& draft, const RowShape& shape);
  [[nodiscard]] bool add_line(Draft& draft, const RowShape& shape);
  void add_slope(Draft& draft, const RowShape& shape);
  void add_periodic(Draft& draft, const RowShape& shape);
  void add_table(Draft& draft, std::vector<std::int64_t> values);
  [[nodiscard]] bool add_reversal(Draft& draft);
  void split(Draft& draft);
  void fill_dead(Draft& draft, const RowShape& shape);
  void add_constant(Draft& draft, const RowShape& shape, std::int64_t value);
  void pad(Draft& draft, const RowShape& shape);
  std::uint8_t commit(const Draft& draft);
  Term& term(Draft& draft, std::int64_t coef, std::int64_t add, std::int64_t div, std::int64_t mod);
  [[nodiscard]] std::uint32_t find_terms(const std::vector<Term>& terms) const;
  [[nodiscard]] std::uint32_t look_up(const std::vector<std::int16_t>& entries);

  Program& program_;
  Choice& choice_;
  std::vector<std::int16_t> table_;
  bool failed_ = false;
};

}  // namespace espalier::random
