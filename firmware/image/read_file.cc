#include "firmware/image/read_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace espalier {

bool read_file(const char* what, const std::string& path, std::string& contents,
               std::string& error) {
  contents.clear();
  std::FILE* file = std::fopen(path.c_str(), "rbe");
  bool good = file != nullptr;
  char piece[16384];
  for (std::size_t size = 1; good && size > 0;) {
    size = std::fread(piece, 1, sizeof piece, file);
    contents.append(piece, size);
    good = std::ferror(file) == 0;
  }
  if (!good)
    error = std::string("cannot read the ") + what + " " + path + ": " + std::strerror(errno);
  if (file != nullptr) std::fclose(file);
  return good;
}

}  // namespace espalier
