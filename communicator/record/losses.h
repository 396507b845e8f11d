#pragma once
// Which processes of an ended job were stopped or killed, from the records alone. Host only.

#include <vector>

#include "communicator/record/diagnosis.h"

namespace espalier::record {

struct Losses {
  std::vector<Suspect> early = {};   // before the job ended, or the only process without an end
  std::vector<Suspect> at_end = {};  // while the others were killed, too
  // No process saw it. On a busy host the processes of a job are killed long after one another.
  std::vector<Suspect> silent = {};
};

// A process is lost if its record has neither a failure nor an end. How it was lost, another
// process of its host saw; otherwise the time between its last sign and the failure of the others
// tells: a connection ends at once with its process, and a stopped process is silent for the
// deadline.
[[nodiscard]] Losses find_losses(const JobView& job);

// Returns the job as it was before all of it was killed: the processes are killed one after
// another, so that the last ones find the first ones dead.
[[nodiscard]] JobView without_end(JobView job);

}  // namespace espalier::record
