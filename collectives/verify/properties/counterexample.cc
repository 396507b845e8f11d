#include "collectives/verify/properties/counterexample.h"

#include "collectives/verify/properties/operands.h"

namespace espalier::verify {

const char* property_name(Property property) {
  switch (property) {
    case Property::kForm: return "form";
    case Property::kMatching: return "matching";
    case Property::kPorts: return "ports";
    case Property::kLinks: return "links";
    case Property::kDeadlock: return "deadlock";
    case Property::kHazards: return "hazards";
    case Property::kClaims: return "claims";
    case Property::kDataFlow: return "data flow";
    case Property::kSteps: return "steps";
  }
  return "unknown";
}

Counterexample found(Property property, const ExpandedSchedule& schedule, std::int64_t node,
                     const Instance* instance, const std::string& text) {
  Counterexample example{.property = property, .blocks = schedule.blocks, .node = node};
  std::string line =
      std::string(property_name(property)) + ": N = " + std::to_string(schedule.blocks);
  const auto name = [&](std::int64_t other) {
    return other >= 0 && other < schedule.topology->nodes()
               ? schedule.topology->node_name(static_cast<std::uint32_t>(other))
               : "node " + std::to_string(other);
  };
  if (node >= 0) line += ", " + name(node);
  if (instance != nullptr) {
    const OperandAt& operand = moved(*instance);
    example.step = instance->step;
    example.action = instance->action;
    example.segment = operand.segment;
    example.block = operand.block;
    line +=
        ", step " + std::to_string(instance->step) + ", action " + std::to_string(instance->action);
    const bool send = instance->kind == ActionKind::kSend;
    if (send || instance->kind == ActionKind::kReceive) {
      example.from = send ? node : instance->peer;
      example.to = send ? instance->peer : node;
      line += ", link " + name(example.from) + " -> " + name(example.to);
    }
    line += ", " + block_name(operand);
  }
  example.message = line + ": " + text;
  return example;
}

Counterexample too_large(Property property, const ExpandedSchedule& schedule, std::int64_t node,
                         const std::string& text) {
  Counterexample example = found(property, schedule, node, nullptr, text);
  example.too_large = true;
  return example;
}

}  // namespace espalier::verify
