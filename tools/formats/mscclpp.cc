#include "tools/formats/mscclpp.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tools/common/json.h"

namespace espalier::tools::formats {
namespace {

// Messages from one rank to another, which have a channel of their own: the sender signals data,
// the receiver that a message may be written.
using MessageStream = std::pair<std::uint32_t, std::uint32_t>;  // from, to

struct StreamMessages {
  std::vector<Chunks> targets;   // where message k is written
  std::vector<bool> has_credit;  // whether message k waits for the receiver
};

std::string_view mscclpp_name(Collective collective) {
  switch (collective.value()) {
    case Collective::kReduceScatter: return "reducescatter";
    case Collective::kAllToAll: return "alltoall";
    default: return collective_name(collective);
  }
}

std::map<MessageStream, StreamMessages> streams_of(const Operations& operations) {
  std::map<MessageStream, StreamMessages> streams;
  for (std::uint32_t rank = 0; rank < operations.nodes.size(); ++rank) {
    for (const Operation& operation : operations.nodes[rank].operations) {
      if (operation.kind != ActionKind::kReceive) continue;
      StreamMessages& stream = streams[{operation.peer, rank}];
      // The first one also tells that the receiver has begun.
      stream.has_credit.push_back(stream.targets.empty() || !operation.after.empty());
      stream.targets.push_back(operation.into);
    }
  }
  return streams;
}

// The thread blocks of a GPU. They run one after the other, each in the schedule's order, so that
// only the limits of a thread block divide them.
class PlanWriter {
 public:
  PlanWriter(const planner::LoadedSchedule& loaded, std::uint32_t rank, const NodeOperations& node,
             const std::map<MessageStream, StreamMessages>& streams)
      : loaded_(loaded), rank_(rank), node_(node), streams_(streams) {}

  Json write(std::int64_t input_chunks, std::int64_t output_chunks) {
    find_channels();
    place_credits();
    give_credits(-1);
    for (std::uint32_t i = 0; i < node_.operations.size(); ++i) {
      add(node_.operations[i]);
      give_credits(i);
    }
    flush({flying_.begin(), flying_.end()});
    close();
    if (blocks_.size() > kMscclppSemaphores + 1) {
      cannot_export(loaded_, "MSCCL++",
                    "rank " + std::to_string(rank_) + " needs " + std::to_string(blocks_.size()) +
                        " thread blocks of " + std::to_string(kMscclppOperations) +
                        " operations; at most " + std::to_string(kMscclppSemaphores + 1) +
                        " can follow one another, expected a smaller N or fewer ranks");
    }
    Json gpu = {{"id", rank_},
                {"input_chunks", input_chunks},
                {"output_chunks", output_chunks},
                {"scratch_chunks", node_.scratch_chunks},
                {"threadblocks", blocks_},
                {"channels", Json::array()},
                {"remote_buffers", remote_},
                {"semaphores", Json::array()}};
    if (!peers_.empty()) {
      gpu["channels"].push_back({{"channel_type", "port"}, {"connected_to", peers_}});
    }
    for (std::size_t k = 1; k < blocks_.size(); ++k)
      gpu["semaphores"].push_back({{"init_value", 0}});
    return gpu;
  }

 private:
  // Channels of a pair are in the same order at both ends: first that of the lower rank's messages.
  void find_channels() {
    std::set<std::pair<std::uint32_t, MessageStream>> own;  // by peer
    for (const auto& [stream, messages] : streams_) {
      if (stream.first == rank_) own.insert({stream.second, stream});
      if (stream.second == rank_) own.insert({stream.first, stream});
    }
    for (const auto& [peer, stream] : own) {
      channels_[stream] = peers_.size();
      peers_.push_back(peer);
    }
  }

  // A message may be written after the last operation that uses what it overwrites; credits of a
  // stream keep the order of its messages.
  void place_credits() {
    std::map<std::uint32_t, std::int64_t> last;  // by peer
    for (const Operation& operation : node_.operations) {
      if (operation.kind != ActionKind::kReceive) continue;
      const MessageStream stream{operation.peer, rank_};
      if (!streams_.at(stream).has_credit[operation.number]) continue;
      std::int64_t& at = last.try_emplace(operation.peer, -1).first->second;
      for (const std::uint32_t before : operation.after) {
        at = std::max(at, std::int64_t{before});
        if (node_.operations[before].kind == ActionKind::kSend) {
          flushes_[at].insert({rank_, node_.operations[before].peer});
        }
      }
      credits_[at].push_back(stream);
    }
  }

  void give_credits(std::int64_t after) {
    const auto found = credits_.find(after);
    if (found == credits_.end()) return;
    flush(flushes_[after]);
    for (const MessageStream& stream : found->second) on_channel("signal", stream);
  }

