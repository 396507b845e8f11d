#pragma once
// A folder of its own, for targets that need files with names.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "tests/fuzz/expect.h"

namespace espalier::fuzz {

// An empty folder, in memory if the host has such folders. Removed at the end.
class Folder {
 public:
  Folder() {
    const bool has_memory = std::filesystem::is_directory("/dev/shm");
    path_ = std::string(has_memory ? "/dev/shm" : "/tmp") + "/espalier-fuzz-XXXXXX";
    expect(mkdtemp(path_.data()) != nullptr, "the host has a folder");
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace espalier::fuzz
