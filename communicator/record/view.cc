#include "communicator/record/view.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

#include "base/one_line.h"
#include "base/try.h"

namespace espalier::record {
namespace {

constexpr int kAttempts = 20;
constexpr std::uint32_t kMaxRanks = 1U << 20;  // a reader goes through them

// A record in memory of its own.
struct Copy {
  alignas(Record) std::array<char, sizeof(Record)> bytes;
  [[nodiscard]] const Record& record() const {
    return *reinterpret_cast<const Record*>(bytes.data());
  }
};

std::uint64_t of(const Word& word) { return word.load(std::memory_order_relaxed); }

template <std::size_t Size>
std::string text_in(const char (&text)[Size]) {
  return {text, strnlen(text, Size)};
}

Error not_a_record(const std::string& name, const std::string& why) {
  return {"'" + one_line(name) + "' " + why};
}

Result<void> check_head(const Record& record, std::size_t size, const std::string& name) {
  constexpr std::size_t kHead = offsetof(Record, heartbeat_ns);
  if (size < kHead || std::memcmp(record.magic, kMagic, sizeof kMagic) != 0) {
    return fail(not_a_record(name, "is not a record of a process of Espalier"));
  }
  if (record.version != kVersion) {
    return fail(not_a_record(name, "is a record of version " + std::to_string(record.version) +
                                       "; expected " + std::to_string(kVersion) +
                                       ", as this espalier writes"));
  }
  if (size != sizeof(Record) || record.bytes != sizeof(Record)) {
    return fail(not_a_record(name, "has " + std::to_string(size) + " bytes; expected a record of " +
                                       std::to_string(sizeof(Record))));
  }
  return {};
}

bool is_whole(const Word& before, const Word& after) {
  return of(before) == of(after) && of(before) % 2 == 0;
}

// Makes `middle`, which was copied between the other two, a record as it was at one time. Returns
// whether it is whole; otherwise the parts that changed are empty.
bool make_whole(const Record& before, const Record& after, Copy& middle) {
  bool all = is_whole(before.sequence, after.sequence);
  char* const bytes = middle.bytes.data();
  const auto clear = [&](const void* part, std::size_t size) {
    const auto offset = static_cast<const char*>(part) - middle.bytes.data();
    std::memset(bytes + offset, 0, size);
  };
  // A process that is killed during a change leaves it half done: each field is the old or the new
  // one, or a text of both.
  if (of(before.sequence) != of(after.sequence)) {
    clear(&middle.record().process, sizeof(Process));
  }
  for (std::uint32_t i = 0; i < kCommunicators; ++i) {
    const Part& part = middle.record().communicators[i];
    const Part& later = after.communicators[i];
    if (!is_whole(before.communicators[i].sequence, later.sequence)) {
      clear(&part.details, sizeof(Details));
      all = false;
    }
    // A call of which `later.begun` may already have been overwritten.
    const std::uint64_t begun = of(part.begun), limit = of(later.begun);
    for (std::uint64_t n = std::min<std::uint64_t>(begun, kCalls); n-- > 0;) {
      const std::uint64_t call = begun - n;
      const Call& kept = part.calls[call % kCalls];
      if (call <= limit && limit - call >= kCalls - 1) clear(&kept, sizeof(Call));
    }
  }
  return all;
}

Result<void> read_copy(int file, const std::string& path, Copy& copy) {
  std::size_t count = 0;
  while (count < copy.bytes.size()) {
    const ssize_t got = pread(file, copy.bytes.data() + count, copy.bytes.size() - count,
                              static_cast<off_t>(count));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail("cannot read '" + one_line(path) + "': " + std::strerror(errno));
    if (got == 0) break;
    count += static_cast<std::size_t>(got);
  }
  return check_head(copy.record(), count, path);
}

std::vector<HostRun> hosts_of(const std::string& text) {
  std::vector<HostRun> runs;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t star = word.rfind('*');
    if (star == std::string::npos || word.size() - star > 8) break;  // "...": the rest is cut
    const std::string digits = word.substr(star + 1);
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) break;
    runs.push_back(
        {one_line(word.substr(0, star)), static_cast<std::uint32_t>(std::stoul(digits))});
  }
  return runs;
}

std::vector<CallView> calls_of(const Part& part, std::uint64_t begun) {
  std::vector<CallView> calls;
  for (std::uint64_t n = std::min<std::uint64_t>(begun, kCalls); n-- > 0;) {
    const std::uint64_t call = begun - n;
    const Call& kept = part.calls[call % kCalls];
    if (of(kept.word) == 0) continue;
    const std::uint64_t algorithm = of(kept.begun) & kAlgorithmBits;
    calls.push_back({.number = call,
                     .word = of(kept.word),
                     .begun_ns = of(kept.begun) & ~kAlgorithmBits,
                     .algorithm = algorithm < kAlgorithms
                                      ? one_line(text_in(part.details.algorithms[algorithm]))
                                      : ""});
  }
  return calls;
}

