#pragma once
// A rigid program as streams: what does not change its shape with N. Internal to
// collectives/verify.

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/schedule/program.h"

namespace espalier::verify {

// a + b*N.
struct Linear {
  std::int64_t a = 0, b = 0;
  friend bool operator==(const Linear&, const Linear&) = default;
};
// Whether `count` is linear in N, and which line.
[[nodiscard]] bool is_linear(const Count& count, Linear& line);

// An action whose instances are exactly blocks 0 .. N-1 of one segment over one link, block k in
// step first + period*k of its phase, for every N.
struct Stream {
  Kind kind = espalier_Kind_KIND_NONE;
  std::uint32_t phase = 0;
  std::uint32_t action = 0;  // position in Program.actions
  std::int64_t first = 0;    // >= 0
  std::int64_t shift = 0;    // block k is that of instance k - shift
  std::int64_t link = -1;    // position in Program.peers; SEND, RECEIVE
  std::int64_t segment = 0;  // of all its places
};

struct Streams {
  std::vector<Stream> all;       // one an action, in the program's order
  std::int64_t slot_period = 1;  // slots of block k and of block k + slot_period are the same
};

// Reads `program`, which check_program accepts. Empty if it is rigid: periods are `common`'s; all
// actions are streams; slots repeat with a period of at most 4096. Else why it is not, in words.
[[nodiscard]] std::string read_streams(const Program& common, const Program& program,
                                       Streams& streams);

}  // namespace espalier::verify
