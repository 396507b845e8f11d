#pragma once
// The schedules that were proven on this host, so that each is proven once and not by every rank of
// every job. A file of mode 0600 per program binary: a proof of one binary says nothing of what
// another one generates. Host only.

#include <cstdint>
#include <functional>
#include <string>

namespace espalier::communicator {

// The verdict on a schedule.
enum class Proof : std::uint8_t {
  kInvalid,
  kValid,         // not with input and output in the same memory
  kValidInPlace,  // also with input and output in the same memory
};

class ProvenCache {
 public:
  // Uses a file in $XDG_CACHE_HOME/espalier, otherwise in ~/.cache/espalier. If that cannot be
  // made, belongs to another user or may be written by others, nothing is kept.
  ProvenCache();
  // Returns the verdict on the schedule with this digest of all its programs. If it is not known,
  // calls `prove`, and keeps the verdict if it is valid. While one process proves, others that need
  // the file wait.
  [[nodiscard]] Proof obtain(std::uint64_t digest, const std::function<Proof()>& prove);
  // The file's path; empty: nothing is kept.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace espalier::communicator
