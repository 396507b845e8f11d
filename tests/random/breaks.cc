#include "tests/random/breaks.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>
#include <vector>

namespace espalier::random {
namespace {

constexpr std::int32_t kFarFrom = 1 << 28;  // larger coefficients keep instances below block 0

// One program that is being broken.
class Breaker {
 public:
  Breaker(Programs& programs, std::uint32_t node, Dice& dice)
      : programs_(programs), program_(programs[node]), node_(node), dice_(dice) {}

  Break any() {
    if (program_.actions_count == 0) return {};
    at_ = below(program_.actions_count);
    action_ = &program_.actions[at_];
    static constexpr std::pair<const char*, bool (Breaker::*)()> kWays[] = {
        {"a number of a row", &Breaker::row_number},
        {"a number of a row", &Breaker::row_number},
        {"a number of a term", &Breaker::term_number},
        {"a number of a term", &Breaker::term_number},
        {"an entry of a table", &Breaker::entry},
        {"rows of another rank", &Breaker::foreign_row},
        {"rows of another rank", &Breaker::foreign_row},
        {"rows of another rank", &Breaker::foreign_row},
        {"all slots of another rank", &Breaker::foreign_slots},
        {"all slots of another rank", &Breaker::foreign_slots},
        {"all slots of another rank", &Breaker::foreign_slots},
        {"a ring of slots", &Breaker::ring},
        {"a ring of slots", &Breaker::ring},
        {"first step", &Breaker::first_step},
        {"number of instances", &Breaker::instances},
        {"what a send waits for", &Breaker::after},
        {"order of actions", &Breaker::order},
        {"links swapped", &Breaker::links},
        {"claimed slots", &Breaker::claimed_slots},
        {"a pace where none was", &Breaker::pace},
        {"instances too near block 0", &Breaker::near},
        {"instances of a round", &Breaker::rounds},
        {"instances of a round", &Breaker::rounds},
        {"products above 64 bits", &Breaker::overflow},
        {"clamp", &Breaker::clamp},
        {"a number near its limit", &Breaker::large},
    };
    const auto& [kind, way] = kWays[below(std::size(kWays))];
    const OwnedProgram before = program_;
    if (!(this->*way)()) {
      program_ = before;
      return {};
    }
    return {kind, "node " + std::to_string(node_) + ", action " + std::to_string(at_)};
  }

 private:
  template <typename Size>
  std::uint32_t below(Size limit) {
    return dice_.number(0, static_cast<std::uint32_t>(limit) - 1);
  }
  // A small change: mostly one more or less.
  std::int32_t little() {
    const auto by = static_cast<std::int32_t>(dice_.one_in(3) ? dice_.number(1, 6) : 1);
    return dice_.one_in(2) ? by : -by;
  }

  // All references of the action to rows, or to rows of slots alone.
  std::vector<std::uint8_t*> references(bool slots) {
    std::vector<std::uint8_t*> all;
    if (!slots && (action_->kind == ActionKind::kSend || action_->kind == ActionKind::kReceive)) {
      all.push_back(&action_->link_ref);
    }
    if (!slots && action_->pace_ref != 0) all.push_back(&action_->pace_ref);
    for (const auto& [has, place] :
         {std::pair(action_->has_into, &action_->into), std::pair(action_->has_a, &action_->a),
          std::pair(action_->has_b, &action_->b)}) {
      if (!has) continue;
      if (!slots) all.insert(all.end(), {&place->segment_ref, &place->block_ref});
      if (place->buffer == Buffer::kScratch) all.push_back(&place->slot_ref);
    }
    return all;
  }

  // A row of the action; in half of the cases a copy for this action alone, if there is room.
  Index* row(bool slots) {
    const std::vector<std::uint8_t*> all = references(slots);
    if (all.empty()) return nullptr;
    std::uint8_t* reference = all[below(all.size())];
    Index* row = &program_.indices[*reference];
    if (dice_.one_in(2) || program_.indices_count == std::size(program_.indices)) return row;
    const bool terms = program_.terms_count + row->terms <= std::size(program_.terms);
    if (!terms) return row;
    Index& own = program_.indices[program_.indices_count];
    own = *row;
    own.first_term = static_cast<std::uint8_t>(program_.terms_count);
    for (std::uint32_t k = 0; k < row->terms; ++k) {
      program_.terms[program_.terms_count++] = program_.terms[row->first_term + k];
    }
    *reference = static_cast<std::uint8_t>(program_.indices_count++);
    return &own;
  }

