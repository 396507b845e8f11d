#include "communicator/cables/cable_model.h"

namespace espalier::communicator {
namespace {

// The time of a byte on a cable of 1 Mbit/s, fs.
constexpr std::uint64_t kFsPerMbit = 8'000'000'000;
// The rate of a cable whose rate is not known, Mbit/s.
constexpr std::uint32_t kUnknownMbits = 1000;
// The time of a message until it is measured, ps.
constexpr predict::Picoseconds kUnknownMessagePs = 60'000'000;

}  // namespace

// The links are known, and no others are crowded: the replay of a schedule has all its delays.
predict::Model cable_model(const predict::NetworkCost& cost, std::uint32_t lane_mbits) {
  predict::NetworkCost known = cost;
  if (known.message_ps == 0) known.message_ps = kUnknownMessagePs;
  known.byte_fs = kFsPerMbit / (lane_mbits == 0 ? kUnknownMbits : lane_mbits);
  known.burst_bytes = 0;
  predict::Model model = predict::network_model(known);
  model.crowding = {};
  model.found_by = "messages and rates of cables";
  return model;
}

}  // namespace espalier::communicator
