#include "tests/random/rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace espalier::random {
namespace {

constexpr std::int64_t kMaxRowBlocks = std::int64_t{1} << 29;
constexpr std::size_t kMaxEntries = 4096;

template <typename Row>
bool same_row(const Row& a, const Row& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;  // integers without gaps, all of them set
}
static_assert(sizeof(Count) == 20 && sizeof(Term) == 32);

bool same_index(const Index& a, const Index& b) {
  return a.base == b.base && a.coef == b.coef && a.off == b.off && a.div == b.div &&
         a.mod == b.mod && a.first_term == b.first_term && a.terms == b.terms;
}

std::int64_t floor_mod(std::int64_t value, std::int64_t mod) { return (value % mod + mod) % mod; }

// The numbers below `length`, a power of `base`, with their digits in reverse.
std::vector<std::int64_t> reversed(std::uint32_t length, std::uint32_t base) {
  std::vector<std::int64_t> all(length, 0);
  for (std::uint32_t k = 0; k < length; ++k) {
    std::uint32_t rest = k;
    for (std::uint32_t power = 1; power < length; power *= base, rest /= base) {
      all[k] = all[k] * base + rest % base;
    }
  }
  return all;
}

bool fits32(std::int64_t value) { return value >= -kMaxField && value <= kMaxField; }

}  // namespace

Term& RowWriter::term(Draft& draft, std::int64_t coef, std::int64_t add, std::int64_t div,
                      std::int64_t mod) {
  if (!fits32(coef) || !fits32(add)) failed_ = true;
  Term term{};
  term.coef = static_cast<std::int32_t>(coef);
  term.mul = 1;
  term.add = static_cast<std::int32_t>(add);
  term.div = static_cast<std::uint32_t>(div);
  term.mod = static_cast<std::uint32_t>(mod);
  return draft.terms.emplace_back(term);
}

RowWriter::Mark RowWriter::mark() const {
  return {program_.counts_count, program_.terms_count, program_.indices_count, table_.size()};
}

void RowWriter::go_back(const Mark& mark) {
  program_.counts_count = static_cast<pb_size_t>(mark.counts);
  program_.terms_count = static_cast<pb_size_t>(mark.terms);
  program_.indices_count = static_cast<pb_size_t>(mark.indices);
  table_.resize(mark.entries);
  failed_ = false;
}

std::uint8_t RowWriter::constant(std::int64_t value) {
  RowShape shape{.values = {value}, .alive = {true}};
  return index(shape);
}

std::uint8_t RowWriter::index(const RowShape& shape) {
  Draft draft;
  draft.values = shape.values;
  if (add_line(draft, shape)) return commit(draft);
  if (shape.far) {
    add_far(draft, shape);
  } else {
    fill_dead(draft, shape);
  }
  add_slope(draft, shape);
  add_periodic(draft, shape);
  pad(draft, shape);
  return commit(draft);
}

// Values that are one line in i, or in whole rounds: no terms are needed.
bool RowWriter::add_line(Draft& draft, const RowShape& shape) {
  const auto alive = std::count(shape.alive.begin(), shape.alive.end(), true);
  const auto length = static_cast<std::int64_t>(shape.values.size());
  const bool all_dead_matter = shape.far && alive < shape.q;
  if (alive != 1 || length != shape.q || all_dead_matter) return false;
  if (shape.q > 1 && shape.slope != 0 && choice_.one_in(3)) return false;
  const auto at = std::find(shape.alive.begin(), shape.alive.end(), true) - shape.alive.begin();
  std::int64_t value = shape.values[static_cast<std::size_t>(at)], coef = shape.slope;
  Index& index = draft.index;
  if (shape.ring > 0) {
    index.base = static_cast<std::int32_t>(shape.base);
    index.mod = static_cast<std::uint32_t>(shape.ring);
    value = floor_mod(value, shape.ring);
    if (choice_.one_in(6)) coef += shape.ring * (choice_.one_in(2) ? 1 : -1);
    if (choice_.one_in(6)) value += shape.ring * choice_.number(0, 5);
  }
  std::int64_t div = shape.slope == 0 ? 1 : shape.q;
  value = value * div - (div > 1 ? coef * at : 0);
  if (choice_.one_in(8)) {
    const std::int64_t more = choice_.number(2, 5);
    value = value * more + choice_.number(0, static_cast<std::uint32_t>(more) - 1);
    coef *= more;
    div *= more;
  }
  index.coef = static_cast<std::int32_t>(coef);
  index.div = static_cast<std::uint32_t>(div == 1 ? 0 : div);
  if (shape.ring == 0) index.base = static_cast<std::int32_t>(shape.base);
  const bool beside = div == 1 && shape.ring == 0 && choice_.one_in(2);
  if (beside) index.base = static_cast<std::int32_t>(index.base + value);
  index.off = beside ? 0 : static_cast<std::int32_t>(value);
  pad(draft, shape);
  return true;
}

