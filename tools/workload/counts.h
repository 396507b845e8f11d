#pragma once
// --counts: another number of elements for each rank. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/schedule/program.h"
#include "tools/common/command_line.h"
#include "tools/workload/reference.h"

namespace espalier::tools {

// Adds --counts, which excludes --bytes.
void add_counts_option(Command command, std::string& text);

// Sets what.counts, and what.bytes to the bytes of the longest part, from --counts as typed: LIST,
// @FILE or random:SEED:MAX. Throws Failure (bad input): not such a text; a collective without a
// count per rank; not as many numbers as it takes; a message that is too long.
void set_counts(const std::string& text, reference::ReferenceInput& what);

// Throws Failure (bad input) if the program cannot have unequal counts. `what` has counts.
void check_takes_counts(const Program& program, const reference::ReferenceInput& what);

// "random:7:20 = 3, 0, 17, 5", the first ones only if there are many; `text` as typed.
[[nodiscard]] std::string counts_text(const std::string& text,
                                      const std::vector<std::uint64_t>& counts);

// The counts in the form that machines take, with the memory that they need.
class MachineCounts {
 public:
  // `what` must outlive this object.
  explicit MachineCounts(const reference::ReferenceInput& what) : what_(what) {}
  // Returns the counts for a node. They are valid as long as this object.
  [[nodiscard]] ElementCounts of(std::uint32_t node);

 private:
  const reference::ReferenceInput& what_;
  // By node in an all-to-all; otherwise one for all nodes.
  std::vector<std::vector<std::uint64_t>> offsets_;
};

}  // namespace espalier::tools
