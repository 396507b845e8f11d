#include "tools/launch/output.h"

#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "base/process/inherited.h"

namespace espalier::launch {
namespace {

constexpr std::size_t kNoOwner = SIZE_MAX;

bool are_same_file(int one, int other) {
  struct stat a {
  }, b{};
  return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

}  // namespace

// The thread shares it: a thread that hangs in write() outlives the Output, until the process ends.
struct Output::Writer {
  struct Part {
    std::string text;
    std::size_t owner = kNoOwner;
    std::size_t bytes = 0;  // of the rank, without what the launcher added
  };
  int file = -1, event = -1;
  bool stopped = false;
  int error = 0;
  bool discards = false;  // the parent closed the stream
  std::size_t backlog = 0;
  std::deque<Part> parts;
  std::vector<std::size_t> printed;  // by owner
  std::mutex mutex;
  std::condition_variable changed;

  void count(const Part& part) {
    backlog -= part.text.size();
    if (part.owner == kNoOwner) return;
    if (part.owner >= printed.size()) printed.resize(part.owner + 1);
    printed[part.owner] += part.bytes;
  }

  int write_part(const std::string& text) const {
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t now = write(file, text.data() + done, text.size() - done);
      if (now > 0) done += static_cast<std::size_t>(now);
      if (now >= 0 || errno == EINTR) continue;
      if (errno != EAGAIN) return errno;
      usleep(1000);  // the parent made it non-blocking
    }
    return 0;
  }

  void run() {
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return stopped || !parts.empty(); });
      if (stopped) return;
      const Part part = std::move(parts.front());
      parts.pop_front();
      if (error == 0 && !discards) {
        lock.unlock();
        const int failure = write_part(part.text);
        lock.lock();
        error = failure;
      }
      count(part);
      const std::uint64_t one = 1;
      (void)!write(event, &one, sizeof one);
    }
  }
};

std::string LinePrinter::lines(std::int64_t rank, int stream, const std::string& bytes) {
  std::string text;
  if (at_ != At::kLineStart && (rank != rank_ || stream != stream_)) {
    text += '\n';
    at_ = At::kLineStart;
  }
  rank_ = rank;
  stream_ = stream;
  const std::string prefix = rank == kLauncher ? "" : "[" + name_ + std::to_string(rank) + "] ";
  for (std::size_t begin = 0; begin < bytes.size();) {
    const char letter = bytes[begin];
    if (at_ == At::kLineStart || (at_ == At::kAfterReturn && letter != '\n' && letter != '\r')) {
      text += prefix;
    }
    const std::size_t stop = std::min(bytes.find_first_of("\r\n", begin), bytes.size() - 1);
    text.append(bytes, begin, stop + 1 - begin);
    at_ = bytes[stop] == '\n'   ? At::kLineStart
          : bytes[stop] == '\r' ? At::kAfterReturn
                                : At::kMiddle;
    begin = stop + 1;
  }
  return text;
}

Output::Output(const std::string& name) : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  // One writer for one file, so that its lines keep their order.
  const std::size_t count = are_same_file(STDOUT_FILENO, STDERR_FILENO) ? 1 : 2;
  for (std::size_t i = 0; i < count; ++i) {
    auto writer = std::make_shared<Writer>();
    writer->file = i == 0 ? STDOUT_FILENO : STDERR_FILENO;
    writer->event = event_;
    writer->discards = !is_writable(writer->file);
    std::thread([writer] { writer->run(); }).detach();
    writers_.push_back(std::move(writer));
  }
  printers_.resize(count, LinePrinter(name));
}

Output::~Output() {
  for (const auto& writer : writers_) {
    const std::lock_guard<std::mutex> lock(writer->mutex);
    writer->stopped = true;
    writer->changed.notify_all();
  }
}

void Output::put(Stream stream, std::string text, std::size_t owner, std::size_t bytes) {
  Writer& writer = *writers_[index(stream)];
  const std::lock_guard<std::mutex> lock(writer.mutex);
  writer.backlog += text.size();
  writer.parts.push_back({std::move(text), owner, bytes});
  writer.changed.notify_one();
}

void Output::print(Stream stream, std::uint32_t rank, const std::string& bytes, std::size_t owner) {
  put(stream, printers_[index(stream)].lines(rank, stream, bytes), owner, bytes.size());
}

void Output::say(const std::string& lines) {
  put(kStderr, printers_[index(kStderr)].lines(LinePrinter::kLauncher, kStderr, lines), kNoOwner,
      0);
}

std::vector<std::size_t> Output::take_printed() {
  std::uint64_t ignored = 0;
  (void)!read(event_, &ignored, sizeof ignored);
  std::vector<std::size_t> sum;
  for (const auto& writer : writers_) {
    const std::lock_guard<std::mutex> lock(writer->mutex);
    if (sum.size() < writer->printed.size()) sum.resize(writer->printed.size());
    for (std::size_t i = 0; i < writer->printed.size(); ++i) sum[i] += writer->printed[i];
    writer->printed.clear();
  }
  return sum;
}

int Output::error(Stream stream) const {
  const std::lock_guard<std::mutex> lock(writers_[index(stream)]->mutex);
  return writers_[index(stream)]->error;
}

std::size_t Output::backlog() const {
  std::size_t sum = 0;
  for (const auto& writer : writers_) {
    const std::lock_guard<std::mutex> lock(writer->mutex);
    sum += writer->backlog;
  }
  return sum;
}

}  // namespace espalier::launch
