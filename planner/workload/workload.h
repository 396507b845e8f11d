#pragma once
// The input of a schedule: its operator, and the cut of its message into blocks. Host only.

#include <string>

#include "espalier/collectives/schedule/program.h"
#include "planner/workload/reference.h"

namespace espalier::planner {

// As typed; empty: not given.
struct OperatorOptions {
  std::string op, type;

  [[nodiscard]] std::string op_or_default() const { return op.empty() ? "sum" : op; }
  [[nodiscard]] std::string type_or_default() const { return type.empty() ? "f32" : type; }
};

// Returns the case of this program with this operator, of no bytes. Error: an
// unknown operator, one that the schedule's order of ranks does not allow, one for a collective
// that combines nothing, or a type beside `affine`, which has its own.
[[nodiscard]] Result<reference::ReferenceInput> case_of(const Program& program,
                                                        const OperatorOptions& options);

// Cuts the message into blocks; with `counts`, cuts the longest part of all ranks. Error: the
// program takes none of its size.
[[nodiscard]] Result<Layout> layout_of(const Program& program,
                                       const reference::ReferenceInput& what);

}  // namespace espalier::planner
