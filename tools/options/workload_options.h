#pragma once
// The options that say what a schedule is run with: --op, --type, --counts, --blocks. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/schedule/program.h"
#include "planner/workload/reference.h"
#include "tools/common/command_line.h"

namespace espalier::tools {

// As typed; empty: not given.
struct OperatorOptions {
  std::string op, type;

  [[nodiscard]] std::string op_or_default() const { return op.empty() ? "sum" : op; }
  [[nodiscard]] std::string type_or_default() const { return type.empty() ? "f32" : type; }
};

// Adds --op and --type.
void add_operator_options(Command command, OperatorOptions& options);
// Returns the operator of the collective. Throws Failure (bad input): an unknown one, one for a
// collective that combines nothing, or a type beside `affine`, which has its own.
[[nodiscard]] Operator operator_of(Collective collective, const OperatorOptions& options);
// Returns the case of this program with this operator, of no bytes. Throws Failure (bad input), as
// operator_of(), and if the schedule's order of ranks does not allow the operator.
[[nodiscard]] reference::ReferenceInput case_of(const Program& program,
                                                const OperatorOptions& options);

// Adds --counts, which excludes --bytes.
void add_counts_option(Command command, std::string& text);

// Sets what.counts, and what.bytes to the bytes of the longest part, from --counts as typed: LIST,
// @FILE or random:SEED:MAX. Throws Failure (bad input): not such a text; a collective without a
// count per rank; not as many numbers as it takes; a message that is too long.
void set_counts(const std::string& text, reference::ReferenceInput& what);

// "random:7:20 = 3, 0, 17, 5", the first ones only if there are many; `text` as typed.
[[nodiscard]] std::string counts_text(const std::string& text,
                                      const std::vector<std::uint64_t>& counts);

// --blocks of a command that expands `program`, from 1 to `most`. Throws Failure (bad input) where
// `text` is not such a number, or no message of the schedule has that N; it says which N there are.
[[nodiscard]] std::int64_t chosen_blocks(const std::string& text, std::uint64_t most,
                                         const Program& program);

}  // namespace espalier::tools
