#include "collectives/predict/replay.h"

#include <algorithm>

#include "collectives/predict/replay_state.h"
#include "espalier/internal/base/arithmetic.h"
#include "espalier/internal/base/assert.h"

namespace espalier::predict {
namespace {

bool overlaps(std::int64_t a, std::uint32_t a_count, std::int64_t b, std::uint32_t b_count) {
  return a < b + b_count && b < a + a_count;
}

// Whether two operands of one node share memory.
bool share_memory(const OperandAt& a, const OperandAt& b) {
  if (a.buffer != b.buffer) return false;
  if (a.buffer == Buffer::kScratch)
    return overlaps(a.slot, a.segment_count, b.slot, b.segment_count);
  return a.block == b.block && overlaps(a.segment, a.segment_count, b.segment, b.segment_count);
}

std::uint64_t bytes_of(const Layout& layout, const OperandAt& operand) {
  ESPALIER_ASSERT(operand.segment >= 0 && operand.block >= 0);
  return block_span(layout, static_cast<std::uint32_t>(operand.segment),
                    static_cast<std::uint32_t>(operand.block), operand.segment_count,
                    operand.buffer)
      .bytes;
}

bool has_one_port(const Program& program) {
  return program.port_model == PortModel::kOnePortDuplex ||
         program.port_model == PortModel::kSimplex;
}

// Upper limit of the instances of an action in a phase of `steps` steps: one per period, where it
// has no pace.
std::uint64_t most_instances(const Program& program, const Action& action, std::int64_t blocks,
                             std::int64_t steps, std::int64_t period) {
  const std::int64_t claimed = count_value(program.counts[action.instances_ref], blocks);
  const std::int64_t t0 = count_value(program.counts[action.t0_ref], blocks);
  const bool has_pace = action.pace_ref != 0;
  const std::int64_t most =
      has_pace ? claimed : std::min(claimed, floor_div(steps - 1 - t0, period) + 1);
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, most));
}

}  // namespace

ReplayState::ReplayState(const topology::Topology& topology, const Programs& programs,
                         const Layout& layout, const Model& model, const Conditions& conditions)
    : topology_(topology),
      model_(model),
      conditions_(conditions),
      one_port_(has_one_port(programs.front())),
      ranks_on_host_(ranks_on_host(topology, conditions)),
      block_bytes_(slot_bytes(layout)),
      nodes_(programs.size()) {
  if (model.ranks_per_core(ranks_on_host_) > 1) {
    const std::size_t hosts = (programs.size() + ranks_on_host_ - 1) / ranks_on_host_;
    cores_free_.resize(hosts * model.cores);
    wake_ = model.wake_ps;
  }
  for (std::uint32_t node = 0; node < programs.size(); ++node) {
    add_node(node, programs[node], layout);
  }
  for (std::uint32_t number = 0; number < channels_.size(); ++number) add_route(number);
}

std::uint32_t ReplayState::channel(std::uint32_t from, std::uint32_t to) {
  const auto [found, is_new] =
      channel_numbers_.emplace(std::pair(from, to), static_cast<std::uint32_t>(channels_.size()));
  if (is_new) {
    ReplayChannel& added = channels_.emplace_back();
    added.from = from;
    added.to = to;
    added.lanes = std::max(1u, topology_.capacity(from, to));
  }
  return found->second;
}

void ReplayState::add_node(std::uint32_t number, const Program& program, const Layout& layout) {
  ReplayNode& node = nodes_[number];
  node.window = program.window;
  std::int64_t steps = 0;
  for (std::uint32_t phase = 0; phase < program.phases_count; ++phase) {
    steps += count_value(program.counts[program.phases[phase].steps_ref], layout.blocks);
    node.phase_ends.push_back(steps);
  }
  node.steps.resize(static_cast<std::size_t>(steps));
  for (const Instance& instance : expand(program, layout.blocks)) {
    ReplayStep& step = node.steps.at(static_cast<std::size_t>(instance.step));
    const auto peer = static_cast<std::uint32_t>(instance.peer);
    if (instance.kind == ActionKind::kSend) {
      const std::uint32_t out = channel(number, peer);
      channels_[out].sends.push_back(
          {instance.step, instance.after, bytes_of(layout, instance.a), instance.a});
      node.postings.push_back({instance.step, out, true});
      ++step.sends, ++step.unposted;
    } else if (instance.kind == ActionKind::kReceive) {
      const std::uint32_t in = channel(peer, number);
      channels_[in].receives.push_back(instance.step);
      node.postings.push_back({instance.step, in, false});
      ++step.receives;
    } else {
      const bool combines = instance.kind == ActionKind::kCombine;
      const std::uint64_t bytes = bytes_of(layout, instance.into);
      const Picoseconds time =
          combines ? model_.combine_time(conditions_.op, bytes) : per_byte(model_.copy_fs, bytes);
      node.operations.push_back({instance.step, instance.after, time, instance.into});
      ++step.operations;
    }
  }
}

