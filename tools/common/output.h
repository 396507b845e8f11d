#pragma once
// Printing and writing for all commands. Host only.

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "base/counted.h"
#include "base/one_line.h"
#include "base/read_file.h"
#include "espalier/base/result.h"
#include "planner/progress.h"
#include "tools/common/command_line.h"
#include "tools/common/failure.h"
#include "tools/common/json.h"

namespace espalier::tools {

enum class Format { kText, kJson };

// Adds --format text|json.
void add_format(Command command, Format& format);
// On stdout, indented, with a newline.
void print_json(const Json& value);

// Writes the whole file, or leaves the old file: writes a temporary file in the same folder and
// renames the temporary file. A signal waits until the file has its name. Throws Failure.
void write_file(const std::string& path, std::span<const std::uint8_t> bytes);
void write_file(const std::string& path, const std::string& text);
// The same for text; prints the file's name and size.
void write_text(const std::string& path, const std::string& text);
// Throws Failure (bad input) if write_file() cannot write to `path`: no such directory, no
// permission. Call it before long work.
void check_writable(const std::string& path);
// Returns the file's bytes. Throws Failure (bad input) if there is no such file, it cannot be read,
// or it is larger than the limit of its kind.
[[nodiscard]] std::string read_given(const std::string& path, FileKind kind);

using espalier::counted;
using espalier::either;
using espalier::one_line;
using espalier::with_article;
// Returns the result's value. Throws Failure with its error, which is a negative result: the work
// was tried.
template <typename T>
T or_negative(Result<T> result) {
  if (!result) negative(result.error().message);
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}
// "0x0123456789abcdef"
[[nodiscard]] std::string hex(std::uint64_t number);
// "1.25 ms"
[[nodiscard]] std::string seconds_text(double seconds);

// A bar on stderr, if that is a terminal, for work that takes more than a second. Cleared at the
// end.
class Progress {
 public:
  explicit Progress(std::string label);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();
  void show(double done);  // the part that is done, 0 .. 1
  // The same for functions that tell how far they are; this object must outlive it.
  [[nodiscard]] planner::ShowProgress function() {
    return [this](double done) { show(done); };
  }

 private:
  std::string label_;
  bool shown_ = false, drawn_ = false;
  int percent_ = 0;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

}  // namespace espalier::tools
