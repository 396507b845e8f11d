#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/process/variables.h"
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

constexpr const char* kMpiAbiLibrary = "libmpi_abi.so.1";

// Writes the beginning of the library's version to `output`, in a process of its own: the libraries
// behind MPI start threads and handle signals when they are loaded.
[[noreturn]] void write_mpi_abi_version(int output) {
  constexpr std::size_t kMaxVersion = 8192;  // MPI_MAX_LIBRARY_VERSION_STRING of the ABI
  constexpr std::size_t kMaxWritten = 256;   // fits into a pipe at once
  void* const library = dlopen(kMpiAbiLibrary, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) _exit(1);
  const auto get_version =
      reinterpret_cast<int (*)(char*, int*)>(dlsym(library, "MPI_Get_library_version"));
  if (get_version == nullptr) _exit(1);
  std::vector<char> version(kMaxVersion + 1, '\0');
  int length = 0;
  get_version(version.data(), &length);
  const auto end = std::find(version.begin(), version.begin() + kMaxWritten, '\0');
  const auto size = static_cast<std::size_t>(end - version.begin());
  _exit(write(output, version.data(), size) == static_cast<ssize_t>(size) ? 0 : 1);
}

// Returns the first words of the version of the standard's ABI of MPI, up to a comma or a newline.
// Empty: no library has it.
std::string mpi_abi_version() {
  int ends[2];
  if (pipe(ends) != 0) return "";
  const pid_t child = fork();
  if (child == 0) write_mpi_abi_version(ends[1]);
  close(ends[1]);
  std::string text;
  char part[256];
  ssize_t size = 0;
  while (child > 0 && (size = read(ends[0], part, sizeof(part))) != 0) {
    if (size > 0) text.append(part, static_cast<std::size_t>(size));
    if (size < 0 && errno != EINTR) break;
  }
  close(ends[0]);
  while (child > 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  text = text.substr(0, text.find_first_of(",\n"));
  const auto same = [](char a, char b) { return a == ' ' && b == ' '; };
  text.erase(std::unique(text.begin(), text.end(), same), text.end());
  return text;
}

}  // namespace

std::vector<HostFact> program_facts() {
  std::vector<HostFact> facts = {
      pmix_fact(),
      program_fact("mpirun", "to start by mpirun, install Open MPI or MPICH"),
      program_fact("srun", "to start by Slurm, install its client (Debian: slurm-client)"),
      program_fact("ssh", "to start ranks on other hosts, install Debian's package openssh-client"),
  };
  // Programs of the standard's ABI do not say which library they get: the system's link does.
  const std::string mpi = mpi_abi_version();
  if (!mpi.empty()) facts.push_back({kMpiAbiLibrary, mpi, "", ""});
  return facts;
}

}  // namespace espalier::tools::doctor
