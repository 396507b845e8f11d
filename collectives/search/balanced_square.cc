#include "collectives/search/balanced_square.h"

#include <algorithm>
#include <utility>

#include "base/splitmix64.h"
#include "espalier/internal/base/assert.h"

namespace espalier::searched {
namespace {

using Permutation = std::vector<std::uint32_t>;

constexpr std::uint32_t kUnset = 0xffffffffu;
constexpr std::uint32_t kStarts = 16;
// Moves of one start, times n^2. Where a start succeeds, it needs less than 110 n^2 (n <= 32).
constexpr std::uint32_t kMoves = 512;
// One in so many of the moves that make the square slightly worse is kept.
constexpr std::uint32_t kWorseKept = 128;

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  std::uint32_t below(std::uint32_t limit) {
    return static_cast<std::uint32_t>(splitmix64(state_ += kSplitmix64Step) % limit);
  }

 private:
  std::uint64_t state_;
};

Permutation inverse_of(const Permutation& to) {
  Permutation from(to.size());
  for (std::uint32_t c = 0; c < to.size(); ++c) from[to[c]] = c;
  return from;
}

// The maximum number of messages on a link. As many cross each link to the left as to the right.
std::uint32_t load_of(const Permutation& to) {
  const Permutation from = inverse_of(to);
  std::uint32_t crossing = 0, load = 0;
  for (std::uint32_t c = 0; c + 1 < to.size(); ++c) {  // the link from c to c + 1
    if (to[c] > c) ++crossing;
    if (from[c] < c) --crossing;
    load = std::max(load, crossing);
  }
  return load;
}

// A Latin square: permutation k sends node c to rows[k][c].
class Square {
 public:
  explicit Square(std::uint32_t n) : n_(n), rows_(n, Permutation(n)) {}

  void fill_shifts() {
    for (std::uint32_t k = 0; k < n_; ++k) {
      for (std::uint32_t c = 0; c < n_; ++c) rows_[k][c] = (c + k) % n_;
    }
  }
  // One permutation after the other, as a matching of the pairs that are left. The cyclic shifts of
  // a prime number of nodes would have no cycle to exchange (exchange_cycle()).
  void fill_at_random(Draws& draws);
  // Exchanges parts of two permutations until all loads differ by at most 1. False: not found.
  [[nodiscard]] bool balance(Draws& draws);
  [[nodiscard]] const std::vector<Permutation>& rows() const { return rows_; }

 private:
  using Used = std::vector<std::vector<bool>>;
  static bool match(std::uint32_t c, const Used& used, Draws& draws, std::vector<bool>& visited,
                    Permutation& from);
  // Exchanges the images of a set of nodes that both permutations send to the same set.
  static void exchange_cycle(Permutation& a, Permutation& b, std::uint32_t start);

  std::uint32_t n_;
  std::vector<Permutation> rows_;
};

// An augmenting path from node c.
bool Square::match(std::uint32_t c, const Used& used, Draws& draws, std::vector<bool>& visited,
                   Permutation& from) {
  const auto n = static_cast<std::uint32_t>(from.size());
  const std::uint32_t first = draws.below(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t target = (first + i) % n;
    if (used[c][target] || visited[target]) continue;
    visited[target] = true;
    if (from[target] != kUnset && !match(from[target], used, draws, visited, from)) continue;
    from[target] = c;
    return true;
  }
  return false;
}

void Square::fill_at_random(Draws& draws) {
  Used used(n_, std::vector<bool>(n_));
  for (Permutation& to : rows_) {
    Permutation from(n_, kUnset);
    for (std::uint32_t c = 0; c < n_; ++c) {
      std::vector<bool> visited(n_);
      // The remaining pairs are a regular bipartite graph, which has a perfect matching (Koenig).
      const bool is_matched = match(c, used, draws, visited, from);
      ESPALIER_ASSERT(is_matched);
    }
    to = inverse_of(from);
    for (std::uint32_t c = 0; c < n_; ++c) used[c][to[c]] = true;
  }
}

void Square::exchange_cycle(Permutation& a, Permutation& b, std::uint32_t start) {
  const Permutation from_b = inverse_of(b);
  std::uint32_t c = start;
  do {
    const std::uint32_t next = from_b[a[c]];
    std::swap(a[c], b[c]);
    c = next;
  } while (c != start);
}

// The sum of the squared loads is least if the loads are even and their sum is least.
bool Square::balance(Draws& draws) {
  std::vector<std::uint32_t> loads;
  std::int64_t cost = 0;
  for (const Permutation& row : rows_) {
    loads.push_back(load_of(row));
    cost += std::int64_t{loads.back()} * loads.back();
  }
  const std::int64_t sum = std::int64_t{n_} * n_ / 4, low = sum / n_, high = sum % n_;
  const std::int64_t least = low * low * (n_ - high) + (low + 1) * (low + 1) * high;
  const std::int64_t slightly = 2 * (n_ / 8 + 1);
  for (std::uint32_t move = 0; move < kMoves * n_ * n_ && cost > least; ++move) {
    const std::uint32_t a = draws.below(n_), b = draws.below(n_);
    if (a == b) continue;
    Permutation new_a = rows_[a], new_b = rows_[b];
    exchange_cycle(new_a, new_b, draws.below(n_));
    const std::int64_t load_a = load_of(new_a), load_b = load_of(new_b);
    const std::int64_t change = load_a * load_a + load_b * load_b -
                                std::int64_t{loads[a]} * loads[a] -
                                std::int64_t{loads[b]} * loads[b];
    if (change > 0 && (change > slightly || draws.below(kWorseKept) != 0)) continue;
    cost += change;
    rows_[a] = std::move(new_a);
    rows_[b] = std::move(new_b);
    loads[a] = static_cast<std::uint32_t>(load_a);
    loads[b] = static_cast<std::uint32_t>(load_b);
  }
  return cost == least;
}

// Gives the messages of one direction their groups: intervals that overlap get different ones, and
// as many groups suffice as intervals overlap anywhere.
void set_groups(LinePermutation& one, bool to_the_right) {
  const auto n = static_cast<std::uint32_t>(one.to.size());
  const Permutation from = inverse_of(one.to);
  std::vector<bool> busy(one.groups);
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t c = to_the_right ? i : n - 1 - i;
    const auto goes = [&](std::uint32_t a, std::uint32_t b) {
      return to_the_right ? a < b : a > b;
    };
    if (goes(from[c], c)) busy[one.group[from[c]]] = false;
    if (!goes(c, one.to[c])) continue;
    std::uint32_t group = 0;
    while (busy[group]) ++group;
    busy[group] = true;
    one.group[c] = group;
  }
}

LinePermutation grouped(const Permutation& to) {
  LinePermutation one{.to = to,
                      .group = std::vector<std::uint32_t>(to.size()),
                      .groups = std::max(1u, load_of(to)),
                      .is_identity = load_of(to) == 0};
  set_groups(one, true);
  set_groups(one, false);
  return one;
}

}  // namespace

std::vector<LinePermutation> balanced_square(std::uint32_t n) {
  Square square(n);
  bool found = false;
  for (std::uint32_t start = 0; n <= kMaxBalanced && !found && start < kStarts; ++start) {
    Draws draws(std::uint64_t{n} << 32 | start);
    square.fill_at_random(draws);
    found = square.balance(draws);
  }
  if (!found) square.fill_shifts();
  std::vector<LinePermutation> all;
  all.reserve(n);
  for (const Permutation& row : square.rows()) all.push_back(grouped(row));
  return all;
}

}  // namespace espalier::searched
