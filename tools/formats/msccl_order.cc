#include "tools/formats/msccl_order.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "tools/common/failure.h"
#include "tools/common/output.h"

namespace espalier::tools::formats {
namespace {

// The limits of the work to find which uses are ordered: clocks of one rank, and of all.
constexpr std::uint64_t kMaxClocks = std::uint64_t{1} << 27;
constexpr std::uint64_t kMaxAllClocks = std::uint64_t{1} << 32;
constexpr std::size_t kMaxListed = 8;  // steps of a deadlock

class Orderer {
 public:
  Orderer(const std::string& path, const MscclFile& file) : path_(path), file_(file) {}

  std::vector<PlacedStep> order() {
    number_steps();
    match_messages();
    sort();
    for (std::uint32_t rank = 0; rank < file_.gpus.size(); ++rank) check_uses(rank);
    return std::move(steps_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    negative("'" + one_line(path_) + "' is not valid: " + what);
  }
  [[nodiscard]] const MscclFile::Step& step_of(const PlacedStep& placed) const {
    return file_.gpus[placed.rank].blocks[placed.block].steps[placed.number];
  }

  // Positions: rank by rank, thread block by thread block.
  void number_steps() {
    for (std::uint32_t rank = 0; rank < file_.gpus.size(); ++rank) {
      first_.emplace_back();
      for (std::uint32_t block = 0; block < file_.gpus[rank].blocks.size(); ++block) {
        first_.back().push_back(steps_.size());
        const std::size_t count = file_.gpus[rank].blocks[block].steps.size();
        for (std::uint32_t number = 0; number < count; ++number) {
          steps_.push_back({rank, block, number, -1});
        }
      }
    }
  }

  // Send k of a connection matches its receive k.
  void match_messages() {
    using Connection = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // from, to, channel
    std::map<Connection, std::pair<std::vector<std::size_t>, std::vector<std::size_t>>> all;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const PlacedStep& placed = steps_[i];
      const MscclFile::Block& block = file_.gpus[placed.rank].blocks[placed.block];
      if (step_of(placed).sends()) all[{placed.rank, block.to, block.channel}].first.push_back(i);
      if (step_of(placed).receives()) {
        all[{block.from, placed.rank, block.channel}].second.push_back(i);
      }
    }
    for (const auto& [connection, ends] : all) {
      const auto& [sends, receives] = ends;
      if (sends.size() != receives.size()) {
        refuse("rank " + std::to_string(std::get<0>(connection)) + " sends " +
               counted(sends.size(), "message") + " to rank " +
               std::to_string(std::get<1>(connection)) + " on channel " +
               std::to_string(std::get<2>(connection)) + ", which receives " +
               std::to_string(receives.size()));
      }
      for (std::size_t k = 0; k < sends.size(); ++k) {
        const PlacedStep& send = steps_[sends[k]];
        PlacedStep& receive = steps_[receives[k]];
        if (step_of(send).from.count != step_of(receive).from.count) {
          refuse(step_name(file_, receive) + " receives " +
                 counted(step_of(receive).from.count, "chunk") + "; " + step_name(file_, send) +
                 " sends " + std::to_string(step_of(send).from.count));
        }
        receive.sender = static_cast<std::int64_t>(sends[k]);
      }
    }
  }

  // The steps that must end before step i begins.
  [[nodiscard]] std::vector<std::size_t> before(std::size_t i) const {
    const PlacedStep& placed = steps_[i];
    const MscclFile::Step& step = step_of(placed);
    std::vector<std::size_t> found;
    if (placed.number > 0) found.push_back(i - 1);
    if (placed.sender >= 0) found.push_back(static_cast<std::size_t>(placed.sender));
    if (step.block >= 0) {
      found.push_back(first_[placed.rank][static_cast<std::size_t>(step.block)] +
                      static_cast<std::size_t>(step.step));
    }
    return found;
  }