// Puts the dead values far below 0.
void RowWriter::add_far(Draft& draft, const RowShape& shape) {
  const auto alive = std::count(shape.alive.begin(), shape.alive.end(), true);
  if (alive == shape.q) return;
  const auto at = std::find(shape.alive.begin(), shape.alive.end(), true) - shape.alive.begin();
  const std::int64_t distance =
      choice_.one_in(2) ? kMaxField : kMaxRowBlocks + (1 << 16) + choice_.number(0, 1u << 28);
  const bool one = alive == 1 && static_cast<std::int64_t>(draft.values.size()) == shape.q;
  const std::uint32_t way = choice_.number(0, 2);
  for (std::size_t k = 0; k < draft.values.size(); ++k) {
    const std::size_t j = k % static_cast<std::size_t>(shape.q);
    if (!shape.alive[j]) draft.values[k] = one ? draft.values[static_cast<std::size_t>(at)] : 0;
  }
  if (one && way == 0) {
    // floor and ceiling of i / q: equal if it is whole.
    term(draft, distance, -at, shape.q, 0);
    term(draft, -distance, shape.q - 1 - at, shape.q, 0);
    return;
  }
  if (one && way == 1) {
    term(draft, -distance, floor_mod(-at, shape.q), 0, shape.q);
    return;
  }
  const bool negative = choice_.one_in(2);
  std::vector<std::int16_t> entries;
  for (const bool exists : shape.alive) entries.push_back(exists ? 0 : negative ? -1 : 1);
  Term& far = term(draft, negative ? distance : -distance, 0, 0, shape.q);
  far.table = look_up(entries);
}

// Fills in values that are never read: those of a living slot in the same round, or any.
void RowWriter::fill_dead(Draft& draft, const RowShape& shape) {
  const auto q = static_cast<std::size_t>(shape.q);
  if (std::count(shape.alive.begin(), shape.alive.end(), false) == 0) return;
  const std::uint32_t way = choice_.number(0, 3);
  const auto alive = static_cast<std::size_t>(
      std::find(shape.alive.begin(), shape.alive.end(), true) - shape.alive.begin());
  for (std::size_t k = 0; k < draft.values.size(); ++k) {
    if (shape.alive[k % q]) continue;
    draft.values[k] = way == 0 ? static_cast<std::int64_t>(choice_.number(0, 12)) - 4
                               : draft.values[k - k % q + alive];
  }
}

// Adds slope * floor(i / q), or the equal slope as a line in i, corrected.
void RowWriter::add_slope(Draft& draft, const RowShape& shape) {
  if (shape.q == 1) {
    draft.index.coef = static_cast<std::int32_t>(shape.slope);
    return;
  }
  std::int64_t coef = 0;
  const bool one_round = static_cast<std::int64_t>(draft.values.size()) == shape.q;
  if (choice_.one_in(4)) {
    coef = one_round && choice_.one_in(2) ? draft.values[1] - draft.values[0]
                                          : static_cast<std::int64_t>(choice_.number(0, 4)) - 2;
  }
  if (coef != 0) {
    draft.index.coef = static_cast<std::int32_t>(coef);
    for (std::size_t k = 0; k < draft.values.size(); ++k) {
      draft.values[k] -= coef * static_cast<std::int64_t>(k % static_cast<std::size_t>(shape.q));
    }
  }
  const std::int64_t slope = shape.slope - coef * shape.q;
  if (slope == 0) return;
  Term& line = term(draft, slope, 0, shape.q, 0);
  if (choice_.one_in(6)) {  // -floor(-(i - q + 1) / q)
    line.coef = -line.coef;
    line.mul = -1;
    line.add = static_cast<std::int32_t>(shape.q - 1);
  }
}

