#pragma once
// The memory of the nodes of a play: values that say whose data they are. Part of the interpreter.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/mutation/interpreter.h"

namespace espalier::mutation {

// The play, which it refers to, names no place outside its buffers.
class Memory {
 public:
  explicit Memory(const Play& play);

  // Reads, or writes, the values of a node's run of blocks: one value per segment.
  [[nodiscard]] std::vector<Data> load(std::size_t me, const Spot& spot);
  void store(std::size_t me, const Spot& spot, const std::vector<Data>& all);
  // A combine or copy. False if the run lengths of its places differ; then nothing is written.
  [[nodiscard]] bool operate(std::size_t me, const Move& move);
  // Empty if every rank holds the data that the collective must give it; otherwise names a rank
  // that does not.
  [[nodiscard]] std::string wrong_result() const;

 private:
  struct NodeMemory {
    std::vector<Data> output, scratch;
    std::uint64_t heard = 0;  // barrier: ranks known to have arrived, one bit each
  };
  [[nodiscard]] Data& place(std::size_t me, const Spot& spot, std::int64_t part);

  const Play& play_;
  std::vector<NodeMemory> nodes_;
};

}  // namespace espalier::mutation
