#include "tools/common/host.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace espalier::tools {

std::uint32_t usable_processors() {
  cpu_set_t set;
  // More than 1024 processors do not fit this set; all online ones are then taken as usable.
  const long usable =
      sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
  return static_cast<std::uint32_t>(std::max(1L, usable));
}

std::uint64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  std::uint64_t kib = 0;
  while (file >> name >> kib) {
    if (name == "MemAvailable:") return kib * 1024;
    std::getline(file, unit);
  }
  return UINT64_MAX;
}

}  // namespace espalier::tools
