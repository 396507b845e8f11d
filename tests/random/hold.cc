// Hazards of one node, by holding back one event at a time. Part of brute.h.

#include <algorithm>

#include "tests/random/brute.h"

namespace espalier::random {
namespace {

class Holder {
 public:
  Holder(const NodeEvents& node, InPlace in_place)
      : node_(node), events_(node.events), window_(node.program->window) {
    if (in_place != InPlace::kYes) return;
    const auto [in_first, in_end] = given_segments(*node.program, espalier_Buffer_INPUT);
    const auto [out_first, out_end] = given_segments(*node.program, espalier_Buffer_OUTPUT);
    shared_first_ = std::max(in_first, out_first);
    shared_end_ = std::min(in_end, out_end);
  }

  std::string find() {
    for (held_ = 0; held_ < events_.size(); ++held_) {
      find_open();
      candidates_.clear();
      for (std::size_t k = begin_; k < end_; ++k) {
        if (k != held_ && comes_after(k, held_) && collide(events_[held_], events_[k])) {
          candidates_.push_back(k);
        }
      }
      if (candidates_.empty()) continue;
      go_on();
      for (const std::size_t k : candidates_) {
        if (!begun_[k - begin_]) continue;
        return "node " + std::to_string(node_.program->node) + ": action " +
               std::to_string(events_[k].action) + " of step " + std::to_string(events_[k].step) +
               " does not wait for action " + std::to_string(events_[held_].action) + " of step " +
               std::to_string(events_[held_].step) + ", which uses the same memory";
      }
    }
    return {};
  }

 private:
  static int turn(const Event& event) {
    return event.is_send() ? 0 : event.is_receive() ? 1 : 2;
  }
  [[nodiscard]] bool comes_after(std::size_t k, std::size_t other) const {
    const Event& a = events_[k];
    const Event& b = events_[other];
    if (a.step != b.step) return a.step > b.step;
    return turn(a) != turn(b) ? turn(a) > turn(b) : k > other;
  }

  // Input is only read, but where it is the output's memory.
  [[nodiscard]] std::uint8_t buffer_of(const Memory& place) const {
    const bool shared = place.segment >= shared_first_ && place.segment < shared_end_;
    const auto output = static_cast<std::uint8_t>(espalier_Buffer_OUTPUT);
    return place.buffer == espalier_Buffer_INPUT && shared ? output : place.buffer;
  }
  [[nodiscard]] bool overlap(const Memory& a, const Memory& b) const {
    const std::uint8_t buffer = buffer_of(a);
    if (buffer == 0 || buffer != buffer_of(b)) return false;
    const bool slots = buffer == espalier_Buffer_SCRATCH;
    const std::int32_t first = slots ? a.slot : a.segment, other = slots ? b.slot : b.segment;
    return first < other + b.run && other < first + a.run && (slots || a.block == b.block);
  }
  // A copy of a block onto itself changes nothing.
  [[nodiscard]] bool changes(const Event& event) const {
    const bool same = event.kind == espalier_Kind_COPY &&
                      event.a.buffer == espalier_Buffer_INPUT &&
                      event.a.segment == event.into.segment;
    return !same || buffer_of(event.a) != event.into.buffer;
  }
  // Whether the two use the same memory, and one of them writes it.
  [[nodiscard]] bool collide(const Event& a, const Event& b) const {
    if (!changes(a) || !changes(b)) return false;
    return overlap(a.into, b.into) || overlap(a.into, b.a) || overlap(a.into, b.b) ||
           overlap(b.into, a.a) || overlap(b.into, a.b);
  }

  // The events of the steps that can be issued while the held one's has not retired: all before
  // have.
  void find_open() {
    const std::int64_t first = events_[held_].step;
    const std::int64_t last =
        std::min(first + window_, node_.phase_ends[events_[held_].phase]) - 1;
    begin_ = held_;
    while (begin_ > 0 && events_[begin_ - 1].step == first) --begin_;
    end_ = held_;
    while (end_ < events_.size() && events_[end_].step <= last) ++end_;
  }

  void go_on() {
    begun_.assign(end_ - begin_, false);
    done_.assign(end_ - begin_, false);
    for (bool moved = true; moved;) {
      moved = false;
      bool operations = true;  // those before have run
      for (std::size_t k = begin_; k < end_; ++k) {
        const bool may = !begun_[k - begin_] && may_begin(k, operations);
        if (may) {
          moved = true;
          begun_[k - begin_] = true;
          done_[k - begin_] = k != held_;
        }
        if (events_[k].is_operation()) operations = operations && done_[k - begin_];
      }
    }
  }

  [[nodiscard]] bool may_begin(std::size_t k, bool operations) const {
    const Event& event = events_[k];
    if (event.is_receive()) return true;
    if (event.is_send()) {
      for (std::size_t j = begin_; j < k; ++j) {
        const bool before = events_[j].is_send() && events_[j].peer == event.peer;
        if (before && !begun_[j - begin_]) return false;
      }
      return event.after == 0 || ready(event.step - event.after, true);
    }
    if (!operations || !ready(event.step - event.after, false)) return false;
    for (std::size_t j = begin_; j < end_ && events_[j].step <= event.step; ++j) {
      if (events_[j].is_send() && !begun_[j - begin_]) return false;
    }
    const Event& held = events_[held_];
    return !(held.is_send() && begun_[held_ - begin_] && changes(event) &&
             overlap(held.a, event.into));
  }

  // The step's receives are complete, and, if asked, its operations have run.
  [[nodiscard]] bool ready(std::int64_t step, bool operations) const {
    for (std::size_t k = begin_; k < end_ && events_[k].step <= step; ++k) {
      if (events_[k].step != step || events_[k].is_send() || done_[k - begin_]) continue;
      if (operations || events_[k].is_receive()) return false;
    }
    return true;
  }

  const NodeEvents& node_;
  const std::vector<Event>& events_;
  std::int64_t window_;
  std::int64_t shared_first_ = 0, shared_end_ = 0;  // segments of input and output in one memory
  std::size_t held_ = 0, begin_ = 0, end_ = 0;
  std::vector<std::size_t> candidates_;
  std::vector<bool> begun_, done_;  // from begin_ on
};

}  // namespace

std::string find_hazard(const NodeEvents& node, InPlace in_place) {
  return Holder(node, in_place).find();
}

}  // namespace espalier::random
