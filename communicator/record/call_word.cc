#include "communicator/record/call_word.h"

#include <algorithm>
#include <span>

#include "base/digest.h"
#include "collectives/schedule/selection.h"
#include "espalier/collectives/machine/operators.h"

namespace espalier::communicator {
namespace {

// The fields of a word, from its lowest bit.
struct Field {
  std::uint32_t first, bits;

  [[nodiscard]] std::uint64_t most() const { return (std::uint64_t{1} << bits) - 1; }
  [[nodiscard]] std::uint64_t of(std::uint64_t word) const { return word >> first & most(); }
  // A value that is too large becomes the largest, which stands for all of them.
  [[nodiscard]] std::uint64_t put(std::uint64_t value) const {
    return std::min(value, most()) << first;
  }
};
constexpr Field kCollective{0, 4}, kType{4, 5}, kOp{9, 4}, kRoot{13, 12}, kUnequal{25, 1},
    kCount{26, 38};

std::uint64_t hash_of(std::span<const std::uint64_t> counts) {
  std::uint64_t digest = kDigestSeed;
  for (const std::uint64_t count : counts) digest = digest_u64(digest, count);
  return digest % kCount.most();
}

// The caller is where others have a root.
bool has_own_word(Caller caller) {
  return caller == Caller::kSplit || caller == Caller::kNeighborCounts;
}

Caller caller_of(std::uint64_t word) {
  if (has_root(collective_of_word(word))) return Caller::kProgram;
  const auto caller = static_cast<Caller>(kRoot.of(word));
  return has_own_word(caller) ? caller : Caller::kProgram;
}

std::string name_of(std::uint64_t word) {
  return call_name(caller_of(word), collective_of_word(word));
}

std::string number_of(std::uint64_t word, const Field& field) {
  const std::uint64_t value = field.of(word);
  return (value == field.most() ? "at least " : "") + std::to_string(value);
}

}  // namespace

const char* call_name(Caller caller, Collective collective) {
  switch (caller) {
    case Caller::kProgram: break;
    case Caller::kSplit: return "split";
    case Caller::kNeighborCounts: return "neighbor_counts";
    case Caller::kJoin: return "join";
    case Caller::kRejoin: return "rejoin";
    case Caller::kAccept: return "accept";
    case Caller::kLeave: return "leave";
  }
  return collective_name(collective);
}

std::uint64_t call_word(const WordFields& call) {
  const bool combines = combines_operands(call.collective);
  const bool is_unequal = call.own_counts || !call.counts.empty();
  const std::uint64_t caller =
      has_own_word(call.caller) ? static_cast<std::uint64_t>(call.caller) : 0;
  const std::uint64_t root = has_root(call.collective) ? call.root : caller;
  const std::uint64_t count =
      call.own_counts ? 0 : (is_unequal ? hash_of(call.counts) : call.count);
  return kCollective.put(static_cast<std::uint64_t>(std::int64_t{call.collective})) |
         kType.put(static_cast<std::uint64_t>(call.type)) |
         kOp.put(combines ? static_cast<std::uint64_t>(call.op) : 0) | kRoot.put(root) |
         kUnequal.put(is_unequal ? 1 : 0) | kCount.put(count);
}

std::string call_text(std::uint64_t word) {
  const std::uint64_t number = kCollective.of(word);
  if (number == kLeavingWord) return "is ending the communicator";
  const Collective collective(static_cast<std::int64_t>(number));
  std::string text = "called " + name_of(word);
  if (collective == Collective::kBarrier || caller_of(word) != Caller::kProgram) return text;
  text +=
      kUnequal.of(word) != 0 ? " with a count for each rank, of" : " of " + number_of(word, kCount);
  text += std::string(" ") + type_name(static_cast<Type>(kType.of(word)));
  if (combines_operands(collective)) {
    text += std::string(", ") + op_name(static_cast<Op>(kOp.of(word)));
  }
  if (has_root(collective)) text += ", root " + number_of(word, kRoot);
  return text;
}

Collective collective_of_word(std::uint64_t word) {
  return Collective(static_cast<std::int64_t>(kCollective.of(word)));
}

bool has_same_type(std::uint64_t a, std::uint64_t b) { return kType.of(a) == kType.of(b); }

std::vector<WordDifference> differences(std::uint64_t a, std::uint64_t b) {
  std::vector<WordDifference> found;
  const auto add = [&](const char* field, const std::string& of_a, const std::string& of_b) {
    if (of_a != of_b) found.push_back({field, of_a, of_b});
  };
  const Collective collective_a = collective_of_word(a), collective_b = collective_of_word(b);
  add("collective", name_of(a), name_of(b));
  if (caller_of(a) != Caller::kProgram || caller_of(b) != Caller::kProgram) return found;
  if (has_root(collective_a) && has_root(collective_b)) {
    add("root", number_of(a, kRoot), number_of(b, kRoot));
  }
  if (collective_a == Collective::kBarrier || collective_b == Collective::kBarrier) return found;
  const bool is_unequal_a = kUnequal.of(a) != 0, is_unequal_b = kUnequal.of(b) != 0;
  if (!is_unequal_a || !is_unequal_b) {
    const auto count_of = [](std::uint64_t word, bool is_unequal) {
      return is_unequal ? "one for each rank" : number_of(word, kCount);
    };
    add("count", count_of(a, is_unequal_a), count_of(b, is_unequal_b));
  }
  add("type", type_name(static_cast<Type>(kType.of(a))), type_name(static_cast<Type>(kType.of(b))));
  if (combines_operands(collective_a) && combines_operands(collective_b)) {
    add("operator", op_name(static_cast<Op>(kOp.of(a))), op_name(static_cast<Op>(kOp.of(b))));
  }
  return found;
}

CallParts parts_of(std::uint64_t word) {
  const std::uint64_t number = kCollective.of(word);
  if (number == kLeavingWord) return {.collective = "leave"};
  const Collective collective(static_cast<std::int64_t>(number));
  CallParts parts{.collective = name_of(word)};
  if (collective == Collective::kBarrier || caller_of(word) != Caller::kProgram) return parts;
  parts.has_counts = kUnequal.of(word) != 0;
  parts.count = parts.has_counts ? 0 : kCount.of(word);
  parts.type = type_name(static_cast<Type>(kType.of(word)));
  if (combines_operands(collective)) parts.op = op_name(static_cast<Op>(kOp.of(word)));
  parts.root = has_root(collective) ? static_cast<std::uint32_t>(kRoot.of(word)) : 0;
  return parts;
}

std::string hidden_difference(std::uint64_t a, std::uint64_t b) {
  if (a == b) return "the schedule, the size of a custom element or a custom operator differs";
  if (kUnequal.of(a) != 0 && kUnequal.of(b) != 0 && call_text(a) == call_text(b)) {
    return "the counts differ";
  }
  return "";
}

}  // namespace espalier::communicator