  // Waits until the sends in flight of these streams have read their data.
  void flush(const std::set<MessageStream>& wanted) {
    std::vector<MessageStream> left;
    for (const MessageStream& stream : wanted) {
      if (flying_.erase(stream) != 0) left.push_back(stream);
    }
    for (std::size_t begin = 0; begin < left.size(); begin += kMscclppFlushes) {
      const std::size_t end = std::min(begin + kMscclppFlushes, left.size());
      // A thread per channel.
      const Actor actor = end - begin > 1 ? Actor::kAll : Actor::kThread;
      prepare(actor, left.data() + begin, left.data() + end);
      Json ids = Json::array();
      for (std::size_t k = begin; k < end; ++k) ids.push_back(channel_id(left[k]));
      push({{"name", "flush"}, {"channel_ids", ids}, {"channel_type", "port"}});
    }
  }

  void add(const Operation& operation) {
    switch (operation.kind) {
      case ActionKind::kSend: send(operation); break;
      case ActionKind::kReceive: on_channel("wait", {operation.peer, rank_}); break;
      default: {
        // An overwritten chunk must have been read by the sends in flight.
        std::set<MessageStream> sends;
        for (const std::uint32_t before : operation.after) {
          const Operation& earlier = node_.operations[before];
          if (earlier.kind == ActionKind::kSend) sends.insert({rank_, earlier.peer});
        }
        flush(sends);
        prepare(Actor::kAll, nullptr, nullptr);
        Json source = Json::array();
        source.push_back(local(operation.a));
        if (operation.kind == ActionKind::kCombine) source.push_back(local(operation.b));
        Json target = Json::array();
        target.push_back(local(operation.into));
        Json json = {{"name", operation.kind == ActionKind::kCombine ? "re" : "copy"},
                     {"src_buff", source},
                     {"dst_buff", target}};
        if (operation.kind == ActionKind::kCombine) json["reduce_op"] = "sum";
        push(std::move(json));
      }
    }
  }

  void send(const Operation& operation) {
    const MessageStream stream{rank_, operation.peer};
    const StreamMessages& messages = streams_.at(stream);
    if (messages.has_credit[operation.number]) on_channel("wait", stream);
    const Chunks& target = messages.targets[operation.number];
    prepare(Actor::kThread, &stream, &stream + 1, 1);
    Json source = Json::array();
    source.push_back(local(operation.a));
    Json into = Json::array();
    into.push_back({{"buffer_id", buffer_id(operation.peer, target.buffer)},
                    {"index", target.first},
                    {"size", target.count}});
    Json ids = Json::array();
    ids.push_back(channel_id(stream));
    push({{"name", "pws"},
          {"src_buff", source},
          {"dst_buff", into},
          {"channel_ids", ids},
          {"channel_type", "port"}});
    flying_.insert(stream);
  }

  void on_channel(const char* name, const MessageStream& stream) {
    prepare(Actor::kThread, &stream, &stream + 1);
    Json ids = Json::array();
    ids.push_back(channel_id(stream));
    push({{"name", name}, {"channel_ids", ids}, {"channel_type", "port"}});
  }

  static Json local(const Chunks& chunks) {
    return {
        {"type", buffer_letter(chunks.buffer)}, {"index", chunks.first}, {"size", chunks.count}};
  }

  // Operations on channels are one thread's, combines and copies all threads'. A "nop" makes the
  // threads of a thread block wait for each other.
  enum class Actor : std::uint8_t { kNone, kThread, kAll };

  // Makes the next operation possible: one of `actor`, on these channels and `buffers` buffers of
  // other ranks. Begins another thread block if the current thread block has no room for the
  // operation, for a nop before it, and for the end of the thread block.
  void prepare(Actor actor, const MessageStream* begin, const MessageStream* end,
               std::size_t buffers = 0) {
    std::size_t fresh = 0;
    for (const MessageStream* stream = begin; stream != end; ++stream) {
      fresh += channel_ids_.count(channels_.at(*stream)) == 0 ? 1 : 0;
    }
    constexpr std::size_t kNext = 2, kEnd = 2;  // a nop and an operation; a nop and a sem_release
    if (count_ + kNext + kEnd > kMscclppOperations ||
        channel_ids_.size() + fresh > kMscclppChannels ||
        buffer_ids_.size() + buffers > kMscclppChannels) {
      continue_in_another();
    }
    if (acted_ == Actor::kAll || (acted_ == Actor::kThread && actor == Actor::kAll)) {
      push({{"name", "nop"}});
    }
    acted_ = actor;
  }

  void continue_in_another() {
    push({{"name", "nop"}});
    Json ids = Json::array();
    ids.push_back(blocks_.size());
    push({{"name", "sem_release"}, {"semaphore_ids", ids}});
    close();
    push({{"name", "sem_acquire"}, {"semaphore_ids", ids}});
    push({{"name", "nop"}});
    acted_ = Actor::kNone;
  }

