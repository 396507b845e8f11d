#include "collectives/verify/rank_proof.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "collectives/schedule/arithmetic.h"

namespace espalier::verify {
namespace {

constexpr std::int64_t kMostLocalBlocks = 4096;
constexpr std::size_t kMostTogether = 4096;
constexpr std::size_t kMostShape = 1 << 14;    // bytes; what is longer is not kept
constexpr std::size_t kMostResults = 1 << 20;  // segments, times the stride

void put(std::string& key, std::int64_t number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void put_place(std::string& key, const Program& program, bool present, const Place& place) {
  key.push_back(static_cast<char>(present ? place.buffer : espalier_Buffer_BUFFER_NONE));
  if (!present || place.buffer != espalier_Buffer_SCRATCH) return;
  const Index& slot = program.indices[place.slot_ref];
  for (const std::int64_t number :
       {std::int64_t{slot.base}, std::int64_t{slot.coef}, std::int64_t{slot.off},
        std::int64_t{slot.div}, std::int64_t{slot.mod}, std::int64_t{slot.terms}}) {
    put(key, number);
  }
  for (std::uint32_t k = 0; k < slot.terms; ++k) {
    const Term& term = program.terms[slot.first_term + k];
    for (const std::int64_t number :
         {std::int64_t{term.coef}, std::int64_t{term.mul}, std::int64_t{term.add},
          std::int64_t{term.div}, std::int64_t{term.mod}, std::int64_t{term.base},
          std::int64_t{term.digits}, std::int64_t{term.table}}) {
      put(key, number);
    }
    if (term.table == 0) continue;
    const std::uint8_t* entries = table_entries(program, term);
    key.append(reinterpret_cast<const char*>(entries), std::size_t{2} * term.mod);
  }
}

// Lanes of the link that a stream uses; 0 where it uses none.
std::uint32_t lanes_at(const topology::Topology& topology, const Program& program,
                       const Stream& stream) {
  if (stream.link < 0) return 0;
  const std::uint32_t peer = peer_of(program, static_cast<std::uint32_t>(stream.link));
  const bool send = stream.kind == espalier_Kind_SEND;
  return lanes_of(topology, send ? program.node : peer, send ? peer : program.node);
}

// All that a rank's own checks depend on, first steps of each phase from its earliest, links by
// their first use. What is the same on all ranks is left out.
std::string shape_of(const topology::Topology& topology, const Program& program,
                     const Streams& streams) {
  std::vector<std::int64_t> earliest(program.phases_count, -1);
  for (const Stream& stream : streams.all) {
    std::int64_t& first = earliest[stream.phase];
    if (first < 0 || stream.first < first) first = stream.first;
  }
  std::string key;
  std::vector<std::int64_t> links;
  put(key, program.scratch_blocks);
  for (const Buffer buffer : {espalier_Buffer_INPUT, espalier_Buffer_OUTPUT}) {
    const Extent extent = buffer_extent(program, buffer);
    key.push_back(static_cast<char>(extent));
    if (extent == Extent::kOwn) put(key, program.node);
  }
  key.push_back(is_router(program) ? 1 : 0);
  put(key, streams.stride);
  std::int64_t last = -1;
  for (const Stream& stream : streams.all) {
    if (stream.action != last) {
      last = stream.action;
      const Action& action = program.actions[stream.action];
      key.push_back(static_cast<char>(stream.kind));
      key.push_back(static_cast<char>(stream.phase));
      put(key, streams.pace[stream.phase]);
      put(key, action.after);
      put_place(key, program, action.has_into, action.into);
      put_place(key, program, action.has_a, action.a);
      put_place(key, program, action.has_b, action.b);
    }
    put(key, stream.first - earliest[stream.phase]);
    put(key, stream.block);
    put(key, stream.instance);
    put(key, stream.segment);
    put(key, stream.from_segment);
    auto link = std::find(links.begin(), links.end(), stream.link);
    if (link == links.end()) link = links.insert(links.end(), stream.link);
    put(key, stream.link < 0 ? -1 : link - links.begin());
    if (stream.link >= 0) put(key, lanes_at(topology, program, stream));
  }
  return key;
}

// By phase: steps from the first step of its first stream to that of its last; -1: it has none.
std::vector<std::int64_t> skews_of(const Program& program, const Streams& streams) {
  std::vector<std::int64_t> earliest(program.phases_count, -1), skews(program.phases_count, -1);
  for (const Stream& stream : streams.all) {
    std::int64_t& first = earliest[stream.phase];
    if (first < 0 || stream.first < first) first = stream.first;
  }
  for (const Stream& stream : streams.all) {
    std::int64_t& skew = skews[stream.phase];
    skew = std::max(skew, stream.first - earliest[stream.phase]);
  }
  return skews;
}

// Blocks until all streams of a phase have gone on for `reach` steps, the most of all phases.
std::int64_t settled_after(const std::vector<std::int64_t>& skews, const Streams& streams,
                           std::int64_t reach) {
  std::int64_t most = 0;
  for (std::size_t phase = 0; phase < skews.size(); ++phase) {
    if (skews[phase] < 0) continue;
    most = std::max(most, ceil_div(skews[phase] + reach, streams.pace[phase]));
  }
  return most * streams.stride;
}

}  // namespace

Finding RankProofs::prove(std::uint32_t node, const Program& program, const Streams& streams,
                          const RankFlow*& flow, std::string& why) {
  flow = nullptr;
  for (const Stream& stream : streams.all) {
    if (stream.link >= links_count(program) || stream.link < -1) {
      why = "a link outside its table";
      return std::nullopt;
    }
  }
  std::string shape = shape_of(*at_.topology, program, streams);
  if (shape.size() > kMostShape) {
    flow = &alone_;
    return prove_shape(node, program, streams, alone_, why);
  }
  const auto [entry, fresh] = shapes_.try_emplace(std::move(shape));
  if (fresh) {
    Finding finding = prove_shape(node, program, streams, entry->second, why);
    if (finding || !why.empty()) {
      shapes_.erase(entry);
      return finding;
    }
  }
  flow = &entry->second;
  return std::nullopt;
}

Finding RankProofs::prove_shape(std::uint32_t node, const Program& program, const Streams& streams,
                                RankFlow& flow, std::string& why) {
  if (Finding finding = check_residues(node, program, streams, why)) return finding;
  longest_ = 0;
  flow.sources.assign(streams.all.size(), {});
  const std::size_t results =
      std::size_t{program.segments} * static_cast<std::size_t>(streams.stride);
  if (program.segments > 4096 || results > kMostResults) why = "more than 4096 segments";
  if (!why.empty()) return std::nullopt;
  flow.results.assign(results, -1);
  const std::vector<std::int64_t> skews = skews_of(program, streams);
  const std::int64_t period = std::lcm(streams.stride, streams.slot_period);
  const auto width = static_cast<std::int64_t>(streams.all.size() + program.segments);
  std::int64_t last = next_blocks(program, 1);
  for (std::int64_t blocks = last; blocks <= last && why.empty();
       blocks = next_blocks(program, blocks + 1)) {
    if (Finding finding = check_blocks(node, program, streams, blocks, flow, why)) return finding;
    // The furthest that anything in a step looks back: the window, or to what it reads.
    const std::int64_t reach = std::max<std::int64_t>(program.window, longest_ + 1);
    last = settled_after(skews, streams, reach) + streams.stride + 2 * period;
    if (last > kMostLocalBlocks || last * width > at_.most_instances) {
      why = "it settles only after " + std::to_string(last) + " blocks";
    }
  }
  most_blocks_ = std::max(most_blocks_, last);
  period_ = std::lcm(period_, period);
  return std::nullopt;
}

Finding RankProofs::check_blocks(std::uint32_t node, const Program& program, const Streams& streams,
                                 std::int64_t blocks, RankFlow& flow, std::string& why) {
  set_blocks(at_, blocks);
  if (Finding finding = check_size(at_, node, program)) return finding;
  std::vector<Instance>& all = at_.instances[node];
  all = expand(program, blocks);
  verdict_.instances += all.size();
  Finding finding = check_instances(at_, node, program);
  if (!finding) finding = check_hazards(at_, node, verdict_);
  if (!finding) finding = follow(node, streams, flow, why);
  if (!finding) std::vector<Instance>().swap(all);
  return finding;
}

// Two transfers of a node collide for some N if and only if they do at a distance of whole periods.
Finding RankProofs::check_residues(std::uint32_t node, const Program& program,
                                   const Streams& streams, std::string& why) {
  std::int64_t worst = 0;  // the least N at which some collide
  const auto collide = [&worst](std::int64_t blocks) {
    if (blocks > 0 && (worst == 0 || blocks < worst)) worst = blocks;
  };
  // Where a port is held for one step only those in the same step of the pace share it.
  const bool unit = send_ticks(program) == 1;
  std::map<std::pair<std::uint32_t, std::int64_t>, std::vector<const Stream*>> meet;
  for (const Stream& one : streams.all) {
    if (one.link < 0) continue;
    meet[{one.phase, unit ? one.first % streams.pace[one.phase] : 0}].push_back(&one);
  }
  for (const auto& [when, together] : meet) {
    if (together.size() > kMostTogether) why = "too many transfers to compare";
    if (!why.empty()) return std::nullopt;
    for (const Stream* one : together) {
      const std::uint32_t lanes = lanes_at(*at_.topology, program, *one);
      for (const Stream* other : together) {
        collide(blocks_to_collide(program, streams, *one, *other, lanes));
      }
      if (lanes <= 1) continue;
      if (!unit) why = "links of several lanes in the postal model";
      collide(blocks_to_fill(streams, *one, together, lanes));
    }
  }
  if (worst == 0) return std::nullopt;
  worst = next_blocks(program, worst);
  set_blocks(at_, worst);
  if (worst > kMostLocalBlocks) {
    return found(Point::kPorts, at_, node, nullptr,
                 "with so many blocks two transfers share a port in a step; their first steps must "
                 "not be whole periods apart");
  }
  if (Finding finding = check_size(at_, node, program)) return finding;
  at_.instances[node] = expand(program, worst);
  return check_ports(at_, node);
}

Finding RankProofs::source(std::uint32_t node, const Instance& reader, const PlaceAt& place,
                           std::int32_t& from, std::string& why) {
  if (place.buffer == espalier_Buffer_INPUT) return std::nullopt;
  const bool slot = place.buffer == espalier_Buffer_SCRATCH;
  const Instance* writer =
      slot ? slots_[static_cast<std::size_t>(place.slot)]
           : outputs_[static_cast<std::size_t>(place.segment * at_.blocks + place.block)];
  if (writer == nullptr) {
    why = "a place is read that was never written";  // unless an operation reads its own result
    return std::nullopt;
  }
  if (!same_blocks(*at_.common, writer->into, place)) {
    return found(Point::kDataFlow, at_, node, &reader,
                 place_name(place) + " holds " + block_name(writer->into) +
                     " there; it must hold " + block_name(place));
  }
  if (slot && writer->phase != reader.phase) why = "a slot is read in a later phase";
  if (slot) longest_ = std::max(longest_, reader.step - writer->step);
  from = streams_->of(writer->action, writer->i);
  return std::nullopt;
}

void RankProofs::write(const Instance& writer) {
  const PlaceAt& place = writer.into;
  if (place.buffer == espalier_Buffer_SCRATCH) {
    slots_[static_cast<std::size_t>(place.slot)] = &writer;
  } else {
    outputs_[static_cast<std::size_t>(place.segment * at_.blocks + place.block)] = &writer;
  }
}

Finding RankProofs::follow_one(std::uint32_t node, const Instance& one, RankFlow& flow,
                               std::string& why) {
  RankFlow::Sources from;
  if (one.a.buffer != espalier_Buffer_BUFFER_NONE) {
    if (Finding finding = source(node, one, one.a, from.a, why)) return finding;
  }
  if (one.b.buffer != espalier_Buffer_BUFFER_NONE) {
    if (Finding finding = source(node, one, one.b, from.b, why)) return finding;
  }
  RankFlow::Sources& known =
      flow.sources[static_cast<std::size_t>(streams_->of(one.action, one.i))];
  if (!known.known) known = {from.a, from.b, true};
  if (known.a != from.a || known.b != from.b) {
    why = "action " + std::to_string(one.action) + " does not read the same action's data always";
  }
  if (one.kind != espalier_Kind_SEND) write(one);
  return std::nullopt;
}

// In the order of a lock-step run: a step's sends read, its receives write, its operations run.
Finding RankProofs::follow(std::uint32_t node, const Streams& streams, RankFlow& flow,
                           std::string& why) {
  streams_ = &streams;
  const auto turn = [](Kind kind) {
    return kind == espalier_Kind_SEND ? 0 : kind == espalier_Kind_RECEIVE ? 1 : 2;
  };
  const std::vector<Instance>& all = at_.instances[node];
  slots_.assign(used_slots(all), nullptr);
  const auto stride = static_cast<std::size_t>(streams.stride);
  const auto many = static_cast<std::size_t>(at_.blocks);
  outputs_.assign(flow.results.size() / stride * many, nullptr);
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].step == all[begin].step) ++end;
    for (int now = 0; now < 3; ++now) {
      for (std::size_t k = begin; k < end; ++k) {
        if (turn(all[k].kind) != now) continue;
        if (Finding finding = follow_one(node, all[k], flow, why)) return finding;
      }
    }
  }
  // Once there are all first blocks: later ones are written in the same order.
  for (std::size_t place = 0; place < outputs_.size(); ++place) {
    const std::size_t segment = place / many, block = place % many;
    const Instance* last = outputs_[place];
    if (block >= stride || last == nullptr) continue;
    flow.results[segment * stride + block] = streams.of(last->action, last->i);
  }
  return std::nullopt;
}

}  // namespace espalier::verify