void RowWriter::add_constant(Draft& draft, const RowShape& shape, std::int64_t value) {
  if (shape.ring > 0) value = floor_mod(value, shape.ring);
  const bool inside = shape.ring > 0 || choice_.one_in(3);
  (inside ? draft.index.off : draft.index.base) += static_cast<std::int32_t>(value);
}

void RowWriter::add_periodic(Draft& draft, const RowShape& shape) {
  draft.index.base = static_cast<std::int32_t>(shape.base);
  draft.index.mod = static_cast<std::uint32_t>(shape.ring);
  std::vector<std::int64_t>& values = draft.values;
  const auto length = static_cast<std::int64_t>(values.size());
  const std::int64_t first = values[0];
  const bool constant =
      std::all_of(values.begin(), values.end(), [&](std::int64_t value) { return value == first; });
  const std::uint32_t way = choice_.number(0, 3);
  if (constant) return add_constant(draft, shape, first);
  bool line = true;
  for (std::int64_t k = 0; k < length; ++k) {
    line = line && values[static_cast<std::size_t>(k)] == first + (values[1] - first) * k;
  }
  if (line && way > 0) {
    term(draft, values[1] - first, 0, 0, length);
    return add_constant(draft, shape, first);
  }
  for (std::int64_t& value : values) value -= first;
  add_constant(draft, shape, first);
  if (way > 0 && add_reversal(draft)) return;
  if (way == 2 && length > 1) split(draft);
  add_table(draft, values);
}

// Adds a part of the values, by digits in reverse or by a table.
void RowWriter::split(Draft& draft) {
  const auto length = static_cast<std::uint32_t>(draft.values.size());
  const std::uint32_t base = length == 4 || length == 8 ? 2 : length == 9 ? 3 : 0;
  std::vector<std::int64_t> part;
  if (base != 0) {
    const std::int64_t coef = static_cast<std::int64_t>(choice_.number(0, 8)) - 4;
    for (const std::int64_t digits : reversed(length, base)) part.push_back(coef * digits);
  } else {
    for (std::uint32_t k = 0; k < length; ++k) {
      part.push_back(static_cast<std::int64_t>(choice_.number(0, 8)) - 4);
    }
  }
  for (std::uint32_t k = 0; k < length; ++k) draft.values[k] -= part[k];
  Draft alone;
  alone.values = part;
  if (base != 0 && add_reversal(alone)) {
    draft.terms.push_back(alone.terms[0]);
  } else {
    add_table(draft, part);
  }
}

// Values that are a multiple of their positions' digits in reverse.
bool RowWriter::add_reversal(Draft& draft) {
  const std::vector<std::int64_t>& values = draft.values;
  const auto length = static_cast<std::uint32_t>(values.size());
  for (std::uint32_t base = 2; base <= length; ++base) {
    std::uint32_t digits = 0, power = 1;
    for (; power < length; power *= base) ++digits;
    if (power != length) continue;
    const std::vector<std::int64_t> order = reversed(length, base);
    const auto one = std::find(order.begin(), order.end(), 1) - order.begin();
    const std::int64_t coef = values[static_cast<std::size_t>(one)];
    bool fits = coef != 0;
    for (std::uint32_t k = 0; k < length; ++k) fits = fits && values[k] == coef * order[k];
    if (!fits) continue;
    Term& line = term(draft, coef, 0, 0, length);
    line.base = base;
    line.digits = digits;
    return true;
  }
  return false;
}

// A term that looks its values up, at positions in an order of its own.
void RowWriter::add_table(Draft& draft, std::vector<std::int64_t> values) {
  const auto length = static_cast<std::int64_t>(values.size());
  std::int64_t mul = choice_.one_in(3) ? choice_.number(1, 9) : 1;
  if (std::gcd(mul, length) != 1) mul = 1;
  if (choice_.one_in(4)) mul = -mul;
  const std::int64_t add = choice_.one_in(3) ? choice_.number(0, 7) : 0;
  std::int64_t common = 0;
  for (const std::int64_t value : values) common = std::gcd(common, value);
  if (common == 0 || choice_.one_in(2)) common = 1;
  if (choice_.one_in(4)) common = -common;
  std::vector<std::int16_t> entries(values.size());
  for (std::int64_t k = 0; k < length; ++k) {
    const std::int64_t entry = values[static_cast<std::size_t>(k)] / common;
    if (entry != static_cast<std::int16_t>(entry)) failed_ = true;
    entries[static_cast<std::size_t>(floor_mod(mul * k + add, length))] =
        static_cast<std::int16_t>(entry);
  }
  Term& row = term(draft, common, add, 0, length);
  row.mul = static_cast<std::int32_t>(mul);
  row.table = look_up(entries);
}

