#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/digest.h"
#include "collectives/lower/timed_rows.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/step_limits.h"

namespace espalier::lower {
namespace {

// The rows of one action, in the order of its instances.
using Rows = std::vector<const Row*>;
using Column = std::vector<std::int32_t>;  // one number per row

// How a node's rows become actions.
struct Form {
  // Actions have paces, and the phase's period is 1; otherwise it is the schedule's period.
  bool paced = true;
  std::size_t least = 2;  // minimum number of rows for an action with a table
  // Links, segments and slots share entries of a table, as digits of one number: fewer terms, but
  // divisions where a program steps.
  bool shared_entries = false;
};
// Fewer rows make more tables and terms; more rows make more actions. The first number that fits is
// taken.
constexpr std::size_t kLeastRows[] = {2, 3, 5, 9, 17, 33};

bool all_alike(const Column& column) {
  return std::all_of(column.begin(), column.end(),
                     [&](std::int32_t value) { return value == column[0]; });
}

class NodeWriter {
 public:
  NodeWriter(const TimedSchedule& schedule, const Form& form, Program& program)
      : builder_(program), schedule_(schedule), form_(form), program_(program) {}

  [[nodiscard]] Status write(const CollectiveParameters& parameters, std::uint32_t node,
                             const NodeRows& rows);
  [[nodiscard]] const std::vector<std::int16_t>& entries() const { return entries_; }

 private:
  void add_class(Rows rows);
  void add(const Rows& rows, std::int32_t first);
  void put(const Row& like, std::int32_t first, const Action& what);
  [[nodiscard]] Operand operands_of(const Rows& rows, TimedOperand TimedInstance::*place,
                                    SlotTurns Row::*slot, std::uint8_t block_ref);
  // An index that takes these values in turn. With several turns, it also adds 0 .. turns-1, by
  // rounds.
  [[nodiscard]] std::uint8_t index(const Column& column, std::int32_t turns = 1);
  // Finds the columns of an action that share entries.
  void share(const Rows& rows, const Column& links);
  // coef * round + column[position in the round].
  [[nodiscard]] std::uint8_t by_rounds(std::int32_t coef, Column column);
  [[nodiscard]] Term lookup(std::int32_t coef, const Column& column);

