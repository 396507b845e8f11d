#include "tools/simulate/stored_schedule.h"

#include "espalier/collectives/simulation/run.h"
#include "espalier/hal/sim/network.h"
#include "tools/common/output.h"

namespace espalier::tools {

StoredSchedule::StoredSchedule(std::string name, std::vector<std::uint8_t> bytes,
                               const std::string& topology)
    : loaded_(or_bad_input(planner::open_schedule(std::move(name), std::move(bytes), topology))),
      buffer_(std::make_unique<StoredProgram>()) {
  const std::uint32_t nodes = loaded_.file.nodes();
  sim::LinkCollector links;
  const auto program = std::make_unique<DecodedProgram>();
  Progress progress("loading");
  for (std::uint32_t node = 0; node < nodes; ++node) {
    or_bad_input(planner::decode(loaded_, node, *program));
    programs_.add(*program);
    links.add(node, *program);
    if (node == 0) first_ = *program;
    progress.show(static_cast<double>(node) / nodes);
  }
  or_bad_input(planner::check_form(
      loaded_, [this](std::uint32_t node) -> const Program& { return this->program(node); }));
  links_ = links.links(nodes);
}

void StoredSchedule::decode_all() {
  loaded_.programs.resize(nodes());
  for (std::uint32_t node = 0; node < nodes(); ++node) {
    or_bad_input(planner::decode(loaded_, node, loaded_.programs[node]));
  }
}

const Program& StoredSchedule::program(std::uint32_t node) const {
  programs_.load(node, *buffer_);
  return *buffer_;
}

}  // namespace espalier::tools
