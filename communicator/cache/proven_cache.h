#pragma once
// The schedules that were proven on this host, so that each is proven once and not by every rank of
// every job. Host only.

#include <cstdint>
#include <functional>

namespace espalier::communicator {

// The verdict on a schedule.
enum class Proof : std::uint8_t {
  kInvalid,
  kValid,         // not with input and output in the same memory
  kValidInPlace,  // also with input and output in the same memory
};

// Returns the verdict on the schedule with this digest of all its programs. If no file keeps it
// (cache_file.h), calls `prove`, and keeps the verdict if it is valid. While one process proves,
// others that need the file wait.
[[nodiscard]] Proof obtain_proof(std::uint64_t digest, const std::function<Proof()>& prove);

}  // namespace espalier::communicator