  bool row_number() {
    Index* of = row(false);
    if (of == nullptr) return false;
    const std::int32_t by = little();
    switch (below(5)) {
      case 0: of->base += by; break;
      case 1: of->coef += by; break;
      case 2: of->off += by; break;
      case 3:
        of->div = static_cast<std::uint32_t>(std::max(0, static_cast<int>(of->div) + by));
        break;
      default: of->mod = static_cast<std::uint32_t>(std::max(0, static_cast<int>(of->mod) + by));
    }
    return true;
  }

  bool term_number() {
    Index* of = row(false);
    if (of == nullptr || of->terms == 0) return false;
    Term& term = program_.terms[of->first_term + below(of->terms)];
    const std::int32_t by = little();
    const auto changed = [by](std::uint32_t value) {
      return static_cast<std::uint32_t>(std::max(0, static_cast<int>(value) + by));
    };
    switch (below(6)) {
      case 0: term.coef += by; break;
      case 1: term.mul += by; break;
      case 2: term.add += by; break;
      case 3: term.div = changed(term.div); break;
      case 4: term.mod = changed(term.mod); break;
      default: term.table = changed(term.table);
    }
    return true;
  }

  std::vector<std::int16_t> entries_of(const Program& program) const {
    std::vector<std::int16_t> entries;
    for (std::uint32_t i = 0; i < program.table.size / 2; ++i) {
      entries.push_back(table_entry(program.table.bytes, i));
    }
    return entries;
  }

  bool entry() {
    std::vector<std::int16_t> entries = entries_of(program_);
    if (entries.empty()) return false;
    const std::uint32_t at = below(entries.size());
    const std::uint32_t other = at + 1 < entries.size() ? at + 1 : at;
    if (dice_.one_in(3)) {
      if (entries[at] == entries[other]) return false;
      std::swap(entries[at], entries[other]);
    } else {
      entries[at] = static_cast<std::int16_t>(entries[at] + little());
    }
    program_.set_table(entries);
    return true;
  }

  // The actions of another program that could be this one: of its kind, with its buffers.
  std::vector<Action*> alike(Program& other) {
    std::vector<Action*> all;
    for (std::uint32_t i = 0; i < other.actions_count; ++i) {
      Action& one = other.actions[i];
      if (one.kind == action_->kind && one.into.buffer == action_->into.buffer &&
          one.a.buffer == action_->a.buffer && one.b.buffer == action_->b.buffer) {
        all.push_back(&one);
      }
    }
    return all;
  }

  // Takes the row in the same position of another rank's program, with its terms and entries.
  bool foreign_row() {
    if (programs_.size() < 2) return false;
    std::uint32_t other = below(programs_.size() - 1);
    if (other >= node_) ++other;
    Program& from = programs_[other];
    const std::vector<Action*> all = alike(from);
    if (all.empty()) return false;
    const bool slots = !dice_.one_in(3);
    const std::vector<std::uint8_t*> mine = references(slots);
    Action* own = std::exchange(action_, all[below(all.size())]);
    const std::vector<std::uint8_t*> theirs = references(slots);
    action_ = own;
    if (mine.empty() || mine.size() != theirs.size()) return false;
    // Changes all references, or one.
    const std::uint32_t chosen = below(mine.size());
    const bool every = slots && dice_.one_in(2);
    for (std::size_t k = 0; k < mine.size(); ++k) {
      if ((every || k == chosen) && !take_row(from, *theirs[k], *mine[k])) return false;
    }
    return true;
  }

  // Takes all rows of slots of a rank with the same actions: they suit that rank's instances, not
  // the ones here.
  bool foreign_slots() {
    const std::uint32_t first = below(programs_.size());
    for (std::uint32_t i = 0; i < programs_.size(); ++i) {
      const auto other = static_cast<std::uint32_t>((first + i) % programs_.size());
      if (other != node_ && take_slots(programs_[other])) return true;
    }
    return false;
  }

