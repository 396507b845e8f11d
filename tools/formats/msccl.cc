#include "tools/formats/msccl.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace espalier::tools::formats {
namespace {

// A step of a thread block.
struct MscclStep {
  const char* type = "nop";
  Chunks from, to;
  std::int64_t block = -1, step = -1;  // the thread block and step that it waits for
  bool has_dependents = false;
};

// A thread block: one peer to send to, one to receive from, or none of both.
struct ThreadBlock {
  std::int64_t to = -1, from = -1;
  std::uint32_t channel = 0;
  std::vector<MscclStep> steps;
  std::map<std::size_t, std::int64_t> waited;  // by thread block: the last step already waited for
};

bool are_same(const Chunks& a, const Chunks& b) {
  return a.buffer == b.buffer && a.first == b.first;
}

std::string escaped(const char* text) {
  std::string out;
  for (; *text != '\0'; ++text) {
    switch (*text) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '"': out += "&quot;"; break;
      default: out += *text;
    }
  }
  return out;
}

// How the messages of a link share thread blocks.
struct Cut {
  std::size_t messages = 0;     // consecutive messages of a link in one thread block
  std::uint32_t groups = 1;     // channels for the peers at different distances
  std::size_t local_steps = 0;  // of a thread block for combines and copies
};

// One rank's operations as thread blocks: one or more per peer and direction, and for combines and
// copies. Each runs its steps in the order of the schedule.
class GpuWriter {
 public:
  GpuWriter(std::uint32_t rank, std::uint32_t ranks, const NodeOperations& node, const Cut& cut)
      : rank_(rank), ranks_(ranks), node_(node), cut_(cut) {}

  std::vector<ThreadBlock> write() {
    make_blocks();
    for (const Operation& operation : node_.operations) {
      const std::size_t block = block_for(operation);
      wait(block, operation);
      add(block, operation);
      const auto last = static_cast<std::int64_t>(blocks_[block].steps.size()) - 1;
      ends_.emplace_back(block, last);
    }
    return std::move(blocks_);
  }

 private:
  // 0: send, 1: receive, 2: local; the peer; the part of the link's messages.
  using Key = std::tuple<int, std::uint32_t, std::size_t>;
  [[nodiscard]] Key key(const Operation& operation) const {
    const std::size_t part = operation.number / cut_.messages;
    switch (operation.kind) {
      case ActionKind::kSend: return {0, operation.peer, part};
      case ActionKind::kReceive: return {1, operation.peer, part};
      default: return {2, 0, local_parts_};
    }
  }

  void make_blocks() {
    std::set<Key> keys;
    for (const Operation& operation : node_.operations) keys.insert(key(operation));
    for (const Key& key : keys) add_block(key);
  }

  void add_block(const Key& key) {
    block_of_[key] = blocks_.size();
    ThreadBlock block;
    const auto [direction, peer, part] = key;
    if (direction == 0) block.to = peer;
    if (direction == 1) block.from = peer;
    // Ranks at most kMscclPeers apart share a channel, so that none has more peers than a reader
    // takes.
    const std::uint32_t apart = direction == 0   ? (peer + ranks_ - rank_) % ranks_
                                : direction == 1 ? (rank_ + ranks_ - peer) % ranks_
                                                 : 0;
    const std::uint32_t group = cut_.groups > 1 && apart > 0 ? (apart - 1) / kMscclPeers : 0;
    if (direction != 2) block.channel = static_cast<std::uint32_t>(part) * cut_.groups + group;
    blocks_.push_back(std::move(block));
  }

  // The thread block of an operation. A full one for combines and copies is continued by another.
  std::size_t block_for(const Operation& operation) {
    const std::size_t block = block_of_.at(key(operation));
    const bool is_local =
        operation.kind == ActionKind::kCombine || operation.kind == ActionKind::kCopy;
    const std::size_t used = blocks_[block].steps.size();
    const auto parts =
        static_cast<std::size_t>((operation.into.count + kMscclCount - 1) / kMscclCount);
    const std::size_t most = used + operation.after.size() + 2 * parts;
    if (!is_local || used == 0 || most <= cut_.local_steps) return block;
    ++local_parts_;
    add_block(key(operation));
    return blocks_.size() - 1;
  }

  // Adds the waits of `operation`: all but the last are steps of their own, which do nothing else.
  void wait(std::size_t number, const Operation& operation) {
    std::map<std::size_t, std::int64_t> last;  // by thread block
    for (const std::uint32_t before : operation.after) {
      const auto [block, step] = ends_[before];
      if (block != number) last[block] = std::max(step, last.try_emplace(block, -1).first->second);
    }
    ThreadBlock& own = blocks_[number];
    for (const auto& [block, step] : last) {
      const auto [waited, fresh] = own.waited.try_emplace(block, -1);
      if (waited->second >= step) continue;
      waited->second = step;
      blocks_[block].steps[static_cast<std::size_t>(step)].has_dependents = true;
      if (next_.block >= 0) own.steps.push_back(std::exchange(next_, {}));
      next_.block = static_cast<std::int64_t>(block);
      next_.step = step;
    }
  }

