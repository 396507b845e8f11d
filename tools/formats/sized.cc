#include "tools/formats/sized.h"

#include "tools/common/failure.h"
#include "tools/common/output.h"

namespace espalier::tools::formats {
namespace {

Layout cut(const planner::LoadedSchedule& loaded, const Program& program, std::uint64_t bytes) {
  Layout layout;
  const Status status = make_layout(program, bytes, 1, layout);
  if (status == Status::kOk) return layout;
  bad_input("'" + one_line(loaded.name) + "' takes no message of " + counted(bytes, "byte") + ": " +
            status_name(status));
}

std::uint64_t nanoseconds(std::uint64_t fs_per_byte, std::uint64_t bytes) {
  return (predict::per_byte(fs_per_byte, bytes) + 999) / 1000;
}

}  // namespace

SizedOperations size_operations(const planner::LoadedSchedule& loaded, std::uint64_t bytes,
                                const predict::Model& model) {
  SizedOperations sized;
  sized.expanded = expand_operations(loaded, cut(loaded, loaded.programs.front(), bytes).blocks);
  for (std::size_t node = 0; node < loaded.programs.size(); ++node) {
    const Layout layout = cut(loaded, loaded.programs[node], bytes);
    sized.bytes.emplace_back();
    sized.duration_ns.emplace_back();
    for (const Operation& operation : sized.expanded.nodes[node].operations) {
      const OperandAt& data = operation.data;
      const std::uint64_t length =
          block_span(layout, static_cast<std::uint32_t>(data.segment),
                     static_cast<std::uint32_t>(data.block), data.segment_count, data.buffer)
              .bytes;
      sized.bytes.back().push_back(length);
      const bool combines = operation.kind == ActionKind::kCombine;
      sized.duration_ns.back().push_back(
          nanoseconds(combines ? model.gamma_fs : model.copy_fs, length));
    }
  }
  return sized;
}

}  // namespace espalier::tools::formats
