#include "collectives/verify/properties/operands.h"

#include <algorithm>

namespace espalier::verify {
namespace {

// "segment 3"; for several segments "segments 3-5".
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

}  // namespace espalier::verify
