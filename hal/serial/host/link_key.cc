#include "hal/serial/host/link_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/counted.h"

namespace espalier {

Result<LinkKey> read_link_key(const std::string& path) {
  const auto fail = [&](const std::string& why) {
    return espalier::fail("cannot use the link key " + path + ": " + why);
  };
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return fail(std::strerror(errno));
  struct stat about {};
  LinkKey key{};
  const bool known = fstat(file, &about) == 0;
  const ssize_t size = known && S_ISREG(about.st_mode) ? read(file, key.data(), key.size()) : -1;
  const int error = errno;
  close(file);
  if (!known) return fail(std::strerror(error));
  if (!S_ISREG(about.st_mode)) return fail("it is not a regular file");
  if ((about.st_mode & 077) != 0) {
    return fail("users other than its owner may access it; expected mode 0600 (chmod 600)");
  }
  if (size < 0) return fail(std::strerror(error));
  if (about.st_size != static_cast<off_t>(key.size()) || size != about.st_size) {
    return fail("it has " + counted(about.st_size, "byte") +
                "; expected 16 (openssl rand -out FILE 16)");
  }
  return key;
}

std::string rejection_text(const SerialRejections& rejections, const std::string& who,
                           const std::string& link) {
  const std::string begin = who + " dropped a frame of " + link + ": ";
  switch (rejections.reason) {
    case SerialRejections::Reason::kNoKeyHere:
      return begin + "the other end has a link key, and this end has none; give it the same key";
    case SerialRejections::Reason::kNoKeyThere:
      return begin + "the other end has no link key, and this end has one; give both the same key";
    case SerialRejections::Reason::kWrongCode: break;
  }
  return begin +
         "its code is wrong; the other end has another link key, the line has noise, or someone "
         "else writes to it";
}

}  // namespace espalier
