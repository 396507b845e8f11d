#pragma once
// The values that an MSCCL algorithm makes: what its chunks hold, and what each is made of.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/formats/msccl_file.h"

namespace espalier::tools::formats {

// A chunk of the message. In an all-to-all, chunks of different origins are different.
struct ChunkName {
  std::int64_t chunk = 0;   // of the whole message; of an all-to-all, of the origin's input
  std::int64_t origin = 0;  // all-to-all: the rank whose input it was; otherwise 0
  friend bool operator==(const ChunkName&, const ChunkName&) = default;
};

// What a chunk of a buffer holds: of the input, or made by a message or a combine.
struct MscclValue {
  enum class Maker : std::uint8_t { kInput, kMessage, kCombine, kCopy };
  Maker maker = Maker::kInput;
  std::uint32_t rank = 0;
  ChunkName name;
  std::int64_t a = -1, b = -1;  // the values that it is made of; a message: the one that is sent
  // The thread blocks that send and receive a message.
  std::pair<std::uint32_t, std::uint32_t> sender, receiver;
  std::uint32_t first_rank = 0;  // whose input is the first operand
  bool is_used = false;
  bool is_output = false;
};

// Executes the algorithm on values. Returns them, each after those that it is made of. `root`: 0 if
// the collective has none. Throws Failure if the file is not valid or makes too many.
[[nodiscard]] std::vector<MscclValue> msccl_values(const std::string& path, const MscclFile& file,
                                                   std::int64_t root);

}  // namespace espalier::tools::formats
