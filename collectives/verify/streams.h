#pragma once
// A rigid program as streams: what does not change its shape with N. Internal to
// collectives/verify.

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/schedule/program.h"

namespace espalier::verify {

// The proof for every N is for every N up to this. Generators keep instances that are not meant to
// be at blocks further below 0 than that.
inline constexpr std::int64_t kMostStreamBlocks = std::int64_t{1} << 29;

// No more blocks than this take their turns: the stride, and until slots are the same again.
inline constexpr std::int64_t kMostStride = 4096;

// a + b*N.
struct Linear {
  std::int64_t a = 0, b = 0;
  friend bool operator==(const Linear&, const Linear&) = default;
};
// Whether `count` is linear in N, and which line.
[[nodiscard]] bool is_linear(const Count& count, Linear& line);

// Instances of an action that are exactly the blocks block + stride*k below N, k = 0, 1, ..., of
// one segment over one link, each in step first + pace*k of its phase, for every N. Stride (of the
// schedule) and pace (of the phase) are the same for all; an action may be several streams.
struct Stream {
  Kind kind = espalier_Kind_KIND_NONE;
  std::uint32_t phase = 0;
  std::uint32_t action = 0;   // position in Program.actions
  std::int64_t first = 0;     // >= 0
  std::int64_t block = 0;     // its first: 0 .. stride-1
  std::int64_t instance = 0;  // that of its first block
  std::int64_t every = 1;     // instances from one of its blocks to the next
  std::int64_t link = -1;     // position among the program's links; SEND, RECEIVE
  std::int64_t segment = 0;   // of all its places; in an all-to-all of the one whose block it moves
  std::int64_t from_segment = 0;  // of the place it reads first, if any
};

struct Streams {
  std::vector<Stream> all;         // by action
  std::int64_t stride = 1;         // blocks
  std::vector<std::int64_t> pace;  // by phase: steps in which all of it goes on by `stride` blocks
  std::int64_t slot_period = 1;    // slots of block k and of block k + slot_period are the same

  // The stream of an instance; -1: of none, as such instances never exist.
  [[nodiscard]] std::int32_t of(std::uint32_t action, std::int64_t instance) const {
    const Residues& residues = residues_[action];
    return streams_[residues.at + static_cast<std::size_t>(instance % residues.many)];
  }

 private:
  friend class StreamReader;
  struct Residues {
    std::size_t at = 0;
    std::int64_t many = 1;
  };
  std::vector<Residues> residues_;     // by action
  std::vector<std::int32_t> streams_;  // by residue of the instance's number
};

// Reads `program`, which check_program accepts. Empty if it is rigid: periods are `common`'s; all
// actions are streams of one stride, a multiple of `streams.stride` as it is given; slots repeat
// with a period of at most 4096. Else why it is not, in words.
[[nodiscard]] std::string read_streams(const Program& common, const Program& program,
                                       Streams& streams);

}  // namespace espalier::verify
