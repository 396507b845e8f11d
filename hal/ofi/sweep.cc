#include "hal/ofi/sweep.h"

#include <filesystem>
#include <string>
#include <system_error>

namespace espalier::ofi {

// The files are named <process>:<domain>:<endpoint>.
void sweep_shared_memory(std::int64_t process) {
  const std::string mark = std::to_string(process) + ":";
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator("/dev/shm", ignored)) {
    if (file.path().filename().string().starts_with(mark)) {
      std::filesystem::remove(file.path(), ignored);
    }
  }
}

}  // namespace espalier::ofi