  void push(std::size_t number, const char* type, Chunks from, Chunks to) {
    MscclStep step = std::exchange(next_, {});
    step.type = type;
    step.from = from;
    step.to = to;
    blocks_[number].steps.push_back(step);
  }

  // Adds the steps of `operation`, each of at most kMscclCount chunks.
  void add(std::size_t number, const Operation& operation) {
    const std::int64_t all = std::max(operation.a.count, operation.into.count);
    for (std::int64_t done = 0; done < all; done += kMscclCount) {
      const std::int64_t count = std::min(kMscclCount, all - done);
      const auto part = [&](Chunks chunks) {
        return Chunks{chunks.buffer, chunks.first + done, count};
      };
      const Chunks into = part(operation.into), a = part(operation.a), b = part(operation.b);
      switch (operation.kind) {
        case ActionKind::kSend: push(number, "s", a, a); break;
        case ActionKind::kReceive: push(number, "r", into, into); break;
        case ActionKind::kCopy: push(number, "cpy", a, into); break;
        default:
          // MSCCL's operators commute.
          if (are_same(into, b)) {
            push(number, "re", a, into);
            break;
          }
          if (!are_same(into, a)) push(number, "cpy", a, into);
          push(number, "re", b, into);
      }
    }
  }

  std::uint32_t rank_, ranks_;
  const NodeOperations& node_;
  const Cut& cut_;
  std::size_t local_parts_ = 0;
  std::vector<ThreadBlock> blocks_;
  std::map<Key, std::size_t> block_of_;
  std::vector<std::pair<std::size_t, std::int64_t>> ends_;  // of the operations so far
  MscclStep next_;
};

// Whether no rank sends to, or receives from, more peers than a channel has.
bool fits_one_channel(const Operations& operations) {
  return std::all_of(operations.nodes.begin(), operations.nodes.end(),
                     [](const NodeOperations& node) {
                       std::array<std::set<std::uint32_t>, 2> peers;
                       for (const Operation& operation : node.operations) {
                         if (operation.kind == ActionKind::kSend) peers[0].insert(operation.peer);
                         if (operation.kind == ActionKind::kReceive)
                           peers[1].insert(operation.peer);
                       }
                       return std::max(peers[0].size(), peers[1].size()) <= kMscclPeers;
                     });
}

std::string step_line(std::size_t number, const MscclStep& step) {
  const auto place = [](const char* name, const Chunks& chunks) {
    return std::string(" ") + name + "buf=\"" + buffer_letter(chunks.buffer) + "\" " + name +
           "off=\"" + std::to_string(chunks.count == 0 ? -1 : chunks.first) + "\"";
  };
  return "      <step s=\"" + std::to_string(number) + "\" type=\"" + step.type + "\"" +
         place("src", step.from) + place("dst", step.to) + " cnt=\"" +
         std::to_string(step.from.count) + "\" depid=\"" + std::to_string(step.block) +
         "\" deps=\"" + std::to_string(step.step) + "\" hasdep=\"" +
         (step.has_dependents ? "1" : "0") + "\"/>\n";
}

using GpuBlocks = std::vector<std::vector<ThreadBlock>>;  // by rank

// Returns the first limit of the reader that the thread blocks exceed, and where; empty: none.
std::string excess_of(const GpuBlocks& all, const MscclReader& reader) {
  const auto over = [&](std::uint32_t rank, const std::string& what, std::uint64_t has,
                        std::uint64_t most) {
    return has <= most ? std::string()
                       : "rank " + std::to_string(rank) + " has " + std::to_string(has) + " " +
                             what + "; " + reader.title + " takes at most " + std::to_string(most);
  };
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    std::size_t elements = 1 + all.size() + all[rank].size(), steps = 0;
    std::int64_t waited = -1, offset = 0;
    std::uint32_t channels = 1;
    for (const ThreadBlock& block : all[rank]) {
      steps = std::max(steps, block.steps.size());
      elements += block.steps.size();
      channels = std::max(channels, block.channel + 1);
      for (const MscclStep& step : block.steps) {
        waited = std::max(waited, step.block);
        offset = std::max({offset, step.from.first, step.to.first});
      }
    }
    for (const std::string& excess :
         {over(rank, "steps in a thread block", steps, reader.steps),
          over(rank, "thread blocks", all[rank].size(), reader.thread_blocks),
          over(rank, "channels", channels, reader.channels),
          over(rank, "thread blocks that others wait for", static_cast<std::uint64_t>(waited + 1),
               static_cast<std::uint64_t>(kMscclWaitedBlocks)),
          over(rank, "chunks before one that it uses", static_cast<std::uint64_t>(offset),
               static_cast<std::uint64_t>(kMscclMaxOffset)),
          over(rank, "elements of the file to keep", elements, kMscclMaxElements)}) {
      if (!excess.empty()) return excess;
    }
  }
  return all.size() <= kMscclMaxGpus ? "" : over(0, "GPUs beside it", all.size(), kMscclMaxGpus);
}

