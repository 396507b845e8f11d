#pragma once
// What this host has for a job: limits, memory, clock, cores, interfaces, launchers. Host only.

#include <string>
#include <vector>

namespace espalier::tools::doctor {

// One row of the report. `problem` is empty, or says what is wrong; then `remedy` says what to do.
struct HostFact {
  std::string name, value, problem, remedy;
};

// `locks_memory`: a provider here registers memory that stays locked, as devices want.
[[nodiscard]] std::vector<HostFact> host_facts(bool locks_memory);

// The launchers, PMIx's library, and the library that programs of MPI's standard ABI get, if any.
// A missing one is a problem only of who wants to use it.
[[nodiscard]] std::vector<HostFact> program_facts();

}  // namespace espalier::tools::doctor
