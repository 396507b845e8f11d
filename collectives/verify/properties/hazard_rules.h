#pragma once
// The events that a node's machine waits for, by the rules of property hazards (docs/verifier.md),
// and whether they suffice for an access. Internal to collectives/verify.

#include <array>
#include <cstdint>
#include <vector>

#include "espalier/collectives/verify/verify.h"
#include "espalier/internal/base/assert.h"

namespace espalier::verify {

// The events that are guaranteed to precede an event.
struct Known {
  std::int64_t retired = -1;    // all steps up to this one have retired
  std::uint64_t receives = 0;   // bit j: the receives of step retired + 1 + j are complete
  std::int64_t operations = 0;  // number of combines and copies that have run

  [[nodiscard]] bool received(std::int64_t step) const {
    if (step <= retired) return true;
    const std::int64_t bit = step - retired - 1;
    return bit < 64 && ((receives >> bit) & 1) != 0;
  }
  void add_received(std::int64_t step) {
    // step - retired - 1 < W <= 64: a step in flight.
    if (step > retired) receives |= std::uint64_t{1} << (step - retired - 1);
  }
  void retire(std::int64_t step) {
    if (step <= retired) return;
    const std::int64_t by = step - retired;
    receives = by < 64 ? receives >> by : 0;
    retired = step;
  }
  void merge(Known other) {
    if (other.retired < retired) other.retire(retired);
    retire(other.retired);
    receives |= other.receives;
    operations = operations > other.operations ? operations : other.operations;
  }
};

// The accesses to one place so far, in the order of a lock-step run. The caller numbers the
// events.
struct OperandUses {
  static constexpr std::int64_t kNever = INT64_MIN;
  std::int64_t last_step = kNever, last = -1;    // the latest access
  std::int64_t write_step = kNever, write = -1;  // the latest write
  std::int64_t operation = -1;  // number of the combine or copy that wrote; -1: another event
  bool changed = false;  // OUTPUT: written by anything except a copy of the same block of INPUT
};

// Takes the events of a node step by step. The order in each step is: sends, receives, operations;
// within each kind, the order of the program.
class HazardRules {
 public:
  // Links are 0 .. links-1. Steps must not decrease.
  explicit HazardRules(std::size_t links) : last_send_(links) {}

  // Begins `step`. All steps up to `retired` have retired before it is issued (rule 2).
  void begin_step(std::int64_t step, std::int64_t retired);
  // Return the events that precede the posting of a send (rule 4), and an operation (rule 5).
  [[nodiscard]] const Known& post_send(std::size_t link, std::int64_t after);
  // Does the same without earlier sends on the link. The result contains no event that post_send()
  // would not return.
  [[nodiscard]] const Known& post_send_alone(std::int64_t after);
  [[nodiscard]] const Known& run_operation(std::int64_t after);
  void end_step();
  [[nodiscard]] const Known& before_issue() const { return before_issue_; }
  // The number of the latest operation passed to run_operation().
  [[nodiscard]] std::int64_t operation() const { return operations_ - 1; }

  // Whether the latest write is guaranteed to precede a read. There must be a write.
  [[nodiscard]] static bool is_written(const OperandUses& uses, const Known& before) {
    ESPALIER_ASSERT(uses.write >= 0);
    if (uses.operation < 0) return before.received(uses.write_step);
    return uses.operation < before.operations || uses.write_step <= before.retired;
  }
  // Whether a receive of the current step may overwrite the place: every access so far has retired.
  [[nodiscard]] bool is_free(const OperandUses& uses) const {
    return uses.last_step <= before_issue_.retired;
  }
  // Whether an operation may overwrite the place. It waits for sends that read the place, and
  // operations run in order, so only a receive could still be writing.
  [[nodiscard]] static bool is_received(const OperandUses& uses, const Known& before) {
    return uses.write_step == OperandUses::kNever || uses.operation >= 0 ||
           before.received(uses.write_step);
  }

 private:
  struct Ready {
    std::int64_t step = -1;
    Known known;
  };
  struct LastSend {
    bool sent = false;
    Known known;
  };
  std::array<Ready, kMaxVerifiedWindow> ready_;  // events that precede "this step is ready"
  std::vector<LastSend> last_send_;              // by link
  std::int64_t step_ = 0;
  Known before_issue_;  // events that precede the issue of the step
  Known posted_;        // events that precede the latest post of a send
  Known run_;           // the latest combine or copy, and the events that precede it
  Known all_posted_;    // union over the posts of all sends so far
  bool operated_ = false;
  std::int64_t operations_ = 0;
};

}  // namespace espalier::verify