// Cuts the schedule into thread blocks that the reader takes: as few as possible.
GpuBlocks cut_for(const planner::LoadedSchedule& loaded, const Operations& operations,
                  const MscclReader& reader) {
  const auto ranks = static_cast<std::uint32_t>(operations.nodes.size());
  std::size_t messages = 1;  // of the busiest link
  for (const NodeOperations& node : operations.nodes) {
    for (const Operation& operation : node.operations) {
      messages = std::max(messages, std::size_t{operation.number} + 1);
    }
  }
  const std::uint32_t groups = fits_one_channel(operations) ? 1 : (ranks - 2) / kMscclPeers + 1;
  std::string excess;
  for (std::size_t most = messages;; most = std::min(most - 1, most * 3 / 4)) {
    const Cut cut{most, groups, reader.steps};
    GpuBlocks all;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      all.push_back(GpuWriter(rank, ranks, operations.nodes[rank], cut).write());
    }
    const std::string now = excess_of(all, reader);
    if (now.empty()) return all;
    if (excess.empty()) excess = now;
    // Shorter thread blocks help only if they are too long.
    if (now.find(" steps in a thread block") == std::string::npos || most == 1) {
      excess = now;
      break;
    }
  }
  cannot_export(loaded, "MSCCL", excess + ", expected a smaller N or fewer ranks");
}

}  // namespace

std::string_view msccl_name(Collective collective) {
  switch (collective.value()) {
    case Collective::kBroadcast: return "broadcast";
    case Collective::kReduce: return "reduce";
    case Collective::kAllreduce: return "allreduce";
    case Collective::kScatter: return "scatter";
    case Collective::kGather: return "gather";
    case Collective::kAllgather: return "allgather";
    case Collective::kReduceScatter: return "reduce_scatter";
    case Collective::kAllToAll: return "alltoall";
    default: return "";
  }
}

std::string write_msccl(const planner::LoadedSchedule& loaded, std::int64_t blocks,
                        const MscclReader& reader) {
  const Program& first = loaded.programs.front();
  std::string_view name = msccl_name(first.collective);
  if (name.empty()) {
    cannot_export(loaded, "MSCCL",
                  std::string("MSCCL has no ") + collective_name(first.collective));
  }
  const bool is_root_only =
      first.collective == Collective::kScatter || first.collective == Collective::kGather;
  if (is_root_only && !reader.has_scatter_and_gather) {
    cannot_export(loaded, "MSCCL",
                  std::string(reader.title) + " has no " + collective_name(first.collective));
  }
  if (first.collective == Collective::kReduceScatter) name = reader.reduce_scatter;
  if (program_nodes(first) > first.ranks) {
    cannot_export(loaded, "MSCCL", "its routers run programs, and MSCCL has only GPUs");
  }
  // Some rank uses the last block of a segment: known before the schedule is expanded.
  if (blocks - 1 > kMscclMaxOffset) {
    cannot_export(loaded, "MSCCL",
                  "N = " + std::to_string(blocks) + "; a chunk's offset in its buffer is at most " +
                      std::to_string(kMscclMaxOffset));
  }
  const Operations operations = expand_operations(loaded, blocks);
  const GpuBlocks all = cut_for(loaded, operations, reader);
  std::string gpus;
  std::uint32_t channels = 1;
  for (std::uint32_t rank = 0; rank < operations.nodes.size(); ++rank) {
    const NodeOperations& node = operations.nodes[rank];
    gpus += "  <gpu id=\"" + std::to_string(rank) + "\" i_chunks=\"" +
            std::to_string(node.input_chunks) + "\" o_chunks=\"" +
            std::to_string(node.output_chunks) + "\" s_chunks=\"" +
            std::to_string(node.scratch_chunks) + "\">\n";
    for (std::size_t id = 0; id < all[rank].size(); ++id) {
      const ThreadBlock& block = all[rank][id];
      channels = std::max(channels, block.channel + 1);
      gpus += "    <tb id=\"" + std::to_string(id) + "\" send=\"" + std::to_string(block.to) +
              "\" recv=\"" + std::to_string(block.from) + "\" chan=\"" +
              std::to_string(block.channel) + "\">\n";
      for (std::size_t step = 0; step < block.steps.size(); ++step) {
        gpus += step_line(step, block.steps[step]);
      }
      gpus += "    </tb>\n";
    }
    gpus += "  </gpu>\n";
  }
  // At the root, a broadcast writes no output, so it is right only if that is the input.
  const bool in_place = first.collective == Collective::kBroadcast;
  return "<algo name=\"" + escaped(first.algorithm) + "\" proto=\"Simple\" nchannels=\"" +
         std::to_string(channels) + "\" nchunksperloop=\"" +
         std::to_string(operations.segments * blocks) + "\" ngpus=\"" +
         std::to_string(first.ranks) + "\" coll=\"" + std::string(name) + "\" inplace=\"" +
         (in_place ? "1" : "0") + "\" outofplace=\"" + (in_place ? "0" : "1") +
         "\" minBytes=\"0\" maxBytes=\"" + std::to_string(kMaxMessageBytes) + "\">\n" + gpus +
         "</algo>\n";
}

}  // namespace espalier::tools::formats
