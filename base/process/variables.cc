#include "base/process/variables.h"

#include <array>
#include <cstdlib>

namespace espalier {
namespace {

using enum VariableKind;

constexpr std::array<VariableRow, static_cast<std::size_t>(Variable::kCount)> kVariables = {{
    {"ESPALIER_RANK", kNumber, ""},
    {"RANK", kNumber, ""},
    {"ESPALIER_SIZE", kNumber, ""},
    {"WORLD_SIZE", kNumber, ""},
    {"ESPALIER_ADDRESS", kText, "HOST:PORT, where rank 0 listens"},
    {"MASTER_ADDR", kText, "the host of rank 0"},
    {"MASTER_PORT", kNumber, ""},
    {"ESPALIER_SECRET_FILE", kText, "the path of a file of mode 0600, or no such variable"},
    {"ESPALIER_SERVER", kText, "launcher, or no such variable"},
    {"ESPALIER_CABLES", kText, "1, or no such variable"},
    {"ESPALIER_INTERFACE", kText, "interfaces and subnets, such as eth0,10.0.0.0/8,!docker0"},
    {"ESPALIER_PORTS", kText, "FIRST-LAST, from 1 to 65535, such as 40000-40100"},
    {"ESPALIER_PATIENCE", kNumber, ""},
    {"ESPALIER_JOB_FILE", kText, "the path of a file, or no such variable"},
    {"ESPALIER_JOIN", kText, "the path of a job file, or no such variable"},
    {"PMI_FD", kNumber, ""},
    {"PMI_RANK", kNumber, ""},
    {"PMI_SIZE", kNumber, ""},
    {"MPI_LOCALNRANKS", kNumber, ""},
    {"SLURM_STEP_NUM_NODES", kNumber, ""},
    {"PMIX_NAMESPACE", kText, "the name that the launcher gave the job"},
    {"FI_PROVIDER", kText, "the names of providers, or no such variable"},
    {"ESPALIER_VERBOSE", kFlag, ""},
    {"ESPALIER_MPI_COUNTS", kFlag, ""},
    {"ESPALIER_TEST_FAULTS", kFlag, ""},
    {"ESPALIER_RECORD", kText, "a folder for the records of failures, or no such variable"},
    {"XDG_CACHE_HOME", kSystem, ""},
    {"HOME", kSystem, ""},
    {"XDG_RUNTIME_DIR", kSystem, ""},
    {"PATH", kSystem, ""},
    {"SSH_CONNECTION", kSystem, ""},
}};

}  // namespace

std::span<const VariableRow> variables() { return kVariables; }

const VariableRow& row_of(Variable variable) {
  return kVariables[static_cast<std::size_t>(variable)];
}

const char* raw_value(Variable variable) { return std::getenv(row_of(variable).name); }

const char* raw_value(const std::string& name) { return std::getenv(name.c_str()); }

bool is_set(Variable variable) { return raw_value(variable) != nullptr; }

}  // namespace espalier
