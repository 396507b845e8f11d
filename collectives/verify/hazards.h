#pragma once
// What one node's machine waits for, and whether that is enough: the rules of the point "hazards"
// (docs/verifier.md), event by event. Internal to collectives/verify.

#include <array>
#include <cstdint>
#include <vector>

#include "espalier/collectives/verify/verify.h"

namespace espalier::verify {

// What is certain to have happened before an event.
struct Known {
  std::int64_t retired = -1;    // all steps up to here have retired
  std::uint64_t receives = 0;   // bit j: the receives of step retired + 1 + j are complete
  std::int64_t operations = 0;  // so many combines and copies have run

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

// Accesses to one place so far, in the order of a lock-step run. Events are numbers of the
// caller's.
struct PlaceUses {
  static constexpr std::int64_t kNever = INT64_MIN;
  std::int64_t last_step = kNever, last = -1;    // the latest access
  std::int64_t write_step = kNever, write = -1;  // the latest write
  std::int64_t operation = -1;  // the number of the combine or copy that wrote; -1: another event
  bool changed = false;         // OUTPUT: by more than a copy of the same block of INPUT
};

// Takes a node's events step by step: in each step sends, then receives, then operations, each kind
// in the program's order.
class HazardRules {
 public:
  // Links are 0 .. links-1. Steps must not fall from one step to the next.
  explicit HazardRules(std::size_t links) : last_send_(links) {}

  // All steps up to `retired` have retired before `step` is let in (rule 2).
  void begin_step(std::int64_t step, std::int64_t retired);
  // What is known when a send is posted (rule 4), and when an operation runs (rule 5).
  [[nodiscard]] const Known& post_send(std::size_t link, std::int64_t after);
  // As if no message had been sent on the send's link before: less is known then, never more.
  [[nodiscard]] const Known& post_send_alone(std::int64_t after);
  [[nodiscard]] const Known& run_operation(std::int64_t after);
  void end_step();
  [[nodiscard]] const Known& let_in() const { return let_in_; }
  // The number of the operation that run_operation() began.
  [[nodiscard]] std::int64_t operation() const { return operations_ - 1; }

  // Whether a read of what `uses` holds is certain to come after the write. It was written.
  [[nodiscard]] static bool is_written(const PlaceUses& uses, const Known& before) {
    if (uses.operation < 0) return before.received(uses.write_step);
    return uses.operation < before.operations || uses.write_step <= before.retired;
  }
  // Whether a receive of this step may overwrite the place: every access so far has retired.
  [[nodiscard]] bool is_free(const PlaceUses& uses) const {
    return uses.last_step <= let_in_.retired;
  }
  // Whether an operation may overwrite it: sends that read it are waited for, operations run in
  // order, so only a receive could still be writing.
  [[nodiscard]] static bool is_received(const PlaceUses& uses, const Known& before) {
    return uses.write_step == PlaceUses::kNever || uses.operation >= 0 ||
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
  std::array<Ready, kMostWindow> ready_;  // before a step is known to be ready
  std::vector<LastSend> last_send_;       // by link
  std::int64_t step_ = 0;
  Known let_in_;      // before the step is let in
  Known posted_;      // before the last send was posted
  Known run_;         // before the last combine or copy, and itself
  Known all_posted_;  // before the posting of all sends so far
  bool operated_ = false;
  std::int64_t operations_ = 0;
};

}  // namespace espalier::verify
