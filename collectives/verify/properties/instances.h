#pragma once
// Properties form, claims, hazards and data flow, as far as one instance alone decides them:
//  * it names a link, segments, blocks and slots that exist and that its node may use;
//  * its operands are the same block;
//  * its operands are the same place, or do not overlap;
//  * the pace of its action keeps the rules.
// Internal to collectives/verify.

#include <cstdint>

#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/report/counterexample.h"

namespace espalier::verify {

// Checks the instances of `node` in schedule.instances, expanded from `program`. kForm, kClaims,
// kHazards or kDataFlow.
[[nodiscard]] Finding check_instances(const ExpandedSchedule& schedule, std::uint32_t node,
                                      const Program& program);

}  // namespace espalier::verify
