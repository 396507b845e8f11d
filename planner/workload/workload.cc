#include "planner/workload/workload.h"

#include "base/counted.h"
#include "base/one_line.h"

namespace espalier::planner {

Result<reference::ReferenceInput> case_of(const Program& program, const OperatorOptions& options) {
  reference::ReferenceInput what;
  what.collective = program.collective;
  what.ranks = program.ranks;
  what.root = program.root;
  const std::string name = collective_name(what.collective);
  if (!reference::combines(what.collective)) {
    const char* given = !options.op.empty() ? "--op" : !options.type.empty() ? "--type" : nullptr;
    if (given == nullptr) return what;
    return fail(name + " combines nothing; expected no " + given);
  }
  const auto op = reference::parse_operator(options.op_or_default(), options.type_or_default());
  if (!op) return fail(op.error());
  what.op = *op;
  if (what.op.op == Op::kCustom && !options.type.empty()) {
    return fail("operator '" + options.op + "' has a type of its own; expected no --type");
  }
  if (program.needs_commutative && !what.op.commutes) {
    return fail("operator '" + options.op + "' does not commute, and " + name + " by " +
                one_line(program.algorithm) + " with root " + std::to_string(what.root) +
                " does not keep the order of ranks; expected another algorithm, ranks as numbered "
                "(--embedding none), or sum, product, ...");
  }
  return what;
}

Result<Layout> layout_of(const Program& program, const reference::ReferenceInput& what) {
  Layout layout;
  const std::uint32_t size = element_bytes(what.op);
  const Status status = make_layout(program, reference::count(what), size, layout);
  if (status == Status::kOk) return layout;
  std::string why = status_name(status);
  if (status == Status::kTooLarge) {
    why = "longer than " + std::to_string(kMaxMessageBytes) + " bytes, or of more than " +
          std::to_string(kMaxBlocks) + " blocks; expected fewer bytes";
  }
  return fail("the schedule takes no message of " + counted(what.bytes, "byte") +
              (counts_per_rank(what.collective) ? " a rank: " : ": ") + why);
}

}  // namespace espalier::planner