  bool take_slots(Program& from) {
    if (from.actions_count != program_.actions_count) return false;
    std::vector<std::uint8_t*> all_mine, all_theirs;
    for (std::uint32_t i = 0; i < program_.actions_count; ++i) {
      action_ = &from.actions[i];
      const std::vector<std::uint8_t*> theirs = references(true);
      action_ = &program_.actions[i];
      const std::vector<std::uint8_t*> mine = references(true);
      if (action_->kind != from.actions[i].kind || mine.size() != theirs.size()) return false;
      all_mine.insert(all_mine.end(), mine.begin(), mine.end());
      all_theirs.insert(all_theirs.end(), theirs.begin(), theirs.end());
    }
    for (std::size_t k = 0; k < all_mine.size(); ++k) {
      if (!take_row(from, *all_theirs[k], *all_mine[k])) return false;
    }
    return !all_mine.empty();
  }

  bool take_row(const Program& from, std::uint8_t theirs, std::uint8_t& mine) {
    const Index& row = from.indices[theirs];
    const bool room = program_.indices_count < std::size(program_.indices) &&
                      program_.terms_count + row.terms <= std::size(program_.terms);
    if (!room) return false;
    std::vector<std::int16_t> entries = entries_of(program_);
    const std::vector<std::int16_t> others = entries_of(from);
    Index& copy = program_.indices[program_.indices_count];
    copy = row;
    copy.first_term = static_cast<std::uint8_t>(row.terms == 0 ? 0 : program_.terms_count);
    for (std::uint32_t k = 0; k < row.terms; ++k) {
      Term& term = program_.terms[program_.terms_count++] = from.terms[row.first_term + k];
      if (term.table == 0) continue;
      const auto first = others.begin() + static_cast<std::ptrdiff_t>(term.table - 1);
      term.table = static_cast<std::uint32_t>(entries.size()) + 1;
      entries.insert(entries.end(), first, first + static_cast<std::ptrdiff_t>(term.mod));
    }
    if (!entries.empty()) program_.set_table(entries);
    mine = static_cast<std::uint8_t>(program_.indices_count++);
    return true;
  }

  // Makes a ring shorter by a slot, or longer, or moves it over another ring.
  bool ring() {
    Index* of = row(true);
    if (of == nullptr) return false;
    const std::uint32_t way = below(3);
    if (way == 0 && of->mod > 1) {
      --of->mod;
    } else if (way == 1 && of->mod > 0) {
      ++of->mod;
    } else {
      of->base += little();
    }
    return true;
  }

  bool change_count(std::uint8_t& reference) {
    if (program_.counts_count == std::size(program_.counts)) return false;
    Count& count = program_.counts[program_.counts_count];
    count = program_.counts[reference];
    const std::uint32_t way = below(6);
    if (way == 4) {
      count.b += little();
    } else if (way == 5 && count.c != 0) {
      count.d += little();
    } else {
      count.a += little();
    }
    reference = static_cast<std::uint8_t>(program_.counts_count++);
    return true;
  }
  bool first_step() { return change_count(action_->t0_ref); }
  bool instances() { return change_count(action_->instances_ref); }

  // Puts in values that come near 2^29 blocks, or near the ends of 32 and 64 bits.
  bool large() {
    static constexpr std::int32_t kLarge[] = {kMaxField,     kMaxField - 1, 1 << 29,  (1 << 29) - 1,
                                              (1 << 29) + 1, 1 << 28,       kMaxSlope};
    const std::int32_t value = kLarge[below(std::size(kLarge))] * (dice_.one_in(2) ? 1 : -1);
    const auto positive = static_cast<std::uint32_t>(std::abs(value));
    const std::int32_t slope = std::clamp(value, -kMaxSlope, kMaxSlope);
    if (dice_.one_in(3)) {
      if (!change_count(dice_.one_in(2) ? action_->t0_ref : action_->instances_ref)) return false;
      Count& count = program_.counts[program_.counts_count - 1];
      switch (below(5)) {
        case 0: count.a = value; break;
        case 1: count.b = slope; break;
        case 2: count.c = slope; break;
        case 3: count.d = value; break;
        default: count.e = positive;
      }
      return true;
    }
    Index* of = row(false);
    if (of == nullptr) return false;
    if (of->terms == 0 || dice_.one_in(3)) {
      std::int32_t* const fields[] = {&of->base, &of->coef, &of->off};
      *fields[below(3)] = value;
      return true;
    }
    Term& term = program_.terms[of->first_term + below(of->terms)];
    switch (below(5)) {
      case 0: term.coef = value; break;
      case 1: term.mul = value; break;
      case 2: term.add = value; break;
      case 3: term.div = positive; break;
      default: term.mod = positive;
    }
    return true;
  }

