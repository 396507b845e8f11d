#pragma once
// Which rank holds a job up, from the records of its ranks. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "communicator/record/job_view.h"

namespace espalier::record {

// In the order in which suspects come.
enum class Suspicion : std::uint8_t {
  kNeverStarted,  // others wait in join(), and it has no record
  kEnded,         // its process is gone
  kStopped,       // its process does not run
  kDiverged,      // it called another collective
  kComputing,     // others wait for it, and it is in no call
  kWorking,       // others wait for it, and it is in a call that waits for no rank
  kCut,           // two ranks wait for each other's messages
  kNoRecord,      // others wait for it, and it has no record
  kNewcomers,     // all ranks wait in accept() for processes that did not come
  kFailed,        // it ended the communicator for a reason of its own
};
[[nodiscard]] const char* name_of(Suspicion suspicion);

struct Suspect {
  Suspicion kind = Suspicion::kFailed;
  std::vector<std::uint32_t> ranks = {};  // ascending; of kCut: both ends
  std::string text = {};  // one line: "rank 5 is 2 calls behind, computing for 41 s"
};

struct Diagnosis {
  std::vector<Suspect> suspects = {};  // the culprit first; empty: nothing has waited for long
  std::string divergence = {};         // the first call in which ranks differ; empty: none
  std::string cause = {};              // of the first failure; empty: none
};
[[nodiscard]] Diagnosis diagnose(const JobView& job);

}  // namespace espalier::record
