#include "collectives/algorithms/hosts/host_groups.h"

namespace espalier {
namespace {

constexpr std::uint32_t kMaxHostRanks = 65535;

}  // namespace

Status begin_on_hosts(Builder& builder, const CollectiveParameters& parameters, std::uint32_t me,
                      const Outline& outline) {
  const Status status = builder.begin(parameters, me, outline);
  if (status != Status::kOk) return status;
  const std::uint64_t ranks = std::uint64_t{parameters.hosts} * parameters.host_ranks;
  const bool fits = parameters.host_ranks <= kMaxHostRanks;
  if (ranks == parameters.ranks && fits) return Status::kOk;
  return builder.refuse(fits ? Status::kUnsupported : Status::kTooLarge);
}

Ring arriving_sums(Builder& builder, const CollectiveParameters& parameters) {
  const std::uint32_t longest =
      parameters.hosts > parameters.host_ranks ? parameters.hosts : parameters.host_ranks;
  const std::uint32_t steps = log2_ceil(longest);
  const std::uint32_t slots = steps < parameters.window ? steps : parameters.window;
  return {builder.scratch(slots), slots};
}

}  // namespace espalier
