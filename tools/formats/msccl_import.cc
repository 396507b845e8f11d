#include "tools/formats/msccl_import.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/digest.h"
#include "collectives/lower/timed.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/internal/base/step_limits.h"
#include "planner/files/prove.h"
#include "planner/make/plan.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"
#include "tools/formats/msccl_order.h"
#include "tools/report/verify_report.h"

namespace espalier::tools::formats {
namespace {

constexpr std::size_t kMaxValues = std::size_t{1} << 20;
constexpr std::uint32_t kWindow = 8;
// In one buffer a receive waits a window after the last read of its place, so a short one takes the
// fewest steps.
constexpr std::uint32_t kWindowInPlace = 2;

std::uint32_t window_of(const MscclFile& file) { return file.in_place ? kWindowInPlace : kWindow; }

// A chunk of the message. In an all-to-all, chunks of different origins are different.
struct ChunkName {
  std::int64_t chunk = 0;   // of the whole message; of an all-to-all, of the origin's input
  std::int64_t origin = 0;  // all-to-all: the rank whose input it was; otherwise 0
  friend bool operator==(const ChunkName&, const ChunkName&) = default;
};

// What a chunk of a buffer holds: of the input, or made by a message or a combine.
struct MscclValue {
  enum class Maker : std::uint8_t { kInput, kMessage, kCombine, kCopy };
  Maker maker = Maker::kInput;
  std::uint32_t rank = 0;
  ChunkName name = {};
  std::int64_t a = -1, b = -1;  // the values that it is made of; a message: the one that is sent
  // The thread blocks that send and receive a message.
  std::pair<std::uint32_t, std::uint32_t> sender = {}, receiver = {};
  std::uint32_t first_rank = 0;  // whose input is the first operand
  bool is_used = false;
  bool is_output = false;
};

// Executes the algorithm on values.
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
      MscclValue value{.rank = rank};
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
    return add({.maker = MscclValue::Maker::kCombine,
                .rank = placed.rank,
                .name = at(a).name,
                .a = a,
                .b = b,
                .first_rank = at(a).first_rank});
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
    return add({.maker = MscclValue::Maker::kMessage,
                .rank = placed.rank,
                .name = at(sent).name,
                .a = sent,
                .sender = {at(sent).rank, block},
                .receiver = {placed.rank, placed.block},
                .first_rank = at(sent).first_rank});
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
        value = add({.maker = MscclValue::Maker::kCopy,
                     .rank = rank,
                     .name = at(value).name,
                     .a = value,
                     .first_rank = at(value).first_rank});
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

// Gives every value a step, and writes it as the instances that make it.
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
    return read->second + (received ? static_cast<std::int32_t>(window_of(file_)) - 1 : 0);
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
    return {.buffer = value.is_output ? Buffer::kOutput : Buffer::kScratch,
            .segment = file_.collective == Collective::kAllToAll
                           ? static_cast<std::int32_t>(value.name.origin)
                           : segment_of(value)};
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

// The rank that provides or gets the whole message.
std::int64_t root_of(const std::string& path, const MscclFile& file, std::int64_t given) {
  if (!has_root(file.collective)) {
    if (given >= 0) {
      bad_input("'" + one_line(path) + "' is of " + collective_name(file.collective) +
                ", which has no root; expected no --root");
    }
    return 0;
  }
  if (given >= static_cast<std::int64_t>(file.gpus.size())) {
    bad_input("--root " + std::to_string(given) + "; '" + one_line(path) + "' has " +
              counted(file.gpus.size(), "rank"));
  }
  if (given >= 0) return given;
  const bool sends =
      file.collective == Collective::kBroadcast || file.collective == Collective::kScatter;
  std::int64_t root = -1;
  for (std::size_t rank = 0; rank < file.gpus.size(); ++rank) {
    const MscclFile::Gpu& gpu = file.gpus[rank];
    if ((sends ? gpu.input_chunks : gpu.output_chunks) == 0) continue;
    if (root >= 0) {
      bad_input("'" + one_line(path) + "': ranks " + std::to_string(root) + " and " +
                std::to_string(rank) + " could be the root; expected --root");
    }
    root = static_cast<std::int64_t>(rank);
  }
  if (root < 0) bad_input("'" + one_line(path) + "': no rank has chunks for the root's message");
  return root;
}

// Whether every message goes over one link of the topology.
bool is_among_neighbours(const topology::Topology& topology, const lower::TimedSchedule& timed) {
  for (std::uint32_t node = 0; node < timed.nodes.size(); ++node) {
    for (const lower::TimedInstance& one : timed.nodes[node]) {
      if ((one.kind == ActionKind::kSend) && topology.capacity(node, one.peer) == 0) return false;
    }
  }
  return true;
}

// A name for people: other characters than those of ASCII become '?'.
std::string printable(const std::string& name) {
  std::string shown;
  for (const char letter : name) shown += letter >= ' ' && letter <= '~' ? letter : '?';
  return shown;
}

}  // namespace

ImportedMsccl import_msccl(const std::string& path, const MscclFile& file,
                           const topology::Topology& topology, const ImportOptions& options) {
  const std::int64_t root = root_of(path, file, options.root);
  const std::vector<MscclValue> values = MscclExecution(path, file, root).execute();
  CollectiveParameters parameters{.ranks = topology.ranks(),
                                  .root = static_cast<std::uint32_t>(root),
                                  .topology_digest = topology.digest(),
                                  .window = window_of(file),
                                  .host_limits = options.for_hosts};
  const std::string name = printable(file.name);
  lower::TimedSchedule timed(topology.ranks());
  timed.digest = MscclTimer(file, values, timed).add_all();
  timed.outline.collective = file.collective;
  timed.outline.algorithm = name.c_str();
  timed.outline.segments = static_cast<std::uint32_t>(file.chunks);
  timed.share_entries = true;
  timed.outline.port_model = PortModel::kMultiport;
  // The fabric routes: every pair of ranks has a link.
  const auto pairs = or_bad_input(topology::parse("complete:" + std::to_string(topology.ranks())));
  timed.period = lower::least_period(*pairs, timed, 1);
  ImportedMsccl imported;
  imported.messages = timed.messages;
  verify::Verdict verdict;
  // In the order of ranks if that is so; otherwise for operators that commute.
  for (const bool commutes : {false, true}) {
    timed.outline.needs_commutative = commutes;
    Program common;
    if (Builder(common).begin(parameters, 0, timed.outline) == Status::kOk) {
      timed.bound =
          verify::provable_bound(topology, common, 1, is_among_neighbours(topology, timed));
    }
    auto written = lower::write_programs_for_window(parameters, timed);
    if (!written) {
      bad_input("'" + one_line(path) + "' cannot be a schedule: " + written.error().message);
    }
    const Programs programs = *std::move(written);
    verify::VerifyOptions checks;
    checks.links = false;  // the fabric routes
    verdict = verify::verify(
        topology, [&](std::uint32_t node) -> const Program& { return programs[node]; }, checks);
    if (verdict.counterexample.too_large) {
      bad_input("'" + one_line(path) +
                "' is too large to verify: " + verdict.counterexample.message);
    }
    if (!verdict.valid) {
      if (verdict.counterexample.property != verify::Property::kDataFlow) break;
      continue;
    }
    if (file.in_place && !verdict.in_place) {
      negative(
          "'" + one_line(path) +
          "' has inplace=\"1\" without outofplace=\"1\", and its schedule would read the input "
          "after the output has taken its place; expected steps that do not");
    }
    ScheduleFileWriter writer(topology.spec(), topology.digest(), topology.ranks(),
                              topology.ranks());
    Status status = Status::kOk;
    for (const Program& program : programs) {
      if (status == Status::kOk) status = writer.add(program);
    }
    if (status == Status::kOk) status = writer.finish(imported.bytes);
    if (status != Status::kOk) {
      bad_input("'" + one_line(path) + "' cannot be a schedule file: " + status_name(status));
    }
    imported.proven_for = planner::proven_for(programs.front(), verdict);
    return imported;
  }
  negative("'" + one_line(path) + "' is not valid: " + verdict.counterexample.message);
}

}  // namespace espalier::tools::formats
