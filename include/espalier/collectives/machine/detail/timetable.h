#pragma once
// The instances of one phase's actions in step order, without expanding them: for each action the
// next instance to let in, and the next to run. Freestanding. A step costs O(actions), a gap
// between steps nothing.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "espalier/base/limits.h"
#include "espalier/collectives/schedule/detail/index_cursor.h"
#include "espalier/collectives/schedule/program.h"

namespace espalier {

inline constexpr std::uint32_t kMaxActions = sizeof(Program::actions) / sizeof(Action);
static_assert(kMaxActions <= 64, "a step's actions are bits of 64");
// A set of a phase's actions, bit k: its k-th.
using Rows = std::conditional_t<kMaxActions <= 32, std::uint32_t, std::uint64_t>;

class Timetable {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  // Whether steps and instances, and what is reckoned with them, are in -most .. most. Where memory
  // has 32 bits the timetable takes no others: there it must be asked before start().
  static constexpr std::int64_t kMost = std::numeric_limits<std::ptrdiff_t>::max() / 2;
  [[nodiscard]] static bool fits(const Program& program, std::uint32_t blocks,
                                 std::int64_t most = kMost);
  // Before the first phase.
  void start(const Program& program, std::uint32_t blocks);
  // Goes to the first instances of the next phase that has any; after the last next_step() is
  // kNever. Instances that an index without mod and terms rules out are left out here; others must
  // be asked for with exists().
  void next_phase();

  // Step of the next instance to let in; kNever: none is left. Bit k of next_rows(): action
  // first_action + k has an instance in it; a send or receive with a pace in_step(k) of them, of
  // which at most kMaxInStep + 1 are counted.
  static constexpr std::uint32_t kMaxInStep = 255;
  [[nodiscard]] std::int64_t next_step() const { return next_step_; }
  [[nodiscard]] Rows next_rows() const { return next_rows_; }
  [[nodiscard]] std::uint32_t in_step(std::uint32_t row) const;
  // Lets in all instances of next_step(); sends and receives with a pace have run.
  void take_step();
  // False once a pace fell, left its phase, or that of a combine or copy did not rise; its action
  // has no instances any more.
  [[nodiscard]] bool good() const { return good_; }

  // Of the next instance to run of action first_action + row: does it exist, and an index' value.
  [[nodiscard]] bool exists(std::uint32_t row) const;
  [[nodiscard]] std::int64_t value(std::uint32_t row, std::uint32_t ref) const;
  // Of the one `ahead` after that.
  [[nodiscard]] bool exists(std::uint32_t row, std::uint32_t ahead) const;
  [[nodiscard]] std::int64_t value(std::uint32_t row, std::uint32_t ref, std::uint32_t ahead) const;
  // The block of a place of it, clamped where the action clamps.
  [[nodiscard]] std::int64_t block(std::uint32_t row, std::uint32_t ref) const;
  // It has run, or does not exist: the one after it is next.
  void advance(std::uint32_t row);

  [[nodiscard]] const Action& action(std::uint32_t row) const {
    return program_->actions[first_action_ + row];
  }
  [[nodiscard]] std::uint32_t first_action() const { return first_action_; }

 private:
  friend class PackedState;
  // What fits() has let in fits these.
  using Number = std::ptrdiff_t;
  static constexpr Number kNoStep = std::numeric_limits<Number>::max();
  struct Row {
    Number step = 0;                 // of the next instance to let in; kNoStep: there is none
    Number first_step = 0;           // of instance 0, or with a pace of value 0
    Number left = 0;                 // instances not let in yet
    Number i = 0;                    // next instance to run
    std::uint16_t first_cursor = 0;  // its stepped indices: cursors_[first_cursor ..]
    std::uint8_t cursors = 0;
    bool ahead = false;  // the cursor after them is the pace's, at the next instance to let in
  };
  struct Range {
    std::int64_t begin, end;
    void cut(std::int64_t from, std::int64_t to, std::uint32_t d);
  };

  void start_row(std::uint32_t at);
  [[nodiscard]] Range range(const Action& action, std::int64_t t0) const;
  [[nodiscard]] static std::uint32_t block_ref(const Action& action);
  void add_cursors(Row& row, const Action& action);
  void add_cursor(Row& row, std::uint32_t ref);
  void add_place(Row& row, bool present, const Place& place);
  void start_cursor(Row& row, std::uint32_t ref);
  [[nodiscard]] bool has_room(const Index& index) const;
  [[nodiscard]] bool paced(std::uint32_t row) const { return action(row).pace_ref != 0; }
  // Runs later than it is let in, so that the pace is ahead of the other indices.
  [[nodiscard]] static bool runs_later(const Action& action) {
    return action.kind == espalier_Kind_COMBINE || action.kind == espalier_Kind_COPY;
  }
  void start_pace(std::uint32_t row);
  void keep_pace(std::uint32_t row, std::int64_t earliest);
  [[nodiscard]] std::int64_t pace(std::uint32_t row) const;
  void find_next_step();
  // The row's next instance to let in may be the next of all.
  void offer(std::uint32_t row);

  // For actions that share a term each has its own cursor.
  static constexpr std::uint32_t kMaxTermCursors =
      std::min<std::uint32_t>(2 * sizeof(Program::terms) / sizeof(Term), kMaxCursors);

  const Program* program_ = nullptr;
  std::uint8_t next_phase_ = 0;
  std::uint8_t first_action_ = 0;  // of the phase
  std::uint8_t rows_count_ = 0;    // its actions
  bool good_ = false;              // from start() on
  std::uint32_t period_ = 0;
  std::uint32_t blocks_ = 0;
  std::int64_t first_step_ = 0, end_step_ = 0;  // of the phase
  std::int64_t next_step_ = 0;
  Rows next_rows_ = 0;
  Row rows_[kMaxActions];
  std::uint16_t cursors_count_ = 0;
  std::uint16_t terms_count_ = 0;
  std::uint8_t cursor_refs_[kMaxCursors] = {};
  IndexCursor cursors_[kMaxCursors];
  TermCursor terms_[kMaxTermCursors];
};

}  // namespace espalier
