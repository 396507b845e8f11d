#pragma once
// Runs jobs, and judges what their ranks saw.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/cancel/plan.h"

namespace espalier::cancel_test {

// What happened.
struct Record {
  std::uint64_t rounds = 0;  // each with a cancel
  std::uint64_t kills = 0, doubles = 0, in_parts = 0;
  std::uint64_t by_caller = 0, by_thread = 0, by_signal = 0;
  std::uint64_t dead_links = 0;      // rounds whose cause is the killed rank
  std::uint64_t without_reason = 0;  // of a kill: ranks that got the cause alone
  std::uint64_t completed = 0;       // calls with the right result, counted on each rank
  std::uint64_t rejoined = 0;        // rounds after which all ranks went on
  std::map<std::string, std::vector<std::uint64_t>> latencies_ns;  // by provider, without kills
  std::vector<std::string> findings;                               // what is wrong
  std::uint64_t hangs = 0;
};

// Runs a job, and adds it to the record.
void run_job(const Plan& plan, Record& record);

}  // namespace espalier::cancel_test