  void sort() {
    std::vector<std::uint32_t> open(steps_.size(), 0);
    std::vector<std::vector<std::size_t>> next(steps_.size());
    std::deque<std::size_t> ready;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      for (const std::size_t earlier : before(i)) {
        next[earlier].push_back(i);
        ++open[i];
      }
      if (open[i] == 0) ready.push_back(i);
    }
    std::vector<std::size_t> order;
    while (!ready.empty()) {
      const std::size_t i = ready.front();
      ready.pop_front();
      order.push_back(i);
      for (const std::size_t later : next[i]) {
        if (--open[later] == 0) ready.push_back(later);
      }
    }
    if (order.size() < steps_.size()) refuse("deadlock: " + cycle(open));
    std::vector<std::size_t> position(steps_.size());
    std::vector<PlacedStep> sorted;
    for (std::size_t k = 0; k < order.size(); ++k) {
      position[order[k]] = k;
      for (const std::size_t earlier : before(order[k])) before_.push_back(position[earlier]);
      ends_.push_back(before_.size());
      sorted.push_back(steps_[order[k]]);
      std::int64_t& sender = sorted.back().sender;
      if (sender >= 0)
        sender = static_cast<std::int64_t>(position[static_cast<std::size_t>(sender)]);
    }
    steps_ = std::move(sorted);
  }

  // Steps that wait for each other: from any that is still open, backwards until one repeats.
  [[nodiscard]] std::string cycle(const std::vector<std::uint32_t>& open) const {
    std::size_t at = 0;
    while (open[at] == 0) ++at;
    std::vector<std::size_t> path;
    for (;;) {
      const auto seen = std::find(path.begin(), path.end(), at);
      if (seen != path.end()) {
        path.erase(path.begin(), seen);
        break;
      }
      path.push_back(at);
      for (const std::size_t earlier : before(at)) {
        if (open[earlier] != 0) at = earlier;
      }
    }
    std::string text;
    for (std::size_t k = 0; k < std::min(path.size(), kMaxListed); ++k) {
      text += step_name(file_, steps_[path[k]]) + " waits for ";
    }
    if (path.size() > kMaxListed) {
      text += counted(path.size() - kMaxListed, "more step") + ", the last of which wait for ";
    }
    return text + step_name(file_, steps_[path.front()]);
  }

  // Clocks of the rank's thread blocks: of each, how many steps have ended before a step begins.
  void check_uses(std::uint32_t rank) {
    const std::size_t blocks = file_.gpus[rank].blocks.size();
    if (blocks == 0) return;
    const std::uint64_t clocks_count = std::uint64_t{steps_.size()} * blocks;
    work_ += clocks_count;
    if (clocks_count > kMaxClocks || work_ > kMaxAllClocks) {
      bad_input("'" + one_line(path_) + "' is too large to import: " +
                counted(steps_.size(), "step") + ", and rank " + std::to_string(rank) + " has " +
                counted(blocks, "thread block") + "; expected fewer");
    }
    std::vector<std::uint16_t> clocks(steps_.size() * blocks, 0);  // after each step
    std::map<std::pair<Buffer::Value, std::int64_t>, ChunkUses> uses;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      std::uint16_t* const clock = &clocks[i * blocks];
      for (std::size_t k = i == 0 ? 0 : ends_[i - 1]; k < ends_[i]; ++k) {
        const std::uint16_t* const other = &clocks[before_[k] * blocks];
        for (std::size_t b = 0; b < blocks; ++b) clock[b] = std::max(clock[b], other[b]);
      }
      const PlacedStep& placed = steps_[i];
      if (placed.rank != rank) continue;
      const MscclFile::Step& step = step_of(placed);
      if (step.reads() && step.writes()) check_step(placed);
      const auto touch = [&](const Chunks& wanted, bool writes) {
        const Chunks chunks = in_one_buffer(file_, rank, wanted);
        for (std::int64_t c = 0; c < chunks.count; ++c) {
          ChunkUses& use = uses[{chunks.buffer, chunks.first + c}];
          if (use.writer >= 0) check_pair(use.writer, i, clock, chunks.first + c, chunks.buffer);
          if (writes) {
            for (const std::size_t reader : use.readers) {
              check_pair(static_cast<std::int64_t>(reader), i, clock, chunks.first + c,
                         chunks.buffer);
            }
            use = {static_cast<std::int64_t>(i), {}};
          } else {
            use.readers.push_back(i);
          }
        }
      };
      if (step.reads()) touch(step.from, false);
      if (step.type == MscclFile::Type::kReduce) touch(step.to, false);
      if (step.writes()) touch(step.to, true);
      clock[placed.block] = static_cast<std::uint16_t>(placed.number + 1);
    }
  }