// Finds these entries in the table, or adds them. Returns their position plus 1.
std::uint32_t RowWriter::look_up(const std::vector<std::int16_t>& entries) {
  const auto at = std::search(table_.begin(), table_.end(), entries.begin(), entries.end());
  const auto position = static_cast<std::uint32_t>(at - table_.begin());
  if (at == table_.end()) table_.insert(at, entries.begin(), entries.end());
  if (table_.size() > kMaxEntries) failed_ = true;
  return position + 1;
}

// Numbers that cancel, or that change nothing.
void RowWriter::pad(Draft& draft, const RowShape& shape) {
  Index& index = draft.index;
  if (shape.ring > 0) {
    if (!choice_.one_in(16)) return;
    // Whole rings, up to the largest field; with a div of the index's own, whole ones of those.
    const std::int64_t unit = shape.ring * std::max<std::int64_t>(1, index.div);
    const std::int64_t off = index.off + unit * ((kMaxField - 4096) / unit);
    if (fits32(off)) index.off = static_cast<std::int32_t>(off);
    return;
  }
  if (index.div > 1 || !choice_.one_in(10)) return;
  const std::int64_t most = choice_.one_in(2) ? kMaxField - 4096 : choice_.number(1, 300);
  const std::int64_t by = choice_.one_in(2) ? most : -most;
  if (!fits32(index.base + by) || !fits32(index.off - by)) return;
  index.base += static_cast<std::int32_t>(by);
  index.off -= static_cast<std::int32_t>(by);
}

// The position at which the program has these terms, one after the other; its number of terms if it
// has them nowhere.
std::uint32_t RowWriter::find_terms(const std::vector<Term>& terms) const {
  const Term* end = program_.terms + program_.terms_count;
  const Term* begin = program_.terms;
  const Term* at = std::search(begin, end, terms.begin(), terms.end(), same_row<Term>);
  return static_cast<std::uint32_t>(at - begin);
}

std::uint8_t RowWriter::commit(const Draft& draft) {
  Index index = draft.index;
  index.terms = static_cast<std::uint8_t>(draft.terms.size());
  if (!draft.terms.empty()) {
    index.first_term = static_cast<std::uint8_t>(find_terms(draft.terms));
    if (index.first_term == program_.terms_count) {
      if (program_.terms_count + draft.terms.size() > std::size(program_.terms)) failed_ = true;
      if (failed_) return 0;
      for (const Term& one : draft.terms) program_.terms[program_.terms_count++] = one;
    }
  }
  for (std::uint32_t i = 0; i < program_.indices_count; ++i) {
    if (same_index(program_.indices[i], index)) return static_cast<std::uint8_t>(i);
  }
  if (program_.indices_count == std::size(program_.indices)) failed_ = true;
  if (failed_) return 0;
  program_.indices[program_.indices_count] = index;
  return static_cast<std::uint8_t>(program_.indices_count++);
}

std::uint8_t RowWriter::count(Count count, bool as_it_is) {
  if (!as_it_is && count.c == 0 && choice_.one_in(12)) {
    // c * (N + d), taken back by a and b.
    const std::int32_t c = static_cast<std::int32_t>(choice_.number(1, 1u << 10));
    const std::int32_t d = static_cast<std::int32_t>(choice_.number(0, 1u << 19));
    if (fits32(count.a - std::int64_t{c} * d)) {
      count = {count.a - c * d, count.b - c, c, d, choice_.one_in(2) ? 1u : 0u};
    }
  }
  for (std::uint32_t i = 0; i < program_.counts_count; ++i) {
    if (same_row(program_.counts[i], count)) return static_cast<std::uint8_t>(i);
  }
  if (program_.counts_count == std::size(program_.counts)) {
    failed_ = true;
    return 0;
  }
  program_.counts[program_.counts_count] = count;
  return static_cast<std::uint8_t>(program_.counts_count++);
}

}  // namespace espalier::random
