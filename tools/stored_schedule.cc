#include "tools/stored_schedule.h"

#include "hal/sim/sim.h"
#include "tools/output.h"

namespace espalier::tools {

StoredSchedule::StoredSchedule(const std::string& path, const std::string& topology)
    : loaded_(open_schedule(path, topology)),
      first_(std::make_unique<Program>()),
      buffer_(std::make_unique<Program>()) {
  const std::uint32_t nodes = loaded_.file.nodes();
  sim::LinkCollector links;
  Progress progress("loading");
  for (std::uint32_t node = 0; node < nodes; ++node) {
    decode(loaded_, node, *buffer_);
    programs_.add(*buffer_);
    links.add(node, *buffer_);
    if (node == 0) *first_ = *buffer_;
    progress.at(static_cast<double>(node) / nodes);
  }
  links_ = links.links(nodes);
}

void StoredSchedule::decode_all() {
  loaded_.programs.resize(nodes());
  for (std::uint32_t node = 0; node < nodes(); ++node) {
    decode(loaded_, node, loaded_.programs[node]);
  }
}

const Program& StoredSchedule::program(std::uint32_t node) const {
  programs_.load(node, *buffer_, in_buffer_);
  return *buffer_;
}

}  // namespace espalier::tools
