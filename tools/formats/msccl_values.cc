#include "tools/formats/msccl_values.h"

#include <map>

#include "tools/common/failure.h"
#include "tools/common/output.h"
#include "tools/formats/msccl_order.h"

namespace espalier::tools::formats {
namespace {

constexpr std::size_t kMaxValues = std::size_t{1} << 20;

class MscclExecution {
 public:
  MscclExecution(const std::string& path, const MscclFile& file, std::int64_t root)
      : path_(path),
        file_(file),
        root_(root),
        ranks_(static_cast<std::int64_t>(file.gpus.size())),
        part_(file.chunks / ranks_),
        memory_(file.gpus.size()) {}

  // The values, each after those that it is made of.
  std::vector<MscclValue> execute() {
    const std::vector<PlacedStep> steps = order_of(path_, file_);
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) fill_input(rank);
    sent_.resize(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) perform(i, steps[i]);
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) find_output(rank);
    for (std::size_t i = values_.size(); i > 0; --i) {
      const MscclValue& value = values_[i - 1];
      if (!value.is_used) continue;
      for (const std::int64_t from : {value.a, value.b}) {
        if (from >= 0) at(from).is_used = true;
      }
    }
    return std::move(values_);
  }

 private:
  using Place = std::pair<Buffer::Value, std::int64_t>;

  [[noreturn]] void refuse(const std::string& what) const {
    negative("'" + one_line(path_) + "' is not valid: " + what);
  }
  MscclValue& at(std::int64_t value) { return values_[static_cast<std::size_t>(value)]; }

  std::int64_t add(MscclValue value) {
    if (values_.size() == kMaxValues) {
      bad_input("'" + one_line(path_) + "' makes more than " + std::to_string(kMaxValues) +
                " chunks; expected fewer");
    }
    values_.push_back(value);
    return static_cast<std::int64_t>(values_.size()) - 1;
  }

  [[nodiscard]] bool has_own_input() const {
    return file_.collective == Collective::kAllgather || file_.collective == Collective::kGather;
  }
  [[nodiscard]] bool has_own_output() const {
    return file_.collective == Collective::kReduceScatter ||
           file_.collective == Collective::kScatter;
  }
  [[nodiscard]] bool is_all_to_all() const { return file_.collective == Collective::kAllToAll; }

  void fill_input(std::uint32_t rank) {
    const bool from_root =
        file_.collective == Collective::kBroadcast || file_.collective == Collective::kScatter;
    if (from_root && rank != root_) return;
    const std::int64_t count = has_own_input() ? part_ : file_.chunks;
    for (std::int64_t i = 0; i < count; ++i) {
      MscclValue value;
      value.rank = rank;
      value.name.chunk = has_own_input() ? rank * part_ + i : i;
      value.name.origin = is_all_to_all() ? rank : 0;
      value.first_rank = rank;
      const Chunks place = in_one_buffer(file_, rank, {Buffer::kInput, i, 1});
      memory_[rank][{place.buffer, place.first}] = add(value);
    }
  }

  std::int64_t read(const PlacedStep& placed, const Chunks& chunks, std::int64_t k) {
    const Chunks place = in_one_buffer(file_, placed.rank, chunks);
    const auto found = memory_[placed.rank].find({place.buffer, place.first + k});
    if (found != memory_[placed.rank].end()) return found->second;
    refuse(step_name(file_, placed) + " reads a chunk that has no value: nothing has written it");
  }
  void write(std::uint32_t rank, const Chunks& chunks, std::int64_t k, std::int64_t value) {
    const Chunks place = in_one_buffer(file_, rank, chunks);
    memory_[rank][{place.buffer, place.first + k}] = value;
  }

  // MSCCL's operators commute: operands are ordered by rank, for those that do not.
  std::int64_t combine(const PlacedStep& placed, std::int64_t a, std::int64_t b) {
    if (!(at(a).name == at(b).name)) {
      refuse(step_name(file_, placed) + " combines chunk " + std::to_string(at(a).name.chunk) +
             " with chunk " + std::to_string(at(b).name.chunk));
    }
    if (at(b).first_rank < at(a).first_rank) std::swap(a, b);
    MscclValue value;
    value.maker = MscclValue::Maker::kCombine;
    value.rank = placed.rank;
    value.name = at(a).name;
    value.a = a;
    value.b = b;
    value.first_rank = at(a).first_rank;
    return add(value);
  }