Picoseconds ReplayState::run() {
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) progress(node);
  while (!events_.empty() || !free_ports_.empty()) {
    if (events_.empty() || events_.top().time > now_) serve_ports();
    now_ = events_.top().time;
    while (!events_.empty() && events_.top().time == now_) {
      const Event event = events_.top();
      events_.pop();
      happen(event);
    }
    while (!touched_.empty()) {
      std::vector<std::uint32_t> touched;
      touched.swap(touched_);
      std::sort(touched.begin(), touched.end());
      for (const std::uint32_t node : touched) {
        nodes_[node].touched = false;
        progress(node);
      }
    }
  }
  for (const ReplayNode& node : nodes_) {
    ESPALIER_ASSERT(node.retired == static_cast<std::int64_t>(node.steps.size()));
  }
  return std::min(now_, kMaxPrediction);
}

void ReplayState::touch(std::uint32_t node) {
  if (nodes_[node].touched) return;
  nodes_[node].touched = true;
  touched_.push_back(node);
}

// The processor that the node's next work gets, by the time at which it is free: the node's own, or
// the first one that is free on its host.
Picoseconds& ReplayState::processor_of(ReplayNode& node, std::uint32_t number) {
  if (cores_free_.empty()) return node.cpu_free;
  const auto first = cores_free_.begin() + number / ranks_on_host_ * model_.cores;
  return *std::min_element(first, first + model_.cores);
}

// Returns the time at which the node has done work that begins now at the earliest.
Picoseconds ReplayState::spend(std::uint32_t number, Picoseconds time) {
  ReplayNode& node = nodes_[number];
  Picoseconds& processor = processor_of(node, number);
  processor = node.cpu_free = std::max({node.cpu_free, processor, now_}) + time;
  return node.cpu_free;
}

// Does everything that the rules allow now: rules 2 to 6.
void ReplayState::progress(std::uint32_t number) {
  ReplayNode& node = nodes_[number];
  bool more = true;
  while (more) {
    more = operate(number);
    more = retire(node) || more;
    more = issue(node) || more;
    more = post_sends(number) || more;
  }
}

bool ReplayState::retire(ReplayNode& node) {
  const std::int64_t before = node.retired;
  while (node.retired < node.issued) {
    const ReplayStep& step = node.steps[static_cast<std::size_t>(node.retired)];
    if (step.receives + step.sends + step.operations > 0) break;
    ++node.retired;
  }
  return node.retired > before;
}

void ReplayState::add_out_channel(ReplayNode& node, std::uint32_t number) {
  const auto place = std::lower_bound(
      node.out_channels.begin(), node.out_channels.end(), number,
      [this](std::uint32_t a, std::uint32_t b) { return channels_[a].to < channels_[b].to; });
  node.out_channels.insert(place, number);
}

bool ReplayState::issue(ReplayNode& node) {
  const std::int64_t before = node.issued;
  while (node.issued < static_cast<std::int64_t>(node.steps.size()) &&
         node.issued < node.retired + node.window) {
    if (node.issued == node.phase_ends[node.phase]) {
      if (node.retired < node.issued) break;
      ++node.phase;
      continue;
    }
    for (; node.next_posting < node.postings.size() &&
           node.postings[node.next_posting].step == node.issued;
         ++node.next_posting) {
      const ReplayNode::Posting& posting = node.postings[node.next_posting];
      ReplayChannel& channel = channels_[posting.channel];
      if (posting.is_send) {
        if (channel.allowed++ == channel.posting) add_out_channel(node, posting.channel);
      } else {
        ++channel.receives_posted;
        match(channel);
        update(channel);
      }
    }
    ++node.issued;
    ESPALIER_ASSERT(node.issued <= node.retired + node.window);
  }
  return node.issued > before;
}

bool ReplayState::is_ready(const ReplayNode& node, std::int64_t step) {
  if (step < node.retired) return true;
  const ReplayStep& found = node.steps[static_cast<std::size_t>(step)];
  return step < node.issued && found.receives + found.operations == 0;
}

