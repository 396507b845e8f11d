#include "base/read_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace espalier {

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
  const auto cannot = [&path](const std::string& reason) {
    return fail("cannot read '" + path + "': " + reason);
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             std::fclose);
  if (file == nullptr) return cannot(std::strerror(errno));
  std::string contents;
  char piece[16384];
  while (contents.size() <= max_bytes) {
    const std::size_t most = std::min(sizeof piece, max_bytes + 1 - contents.size());
    const std::size_t size = std::fread(piece, 1, most, file.get());
    contents.append(piece, size);
    if (std::ferror(file.get()) != 0) return cannot(std::strerror(errno));
    if (size < most) return contents;
  }
  return cannot("it has more than " + std::to_string(max_bytes) + " bytes");
}

}  // namespace espalier