Result<CommunicatorView> communicator_of(const Part& part, const std::string& name) {
  const Details& details = part.details;
  CommunicatorView view{.id = details.id,
                        .number = details.number,
                        .rank = details.rank,
                        .size = details.size,
                        .has_left = details.has_left != 0,
                        .begun = of(part.begun),
                        .done = std::min(of(part.done), of(part.begun)),
                        .changed_ns = of(part.changed_ns),
                        .inside_ns = of(part.inside_ns)};
  if (view.rank >= view.size || view.size > kMaxRanks) {
    return fail(not_a_record(name, "has rank " + std::to_string(view.rank) +
                                       " of a communicator of " + std::to_string(view.size) +
                                       "; expected a lower rank, and at most " +
                                       std::to_string(kMaxRanks) + " of them"));
  }
  if (details.failure.status != 0) view.failure = details.failure;
  // A call that failed is over, but not done.
  if (view.failure && view.failure->call == view.begun && view.begun != 0) {
    view.done = std::min(view.done, view.begun - 1);
  }
  if (view.begun != view.done && details.wait.call == view.begun) view.wait = details.wait;
  if (view.failure) view.failure->text[sizeof view.failure->text - 1] = 0;
  view.calls = calls_of(part, view.begun);
  return view;
}

}  // namespace

const CallView* CommunicatorView::find(std::uint64_t number) const {
  const auto found = std::find_if(calls.begin(), calls.end(),
                                  [&](const CallView& call) { return call.number == number; });
  return found == calls.end() ? nullptr : &*found;
}

Result<std::string> read_bytes(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct Closes {
    int file;
    ~Closes() {
      if (file >= 0) close(file);
    }
  } const closes{file};
  if (file < 0) return fail("cannot read '" + one_line(path) + "': " + std::strerror(errno));
  struct stat status {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail(not_a_record(path, "is not a regular file; expected a record"));
  }
  const auto copies = std::make_unique<std::array<Copy, 3>>();
  auto& [before, middle, after] = *copies;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    for (Copy& copy : *copies) {
      ESPALIER_TRY(read_copy(file, path, copy));
    }
    if (make_whole(before.record(), after.record(), middle)) break;
  }
  return std::string(middle.bytes.data(), middle.bytes.size());
}

Result<View> decode(const std::string& bytes, const std::string& name) {
  const auto copy = std::make_unique<Copy>();
  std::memcpy(copy->bytes.data(), bytes.data(), std::min(bytes.size(), copy->bytes.size()));
  const Record& record = copy->record();
  ESPALIER_TRY(check_head(record, bytes.size(), name));
  View view;
  view.path = name;
  view.process = record.process;
  Process& process = view.process;
  for (char* const end :
       {&process.library[sizeof process.library - 1],
        &process.provider[sizeof process.provider - 1], &process.job[sizeof process.job - 1],
        &process.joining[sizeof process.joining - 1], &process.board[sizeof process.board - 1],
        &process.host[sizeof process.host - 1], &process.text[sizeof process.text - 1]}) {
    *end = 0;
  }
  if (process.rank >= process.size || process.size > kMaxRanks ||
      process.schedule_ranks > process.size || process.state < ProcessState::kJoining ||
      process.state > ProcessState::kJoinFailed) {
    return fail(not_a_record(name, "has rank " + std::to_string(process.rank) + " of " +
                                       std::to_string(process.size) + " in state " +
                                       std::to_string(static_cast<std::uint32_t>(process.state)) +
                                       "; expected a record that a process has finished"));
  }
  view.identity = {process.pid, process.pid_space, process.start_ticks, process.is_locked != 0};
  view.heartbeat_ns = of(record.heartbeat_ns);
  view.heartbeat_wall = of(record.heartbeat_wall);
  view.hosts = hosts_of(text_in(process.hosts));
  for (const Peer& peer : record.peers) {
    if (of(peer.rank) == 0) continue;
    view.peers.push_back(
        {static_cast<std::uint32_t>(of(peer.rank) - 1), of(peer.sent), of(peer.received)});
  }
  std::sort(view.peers.begin(), view.peers.end(),
            [](const PeerView& a, const PeerView& b) { return a.rank < b.rank; });
  view.other_peers = {0, of(record.other_peers.sent), of(record.other_peers.received)};
  for (const Part& part : record.communicators) {
    if (part.details.id == 0) continue;
    ESPALIER_TRY_TO(auto communicator, communicator_of(part, name));
    view.communicators.push_back(std::move(communicator));
  }
  std::sort(view.communicators.begin(), view.communicators.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  return view;
}

Result<View> read_view(const std::string& path) {
  ESPALIER_TRY_TO(const std::string bytes, read_bytes(path));
  return decode(bytes, path);
}

}  // namespace espalier::record