  struct ChunkUses {
    std::int64_t writer = -1;
    std::vector<std::size_t> readers;
  };

  static const char* name_of(Buffer::Value buffer) {
    return buffer == Buffer::kInput ? "input" : buffer == Buffer::kOutput ? "output" : "scratch";
  }

  void check_pair(std::int64_t earlier, std::size_t later, const std::uint16_t* clock,
                  std::int64_t chunk, Buffer::Value buffer) const {
    const PlacedStep& one = steps_[static_cast<std::size_t>(earlier)];
    if (static_cast<std::size_t>(earlier) == later || clock[one.block] > one.number) return;
    refuse(step_name(file_, one) + " and " + step_name(file_, steps_[later]) + " use chunk " +
           std::to_string(chunk) + " of " + name_of(buffer) + ", and nothing orders them");
  }

  // The threads of a block move the chunks of a step in any order: a chunk may be read and written
  // only if it is the same one of both places.
  void check_step(const PlacedStep& placed) const {
    const MscclFile::Step& step = step_of(placed);
    const Chunks from = in_one_buffer(file_, placed.rank, step.from);
    const Chunks to = in_one_buffer(file_, placed.rank, step.to);
    const std::int64_t later = std::max(from.first, to.first);
    const bool apart =
        from.buffer != to.buffer || later >= std::min(from.first, to.first) + from.count;
    if (apart || from.first == to.first) return;
    refuse(step_name(file_, placed) + " reads and writes chunk " + std::to_string(later) + " of " +
           name_of(to.buffer) + " as different ones of its chunks, and nothing orders them");
  }

  const std::string& path_;
  const MscclFile& file_;
  std::vector<std::vector<std::size_t>> first_;  // position of each thread block's first step
  std::vector<PlacedStep> steps_;
  // Sorted: before_[ends_[i - 1]] .. before_[ends_[i] - 1] must end before step i begins.
  std::vector<std::size_t> before_, ends_;
  std::uint64_t work_ = 0;
};

}  // namespace

std::vector<PlacedStep> order_of(const std::string& path, const MscclFile& file) {
  return Orderer(path, file).order();
}

std::string step_name(const MscclFile& file, const PlacedStep& step) {
  return "rank " + std::to_string(step.rank) + ", tb " + std::to_string(step.block) + ", step " +
         std::to_string(step.number) + " (line " +
         std::to_string(file.gpus[step.rank].blocks[step.block].steps[step.number].line) + ")";
}

Chunks in_one_buffer(const MscclFile& file, std::uint32_t rank, Chunks chunks) {
  if (!file.in_place || chunks.buffer == Buffer::kScratch) return chunks;
  const std::int64_t part = file.chunks / static_cast<std::int64_t>(file.gpus.size());
  const bool own =
      chunks.buffer == Buffer::kInput
          ? file.collective == Collective::kAllgather || file.collective == Collective::kGather
          : file.collective == Collective::kReduceScatter ||
                file.collective == Collective::kScatter;
  if (own) chunks.first += part * rank;
  chunks.buffer = Buffer::kOutput;
  return chunks;
}

}  // namespace espalier::tools::formats
