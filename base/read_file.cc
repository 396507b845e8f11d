#include "base/read_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/one_line.h"

namespace espalier {
namespace {

constexpr std::array<FileLimit, static_cast<std::size_t>(FileKind::kCount)> kFileLimits = {{
    {"a schedule file", std::size_t{512} << 20},
    {"an image", std::size_t{512} << 20},
    {"a topology file", std::size_t{4} << 20},
    {"an embedding file", std::size_t{4} << 20},
    {"a model file", std::size_t{4} << 20},
    {"a board file", std::size_t{1} << 20},
    {"an MSCCL file", std::size_t{64} << 20},
    {"a trace", std::size_t{512} << 20},
    {"an input", std::size_t{512} << 20},
    {"a list of counts", std::size_t{16} << 20},
    {"a host list", std::size_t{16} << 20},
    {"a key", std::size_t{64} << 10},
    {"a job secret", std::size_t{4} << 10},
    {"a file of the cache", std::size_t{64} << 20},
}};

// "4 MiB"
std::string size_text(std::size_t bytes) {
  const bool is_large = bytes >= std::size_t{1} << 20;
  return std::to_string(bytes >> (is_large ? 20 : 10)) + (is_large ? " MiB" : " KiB");
}

constexpr int kWriterTimeMs = 10'000;  // until a process opens a pipe to write

// Whether the file is not a pipe, or one that a process writes to, or has written to. Waits for
// such a process.
bool has_writer(std::FILE* file) {
  struct stat about {};
  const int descriptor = fileno(file);
  if (fstat(descriptor, &about) != 0 || !S_ISFIFO(about.st_mode)) return true;
  pollfd pipe{descriptor, POLLIN, 0};
  if (poll(&pipe, 1, kWriterTimeMs) != 0) return true;
  // Nothing has arrived: with a writer this fails with EAGAIN, without one it returns 0.
  char first = 0;
  const ssize_t count = read(descriptor, &first, 1);
  if (count == 1) std::ungetc(static_cast<unsigned char>(first), file);
  return count != 0;
}

}  // namespace

std::span<const FileLimit> file_limits() { return kFileLimits; }

const FileLimit& limit_of(FileKind kind) { return kFileLimits[static_cast<std::size_t>(kind)]; }

Result<std::string> read_file(const std::string& path, FileKind kind) {
  const std::size_t max_bytes = limit_of(kind).max_bytes;
  const auto cannot = [&path](const std::string& reason) {
    return fail("cannot read '" + one_line(path) + "': " + reason);
  };
  // A pipe that no process writes to would block open() for ever.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return cannot(std::strerror(errno));
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(fdopen(descriptor, "rb"), std::fclose);
  if (file == nullptr) return cannot(std::strerror(errno));
  struct stat about {};
  if (fstat(descriptor, &about) != 0) return cannot(std::strerror(errno));
  // It has no end (/dev/zero), or no bytes (/dev/null); a terminal has both.
  if (S_ISCHR(about.st_mode) && isatty(descriptor) == 0) {
    return cannot("it is a device; expected a file or a pipe");
  }
  // A read may wait for ever (/proc/kmsg), and takes away what it returns.
  struct statfs system {};
  if (fstatfs(descriptor, &system) == 0 && system.f_type == PROC_SUPER_MAGIC) {
    return cannot("it is a file of /proc; expected a file that is stored, or a pipe");
  }
  const std::string too_large =
      "it has more than " + size_text(max_bytes) + ", the limit of " + limit_of(kind).name;
  if (S_ISREG(about.st_mode) && static_cast<std::uint64_t>(about.st_size) > max_bytes) {
    return cannot(too_large);
  }
  if (!has_writer(file.get())) return cannot("it is a pipe that no process writes to");
  // A regular file never makes its reader wait; what does is none (/sys/kernel/tracing/trace_pipe).
  if (!S_ISREG(about.st_mode)) (void)fcntl(descriptor, F_SETFL, 0);
  std::string contents;
  char piece[16384];
  while (contents.size() <= max_bytes) {
    const std::size_t most = std::min(sizeof piece, max_bytes + 1 - contents.size());
    const std::size_t size = std::fread(piece, 1, most, file.get());
    contents.append(piece, size);
    if (std::ferror(file.get()) != 0) {
      if (errno == EAGAIN)
        return cannot("it has no end; expected a file that is stored, or a pipe");
      return cannot(std::strerror(errno));
    }
    if (size < most) return contents;
  }
  return cannot(too_large);
}

}  // namespace espalier
