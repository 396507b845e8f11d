#include "tools/report/verify_source.h"

#include "tools/common/output.h"

namespace espalier::tools {
namespace {

constexpr std::uint32_t kMaxKeptPrograms = 4096;  // of 9 KB each

}  // namespace

Source::Source(std::string name, std::vector<std::uint8_t> bytes, const std::string& topology)
    : Source(or_bad_input(planner::open_schedule(std::move(name), std::move(bytes), topology))) {}

Source::Source(planner::LoadedSchedule loaded)
    : loaded_(std::move(loaded)),
      name_(loaded_.name),
      topology_(loaded_.topology.get()),
      buffer_(std::make_unique<OwnedProgram>()) {
  // A file that is not a schedule is refused here, before any proof begins.
  const std::uint32_t nodes = loaded_.file.nodes();
  const bool keep = nodes <= kMaxKeptPrograms;
  Progress progress("loading");
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (keep) loaded_.programs.emplace_back();
    or_bad_input(planner::decode(loaded_, node, keep ? loaded_.programs.back() : *buffer_));
    progress.show(static_cast<double>(node) / nodes);
  }
}

Source::Source(planner::PlannedSchedule schedule)
    : schedule_(std::move(schedule)),
      topology_(schedule_.topology.get()),
      buffer_(std::make_unique<OwnedProgram>()) {
  name_ = schedule_.algorithm.name + ", root " + std::to_string(schedule_.parameters.root);
}

const Program& Source::program(std::uint32_t node) {
  if (!loaded_.programs.empty()) return loaded_.programs.at(node);
  if (filled_ && in_buffer_ == node) return *buffer_;
  filled_ = false;
  if (!schedule_.algorithm.name.empty()) {
    or_bad_input(planner::generate(schedule_, node, *buffer_));
  } else {
    or_bad_input(planner::decode(loaded_, node, *buffer_));
  }
  in_buffer_ = node;
  filled_ = true;
  return *buffer_;
}

}  // namespace espalier::tools
