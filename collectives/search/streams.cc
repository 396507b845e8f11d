#include "collectives/search/streams.h"

#include <algorithm>

#include "base/counted.h"
#include "espalier/internal/base/assert.h"

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

// The operand on blocks first, first + every, ... of its segment.
Operand on_blocks(Builder& builder, Operand operand, std::uint32_t first, std::uint32_t every) {
  Index row{};
  row.base = static_cast<std::int32_t>(first);
  row.coef = static_cast<std::int32_t>(every);
  operand.block_ref = builder.index(row);
  return operand;
}

void add_broadcast(Builder& builder, const Broadcast& broadcast, const Ends& ends, bool source) {
  const auto place = [&](const Stream& stream) {
    const Operand operand = source ? builder.input(stream.segment) : builder.output(stream.segment);
    return on_blocks(builder, operand, stream.first, broadcast.every);
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

// Adds the sums of the blocks of the streams (segment, first). The first block of a run becomes the
// last one, so that runs keep their order. `ends.out` is sorted: the child that the broadcast
// reaches last sends first.
void add_sums(Builder& builder, const Broadcast& broadcast, std::uint32_t last, const Ends& ends,
              std::uint32_t segment, std::uint32_t first) {
  const auto belongs = [&](const Stream* stream) {
    return stream->segment == segment && stream->first == first;
  };
  const auto on = [&](const Operand& operand) {
    return on_blocks(builder, operand, broadcast.every - 1 - first, broadcast.every);
  };
  const auto found = std::find_if(ends.in.begin(), ends.in.end(), belongs);
  const Stream* up = found == ends.in.end() ? nullptr : *found;  // null: the sink
  Operand sum = on(builder.input(segment));
  std::uint32_t ready = 0;
  bool has_children = false;
  for (const Stream* child : ends.out) {
    if (!belongs(child)) continue;
    const std::uint32_t lifetime = has_children || up == nullptr ? 0 : child->step - up->step;
    const Operand slot = on(builder.slot(segment, builder.ring(lifetime, broadcast.period)));
    const Operand before = sum;
    if (!has_children) sum = up == nullptr ? on(builder.output(segment)) : slot;
    has_children = true;
    ready = last - child->step;
    builder.receive(ready, child->to, slot);
    builder.combine(ready, sum, before, slot);
  }
  if (up == nullptr) return;
  const std::uint32_t step = last - up->step;
  builder.send(step, up->from, sum, has_children ? step - ready : 0);
}

void add_reduce(Builder& builder, const Broadcast& broadcast, std::uint32_t last, Ends ends) {
  std::sort(ends.out.begin(), ends.out.end(),
            [](const Stream* a, const Stream* b) { return a->step > b->step; });
  for (std::uint32_t segment = 0; segment < broadcast.outline.segments; ++segment) {
    for (std::uint32_t first = broadcast.every; first-- > 0;) {
      add_sums(builder, broadcast, last, ends, segment, first);
    }
  }
}

Result<Programs> write(const CollectiveParameters& parameters, const Broadcast& broadcast,
                       bool reduces) {
  Programs programs(parameters.ranks, Program{});
  const std::vector<Ends> ends = ends_of(broadcast, parameters.ranks);
  std::uint32_t last = 0;
  for (const Stream& stream : broadcast.streams) {
    ESPALIER_ASSERT(stream.first < broadcast.every && stream.from != stream.to);
    last = std::max(last, stream.step);
  }
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
        add_reduce(builder, broadcast, last, ends[rank]);
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
    return fail("parameters for " + counted(parameters.ranks, "rank") + " on " + name +
                "; it has " + std::to_string(topology.ranks()));
  }
  if (parameters.root >= parameters.ranks) {
    return fail("root " + std::to_string(parameters.root) + " on " + name + "; expected 0 to " +
                std::to_string(parameters.ranks - 1));
  }
  return {};
}

Result<Programs> write_alone(const CollectiveParameters& parameters, const Outline& outline) {
  Programs programs(1, Program{});
  Builder builder(programs[0]);
  Status status = builder.begin(parameters, 0, outline);
  if (status == Status::kOk) status = builder.finish_alone();
  if (status == Status::kOk) return programs;
  return fail(std::string(outline.algorithm) + ": " + status_name(status));
}

Result<Programs> write_broadcast(const CollectiveParameters& parameters,
                                 const Broadcast& broadcast) {
  return write(parameters, broadcast, false);
}

Result<Programs> write_reduce(const CollectiveParameters& parameters, const Broadcast& reversed) {
  return write(parameters, reversed, true);
}

}  // namespace espalier::searched
