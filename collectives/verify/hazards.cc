// Point 5: no read before write, no overwrite before last use, under any drift that window W lets
// a node have. Also whether input and output may be the same memory.
//
// Per node, from rules 2 to 7 alone. What other nodes do orders nothing here: it only delays.
// For each event we keep what is certain to have happened before it: a step up to which all has
// retired (rule 2), the later steps whose receives are complete, and how many combines and copies
// (which run in one fixed order, rule 5) have run. An access that must come first is safe exactly
// if it is among these. The accesses of a place are taken in the order of a lock-step run; ordering
// each against those since the last write orders all, since "before" is transitive.

#include <algorithm>
#include <array>
#include <map>

#include "collectives/verify/check.h"

namespace espalier::verify {
namespace {

// What is certain to have happened before an event. Steps are the schedule's.
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
    operations = std::max(operations, other.operations);
  }
};

// The accesses to one place so far.
struct Uses {
  const Instance* last = nullptr;   // latest by step
  const Instance* write = nullptr;  // latest write
  std::int64_t operation = -1;      // its number, if a combine or copy wrote
  bool changed = false;             // OUTPUT: by more than a copy of the same block of INPUT
};

class Node {
 public:
  Node(const Case& at, std::uint32_t node) : at_(at), node_(node) {
    const auto blocks =
        static_cast<std::size_t>(at.common->segments) * static_cast<std::size_t>(at.blocks);
    if (node < at.common->ranks) {
      input_.resize(blocks);
      output_.resize(blocks);
    }
    scratch_.resize(used_slots(at.instances[node]));
  }

  Finding check(Verdict& verdict) {
    verdict_ = &verdict;
    const std::vector<Instance>& all = at_.instances[node_];
    for (std::size_t begin = 0; begin < all.size();) {
      std::size_t end = begin;
      while (end < all.size() && all[end].step == all[begin].step) ++end;
      if (Finding finding = check_step(begin, end)) return finding;
      begin = end;
    }
    return std::nullopt;
  }

 private:
  Finding check_step(std::size_t begin, std::size_t end) {
    const std::vector<Instance>& all = at_.instances[node_];
    const Instance& first = all[begin];
    let_in_ = Known{};
    let_in_.retire(at_.gate(first.step, first.phase));
    Finding finding;
    for (std::size_t k = begin; k < end && !finding; ++k) {
      if (all[k].kind == espalier_Kind_SEND) finding = check_send(all[k]);
    }
    for (std::size_t k = begin; k < end && !finding; ++k) {
      if (all[k].kind == espalier_Kind_RECEIVE) finding = check_receive(all[k]);
    }
    Known ready = let_in_;
    ready.add_received(first.step);
    for (std::size_t k = begin; k < end && !finding; ++k) {
      if (all[k].kind != espalier_Kind_COMBINE && all[k].kind != espalier_Kind_COPY) continue;
      finding = check_operation(all[k]);
      ready.merge(run_);
    }
    ready_[static_cast<std::size_t>(first.step % kMostWindow)] = {first.step, ready};
    return finding;
  }

  // Rule 4: posted when let in, once step - after is ready, behind the link's earlier sends.
  Finding check_send(const Instance& send) {
    Known posted = let_in_;
    const std::int64_t awaited = send.step - send.after;
    if (send.after > 0 && awaited > let_in_.retired) {
      // Steps less than a window back: a ring holds them. Without instances nothing is known.
      const Ready& ready = ready_[static_cast<std::size_t>(awaited % kMostWindow)];
      if (ready.step == awaited) posted.merge(ready.known);
    }
    const auto [link, fresh] = last_send_.try_emplace(send.link, posted);
    if (!fresh) {
      link->second.merge(posted);
      posted = link->second;
    }
    all_posted_.merge(posted);
    return check_read(send, send.a, posted);
  }

  // Rule 7: it may write from the time its step is let in.
  Finding check_receive(const Instance& receive) {
    for (std::uint32_t part = 0; part < receive.into.run; ++part) {
      const PlaceAt into = part_of(receive.into, part);
      Uses& uses = of(into);
      if (uses.last != nullptr && uses.last->step > let_in_.retired) {
        return too_early(receive, into, *uses.last);
      }
      if (into.buffer == espalier_Buffer_OUTPUT) {
        const Uses& input = input_[index(into)];
        if (input.last != nullptr && input.last->step > let_in_.retired) verdict_->in_place = false;
      }
      uses = {&receive, &receive, -1, true};
    }
    return std::nullopt;
  }

