#include "collectives/algorithms/searched/streams.h"

#include <algorithm>

#include "espalier/base/assert.h"

namespace espalier::searched {
namespace {

// The streams into and out of a rank.
struct Ends {
  std::vector<const Stream*> in, out;
};

std::vector<Ends> ends_of(const Broadcast& broadcast, std::uint32_t ranks) {
  std::vector<Ends> ends(ranks);
  for (const Stream& stream : broadcast.streams) {
    ends[stream.to].in.push_back(&stream);
    ends[stream.from].out.push_back(&stream);
  }
  return ends;
}

void add_broadcast(Builder& builder, const Broadcast& broadcast, const Ends& ends, bool source) {
  const auto place = [&](const Stream& stream) {
    Operand operand = source ? builder.input(stream.segment) : builder.output(stream.segment);
    Index row{};
    row.base = static_cast<std::int32_t>(stream.first);
    row.coef = static_cast<std::int32_t>(broadcast.every);
    operand.block_ref = builder.index(row);
    return operand;
  };
  for (const Stream* stream : ends.in) builder.receive(stream->step, stream->from, place(*stream));
  for (const Stream* stream : ends.out) {
    std::uint32_t after = 0;
    for (const Stream* in : ends.in) {
      const bool same = in->segment == stream->segment && in->first == stream->first;
      if (same) after = stream->step - in->step;
    }
    builder.send(stream->step, stream->to, place(*stream), after);
  }
}

// The child that the broadcast reaches last sends first.
void add_reduce(Builder& builder, const Broadcast& broadcast, std::uint32_t last, Ends ends,
                bool sink) {
  std::sort(ends.out.begin(), ends.out.end(),
            [](const Stream* a, const Stream* b) { return a->step > b->step; });
  for (std::uint32_t segment = 0; segment < broadcast.outline.segments; ++segment) {
    const Stream* up = nullptr;
    for (const Stream* stream : ends.in) {
      if (stream->segment == segment) up = stream;
    }
    Operand sum = builder.input(segment);
    std::uint32_t ready = 0;
    bool first = true;
    for (const Stream* child : ends.out) {
      if (child->segment != segment) continue;
      const std::uint32_t lifetime = first && !sink ? child->step - up->step : 0;
      const Operand slot = builder.slot(segment, builder.ring(lifetime, broadcast.period));
      const Operand before = sum;
      if (first) sum = sink ? builder.output(segment) : slot;
      first = false;
      ready = last - child->step;
      builder.receive(ready, child->to, slot);
      builder.combine(ready, sum, before, slot);
    }
    if (sink) continue;
    const std::uint32_t step = last - up->step;
    builder.send(step, up->from, sum, first ? 0 : step - ready);
  }
}

Result<Programs> write(const CollectiveParameters& parameters, const Broadcast& broadcast,
                       bool reduces) {
  Programs programs(parameters.ranks, Program{});
  const std::vector<Ends> ends = ends_of(broadcast, parameters.ranks);
  std::uint32_t last = 0;
  for (const Stream& stream : broadcast.streams) last = std::max(last, stream.step);
  for (std::uint32_t rank = 0; rank < parameters.ranks; ++rank) {
    Program& program = programs[rank];
    Builder builder(program);
    Status status = builder.begin(parameters, rank, broadcast.outline);
    if (status == Status::kOk && broadcast.whole_runs) program.residue_mod = broadcast.every;
    if (status == Status::kOk && parameters.ranks == 1) {
      status = builder.finish_alone();
    } else if (status == Status::kOk) {
      const bool root = rank == parameters.root;
      if (reduces) {
        add_reduce(builder, broadcast, last, ends[rank], root);
      } else {
        add_broadcast(builder, broadcast, ends[rank], root);
      }
      builder.phase(broadcast.period, broadcast.steps);
      status = builder.finish_one_port();
    }
    if (status == Status::kOk) continue;
    return fail(std::string(broadcast.outline.algorithm) + ", rank " + std::to_string(rank) + ": " +
                status_name(status));
  }
  return programs;
}

}  // namespace

Result<void> check_parameters(const topology::Topology& topology,
                              const CollectiveParameters& parameters) {
  const std::string name = topology.title();
  if (parameters.ranks != topology.ranks()) {
    return fail("parameters for " + std::to_string(parameters.ranks) + " ranks on " + name +
                "; it has " + std::to_string(topology.ranks()));
  }
  if (parameters.root >= parameters.ranks) {
    return fail("root " + std::to_string(parameters.root) + " on " + name + "; expected 0 to " +
                std::to_string(parameters.ranks - 1));
  }
  return {};
}

Result<Programs> write_broadcast(const CollectiveParameters& parameters,
                                 const Broadcast& broadcast) {
  return write(parameters, broadcast, false);
}

Result<Programs> write_reduce(const CollectiveParameters& parameters, const Broadcast& reversed) {
  ESPALIER_ASSERT(reversed.every == 1);
  return write(parameters, reversed, true);
}

}  // namespace espalier::searched
