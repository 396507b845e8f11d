// The bytes of each link, from the messages of a schedule: counted per run, not per message.

#include <algorithm>

#include "communicator/record/writer.h"

namespace espalier::record {
namespace {

constexpr std::size_t kMaxKept = 64;

Traffic::Link& link_to(std::uint32_t peer, Traffic& traffic) {
  const auto found = std::find_if(traffic.links.begin(), traffic.links.end(),
                                  [&](const Traffic::Link& link) { return link.peer == peer; });
  if (found != traffic.links.end()) return *found;
  return traffic.links.emplace_back(Traffic::Link{.peer = peer});
}

}  // namespace

void find_links(const Program& program, ElementCounts counts, Traffic& traffic) {
  Layout layout;
  if (make_layout(program, counts, traffic.element_bytes, layout) != Status::kOk) return;
  traffic.steps = phase_steps(program, layout.blocks);
  for (std::uint32_t k = 0; k < program.actions_count; ++k) {
    const Action& action = program.actions[k];
    const bool sends = action.kind == ActionKind::kSend;
    if (!sends && action.kind != ActionKind::kReceive) continue;
    const Operand& operand = sends ? action.a : action.into;
    const std::int64_t instances = count_value(program.counts[action.instances_ref], layout.blocks);
    for (std::int64_t i = 0; i < instances; ++i) {
      const std::int64_t segment = index_value(program, operand.segment_ref, i);
      std::int64_t block = index_value(program, operand.block_ref, i);
      const std::int64_t link = index_value(program, action.link_ref, i);
      if (action.clamp) block = std::min<std::int64_t>(block, layout.blocks - 1);
      if (segment < 0 || block < 0 || block >= layout.blocks || link < 0 ||
          link >= links_count(program)) {
        continue;
      }
      const Span span =
          block_span(layout, static_cast<std::uint32_t>(segment), static_cast<std::uint32_t>(block),
                     operand_segment_count(operand), operand.buffer);
      Traffic::Link& of = link_to(peer_of(program, static_cast<std::uint32_t>(link)), traffic);
      (sends ? of.sent : of.received) += span.bytes;
    }
  }
}

std::shared_ptr<Traffic> Recorder::traffic_of(const Program& program, ElementCounts counts,
                                              std::uint32_t element_bytes) {
  const bool is_unequal = counts.unequal();
  const std::uint64_t count = is_unequal ? 0 : counts.count;
  for (const auto& known : traffic_) {
    if (!is_unequal && !known->is_unequal && known->digest == program.schedule_digest &&
        known->count == count && known->element_bytes == element_bytes) {
      return known;
    }
  }
  auto made = std::make_shared<Traffic>();
  made->digest = program.schedule_digest;
  made->count = count;
  made->is_unequal = is_unequal;
  made->element_bytes = element_bytes;
  if (!is_open()) return made;
  find_links(program, counts, *made);
  if (traffic_.size() >= kMaxKept) count_bytes();
  traffic_.push_back(made);
  return made;
}

void Recorder::count_bytes() {
  if (!is_open()) return;
  for (const auto& traffic : traffic_) {
    if (traffic->runs == 0) continue;
    for (const Traffic::Link& link : traffic->links) {
      writer_->add_bytes(in_job(link.peer), link.sent * traffic->runs,
                         link.received * traffic->runs);
    }
    traffic->runs = 0;
  }
  std::erase_if(traffic_, [](const auto& traffic) { return traffic.use_count() == 1; });
}

}  // namespace espalier::record