// Posts the sends of earlier steps first, as a machine does.
bool ReplayState::post_sends(std::uint32_t number) {
  ReplayNode& node = nodes_[number];
  bool any = false;
  for (std::int64_t step = node.all_posted; step < node.issued && !node.out_channels.empty();
       ++step) {
    if (node.steps[static_cast<std::size_t>(step)].unposted == 0) continue;
    for (const std::uint32_t out : node.out_channels) {
      ReplayChannel& channel = channels_[out];
      ESPALIER_ASSERT(channel.posting <= channel.allowed);
      while (channel.posting < channel.allowed && channel.sends[channel.posting].step == step &&
             post_send(number, channel)) {
        any = true;
      }
    }
  }
  std::erase_if(node.out_channels, [this](std::uint32_t out) {
    return channels_[out].posting == channels_[out].allowed;
  });
  while (node.all_posted < node.issued &&
         node.steps[static_cast<std::size_t>(node.all_posted)].unposted == 0) {
    ++node.all_posted;
  }
  return any;
}

// Posts the channel's next send if rule 4 allows it.
bool ReplayState::post_send(std::uint32_t number, ReplayChannel& channel) {
  ReplayNode& node = nodes_[number];
  const ReplaySend& send = channel.sends[channel.posting];
  if (send.after > 0 && !is_ready(node, send.step - send.after)) return false;
  node.reading.emplace_back(number_of(channel), channel.posting);
  ESPALIER_ASSERT(node.steps[static_cast<std::size_t>(send.step)].unposted > 0);
  --node.steps[static_cast<std::size_t>(send.step)].unposted;
  ++channel.posting;
  const Picoseconds overhead = model_.overhead_time(send.bytes);
  if (overhead == 0) {
    posted(channel);
  } else {
    schedule(spend(number, overhead), EventKind::kPosted, number_of(channel));
  }
  return true;
}

bool ReplayState::is_read(const ReplayNode& node, const OperandAt& into) const {
  return std::any_of(node.reading.begin(), node.reading.end(), [&](const auto& reading) {
    return share_memory(channels_[reading.first].sends[reading.second].from, into);
  });
}

bool ReplayState::operate(std::uint32_t number) {
  ReplayNode& node = nodes_[number];
  if (node.operating || node.next_operation == node.operations.size()) return false;
  const ReplayOperation& operation = node.operations[node.next_operation];
  if (operation.step >= node.issued || operation.step >= node.all_posted) return false;
  const std::int64_t needed = operation.step - operation.after;
  if (needed >= node.retired && node.steps[static_cast<std::size_t>(needed)].receives > 0) {
    return false;
  }
  if (is_read(node, operation.into)) return false;
  node.operating = true;
  if (operation.time > 0) {
    schedule(spend(number, operation.time), EventKind::kOperated, number);
    return false;
  }
  node.operating = false;
  ESPALIER_ASSERT(node.steps[static_cast<std::size_t>(operation.step)].operations > 0);
  --node.steps[static_cast<std::size_t>(operation.step)].operations;
  ++node.next_operation;
  return true;
}

std::uint32_t ranks_on_host(const topology::Topology& topology, const Conditions& conditions) {
  if (conditions.ranks_on_host > 0) return conditions.ranks_on_host;
  return std::max(1u, topology.shape().host_ranks);
}

std::uint64_t instances(const Programs& programs, std::int64_t blocks) {
  std::uint64_t all = 0;
  for (const Program& program : programs) {
    std::uint32_t number = 0;
    for (std::uint32_t phase = 0; phase < program.phases_count; ++phase) {
      const std::int64_t steps = std::max<std::int64_t>(
          0, count_value(program.counts[program.phases[phase].steps_ref], blocks));
      all += static_cast<std::uint64_t>(steps);
      for (std::uint32_t end = number + program.phases[phase].actions; number < end; ++number) {
        all += most_instances(program, program.actions[number], blocks, steps,
                              program.phases[phase].period);
      }
    }
  }
  return all;
}

std::optional<Picoseconds> replay(const topology::Topology& topology, const Programs& programs,
                                  const Layout& layout, const Model& model,
                                  const Conditions& conditions) {
  if (instances(programs, layout.blocks) > conditions.max_instances) return std::nullopt;
  return ReplayState(topology, programs, layout, model, conditions).run();
}

}  // namespace espalier::predict