  void push(Json operation) {
    operations_.push_back(std::move(operation));
    ++count_;
  }

  // Positions in the thread block's own lists.
  std::size_t channel_id(const MessageStream& stream) {
    return channel_ids_.try_emplace(channels_.at(stream), channel_ids_.size()).first->second;
  }
  std::size_t buffer_id(std::uint32_t peer, Buffer::Value buffer) {
    const std::pair key{peer, buffer};
    const auto [found, fresh] = remote_ids_.try_emplace(key, remote_ids_.size());
    if (fresh) {
      Json types = Json::array();
      types.push_back("port");
      remote_.push_back(
          {{"rank", peer}, {"type", buffer_letter(buffer)}, {"access_channel_types", types}});
    }
    return buffer_ids_.try_emplace(found->second, buffer_ids_.size()).first->second;
  }

  static Json in_order(const std::map<std::size_t, std::size_t>& ids) {
    std::vector<std::size_t> list(ids.size());
    for (const auto& [id, position] : ids) list[position] = id;
    return Json(list);
  }

  void close() {
    if (count_ == 0) return;
    Json block = {{"id", blocks_.size()},
                  {"ops", std::exchange(operations_, Json::array())},
                  {"channels", Json::array()},
                  {"remote_buffer_refs", Json::array()}};
    if (!channel_ids_.empty()) {
      block["channels"].push_back(
          {{"channel_type", "port"}, {"channel_ids", in_order(channel_ids_)}});
    }
    if (!buffer_ids_.empty()) {
      block["remote_buffer_refs"].push_back(
          {{"access_channel_type", "port"}, {"remote_buffer_ids", in_order(buffer_ids_)}});
    }
    blocks_.push_back(std::move(block));
    channel_ids_.clear();
    buffer_ids_.clear();
    count_ = 0;
  }

  const planner::LoadedSchedule& loaded_;
  std::uint32_t rank_;
  const NodeOperations& node_;
  const std::map<MessageStream, StreamMessages>& streams_;
  std::map<MessageStream, std::size_t> channels_;  // of this rank: position in peers_
  std::vector<std::uint32_t> peers_;
  std::map<std::int64_t, std::vector<MessageStream>> credits_;  // by the operation that they follow
  std::map<std::int64_t, std::set<MessageStream>> flushes_;     // before these credits
  std::set<MessageStream> flying_;                              // with sends that may still read
  std::map<std::pair<std::uint32_t, Buffer::Value>, std::size_t> remote_ids_;
  Json remote_ = Json::array();
  std::vector<Json> blocks_;
  // The thread block that is being written.
  Json operations_ = Json::array();
  std::size_t count_ = 0;
  std::map<std::size_t, std::size_t> channel_ids_, buffer_ids_;
  Actor acted_ = Actor::kNone;  // since the last nop
};

}  // namespace

std::string write_mscclpp(const planner::LoadedSchedule& loaded, std::int64_t blocks) {
  const Program& first = loaded.programs.front();
  if (first.collective == Collective::kBarrier) {
    cannot_export(loaded, "MSCCL++", "a plan needs chunks, and a barrier has none");
  }
  if (program_nodes(first) > first.ranks) {
    cannot_export(loaded, "MSCCL++", "its routers run programs, and MSCCL++ has only GPUs");
  }
  const Operations operations = expand_operations(loaded, blocks);
  const std::map<MessageStream, StreamMessages> streams = streams_of(operations);
  // The executor divides by both numbers of chunks, so that ranks without a buffer have them, too.
  const auto nominal = [&](Buffer::Value buffer) {
    std::int64_t chunks = 0;
    for (const NodeOperations& node : operations.nodes) {
      chunks = std::max(chunks, buffer == Buffer::kInput ? node.input_chunks : node.output_chunks);
    }
    return chunks;
  };
  Json plan = {{"name", first.algorithm},
               {"collective", std::string(mscclpp_name(first.collective))},
               {"protocol", "Simple"},
               {"inplace", first.collective == Collective::kBroadcast},
               {"reuse_resources", false},
               {"num_threads_per_block", 1024},
               {"use_double_scratch_buffer", false},
               {"buffer_alignment", 16},
               {"min_message_size", 0},
               {"max_message_size", kMaxMessageBytes},
               {"gpus", Json::array()}};
  for (std::uint32_t rank = 0; rank < operations.nodes.size(); ++rank) {
    plan["gpus"].push_back(PlanWriter(loaded, rank, operations.nodes[rank], streams)
                               .write(nominal(Buffer::kInput), nominal(Buffer::kOutput)));
  }
  return plan.dump(1) + "\n";
}

}  // namespace espalier::tools::formats
