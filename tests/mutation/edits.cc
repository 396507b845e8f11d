#include "tests/mutation/edits.h"

#include <cstring>
#include <type_traits>

namespace espalier::mutation {
namespace {

template <typename Enum>
struct Last;
template <>
struct Last<espalier_Collective> {
  static constexpr int kValue = _espalier_Collective_MAX;
};
template <>
struct Last<espalier_PortModel> {
  static constexpr int kValue = _espalier_PortModel_MAX;
};
template <>
struct Last<espalier_ContentionGuarantee> {
  static constexpr int kValue = _espalier_ContentionGuarantee_MAX;
};
template <>
struct Last<espalier_ActionKind> {
  static constexpr int kValue = _espalier_ActionKind_MAX;
};
template <>
struct Last<espalier_Buffer> {
  static constexpr int kValue = _espalier_Buffer_MAX;
};

// Walks over the fields, counts the edits, and makes the wanted one. Its overloads are named after
// nanopb's types of fields (FIELDLIST in schedule.pb.h).
class Walk {
 public:
  Walk(std::size_t wanted, Edit* edit) : wanted_(wanted), edit_(edit) {}

  [[nodiscard]] std::size_t edits() const { return next_; }
  [[nodiscard]] bool changed() const { return changed_; }

  template <typename Number>
  void number(const char* name, Number& value) {
    const Number old = value;
    set(name, value, static_cast<Number>(old + 1));
    set(name, value, static_cast<Number>(old - 1));
    set(name, value, Number{0});
  }
  // NOLINTBEGIN(readability-identifier-naming): nanopb's names of types
  void UINT32(const char* name, std::uint32_t& value) { number(name, value); }
  void UINT32(const char* name, std::uint16_t& value) { number(name, value); }
  void UINT32(const char* name, std::uint8_t& value) { number(name, value); }
  void SINT32(const char* name, std::int32_t& value) { number(name, value); }
  void UINT64(const char* name, std::uint64_t& value) { number(name, value); }
  void FIXED64(const char* name, std::uint64_t& value) { number(name, value); }
  void BOOL(const char* name, bool& value) { set(name, value, !value); }
  template <typename Enum>
  void UENUM(const char* name, Enum& value) {
    for (int other = 0; other <= Last<Enum>::kValue; ++other) {
      set(name, value, static_cast<Enum>(other));
    }
  }
  template <std::size_t Size>
  void STRING(const char* name, char (&text)[Size]) {
    set(name, text[0], static_cast<char>(text[0] + 1));
  }

  // The entries that terms look up.
  void BYTES(const char* name, decltype(Program::table)& table) {
    if (table.size == 0 || !with_entries_) return;
    const auto entries = [&](std::uint32_t from, std::uint32_t to) {
      entries_.assign(table.bytes + from, table.bytes + to);
      table.bytes = entries_.data();
      table.size = to - from;
      changed_ = true;
    };
    if (mine(name, "first entry cut")) return entries(2, table.size);
    if (mine(name, "last entry cut")) return entries(0, table.size - 2);
    for (std::uint32_t i = 0; i < table.size; i += 2) {
      for (const int by : {1, -1}) {
        const char* sign = by > 0 ? "+1" : "-1";
        if (!mine(name, "entry " + std::to_string(i / 2) + " " + sign)) continue;
        entries(0, table.size);
        const int entry = table_entry(table.bytes, i / 2) + by;
        entries_[i] = static_cast<std::uint8_t>(entry & 255);
        entries_[i + 1] = static_cast<std::uint8_t>((entry >> 8) & 255);
        return;
      }
    }
  }
  // NOLINTEND(readability-identifier-naming)

