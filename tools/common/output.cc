#include "tools/common/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <optional>

#include "base/process/system_error.h"
#include "tools/common/held_signals.h"

namespace espalier::tools {

namespace {

// The mode of a newly created file; mkstemp() creates files for the owner alone.
mode_t usual_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

constexpr int kReaderTimeMs = 10'000;  // until a process opens a pipe to read, as read_file() waits
constexpr int kReaderPauseMs = 10;

// Opens a file that is not regular. A pipe that no process reads would block open() for ever.
// Returns -1 and errno; ENXIO: there is no reader.
int open_to_write(const std::string& path) {
  for (int waited_ms = 0;; waited_ms += kReaderPauseMs) {
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (file >= 0) (void)fcntl(file, F_SETFL, 0);
    if (file >= 0 || errno != ENXIO || waited_ms >= kReaderTimeMs) return file;
    usleep(kReaderPauseMs * 1000);
  }
}

}  // namespace

void add_format(Command command, Format& format) {
  command.word("--format", {"text", "json"}, format, "How results are printed");
}

void print_json(const Json& value) { std::cout << value.dump(2) << '\n'; }

void write_file(const std::string& path, const std::string& text) {
  write_file(path, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

void write_text(const std::string& path, const std::string& text) {
  write_file(path, text);
  std::printf("%s: %s\n", one_line(path).c_str(), counted(text.size(), "byte").c_str());
}

void check_writable(const std::string& path) {
  struct stat about {};
  const bool exists = stat(path.c_str(), &about) == 0;
  int error = 0;
  if (exists && S_ISDIR(about.st_mode)) {
    error = EISDIR;
  } else {
    // A regular file is replaced, which takes a place beside it.
    const bool itself = exists && !S_ISREG(about.st_mode);
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    if (!itself && stat(folder.c_str(), &about) != 0) {
      error = errno;
    } else if (access(itself ? path.c_str() : folder.c_str(), W_OK) != 0) {
      error = errno;
    }
  }
  if (error != 0) bad_input("cannot write '" + one_line(path) + "': " + system_error_text(error));
}

void write_file(const std::string& path, std::span<const std::uint8_t> bytes) {
  const auto fail = [&path](int error) {
    bad_input("cannot write '" + one_line(path) + "': " + system_error_text(error));
  };
  // Renaming cannot replace a file that is not regular (/dev/stdout, a pipe): it is written
  // directly.
  struct stat existing {};
  const bool replace = stat(path.c_str(), &existing) != 0 || S_ISREG(existing.st_mode);
  std::string target = replace ? path + ".XXXXXX" : path;
  std::optional<HeldSignals> held;
  if (replace) held.emplace();  // until the temporary file has its name
  const int file = replace ? mkstemp(target.data()) : open_to_write(path);
  if (file < 0 && errno == ENXIO && !replace && S_ISFIFO(existing.st_mode)) {
    bad_input("cannot write '" + one_line(path) + "': it is a pipe that no process reads");
  }
  if (file < 0) fail(errno);
  std::size_t written = 0;
  int error = 0;
  while (written < bytes.size() && error == 0) {
    const ssize_t now = write(file, bytes.data() + written, bytes.size() - written);
    if (now >= 0)
      written += static_cast<std::size_t>(now);
    else if (errno != EINTR)
      error = errno;
  }
  if (replace && error == 0 && fchmod(file, usual_mode()) != 0) error = errno;
  if (close(file) != 0 && error == 0) error = errno;
  if (replace && error == 0 && rename(target.c_str(), path.c_str()) != 0) error = errno;
  if (replace && error != 0) unlink(target.c_str());
  if (error != 0) fail(error);
}

std::string read_given(const std::string& path, FileKind kind) {
  return or_bad_input(espalier::read_file(path, kind));
}

std::string hex(std::uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(number));
  return text;
}

std::string seconds_text(double seconds) {
  char text[48];
  if (seconds < 1e-3)
    std::snprintf(text, sizeof text, "%.3f us", seconds * 1e6);
  else if (seconds < 1)
    std::snprintf(text, sizeof text, "%.3f ms", seconds * 1e3);
  else
    std::snprintf(text, sizeof text, "%.3f s", seconds);
  return text;
}

Progress::Progress(std::string label)
    : label_(std::move(label)), shown_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

void Progress::show(double done) {
  const int percent = static_cast<int>(done * 100);
  if (!shown_ || percent == percent_) return;
  if (!drawn_ && std::chrono::steady_clock::now() - since_ < std::chrono::seconds(1)) return;
  percent_ = percent;
  drawn_ = true;
  constexpr int kWidth = 30;
  const int full = percent * kWidth / 100;
  std::fprintf(stderr, "\r%s [%s%s] %3d%%", label_.c_str(), std::string(full, '#').c_str(),
               std::string(kWidth - full, '.').c_str(), percent);
}

}  // namespace espalier::tools