  Builder builder_;
  const TimedSchedule& schedule_;
  Form form_;
  Program& program_;
  std::vector<std::int16_t> entries_;
  std::map<Column, std::uint32_t> columns_;  // start index of each column
  // A column of the current action that is a digit of shared entries.
  struct SharedColumn {
    Column entries;
    std::uint32_t div = 1, mod = 1;
  };
  std::map<Column, SharedColumn> shared_;
  bool too_large_ = false;
};

Term NodeWriter::lookup(std::int32_t coef, const Column& column) {
  ESPALIER_ASSERT(!column.empty());
  using Entry = std::numeric_limits<std::int16_t>;
  const auto [found, fresh] =
      columns_.try_emplace(column, static_cast<std::uint32_t>(entries_.size()));
  for (std::size_t i = 0; fresh && i < column.size(); ++i) {
    too_large_ = too_large_ || column[i] > Entry::max() || column[i] < Entry::min();
    entries_.push_back(static_cast<std::int16_t>(column[i]));
  }
  return {.coef = coef,
          .mul = 1,
          .add = 0,
          .div = 0,
          .mod = static_cast<std::uint32_t>(column.size()),
          .base = 0,
          .digits = 0,
          .table = found->second + 1};
}

std::uint8_t NodeWriter::index(const Column& column, std::int32_t turns) {
  Index row{};
  ESPALIER_ASSERT(!column.empty() && turns >= 1);
  const auto mod = static_cast<std::uint32_t>(turns);
  if (column.size() == 1 && turns > 1) {
    row.base = column[0];
    row.coef = 1;
    row.mod = mod;
    return builder_.index(row);
  }
  if (const auto found = shared_.find(column); turns == 1 && found != shared_.end()) {
    row.div = found->second.div;
    row.mod = found->second.mod;
    return builder_.index(row, {lookup(1, found->second.entries)});
  }
  std::vector<Term> terms;
  if (all_alike(column)) {
    row.base = column[0];
  } else {
    terms.push_back(lookup(1, column));
  }
  if (turns > 1) {
    terms.push_back(floor_term(1, 0, static_cast<std::uint32_t>(column.size()), mod));
  }
  return builder_.index(row, terms.data(), static_cast<std::uint32_t>(terms.size()));
}

// With i = rows*round + x: floor((coef*i + rows*c) / rows), c = column[x] - floor(coef*x / rows).
// This saves the term for the round; a program has few terms.
std::uint8_t NodeWriter::by_rounds(std::int32_t coef, Column column) {
  const auto rows = static_cast<std::int32_t>(column.size());
  ESPALIER_ASSERT(rows >= 1 && coef >= 0);
  for (std::int32_t x = 0; x < rows; ++x) {
    const std::int64_t whole = std::int64_t{coef} * x / rows;
    column[static_cast<std::size_t>(x)] -= static_cast<std::int32_t>(whole);
  }
  Index row{};
  row.coef = coef;
  row.div = rows > 1 ? static_cast<std::uint32_t>(rows) : 0;
  if (!all_alike(column)) return builder_.index(row, {lookup(rows, column)});
  row.base = column[0];
  return builder_.index(row);
}

void NodeWriter::share(const Rows& rows, const Column& links) {
  shared_.clear();
  if (!form_.shared_entries) return;
  std::vector<Column> columns = {links};
  for (const auto& [place, slot] :
       {std::pair(&TimedInstance::into, &Row::into), std::pair(&TimedInstance::a, &Row::a),
        std::pair(&TimedInstance::b, &Row::b)}) {
    Column segments, slots;
    for (const Row* row : rows) {
      segments.push_back((row->instance->*place).segment);
      slots.push_back((row->*slot).first);
    }
    columns.push_back(std::move(segments));
    if ((rows[0]->instance->*place).buffer == Buffer::kScratch && (rows[0]->*slot).turns == 1) {
      columns.push_back(std::move(slots));
    }
  }
  std::vector<Column> together;
  Column entries(rows.size(), 0);
  std::int64_t digits = 1;
  const auto close = [&] {
    for (const Column& column : together) shared_.at(column).entries = entries;
    together.clear();
    entries.assign(rows.size(), 0);
    digits = 1;
  };
  for (const Column& column : columns) {
    if (column.empty() || all_alike(column) || shared_.count(column) > 0) continue;
    const std::int64_t values = std::int64_t{*std::max_element(column.begin(), column.end())} + 1;
    if (digits * values > std::numeric_limits<std::int16_t>::max()) close();
    shared_[column] = {{}, static_cast<std::uint32_t>(digits), static_cast<std::uint32_t>(values)};
    together.push_back(column);
    for (std::size_t x = 0; x < entries.size(); ++x) {
      entries[x] += static_cast<std::int32_t>(digits * column[x]);
    }
    digits *= values;
  }
  close();
}

Operand NodeWriter::operands_of(const Rows& rows, TimedOperand TimedInstance::*place,
                                SlotTurns Row::*slot, std::uint8_t block_ref) {
  const Buffer buffer = (rows[0]->instance->*place).buffer;
  if (buffer == Buffer::kNone) return Operand{};
  Column segments, slots;
  for (const Row* row : rows) {
    segments.push_back((row->instance->*place).segment);
    slots.push_back((row->*slot).first);
  }
  Operand operand = Builder::operand(buffer, index(segments));
  operand.block_ref = block_ref;
  if (buffer == Buffer::kScratch) operand.slot_ref = index(slots, (rows[0]->*slot).turns);
  return operand;
}

// Round r of the rows, in the order of their steps within a period from `first` onward. A row whose
// step is q periods later belongs to round r - q.
void NodeWriter::add(const Rows& rows, std::int32_t first) {
  ESPALIER_ASSERT(!rows.empty() && schedule_.period >= 1 && schedule_.blocks >= 1);
  const std::int32_t period = schedule_.period, blocks = schedule_.blocks;
  const auto many = static_cast<std::int32_t>(rows.size());
  Column steps, of_round, links;
  std::int32_t max_later = 0, last = 0;
  for (std::int32_t x = 0; x < many; ++x) {
    const TimedInstance& one = *rows[static_cast<std::size_t>(x)]->instance;
    const std::int32_t later = (one.step - first) / period;
    ESPALIER_ASSERT(one.step >= first && one.kind == rows[0]->instance->kind);
    steps.push_back((one.step - first) % period);
    of_round.push_back(one.block - blocks * later);
    if (!rows[0]->is_operation())
      links.push_back(static_cast<std::int32_t>(builder_.link(one.peer)));
    if (later < max_later) continue;
    max_later = later;
    last = x;
  }
  const std::uint8_t block_ref = by_rounds(blocks, of_round);
  share(rows, links);
  Action what{};
  what.into = operands_of(rows, &TimedInstance::into, &Row::into, block_ref);
  what.a = operands_of(rows, &TimedInstance::a, &Row::a, block_ref);
  what.b = operands_of(rows, &TimedInstance::b, &Row::b, block_ref);
  if (!links.empty()) what.link_ref = index(links);
  if (form_.paced) what.pace_ref = by_rounds(period, steps);
  // Includes the last row that belongs to the last round.
  what.instances_ref = builder_.count({.a = many * (max_later - 1) + last + 1,
                                       .b = blocks == 1 ? many : 0,
                                       .c = blocks == 1 ? 0 : many,
                                       .d = 0,
                                       .e = blocks == 1 ? 0 : static_cast<std::uint32_t>(blocks)});
  put(*rows[0], first, what);
}

void NodeWriter::put(const Row& like, std::int32_t first, const Action& what) {
  const auto t0 = static_cast<std::uint32_t>(first);
  const auto after = static_cast<std::uint32_t>(like.after);
  const ActionKind kind = like.instance->kind;
  Action& added = kind == ActionKind::kSend ? builder_.send_by(t0, what.link_ref, what.a, after)
                  : kind == ActionKind::kReceive ? builder_.receive_by(t0, what.link_ref, what.into)
                  : kind == ActionKind::kCopy    ? builder_.copy(t0, what.into, what.a)
                                                 : builder_.combine(t0, what.into, what.a, what.b);
  added.after = static_cast<std::uint16_t>(after);
  added.instances_ref = what.instances_ref;
  added.pace_ref = what.pace_ref;
}

// The rows of one key: one action, or one action per row.
void NodeWriter::add_class(Rows rows) {
  const auto step_of = [](const Row* row) { return row->instance->step; };
  ESPALIER_ASSERT(!rows.empty());
  std::int32_t first = step_of(rows[0]);
  for (const Row* row : rows) first = std::min(first, step_of(row));
  const auto place = [&](const Row* row) {
    return std::pair((step_of(row) - first) % schedule_.period, row->order);
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Row* a, const Row* b) { return place(a) < place(b); });
  if (rows.size() < form_.least || !form_.paced) {
    for (const Row* row : rows) add({row}, step_of(row));
    return;
  }
  for (std::size_t x = kMaxStepInstances; x < rows.size() && rows[0]->is_operation(); ++x) {
    too_large_ = too_large_ || place(rows[x]).first == place(rows[x - kMaxStepInstances]).first;
  }
  add(rows, first);
}

Status NodeWriter::write(const CollectiveParameters& parameters, std::uint32_t node,
                         const NodeRows& rows) {
  const Status status = builder_.begin(parameters, node, schedule_.outline);
  if (status != Status::kOk) return status;
  program_.schedule_digest = digest_u64(program_.schedule_digest, schedule_.digest);
  (void)builder_.scratch(static_cast<std::uint32_t>(rows.slots));
  std::map<Row::Key, Rows> classes;
  for (const Row& row : rows.rows) classes[row.key()].push_back(&row);
  for (auto& [key, rows] : classes) add_class(std::move(rows));
  // If a schedule moves nothing, as a broadcast to one rank, no round has a step.
  const std::int32_t first = steps_of(schedule_);
  const std::int32_t period = first == 0 ? 0 : schedule_.period, rest = first - period;
  Count steps{};
  steps.a = rest;
  (schedule_.blocks == 1 ? steps.b : steps.c) = period;
  steps.e = schedule_.blocks == 1 ? 0 : static_cast<std::uint32_t>(schedule_.blocks);
  builder_.phase(form_.paced ? 1 : static_cast<std::uint32_t>(schedule_.period), steps);
  const Status ended = builder_.finish(schedule_.bound);
  const std::size_t most = kMaxTableBytes / 2;
  if (ended != Status::kOk || (!too_large_ && entries_.size() <= most)) return ended;
  if (entries_.size() > most) {
    *parameters.excess = {"table entries", static_cast<std::uint32_t>(entries_.size()),
                          static_cast<std::uint32_t>(most), parameters.host_limits};
  }
  return Status::kTooLarge;
}

}  // namespace

Status write_node(const CollectiveParameters& parameters, const TimedSchedule& schedule, bool paced,
                  std::uint32_t node, const NodeRows& rows, Programs& programs,
                  TableExcess& excess) {
  // The form that comes nearest to the limits is reported.
  const auto is_nearer = [](const TableExcess& one, const TableExcess& other) {
    return other.table == nullptr ||
           std::uint64_t{one.rows} * other.limit < std::uint64_t{other.rows} * one.limit;
  };
  ESPALIER_ASSERT(node < programs.size());
  Status status = Status::kTooLarge;
  excess = {};
  TableExcess found;
  CollectiveParameters own = parameters;
  own.excess = &found;
  for (const bool shared_entries : {false, true}) {
    if (shared_entries && !schedule.share_entries) break;
    for (const std::size_t least : kLeastRows) {
      NodeWriter writer(schedule, {paced, least, shared_entries}, programs[node]);
      found = {};
      status = writer.write(own, node, rows);
      if (status == Status::kOk) programs[node].set_table(writer.entries());
      if (found.table != nullptr && is_nearer(found, excess)) excess = found;
      if (status != Status::kTooLarge || !paced) return status;
    }
  }
  return status;
}

}  // namespace espalier::lower
