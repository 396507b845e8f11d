#include <algorithm>

#include "collectives/verify/check.h"

namespace espalier::verify {

const char* point_name(Point point) {
  switch (point) {
    case Point::kForm: return "form";
    case Point::kMatching: return "matching";
    case Point::kPorts: return "ports";
    case Point::kLinks: return "links";
    case Point::kDeadlock: return "deadlock";
    case Point::kHazards: return "hazards";
    case Point::kClaims: return "claims";
    case Point::kDataFlow: return "data flow";
    case Point::kSteps: return "steps";
  }
  return "unknown";
}

namespace {

// "segment 3", of a run of several "segments 3-5".
std::string numbered(const std::string& what, std::int64_t first, std::uint32_t run) {
  if (run <= 1) return what + " " + std::to_string(first);
  return what + "s " + std::to_string(first) + "-" + std::to_string(first + run - 1);
}

}  // namespace

std::string block_name(const PlaceAt& place) {
  return "block " + std::to_string(place.block) + " of " +
         numbered("segment", place.segment, place.run);
}

std::size_t used_slots(const std::vector<Instance>& all) {
  std::int64_t slots = 0;
  for (const Instance& instance : all) {
    for (const PlaceAt* place : {&instance.into, &instance.a, &instance.b}) {
      if (place->buffer == espalier_Buffer_SCRATCH)
        slots = std::max(slots, place->slot + place->run);
    }
  }
  return static_cast<std::size_t>(slots);
}

std::string place_name(const PlaceAt& place) {
  if (place.buffer == espalier_Buffer_SCRATCH) {
    return numbered("scratch slot", place.slot, place.run);
  }
  return (place.buffer == espalier_Buffer_INPUT ? "input " : "output ") + block_name(place);
}

Counterexample found(Point point, const Case& at, std::int64_t node, const Instance* instance,
                     const std::string& text) {
  Counterexample example;
  example.point = point;
  example.blocks = at.blocks;
  example.node = node;
  std::string line = std::string(point_name(point)) + ": N = " + std::to_string(at.blocks);
  const auto name = [&](std::int64_t other) {
    return other >= 0 && other < at.topology->nodes()
               ? at.topology->node_name(static_cast<std::uint32_t>(other))
               : "node " + std::to_string(other);
  };
  if (node >= 0) line += ", " + name(node);
  if (instance != nullptr) {
    const PlaceAt& place = moved(*instance);
    example.step = instance->step;
    example.action = instance->action;
    example.segment = place.segment;
    example.block = place.block;
    line +=
        ", step " + std::to_string(instance->step) + ", action " + std::to_string(instance->action);
    const bool send = instance->kind == espalier_Kind_SEND;
    if (send || instance->kind == espalier_Kind_RECEIVE) {
      example.from = send ? node : instance->peer;
      example.to = send ? instance->peer : node;
      line += ", link " + name(example.from) + " -> " + name(example.to);
    }
    line += ", " + block_name(place);
  }
  example.message = line + ": " + text;
  return example;
}

}  // namespace espalier::verify