  template <typename Message>
  void optional(const char* name, bool& has, Message& message) {
    BOOL(("has_" + std::string(name)).c_str(), has);
    if (has) part(name, message);
  }
  // Rows are removed, doubled, swapped, then edited each.
  template <typename Row, typename Size, std::size_t Capacity>
  void table(const char* name, Row (&rows)[Capacity], Size& size) {
    for (Size at = 0; at < size; ++at) {
      if (mine(name, "row " + std::to_string(at) + " removed")) {
        std::memmove(&rows[at], &rows[at + 1], (size - at - 1u) * sizeof(Row));
        --size;
        changed_ = true;
        return;
      }
      if (mine(name, "row " + std::to_string(at) + " doubled") && size < Capacity) {
        std::memmove(&rows[at + 1], &rows[at], static_cast<std::size_t>(size - at) * sizeof(Row));
        ++size;
        changed_ = true;
        return;
      }
      if (at + 1 < size && mine(name, "row " + std::to_string(at) + " swapped with the next")) {
        const Row row = rows[at];
        rows[at] = rows[at + 1];
        rows[at + 1] = row;
        changed_ = true;
        return;
      }
    }
    for (Size at = 0; at < size; ++at) {
      row_ = "row " + std::to_string(at) + ": ";
      if constexpr (std::is_integral_v<Row>) {
        number(name, rows[at]);
      } else {
        part(name, rows[at]);
      }
      row_.clear();
    }
  }
  template <typename Message>
  void part(const std::string& name, Message& message) {
    const std::string outer = prefix_;
    prefix_ += name + ".";
    fields(message);
    prefix_ = outer;
  }

// NOLINTBEGIN(bugprone-macro-parentheses): names of fields
#define ESPALIER_SINGULAR(message, type, name) type(#name, message.name);
#define ESPALIER_OPTIONAL(message, type, name) optional(#name, message.has_##name, message.name);
#define ESPALIER_REPEATED(message, type, name) table(#name, message.name, message.name##_count);
#define ESPALIER_FIELD(message, storage, rule, type, name, tag) ESPALIER_##rule(message, type, name)
#define ESPALIER_HEADER_SINGULAR(message, type, name) type(#name, message.name);
#define ESPALIER_HEADER_REPEATED(message, type, name)
#define ESPALIER_HEADER_FIELD(message, storage, rule, type, name, tag) \
  ESPALIER_HEADER_##rule(message, type, name)
  // NOLINTEND(bugprone-macro-parentheses)

  void fields(Count& count) { espalier_Count_FIELDLIST(ESPALIER_FIELD, count) }
  void fields(Term& term) { espalier_Term_FIELDLIST(ESPALIER_FIELD, term) }
  void fields(Index& index) { espalier_Index_FIELDLIST(ESPALIER_FIELD, index) }
  void fields(Operand& operand) { espalier_Operand_FIELDLIST(ESPALIER_FIELD, operand) }
  void fields(Action& action) { espalier_Action_FIELDLIST(ESPALIER_FIELD, action) }
  void fields(Phase& phase) { espalier_Phase_FIELDLIST(ESPALIER_FIELD, phase) }
  void fields(BlockRule& rule) { espalier_BlockRule_FIELDLIST(ESPALIER_FIELD, rule) }
  void fields(Program& program) { espalier_Program_FIELDLIST(ESPALIER_FIELD, program) }

  void shared(Program& program) {
    // Looked up first: an edit of a reference must not lead to another count here.
    Count& steps = program.counts[program.steps_ref];
    Count& bound = program.counts[program.bound_ref];
    Count* phases[sizeof program.phases / sizeof program.phases[0]];
    const std::uint32_t phases_count = program.phases_count;
    for (std::uint32_t k = 0; k < phases_count; ++k) {
      phases[k] = &program.counts[program.phases[k].steps_ref];
    }
    with_entries_ = false;  // each node has its own
    espalier_Program_FIELDLIST(ESPALIER_HEADER_FIELD, program);
    table("blocks", program.blocks, program.blocks_count);
    table("phases", program.phases, program.phases_count);
    part("claimed steps", steps);
    part("claimed bound", bound);
    for (std::uint32_t k = 0; k < phases_count; ++k) part("claimed phase", *phases[k]);
  }

 private:
  bool mine(const char* name, const std::string& change) {
    if (next_++ != wanted_) return false;
    if (edit_ != nullptr) *edit_ = {prefix_ + name, row_ + change};
    return true;
  }
  template <typename Value>
  void set(const char* name, Value& value, Value other) {
    if (next_++ != wanted_) return;
    const auto text = [](Value v) { return std::to_string(static_cast<long long>(v)); };
    if (edit_ != nullptr) *edit_ = {prefix_ + name, row_ + text(value) + " -> " + text(other)};
    changed_ = value != other;
    value = other;
  }

  std::size_t wanted_;
  Edit* edit_;
  std::size_t next_ = 0;
  bool changed_ = false;
  bool with_entries_ = true;
  std::string prefix_, row_;
  std::vector<std::uint8_t> entries_;  // of the table, once it is edited
};

void walk(Walk& walker, Program& program, Scope scope) {
  if (scope == Scope::kRank) {
    walker.fields(program);
  } else {
    walker.shared(program);
  }
}

}  // namespace

std::size_t count_edits(const Program& program, Scope scope) {
  OwnedProgram copy = program;
  Walk walker(static_cast<std::size_t>(-1), nullptr);
  walk(walker, copy, scope);
  return walker.edits();
}

bool make_edit(OwnedProgram& program, Scope scope, std::size_t at, Edit& edit) {
  Walk walker(at, &edit);
  walk(walker, program, scope);
  program.keep_table();  // copies the entries if the walker edited and owns them
  return walker.changed();
}

}  // namespace espalier::mutation
