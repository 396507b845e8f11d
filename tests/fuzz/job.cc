// Fuzz target: bytes of any contents in the pipes between a job's launcher and a host's daemon.
// What is taken out are messages, which stay the same after writing; a job and an end of a rank
// have their numbers in range. The first byte tells whether the rest are raw bytes, or fields
// between zeros whose lengths are put before them.

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "tests/fuzz/expect.h"
#include "tools/launch/frames.h"

namespace espalier::fuzz {
namespace {

using launch::Fields;

// Messages of up to 12 fields, from text between bytes of zero.
std::string make_messages(Input& input) {
  std::string bytes;
  while (input.left() > 0) {
    Fields fields(1 + input.below(12));
    for (std::string& field : fields) {
      while (input.left() > 0) {
        const char next = static_cast<char>(input.byte());
        if (next == '\0') break;
        field += next;
      }
    }
    bytes += launch::encode(fields);
  }
  return bytes;
}

void use(const Fields& fields) {
  expect(!fields.empty(), "a message has a name");
  if (const auto job = launch::read_description(fields)) {
    expect(!job->arguments.empty(), "a job has a program");
    expect(job->variables.size() + job->arguments.size() < fields.size(),
           "fields are not invented");
  }
  if (const auto end = launch::read_end(fields)) {
    expect(end->status >= -255 && end->status <= 255, "an exit status has its range");
  }
}

}  // namespace

void run(Input& input) {
  const unsigned form = input.below(4);
  const std::string sent = form < 2 ? input.text() : make_messages(input);
  int ends[2];
  expect(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0, "a pipe opens");
  launch::Reader reader(form % 2 == 0 ? "" : launch::kGreeting);
  std::string left = (form == 3 ? launch::kGreeting : "") + sent;
  std::size_t taken = 0;
  for (bool is_open = true; is_open && !left.empty();) {
    const ssize_t written = write(ends[1], left.data(), left.size());
    expect(written > 0, "a pipe has room");
    left.erase(0, static_cast<std::size_t>(written));
    is_open = reader.fill(ends[0]);
    for (launch::Fields fields; reader.take(fields); ++taken) {
      use(fields);
      const std::string again = launch::encode(fields);
      expect(again.size() <= sent.size(), "a message was sent");
    }
  }
  expect(form != 2 || sent.empty() || taken > 0, "what is written can be read");
  close(ends[0]);
  close(ends[1]);
}

}  // namespace espalier::fuzz
