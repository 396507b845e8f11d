#include "hal/serial/host/sockets.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace espalier {

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return fail("the socket's path '" + path + "' has " + std::to_string(path.size()) +
                " bytes; it must have 1 to " + std::to_string(sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Result<void> bind_unix(int fd, const std::string& path) {
  const auto address = address_of(path);
  if (!address) return fail(address.error());
  struct stat found;
  if (lstat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode)) unlink(path.c_str());
  if (bind(fd, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0) return {};
  return fail("cannot bind the socket '" + path + "': " + std::strerror(errno));
}

}  // namespace espalier
