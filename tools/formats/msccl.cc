#include "tools/formats/msccl.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
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

char buffer_letter(Buffer::Value buffer) {
  return buffer == Buffer::kOutput ? 'o' : buffer == Buffer::kScratch ? 's' : 'i';
}

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

// One rank's operations as thread blocks: one per peer and direction, and one for combines and
// copies. Each runs its steps in the order of the schedule.
class GpuWriter {
 public:
  GpuWriter(const LoadedSchedule& loaded, std::uint32_t rank, const NodeOperations& node,
            bool one_channel)
      : loaded_(loaded), rank_(rank), node_(node), one_channel_(one_channel) {}

  std::vector<ThreadBlock> write() {
    make_blocks();
    for (const Operation& operation : node_.operations) {
      const std::size_t block = block_of_.at(key(operation));
      wait(block, operation);
      add(block, operation);
      const auto last = static_cast<std::int64_t>(blocks_[block].steps.size()) - 1;
      ends_.emplace_back(block, last);
    }
    for (const ThreadBlock& block : blocks_) {
      if (block.steps.size() <= kMscclSteps) continue;
      const std::string which = block.to >= 0 ? " for messages to rank " + std::to_string(block.to)
                                : block.from >= 0
                                    ? " for messages from rank " + std::to_string(block.from)
                                    : " for combines and copies";
      cannot_export(loaded_, "MSCCL",
                    "rank " + std::to_string(rank_) + " has " + std::to_string(block.steps.size()) +
                        " steps" + which + "; a thread block has at most " +
                        std::to_string(kMscclSteps) + ", expected a smaller N or fewer ranks");
    }
    return std::move(blocks_);
  }

 private:
  using Key = std::pair<int, std::uint32_t>;  // 0: send, 1: receive, 2: local; the peer
  static Key key(const Operation& operation) {
    switch (operation.kind) {
      case ActionKind::kSend: return {0, operation.peer};
      case ActionKind::kReceive: return {1, operation.peer};
      default: return {2, 0};
    }
  }

  void make_blocks() {
    std::set<Key> keys;
    for (const Operation& operation : node_.operations) keys.insert(key(operation));
    if (keys.size() > kMscclThreadBlocks) {
      cannot_export(loaded_, "MSCCL",
                    "rank " + std::to_string(rank_) + " needs " + std::to_string(keys.size()) +
                        " thread blocks, one per peer and direction; a GPU has at most " +
                        std::to_string(kMscclThreadBlocks));
    }
    const std::uint32_t ranks = loaded_.programs.front().ranks;
    for (const Key& key : keys) {
      block_of_[key] = blocks_.size();
      ThreadBlock block;
      const auto [direction, peer] = key;
      if (direction == 0) block.to = peer;
      if (direction == 1) block.from = peer;
      // Ranks at most kMscclPeers apart share a channel, so that none has more peers than a reader
      // takes.
      const std::uint32_t apart = direction == 0   ? (peer + ranks - rank_) % ranks
                                  : direction == 1 ? (rank_ + ranks - peer) % ranks
                                                   : 0;
      if (!one_channel_ && apart > 0) block.channel = (apart - 1) / kMscclPeers;
      blocks_.push_back(std::move(block));
    }
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

  const LoadedSchedule& loaded_;
  std::uint32_t rank_;
  const NodeOperations& node_;
  bool one_channel_;
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

}  // namespace

std::string_view msccl_name(Collective collective) {
  switch (collective) {
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

std::string write_msccl(const LoadedSchedule& loaded, std::int64_t blocks) {
  const Program& first = loaded.programs.front();
  const std::string_view name = msccl_name(first.collective);
  if (name.empty()) {
    cannot_export(loaded, "MSCCL",
                  std::string("MSCCL has no ") + collective_name(first.collective));
  }
  if (program_nodes(first) > first.ranks) {
    cannot_export(loaded, "MSCCL", "its routers run programs, and MSCCL has only GPUs");
  }
  const Operations operations = expand_operations(loaded, blocks);
  const bool one_channel = fits_one_channel(operations);
  std::string gpus;
  std::uint32_t channels = 1;
  for (std::uint32_t rank = 0; rank < operations.nodes.size(); ++rank) {
    const NodeOperations& node = operations.nodes[rank];
    gpus += "  <gpu id=\"" + std::to_string(rank) + "\" i_chunks=\"" +
            std::to_string(node.input_chunks) + "\" o_chunks=\"" +
            std::to_string(node.output_chunks) + "\" s_chunks=\"" +
            std::to_string(node.scratch_chunks) + "\">\n";
    const std::vector<ThreadBlock> thread_blocks =
        GpuWriter(loaded, rank, node, one_channel).write();
    for (std::size_t id = 0; id < thread_blocks.size(); ++id) {
      const ThreadBlock& block = thread_blocks[id];
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
  if (channels > kMscclChannels) {
    cannot_export(loaded, "MSCCL",
                  "it needs " + std::to_string(channels) + " channels; at most " +
                      std::to_string(kMscclChannels) + " exist");
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
