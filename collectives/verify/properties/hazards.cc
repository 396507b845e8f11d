#include <algorithm>
#include <string>
#include <vector>

#include "collectives/verify/properties/checks.h"
#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/hazard_rules.h"
#include "collectives/verify/properties/operands.h"

namespace espalier::verify {
namespace {

// Applies the rules to the instances of one node.
class HazardChecker {
 public:
  HazardChecker(const ExpandedSchedule& schedule, std::uint32_t node,
                const std::vector<Instance>& all)
      : schedule_(schedule), node_(node), all_(all), rules_(links_of(all)) {
    const auto blocks = static_cast<std::size_t>(schedule.common->segments) *
                        static_cast<std::size_t>(schedule.blocks);
    if (node < schedule.common->ranks) {
      input_.resize(blocks);
      output_.resize(blocks);
    }
    scratch_.resize(used_slots(all));
  }

  Finding check(Verdict& verdict) {
    verdict_ = &verdict;
    for (std::size_t begin = 0; begin < all_.size();) {
      std::size_t end = begin;
      while (end < all_.size() && all_[end].step == all_[begin].step) ++end;
      rules_.begin_step(all_[begin].step, schedule_.gate(all_[begin].step, all_[begin].phase));
      for (int turn = 0; turn < 3; ++turn) {
        for (std::size_t k = begin; k < end; ++k) {
          if (turn_of(all_[k].kind) != turn) continue;
          if (Finding finding = check_one(k)) return finding;
        }
      }
      rules_.end_step();
      begin = end;
    }
    return std::nullopt;
  }

 private:
  static std::size_t links_of(const std::vector<Instance>& all) {
    std::int64_t links = 0;
    for (const Instance& one : all) links = std::max(links, one.link + 1);
    return static_cast<std::size_t>(links);
  }

  Finding check_one(std::size_t k) {
    const Instance& one = all_[k];
    if (one.kind == ActionKind::kSend) {
      return check_read(k, one.a, rules_.post_send(static_cast<std::size_t>(one.link), one.after));
    }
    return one.kind == ActionKind::kReceive ? check_receive(k) : check_operation(k);
  }

  // Rule 7: it may write any time after its step is issued.
  Finding check_receive(std::size_t k) {
    const Instance& receive = all_[k];
    for (std::uint32_t part = 0; part < receive.into.segment_count; ++part) {
      const OperandAt into = part_of(receive.into, part);
      OperandUses& uses = of(into);
      if (!rules_.is_free(uses)) return too_early(receive, into, instance(uses.last));
      if (into.buffer == Buffer::kOutput && !rules_.is_free(input_[index(into)])) {
        verdict_->in_place = false;
      }
      uses = written(k, -1, true);
    }
    return std::nullopt;
  }

  Finding check_operation(std::size_t k) {
    const Instance& operation = all_[k];
    const Known& before = rules_.run_operation(operation.after);
    if (Finding finding = check_read(k, operation.a, before)) return finding;
    if (operation.kind == ActionKind::kCombine) {
      if (Finding finding = check_read(k, operation.b, before)) return finding;
    }
    for (std::uint32_t part = 0; part < operation.into.segment_count; ++part) {
      const OperandAt into = part_of(operation.into, part);
      OperandUses& uses = of(into);
      if (!HazardRules::is_received(uses, before)) {
        return too_early(operation, into, instance(uses.write));
      }
      const bool same = operation.kind == ActionKind::kCopy &&
                        operation.a.buffer == Buffer::kInput &&
                        operation.a.segment == operation.into.segment;
      uses = written(k, rules_.operation(), uses.changed || !same);
    }
    return std::nullopt;
  }

  Finding check_read(std::size_t k, const OperandAt& operand, const Known& before) {
    for (std::uint32_t part = 0; part < operand.segment_count; ++part) {
      if (Finding finding = check_part(k, part_of(operand, part), before)) return finding;
    }
    return std::nullopt;
  }

  Finding check_part(std::size_t k, const OperandAt& operand, const Known& before) {
    const Instance& reader = all_[k];
    OperandUses& uses = of(operand);
    uses.last = static_cast<std::int64_t>(k);
    uses.last_step = reader.step;
    if (operand.buffer == Buffer::kInput) {
      if (output_[index(operand)].changed) verdict_->in_place = false;
      return std::nullopt;
    }
    if (uses.write < 0) {
      return found(Property::kHazards, schedule_, node_, &reader,
                   operand_name(operand) + " is read, but nothing has been written to it");
    }
    if (HazardRules::is_written(uses, before)) return std::nullopt;
    const std::int64_t back = reader.step - uses.write_step;
    return found(Property::kHazards, schedule_, node_, &reader,
                 operand_name(operand) + " is read before it must be written: action " +
                     std::to_string(instance(uses.write).action) + " of step " +
                     std::to_string(uses.write_step) +
                     " writes it, and after = " + std::to_string(reader.after) +
                     " does not wait for that; after = " + std::to_string(back) + " would");
  }

  Finding too_early(const Instance& writer, const OperandAt& operand, const Instance& earlier) {
    const bool send = earlier.kind == ActionKind::kSend;
    return found(Property::kHazards, schedule_, node_, &writer,
                 operand_name(operand) + " may be overwritten too early: action " +
                     std::to_string(earlier.action) + " of step " + std::to_string(earlier.step) +
                     (send ? " may still be sending from it" : " uses it") + "; with window " +
                     std::to_string(schedule_.common->window) + " only steps up to " +
                     std::to_string(rules_.before_issue().retired) + " are sure to be over" +
                     smaller_window(writer.step - earlier.step));
  }

  static std::string smaller_window(std::int64_t steps) {
    return steps < 1 ? "" : "; a window of " + std::to_string(steps) + " would do";
  }

  [[nodiscard]] OperandUses written(std::size_t k, std::int64_t operation, bool changed) const {
    const auto event = static_cast<std::int64_t>(k);
    return {all_[k].step, event, all_[k].step, event, operation, changed};
  }
  [[nodiscard]] const Instance& instance(std::int64_t event) const {
    return all_[static_cast<std::size_t>(event)];
  }
  [[nodiscard]] std::size_t index(const OperandAt& operand) const {
    return static_cast<std::size_t>(operand.segment * schedule_.blocks + operand.block);
  }
  OperandUses& of(const OperandAt& operand) {
    ++verdict_->checks;
    if (operand.buffer == Buffer::kScratch) {
      return scratch_[static_cast<std::size_t>(operand.slot)];
    }
    return (operand.buffer == Buffer::kInput ? input_ : output_)[index(operand)];
  }

  const ExpandedSchedule& schedule_;
  std::uint32_t node_;
  const std::vector<Instance>& all_;
  Verdict* verdict_ = nullptr;
  HazardRules rules_;
  std::vector<OperandUses> input_, output_, scratch_;
};

}  // namespace

Finding check_hazards(const ExpandedSchedule& schedule, std::uint32_t node, Verdict& verdict) {
  return HazardChecker(schedule, node, schedule.instances[node]).check(verdict);
}

}  // namespace espalier::verify
