#include "hal/ofi/peer_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace espalier::ofi {
namespace {

constexpr char kGone = 'X';

struct Stat {
  char state = '\0';  // '\0': unknown
  std::uint64_t start = 0;
};

// Reads the third and the twenty-second field of /proc/<number>/stat (proc(5)) without allocating.
Stat read_stat(std::int64_t number) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%lld/stat", static_cast<long long>(number));
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {errno == ENOENT ? kGone : '\0', 0};
  char text[512];
  const ssize_t size = read(file, text, sizeof text - 1);
  const int error = errno;
  close(file);
  if (size <= 0) return {size < 0 && error == ESRCH ? kGone : '\0', 0};
  text[size] = '\0';
  // The second field is the name in parentheses. It may contain any character.
  const char* field = std::strrchr(text, ')');
  if (field == nullptr || field[1] != ' ') return {};
  Stat stat;
  stat.state = field[2];
  for (int index = 2; index < 22 && field != nullptr; ++index) {
    field = std::strchr(field + 1, ' ');
  }
  if (field != nullptr) stat.start = std::strtoull(field, nullptr, 10);
  return stat;
}

}  // namespace

PeerProcess::PeerProcess(std::int64_t number) {
  const Stat stat = read_stat(number);
  if (stat.state == '\0' || stat.state == kGone) return;
  number_ = number;
  start_ = stat.start;
}

bool PeerProcess::runs() const {
  if (number_ == 0) return true;
  const Stat stat = read_stat(number_);
  if (stat.state == '\0') return true;
  return stat.start == start_ && std::strchr("TtZXx", stat.state) == nullptr;
}

}  // namespace espalier::ofi
