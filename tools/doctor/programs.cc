#include <dlfcn.h>

#include <cstdlib>

#include "base/variables.h"
#include "bootstrap/pmix_library.h"
#include "tools/common/find_program.h"
#include "tools/doctor/host.h"

namespace espalier::tools::doctor {
namespace {

HostFact program_fact(const std::string& name, const std::string& remedy) {
  const std::string path = find_program(name);
  if (!path.empty()) return {name, path, "", ""};
  return {name, "none", "no " + name + " in PATH", remedy};
}

HostFact pmix_fact() {
  for (const char* name : bootstrap::kPmixLibraries) {
    void* const library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) continue;
    dlclose(library);
    const bool is_launched = is_set(Variable::kPmixNamespace);
    return {"PMIx", std::string(name) + (is_launched ? ", offered by this launcher" : ""), "", ""};
  }
  return {"PMIx", "none", "libpmix.so.2 cannot be loaded",
          "to start by mpirun or srun --mpi=pmix, install Debian's package libpmix2"};
}

}  // namespace

std::vector<HostFact> program_facts() {
  std::vector<HostFact> facts = {
      pmix_fact(),
      program_fact("mpirun", "to start by mpirun, install Open MPI or MPICH"),
      program_fact("srun", "to start by Slurm, install its client (Debian: slurm-client)"),
      program_fact("ssh", "to start ranks on other hosts, install Debian's package openssh-client"),
  };
  return facts;
}

}  // namespace espalier::tools::doctor
