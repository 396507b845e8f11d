#pragma once
// What `espalier status` prints. Host only.

#include <string>
#include <vector>

#include "communicator/record/diagnosis.h"
#include "tools/common/json.h"

namespace espalier::status {

// A job, with what is known to be wrong.
struct Report {
  record::JobView job = {};
  record::Diagnosis diagnosis = {};
};

// The state of a rank in words, and for programs.
struct RankState {
  std::string name =
      {};  // "joining", "computing", "waiting", "working", "stopped", "ended", "failed"
  double for_s = 0;
  const record::CommunicatorView* communicator = nullptr;  // that the state is of; may be null
  bool is_agreeing = false;                                // waiting in accept() or rejoin()
};
// "rank", "router" or "board".
[[nodiscard]] const char* role_of(const record::Process& process);
[[nodiscard]] RankState state_of(const record::RankView& rank);

// A job that runs: the suspects, a row per rank, bytes per link.
[[nodiscard]] std::string text_of(const Report& report);
// A job that has ended, in five lines: the job, first divergence, culprit, cause, records.
[[nodiscard]] std::string ended_text(const Report& report);
// By docs/status.schema.json.
[[nodiscard]] tools::Json json_of(const std::vector<Report>& reports);
// In the text format of Prometheus.
[[nodiscard]] std::string prometheus_of(const std::vector<Report>& reports);

}  // namespace espalier::status
