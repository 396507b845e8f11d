#include "bootstrap/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/counted.h"
#include "base/one_line.h"
#include "base/read_file.h"
#include "bootstrap/stream.h"

namespace espalier::bootstrap {

Result<JobSecret> read_secret(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return fail("cannot read the secret '" + one_line(path) + "': " + std::strerror(errno));
  const Socket file(descriptor);
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail("the secret '" + one_line(path) + "' is not a regular file");
  }
  if ((status.st_mode & 077) != 0) {
    return fail("the secret '" + one_line(path) +
                "' can be read by other users; expected mode 0600");
  }
  if (status.st_uid != geteuid()) {
    return fail("the secret '" + one_line(path) + "' is of user " + std::to_string(status.st_uid) +
                "; expected a file of this process's user, " + std::to_string(geteuid()));
  }
  const std::size_t most = limit_of(FileKind::kSecret).max_bytes;
  std::string bytes(most + 1, '\0');
  const ssize_t count = pread(descriptor, bytes.data(), bytes.size(), 0);
  if (count < 32 || count > static_cast<ssize_t>(most)) {
    return fail("the secret '" + one_line(path) + "' has " + counted(count, "byte") +
                "; expected 32 to " + std::to_string(most));
  }
  bytes.resize(static_cast<std::size_t>(count));
  return secret_of(bytes);
}

}  // namespace espalier::bootstrap
