#include "tools/common/available_memory.h"

#include <fstream>
#include <string>

namespace espalier::tools {

std::uint64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::string unit;
  std::uint64_t kib = 0;
  while (file >> name >> kib) {
    if (name == "MemAvailable:") return kib * 1024;
    std::getline(file, unit);
  }
  return UINT64_MAX;
}

}  // namespace espalier::tools
