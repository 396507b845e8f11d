#include "tools/formats/msccl_steps.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/digest.h"
#include "espalier/internal/base/step_limits.h"

namespace espalier::tools::formats {
namespace {

constexpr std::uint32_t kWindow = 8;
// In one buffer a receive waits a window after the last read of its place, so a short one takes the
// fewest steps.
constexpr std::uint32_t kWindowInPlace = 2;

class MscclTimer {
 public:
  MscclTimer(const MscclFile& file, const std::vector<MscclValue>& values,
             lower::TimedSchedule& timed)
      : file_(file), values_(values), timed_(timed) {
    if (counts_per_rank(file.collective)) {
      blocks_ =
          static_cast<std::int32_t>(file.chunks / static_cast<std::int64_t>(file.gpus.size()));
    }
  }

  // Returns the digest of the values and their steps.
  [[nodiscard]] std::uint64_t add_all() {
    timed_.blocks = blocks_;
    steps_.resize(values_.size(), -1);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (values_[i].is_used) place(i);
    }
    // No block of a round may end after block 0.
    std::int64_t latest = 0;
    std::int32_t last = -1;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (steps_[i] <= last) continue;
      last = steps_[i];
      latest = values_[i].name.chunk % blocks_;
    }
    for (std::size_t i = 0; i < values_.size(); ++i) {
      operands_.emplace_back();
      if (values_[i].is_used) write(i, static_cast<std::int32_t>(latest));
    }
    return digest();
  }

 private:
  // The earliest step: after the steps of the values that it is made of, after the messages before
  // it of both thread blocks, and one message per link.
  void place(std::size_t i) {
    const MscclValue& value = values_[i];
    std::int32_t step = 0;
    for (const std::int64_t from : {value.a, value.b}) {
      if (from < 0) continue;
      const std::int32_t made = steps_[static_cast<std::size_t>(from)];
      const bool is_sent = value.maker == MscclValue::Maker::kMessage;
      step = std::max(step, made + (is_sent && made >= 0 ? 1 : 0));
    }
    if (value.maker == MscclValue::Maker::kInput) return;
    step = std::max(step, first_in_place(value));
    if (value.maker == MscclValue::Maker::kMessage) {
      std::int32_t& sender = next_[{value.sender.first, value.sender.second, true}];
      std::int32_t& receiver = next_[{value.receiver.first, value.receiver.second, false}];
      step = std::max({step, sender, receiver});
      while (!has_room(value, step)) ++step;
      taken_.insert({value.sender.first, value.rank, step});
      ++sends_[{value.sender.first, step}];
      ++receives_[{value.rank, step}];
      sender = receiver = step + 1;
    }
    steps_[i] = step;
    for (const std::int64_t from : {value.a, value.b}) {
      if (from < 0) continue;
      const MscclValue& read = values_[static_cast<std::size_t>(from)];
      if (read.maker != MscclValue::Maker::kInput) continue;
      std::int32_t& last = last_read_[{read.rank, segment_of(read), value.name.chunk % blocks_}];
      last = std::max(last, step + 1);
    }
  }

  // In one buffer, a block of the output takes the place of the input's: returns the first step
  // after its reads. A receive may write from the moment when its window begins.
  [[nodiscard]] std::int32_t first_in_place(const MscclValue& value) const {
    if (!file_.in_place || !value.is_output) return 0;
    const auto read =
        last_read_.find({value.rank, into(value).segment, value.name.chunk % blocks_});
    if (read == last_read_.end()) return 0;
    const bool received = value.maker == MscclValue::Maker::kMessage;
    return read->second + (received ? static_cast<std::int32_t>(msccl_window(file_)) - 1 : 0);
  }

  // The segment of INPUT that a value of it is in.
  [[nodiscard]] std::int32_t segment_of(const MscclValue& input) const {
    return static_cast<std::int32_t>(counts_per_rank(file_.collective) ? input.name.chunk / blocks_
                                                                       : input.name.chunk);
  }

  [[nodiscard]] bool has_room(const MscclValue& message, std::int32_t step) {
    return taken_.count({message.sender.first, message.rank, step}) == 0 &&
           sends_[{message.sender.first, step}] < kMaxStepMessages &&
           receives_[{message.rank, step}] < kMaxStepMessages;
  }

  [[nodiscard]] lower::TimedOperand into(const MscclValue& value) const {
    lower::TimedOperand operand;
    operand.buffer = value.is_output ? Buffer::kOutput : Buffer::kScratch;
    operand.segment = file_.collective == Collective::kAllToAll
                          ? static_cast<std::int32_t>(value.name.origin)
                          : segment_of(value);
    return operand;
  }

  void write(std::size_t i, std::int32_t latest) {
    const MscclValue& value = values_[i];
    auto block = static_cast<std::int32_t>(value.name.chunk % blocks_);
    block = block == latest ? 0 : block == 0 ? latest : block;
    const auto operand = [&](std::int64_t from) {
      return from < 0 ? lower::TimedOperand{} : operands_[static_cast<std::size_t>(from)];
    };
    switch (value.maker) {
      case MscclValue::Maker::kInput: {
        operands_[i] = {Buffer::kInput, segment_of(value), -1};
        break;
      }
      case MscclValue::Maker::kMessage: {
        const std::uint32_t way[] = {value.sender.first, value.rank};
        operands_[i] =
            timed_.add_message(block, way, {&steps_[i], 1}, operand(value.a), into(value));
        break;
      }
      default: {
        const bool is_copy = value.maker == MscclValue::Maker::kCopy;
        operands_[i] =
            timed_.add_operation(is_copy ? ActionKind::kCopy : ActionKind::kCombine, value.rank,
                                 steps_[i], block, into(value), operand(value.a), operand(value.b));
      }
    }
  }

  [[nodiscard]] std::uint64_t digest() const {
    std::uint64_t digest = kDigestSeed;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const MscclValue& value = values_[i];
      for (const std::int64_t word :
           {std::int64_t{value.rank}, value.name.chunk, value.name.origin, value.a, value.b,
            std::int64_t{value.is_output}, std::int64_t{steps_[i]}}) {
        digest = digest_u64(digest, static_cast<std::uint64_t>(word));
      }
    }
    return digest;
  }

  const MscclFile& file_;
  const std::vector<MscclValue>& values_;
  lower::TimedSchedule& timed_;
  std::int32_t blocks_ = 1;
  std::vector<std::int32_t> steps_;
  std::vector<lower::TimedOperand> operands_;
  // By rank, segment and block of INPUT: the step after its last read.
  std::map<std::tuple<std::uint32_t, std::int32_t, std::int64_t>, std::int32_t> last_read_;
  // By rank, thread block and whether it sends: the step after its last message.
  std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, std::int32_t> next_;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::int32_t>> taken_;  // from, to, step
  std::map<std::pair<std::uint32_t, std::int32_t>, std::uint32_t> sends_, receives_;  // rank, step
};

}  // namespace

std::uint32_t msccl_window(const MscclFile& file) {
  return file.in_place ? kWindowInPlace : kWindow;
}

std::uint64_t add_msccl_steps(const MscclFile& file, const std::vector<MscclValue>& values,
                              lower::TimedSchedule& timed) {
  return MscclTimer(file, values, timed).add_all();
}

}  // namespace espalier::tools::formats
