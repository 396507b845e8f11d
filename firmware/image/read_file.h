#pragma once
// Reads whole files. Host only.

#include <string>

namespace espalier {

// Reads the file into `contents`. False and one line in `error`, which calls the file `what`.
[[nodiscard]] bool read_file(const char* what, const std::string& path, std::string& contents,
                             std::string& error);

}  // namespace espalier