  void perform(std::size_t position, const PlacedStep& placed) {
    const MscclFile::Step& step = file_.gpus[placed.rank].blocks[placed.block].steps[placed.number];
    if (step.type == MscclFile::Type::kNothing) return;
    for (std::int64_t k = 0; k < step.from.count; ++k) {
      std::int64_t value = -1;
      if (step.receives()) value = receive(placed, k);
      if (step.reads()) {
        const std::int64_t here = read(placed, step.from, k);
        value = value < 0 ? here : combine(placed, here, value);
      }
      if (step.type == MscclFile::Type::kReduce) {
        value = combine(placed, read(placed, step.to, k), value);
      }
      if (step.writes()) write(placed.rank, step.to, k, value);
      if (step.sends()) sent_[position].emplace_back(value, placed.block);
    }
  }

  std::int64_t receive(const PlacedStep& placed, std::int64_t k) {
    const auto [sent, block] =
        sent_[static_cast<std::size_t>(placed.sender)][static_cast<std::size_t>(k)];
    MscclValue value;
    value.maker = MscclValue::Maker::kMessage;
    value.rank = placed.rank;
    value.name = at(sent).name;
    value.a = sent;
    value.sender = {at(sent).rank, block};
    value.receiver = {placed.rank, placed.block};
    value.first_rank = at(sent).first_rank;
    return add(value);
  }

  // The output of a rank: each chunk must be the one of its place. What it combines, the verifier
  // checks.
  void find_output(std::uint32_t rank) {
    const bool to_root =
        file_.collective == Collective::kReduce || file_.collective == Collective::kGather;
    if (to_root && rank != root_) return;
    if (file_.collective == Collective::kBroadcast && rank == root_) return;
    const std::int64_t count = has_own_output() ? part_ : file_.chunks;
    for (std::int64_t i = 0; i < count; ++i) {
      const Chunks place = in_one_buffer(file_, rank, {Buffer::kOutput, i, 1});
      const std::string where =
          "rank " + std::to_string(rank) + ": chunk " + std::to_string(i) + " of the output ";
      const auto found = memory_[rank].find({place.buffer, place.first});
      if (found == memory_[rank].end()) refuse(where + "is not written");
      std::int64_t value = found->second;
      ChunkName wanted{has_own_output() ? rank * part_ + i : i, 0};
      if (is_all_to_all()) wanted = {rank * part_ + i % part_, i / part_};
      if (!(at(value).name == wanted)) {
        refuse(where + "ends as chunk " + std::to_string(at(value).name.chunk) +
               (is_all_to_all() ? " of rank " + std::to_string(at(value).name.origin) : "") +
               "; expected chunk " + std::to_string(wanted.chunk) +
               (is_all_to_all() ? " of rank " + std::to_string(wanted.origin) : ""));
      }
      if (at(value).maker == MscclValue::Maker::kInput) {
        MscclValue copy;
        copy.maker = MscclValue::Maker::kCopy;
        copy.rank = rank;
        copy.name = at(value).name;
        copy.a = value;
        copy.first_rank = at(value).first_rank;
        value = add(copy);
      }
      at(value).is_used = at(value).is_output = true;
    }
  }

  const std::string& path_;
  const MscclFile& file_;
  std::int64_t root_, ranks_, part_;
  std::vector<MscclValue> values_;
  std::vector<std::map<Place, std::int64_t>> memory_;  // by rank
  // By step: the values that it sends, and the thread block that does.
  std::vector<std::vector<std::pair<std::int64_t, std::uint32_t>>> sent_;
};

}  // namespace

std::vector<MscclValue> msccl_values(const std::string& path, const MscclFile& file,
                                     std::int64_t root) {
  return MscclExecution(path, file, root).execute();
}

}  // namespace espalier::tools::formats