  bool after() {
    const std::int32_t after = dice_.one_in(3) ? 0 : action_->after + little();
    if (after < 0 || after == action_->after) return false;
    action_->after = static_cast<std::uint16_t>(after);
    return true;
  }

  bool order() {
    if (at_ + 1 >= program_.actions_count) return false;
    std::swap(program_.actions[at_], program_.actions[at_ + 1]);
    return true;
  }

  bool links() {
    if (program_.peers_count < 2) return false;
    std::swap(program_.peers[0], program_.peers[program_.peers_count - 1]);
    return true;
  }

  bool claimed_slots() {
    if (program_.scratch_blocks == 0) return false;
    --program_.scratch_blocks;
    return true;
  }

  bool clamp() {
    action_->clamp = !action_->clamp;
    return true;
  }

  // Keeps the instances as they were, except some that need not exist.
  bool pace() {
    const bool room = program_.indices_count < std::size(program_.indices) &&
                      program_.terms_count < std::size(program_.terms);
    if (action_->pace_ref != 0 || !room) return false;
    static constexpr std::int32_t kBy[] = {1, -1, 5, -5, 1 << 20};
    Term& term = program_.terms[program_.terms_count];
    term = {};
    term.coef = kBy[below(std::size(kBy))];
    term.mul = 1;
    term.add = static_cast<std::int32_t>(dice_.number(0, 2));
    term.mod = dice_.number(2, 4);
    Index& row = program_.indices[program_.indices_count];
    row = {};
    row.coef = 1;
    row.first_term = static_cast<std::uint8_t>(program_.terms_count++);
    row.terms = 1;
    action_->pace_ref = static_cast<std::uint8_t>(program_.indices_count++);
    return true;
  }

  bool near() {
    std::vector<Term*> far;
    for (std::uint32_t i = 0; i < program_.terms_count; ++i) {
      Term& term = program_.terms[i];
      if (term.coef > kFarFrom || term.coef < -kFarFrom) far.push_back(&term);
    }
    if (far.empty()) return false;
    static constexpr std::int32_t kBy[] = {3, 100, 1 << 14, 1 << 27, 1 << 28};
    const std::int32_t by = kBy[below(std::size(kBy))];
    // The terms may be a floor and a ceiling: both change.
    for (Term* term : far) term->coef = term->coef > 0 ? by : -by;
    return true;
  }

  // Makes rows advance with each instance instead of each round, or the other way round.
  bool rounds() {
    Index* of = row(dice_.one_in(2));
    if (of == nullptr) return false;
    if (of->div > 1) {
      of->div = 0;
      return true;
    }
    for (std::uint32_t k = 0; k < of->terms; ++k) {
      Term& term = program_.terms[of->first_term + k];
      if (term.div <= 1) continue;
      term.div = dice_.one_in(2) ? 1 : term.div + 1;
      return true;
    }
    if (of->coef == 0) return false;
    of->div = 2;
    return true;
  }

  // The same slots, as far as products of 64 bits go.
  bool overflow() {
    Index* of = row(true);
    const bool plain = of != nullptr && of->terms == 0 && of->div <= 1 && of->mod > 1;
    if (!plain || program_.terms_count == std::size(program_.terms)) return false;
    const auto mod = static_cast<std::int32_t>(of->mod);
    const std::int32_t mul = (dice_.one_in(2) ? 1 << 20 : 1 << 28) / mod * mod + 1;
    Term& term = program_.terms[program_.terms_count];
    term = {};
    term.coef = (kMaxField - mod) / mod * mod + (of->coef % mod + mod) % mod;
    term.mul = mul;
    of->coef = 0;
    of->first_term = static_cast<std::uint8_t>(program_.terms_count++);
    of->terms = 1;
    return true;
  }

  Programs& programs_;
  OwnedProgram& program_;
  std::uint32_t node_;
  Dice& dice_;
  std::uint32_t at_ = 0;
  Action* action_ = nullptr;
};

}  // namespace

Break break_one(Programs& programs, Dice& dice) {
  for (int tried = 0; tried < 20; ++tried) {
    const std::uint32_t node = dice.number(0, static_cast<std::uint32_t>(programs.size()) - 1);
    Break one = Breaker(programs, node, dice).any();
    if (!one.kind.empty()) return one;
  }
  return {};
}

Break lengthen_windows(Programs& programs) {
  for (Program& program : programs) ++program.window;
  return {"all ranks: a longer window", "all nodes"};
}

}  // namespace espalier::random
