#include "tests/soak/samples.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace espalier::soak {
namespace {

namespace fs = std::filesystem;

std::uint64_t count_entries(const std::string& folder) {
  return static_cast<std::uint64_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

ProcessSample sample_process(pid_t process) {
  const std::string folder = "/proc/" + std::to_string(process) + "/";
  ProcessSample sample;
  std::ifstream status(folder + "status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) sample.resident_kib = std::strtoull(&line[6], nullptr, 10);
  }
  sample.threads = count_entries(folder + "task");
  sample.descriptors = count_entries(folder + "fd");
  std::ifstream maps(folder + "maps");
  for (std::string line; std::getline(maps, line);) ++sample.mappings;
  return sample;
}

std::uint64_t count_files(const std::string& folder) {
  std::uint64_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    files += entry.is_directory() ? 0 : 1;
  }
  return files;
}

}  // namespace espalier::soak
