#pragma once
// The instance scheduler: the instances of one phase's actions in step order, without expanding
// them. For each action it holds the next instance to issue and the next to run. Freestanding. A
// step costs O(actions); empty steps cost nothing.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "espalier/collectives/schedule/program.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/limits.h"
#include "espalier/internal/base/step_limits.h"
#include "espalier/internal/collectives/schedule/index_cursor.h"

namespace espalier {

class PackedState;

// Maximum number of actions of a program.
inline constexpr std::uint32_t kMaxActions = sizeof(Program::actions) / sizeof(Action);
static_assert(kMaxActions <= 64, "a step's actions are bits of 64");
// A set of a phase's actions: bit k is row k, which is action first_action() + k.
using Rows = std::conditional_t<kMaxActions <= 32, std::uint32_t, std::uint64_t>;
// Returns the set of this row alone.
constexpr Rows row_bit(std::uint32_t row) { return Rows{1} << row; }

inline namespace ESPALIER_MACHINE_BUILD {
// An instance scheduler. In its functions `row` is a row of the current phase, and `ref` a position
// in Program.indices.
class InstanceScheduler {
 public:
  // A step number above all others: there is no next step.
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  // The largest value that the scheduler can hold on this target.
  static constexpr std::int64_t kMaxValue = std::numeric_limits<std::ptrdiff_t>::max() / 2;
  // Whether all step numbers, instance numbers and values computed from them lie in -max .. max.
  // On 32-bit targets call it before start(): the scheduler cannot hold larger values.
  [[nodiscard]] static bool fits(const Program& program, std::uint32_t blocks,
                                 std::int64_t max = kMaxValue);
  // Begins `program`, which must outlive this use, for N = `blocks`: goes to its first phase with
  // instances.
  void start(const Program& program, std::uint32_t blocks);
  // As start() with what `started` was started with; it must not have gone on.
  void start_as(const InstanceScheduler& started);
  // Begins `program` with no instance left.
  void start_at_end(const Program& program);
  // Whether no phase follows this one.
  [[nodiscard]] bool in_last_phase() const { return next_phase_ == program_->phases_count; }
  // Goes to the first instances of the next phase that has any. After the last phase next_step() is
  // kNever. Instances whose block is outside 0 .. N-1 are skipped here if the block's index has
  // neither mod nor terms; call exists() for the others.
  void next_phase();

  static constexpr std::uint32_t kMaxInStep = kMaxStepInstances;  // of a row
  // Returns the step of the next instances to issue; kNever: none is left.
  [[nodiscard]] std::int64_t next_step() const { return next_step_; }
  // Returns the rows with instances in next_step().
  [[nodiscard]] Rows next_rows() const { return next_rows_; }
  // Returns the number of the row's instances in next_step(): 1 without a pace. Stops counting at
  // kMaxInStep + 1.
  [[nodiscard]] std::uint32_t in_step(std::uint32_t row) const;
  // Issues all instances of next_step(). Before that, call advance() for each instance in it of a
  // send or receive with a pace.
  void take_step();
  // False once a pace decreased or left its phase, or a combine or copy had more than kMaxInStep
  // instances in a step. That action yields no further instances.
  [[nodiscard]] bool good() const { return good_; }

  // Whether the row's next instance to run exists.
  [[nodiscard]] bool exists(std::uint32_t row) const;
  // Returns the value of index `ref` at the row's next instance to run.
  [[nodiscard]] std::int64_t value(std::uint32_t row, std::uint32_t ref) const;
  // exists() and value() for the instance `ahead` instances after that.
  [[nodiscard]] bool exists(std::uint32_t row, std::uint32_t ahead) const;
  [[nodiscard]] std::int64_t value(std::uint32_t row, std::uint32_t ref, std::uint32_t ahead) const;
  // Returns the block index `ref` at the row's next instance to run, clamped if the action clamps.
  [[nodiscard]] std::int64_t block(std::uint32_t row, std::uint32_t ref) const;
  // Goes to the row's following instance. Call when the current one has run or does not exist.
  void advance(std::uint32_t row);
  // Returns the number of the row's instances that are issued but have not run: 0 for sends and
  // receives.
  [[nodiscard]] std::uint32_t waiting(std::uint32_t row) const;
  // Whether the row's next instance to run is issued, in step `step`. Only rows with a pace have
  // several instances in a step.
  [[nodiscard]] bool runs_again(std::uint32_t row, std::int64_t step) const;

  // Returns the row's action.
  [[nodiscard]] const Action& action(std::uint32_t row) const {
    ESPALIER_ASSERT(row < rows_count_);
    return program_->actions[first_action_ + row];
  }
  // Returns the position of row 0's action in the program.
  [[nodiscard]] std::uint32_t first_action() const { return first_action_; }

 private:
  friend PackedState;
  // Holds every value that fits() accepts.
  using Number = std::ptrdiff_t;
  static constexpr Number kNoStep = std::numeric_limits<Number>::max();
  struct Row {
    Number step = 0;                 // step of the next instance to issue; kNoStep: there is none
    Number first_step = 0;           // step of instance 0; with a pace, step of pace 0
    Number unissued = 0;             // instances not issued yet
    Number i = 0;                    // next instance to run
    std::uint16_t first_cursor = 0;  // the row's stepped indices: `cursors` cursors from here
    std::uint8_t cursors = 0;
    bool has_pace_cursor =
        false;  // the cursor after these is the pace's, at the next instance to issue
  };
  // Instances begin .. end-1.
  struct Range {
    std::int64_t begin, end;
    void cut(std::int64_t from, std::int64_t to, std::uint32_t d);
  };

  void start_row(std::uint32_t row);
  [[nodiscard]] Range range(const Action& action, std::int64_t t0) const;
  [[nodiscard]] static std::uint32_t block_ref(const Action& action);
  void add_cursors(Row& row, const Action& action);
  void add_cursor(Row& row, std::uint32_t ref);
  void add_operand(Row& row, bool present, const Operand& operand);
  void start_cursor(Row& row, std::uint32_t ref);
  [[nodiscard]] bool has_room(const Index& index) const;
  [[nodiscard]] bool has_pace(std::uint32_t row) const { return action(row).pace_ref != 0; }
  // Whether the action's instances run after they are issued: then the pace is ahead of the other
  // indices.
  [[nodiscard]] static bool runs_later(const Action& action) {
    return action.kind == ActionKind::kCombine || action.kind == ActionKind::kCopy;
  }
  void start_pace(std::uint32_t row);
  void update_step(std::uint32_t row, std::int64_t earliest);
  void issue_paced(std::uint32_t row);
  [[nodiscard]] std::int64_t step_of_pace(std::uint32_t row, std::int64_t pace) const;
  [[nodiscard]] std::int64_t pace(std::uint32_t row) const;
  void find_next_step();
  // Merges the row's next instance to issue into next_step_ and next_rows_.
  void merge(std::uint32_t row);

  // Asserts what holds between two calls.
  void check_invariants() const {
    ESPALIER_ASSERT(program_ != nullptr && next_phase_ <= program_->phases_count);
    // Without rows it may be that of an earlier program (start_at_end()).
    ESPALIER_ASSERT(rows_count_ == 0 ||
                    std::uint32_t{first_action_} + rows_count_ <= program_->actions_count);
    ESPALIER_ASSERT(cursors_count_ <= kMaxCursors && terms_count_ <= kMaxTermCursors);
    ESPALIER_ASSERT((next_step_ == kNever) == (next_rows_ == 0));
    ESPALIER_ASSERT(next_step_ == kNever || first_step_ <= next_step_);
    ESPALIER_ASSERT(next_step_ == kNever || next_step_ < end_step_);
    ESPALIER_ASSERT(rows_count_ == kMaxActions || next_rows_ >> rows_count_ == 0);
  }
  // Actions that share a term have a cursor each, hence the factor 2.
  static constexpr std::uint32_t kMaxTermCursors =
      std::min<std::uint32_t>(2 * sizeof(Program::terms) / sizeof(Term), kMaxCursors);

  const Program* program_ = nullptr;
  std::uint8_t next_phase_ = 0;
  std::uint8_t first_action_ = 0;  // position of the phase's first action in the program
  std::uint8_t rows_count_ = 0;    // number of the phase's actions
  bool good_ = false;              // true after start(): see good()
  std::uint32_t period_ = 0;
  std::uint32_t blocks_ = 0;
  std::int64_t first_step_ = 0, end_step_ = 0;  // the phase's steps are first_step_ .. end_step_-1
  std::int64_t next_step_ = 0;
  Rows next_rows_ = 0;
  Row rows_[kMaxActions];
  std::uint16_t cursors_count_ = 0;
  std::uint16_t terms_count_ = 0;
  std::uint8_t cursor_refs_[kMaxCursors] = {};
  IndexCursor cursors_[kMaxCursors];
  TermCursor terms_[kMaxTermCursors];
};
}  // namespace ESPALIER_MACHINE_BUILD

}  // namespace espalier