  // Rule 5. (c) puts the sends of its step and before ahead of it, (d) waits for their end.
  Finding check_operation(const Instance& operation) {
    Known before = let_in_;
    before.merge(run_);
    before.merge(all_posted_);
    before.add_received(operation.step - operation.after);
    run_ = before;
    run_.operations = ++operations_;
    if (Finding finding = check_read(operation, operation.a, before)) return finding;
    if (operation.kind == espalier_Kind_COMBINE) {
      if (Finding finding = check_read(operation, operation.b, before)) return finding;
    }
    for (std::uint32_t part = 0; part < operation.into.run; ++part) {
      const PlaceAt into = part_of(operation.into, part);
      Uses& uses = of(into);
      if (uses.write != nullptr && uses.write->kind == espalier_Kind_RECEIVE &&
          !before.received(uses.write->step)) {
        return too_early(operation, into, *uses.write);
      }
      const bool same = operation.kind == espalier_Kind_COPY &&
                        operation.a.buffer == espalier_Buffer_INPUT &&
                        operation.a.segment == operation.into.segment;
      uses = {&operation, &operation, operations_ - 1, uses.changed || !same};
    }
    return std::nullopt;
  }

  Finding check_read(const Instance& reader, const PlaceAt& place, const Known& before) {
    for (std::uint32_t part = 0; part < place.run; ++part) {
      if (Finding finding = check_part(reader, part_of(place, part), before)) return finding;
    }
    return std::nullopt;
  }

  Finding check_part(const Instance& reader, const PlaceAt& place, const Known& before) {
    Uses& uses = of(place);
    uses.last = &reader;
    if (place.buffer == espalier_Buffer_INPUT) {
      if (output_[index(place)].changed) verdict_->in_place = false;
      return std::nullopt;
    }
    if (uses.write == nullptr) {
      return found(Point::kHazards, at_, node_, &reader,
                   place_name(place) + " is read, but nothing has been written to it");
    }
    const bool safe = uses.operation >= 0 ? ran(*uses.write, uses.operation, before)
                                          : before.received(uses.write->step);
    if (safe) return std::nullopt;
    const std::int64_t back = reader.step - uses.write->step;
    return found(Point::kHazards, at_, node_, &reader,
                 place_name(place) + " is read before it must be written: action " +
                     std::to_string(uses.write->action) + " of step " +
                     std::to_string(uses.write->step) +
                     " writes it, and after = " + std::to_string(reader.after) +
                     " does not wait for that; after = " + std::to_string(back) + " would");
  }

  static bool ran(const Instance& operation, std::int64_t number, const Known& before) {
    return number < before.operations || operation.step <= before.retired;
  }

  Finding too_early(const Instance& writer, const PlaceAt& place, const Instance& earlier) {
    const bool send = earlier.kind == espalier_Kind_SEND;
    return found(Point::kHazards, at_, node_, &writer,
                 place_name(place) + " may be overwritten too early: action " +
                     std::to_string(earlier.action) + " of step " + std::to_string(earlier.step) +
                     (send ? " may still be sending from it" : " uses it") + "; with window " +
                     std::to_string(at_.common->window) + " only steps up to " +
                     std::to_string(let_in_.retired) + " are sure to be over" +
                     smaller_window(writer.step - earlier.step));
  }

  static std::string smaller_window(std::int64_t steps) {
    return steps < 1 ? "" : "; a window of " + std::to_string(steps) + " would do";
  }

  [[nodiscard]] std::size_t index(const PlaceAt& place) const {
    return static_cast<std::size_t>(place.segment * at_.blocks + place.block);
  }
  Uses& of(const PlaceAt& place) {
    ++verdict_->checks;
    if (place.buffer == espalier_Buffer_SCRATCH) {
      return scratch_[static_cast<std::size_t>(place.slot)];
    }
    return (place.buffer == espalier_Buffer_INPUT ? input_ : output_)[index(place)];
  }

  const Case& at_;
  std::uint32_t node_;
  Verdict* verdict_ = nullptr;
  struct Ready {
    std::int64_t step = -1;
    Known known;
  };
  std::array<Ready, kMostWindow> ready_;     // before a step is known to be ready
  std::map<std::int64_t, Known> last_send_;  // by link
  Known let_in_;                             // before the step is let in
  Known run_;                                // before the last combine or copy, and itself
  Known all_posted_;                         // before the posting of all sends so far
  std::int64_t operations_ = 0;
  std::vector<Uses> input_, output_, scratch_;
};

}  // namespace

Finding check_hazards(const Case& at, std::uint32_t node, Verdict& verdict) {
  return Node(at, node).check(verdict);
}

}  // namespace espalier::verify
