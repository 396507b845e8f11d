#pragma once
// Prints the output of a job's ranks on the launcher's stdout and stderr. Host only.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace espalier::launch {

// Puts the rank in front of each line on one terminal, pipe or file. A line may arrive in parts.
class LinePrinter {
 public:
  static constexpr std::int64_t kLauncher = -1;  // a source whose lines have no prefix
  // `name`: precedes the rank: "new " for [new 3].
  explicit LinePrinter(std::string name = {}) : name_(std::move(name)) {}
  // Returns the text to print for `bytes` of the source. If another source's line is incomplete,
  // it is ended first. After a carriage return the rank is printed again.
  [[nodiscard]] std::string lines(std::int64_t rank, int stream, const std::string& bytes);

 private:
  enum class At { kLineStart, kAfterReturn, kMiddle };
  std::string name_;
  At at_ = At::kLineStart;
  std::int64_t rank_ = kLauncher;  // the source of the incomplete line
  int stream_ = 0;
};

// Both streams of the launcher, each written by a thread: no call waits for a reader.
class Output {
 public:
  enum Stream { kStdout = 1, kStderr = 2 };
  // `name`: as of LinePrinter.
  explicit Output(const std::string& name);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output();  // does not wait for the threads
  // Prints bytes of a rank, which belong to the daemon `owner`.
  void print(Stream stream, std::uint32_t rank, const std::string& bytes, std::size_t owner);
  // Prints lines of the launcher, or of a remote shell.
  void say(const std::string& lines);
  // Becomes readable when something was printed, or a stream failed.
  [[nodiscard]] int event() const { return event_; }
  // Returns how many bytes of each owner were printed since the last call.
  [[nodiscard]] std::vector<std::size_t> take_printed();
  // Returns why the stream cannot be written, as errno; 0: it can. Bytes for it are dropped.
  [[nodiscard]] int error(Stream stream) const;
  // The bytes that are not printed yet.
  [[nodiscard]] std::size_t backlog() const;

 private:
  struct Writer;
  void put(Stream stream, std::string text, std::size_t owner, std::size_t bytes);

  // The stream's writer and printer; one serves both streams if they are one file.
  [[nodiscard]] std::size_t index(Stream stream) const {
    return stream == kStdout ? 0 : writers_.size() - 1;
  }

  int event_;  // stays open: a writer may use it until the process ends
  std::vector<std::shared_ptr<Writer>> writers_;
  std::vector<LinePrinter> printers_;
};

}  // namespace espalier::launch
