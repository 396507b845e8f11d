#include "communicator/call_check.h"

#include <algorithm>
#include <string>

#include "base/counted.h"
#include "base/try.h"
#include "collectives/schedule/selection.h"
#include "espalier/collectives/machine/operators.h"
#include "espalier/collectives/schedule/program.h"

namespace espalier::communicator {
namespace {

std::string name_of(const Call& call) { return collective_name(call.collective); }

// A buffer of a call at this rank, in elements of the whole message.
struct Part {
  bool is_input = false;
  const char* name = nullptr;
  const void* bytes = nullptr;
  std::uint64_t room = 0;
  std::uint64_t elements = 0, offset = 0;
};

// Returns where this rank's own part begins in the whole message, in elements.
std::uint64_t own_offset(const Call& call, const Place& place) {
  if (call.counts.empty()) return call.count * place.rank;
  std::uint64_t sum = 0;
  for (std::uint32_t other = 0; other < place.rank; ++other) sum += call.counts[other];
  return sum;
}

Part part_of(const Call& call, Extent extent, const Place& place, bool is_input) {
  Part part{.is_input = is_input,
            .name = is_input ? "send" : "receive",
            .bytes = is_input ? call.send : call.receive,
            .room = is_input ? call.send_room : call.receive_room,
            .elements = elements_of(extent, call, place, is_input)};
  if (extent == Extent::kOwn) part.offset = own_offset(call, place);
  return part;
}

// Checks the size of a buffer. A longer `send` would lose its last elements without a word.
Result<void> check_room(const Call& call, const Part& part, const Place& place, bool is_exact) {
  const bool is_known = part.room != Call::kUnknownRoom;
  const auto refuse = [&](const std::string& expected) {
    return fail(name_of(call) + ": `" + part.name + "` has " + counted(part.room, "element") +
                "; expected " + expected);
  };
  if (is_known && part.is_input && call.collective == Collective::kAllToAll &&
      call.counts.empty() && part.room % place.ranks != 0) {
    return refuse("a multiple of " + std::to_string(place.ranks));
  }
  if (is_known && (part.room < part.elements || (is_exact && part.room > part.elements))) {
    return refuse(std::to_string(part.elements));
  }
  if (part.bytes != nullptr || part.elements == 0) return {};
  return fail(name_of(call) + ": `" + part.name + "` is null; expected " +
              counted(part.elements, "element"));
}

// Checks that two buffers have the same place in the whole message, or no memory in common.
Result<void> check_overlap(const Call& call, const Part& send, const Part& receive) {
  if (send.elements == 0 || receive.elements == 0) return {};
  const std::uint64_t size = element_bytes(call.op);
  const auto from_send = reinterpret_cast<std::uintptr_t>(send.bytes);
  const auto from_receive = reinterpret_cast<std::uintptr_t>(receive.bytes);
  const bool is_shared = from_send < from_receive + receive.elements * size &&
                         from_receive < from_send + send.elements * size;
  if (!is_shared || from_send - send.offset * size == from_receive - receive.offset * size) {
    return {};
  }
  std::string expected = "the same memory";
  if (send.elements < receive.elements) expected = "`send` at this rank's part of `receive`";
  if (send.elements > receive.elements) expected = "`receive` at this rank's part of `send`";
  if (call.collective == Collective::kAllToAll) expected = "the same memory";
  return fail(name_of(call) + ": `send` and `receive` overlap; expected " + expected +
              " or none in common");
}

// Why the operator cannot combine elements of its type, and what can.
std::string operator_fault(const Operator& op) {
  if (op.op == Op::kCustom) {
    return "the custom operator has no function; expected Operator::custom, in C "
           "espalier_call::combine";
  }
  std::string expected;
  for (auto each = Op::kSum; each < Op::kCustom; each = Op(static_cast<int>(each) + 1)) {
    if (!can_combine({.op = each, .type = op.type, .element_bytes = op.element_bytes})) continue;
    expected += (expected.empty() ? "" : ", ") + std::string(op_name(each));
  }
  return std::string("operator ") + op_name(op.op) + " is not defined for type " +
         type_name(op.type) + "; expected " + expected + (expected.empty() ? "" : " or ") +
         op_name(Op::kCustom);
}

// Whether a whole message of parts of the largest count exceeds limits, as make_layout() has it.
bool is_too_large(const Call& call, std::uint32_t ranks) {
  const std::uint64_t parts = counts_per_rank(call.collective) ? ranks : 1;
  return largest_count(call) > kMaxMessageBytes / element_bytes(call.op) / parts;
}

}  // namespace

std::uint64_t largest_count(const Call& call) {
  return call.counts.empty() ? call.count : std::ranges::max(call.counts);
}

std::uint64_t elements_of(Extent extent, const Call& call, const Place& place, bool is_input) {
  if (extent == Extent::kNothing) return 0;
  if (call.counts.empty()) {
    const bool whole = extent == Extent::kWhole && counts_per_rank(call.collective);
    return whole ? call.count * place.ranks : call.count;
  }
  std::uint64_t sum = 0;
  for (std::uint32_t other = 0; other < place.ranks; ++other) {
    if (call.collective == Collective::kAllToAll) {
      const std::size_t entry = is_input ? std::size_t{place.rank} * place.ranks + other
                                         : std::size_t{other} * place.ranks + place.rank;
      sum += call.counts[entry];
    } else if (extent == Extent::kWhole || other == place.rank) {
      sum += call.counts[other];
    }
  }
  return sum;
}

Result<void> check_arguments(const Call& call, std::uint32_t ranks) {
  if (call.collective < Collective::kBroadcast || call.collective > Collective::kBarrier) {
    return fail("a call without a collective; expected one of namespace call");
  }
  const std::string name = name_of(call);
  if (call.root >= ranks) {
    return fail(name + ": root " + std::to_string(call.root) + " of " + counted(ranks, "rank"));
  }
  if (call.root != 0 && !has_root(call.collective)) return fail(name + " has no root");
  if (element_bytes(call.op) == 0) {
    return fail(name + ": the element type is unknown or has no size");
  }
  if (combines_operands(call.collective) && call.is_bool && call.op.op == Op::kSum) {
    return fail(name + ": operator sum is not defined for type bool; expected max or min");
  }
  if (combines_operands(call.collective) && !can_combine(call.op)) {
    return fail(name + ": " + operator_fault(call.op));
  }
  const std::uint64_t entries = unequal_entries(call.collective, ranks);
  const bool takes_counts = counts_per_rank(call.collective);
  if ((call.needs_counts || !call.counts.empty()) &&
      !(takes_counts && call.counts.size() == entries)) {
    return fail(name + ": " + counted(call.counts.size(), "count") + "; expected " +
                (takes_counts ? std::to_string(entries) : "none"));
  }
  if (is_too_large(call, ranks)) return fail(name + ": " + status_name(Status::kTooLarge));
  return {};
}

Result<void> check_memory(const Call& call, const CallExtents& extents, const Place& place) {
  const Part send = part_of(call, extents.input, place, true);
  const Part receive = part_of(call, extents.output, place, false);
  if (extents.input != Extent::kNothing) {
    ESPALIER_TRY(check_room(call, send, place, call.send != call.receive));
  }
  if (extents.output != Extent::kNothing) {
    ESPALIER_TRY(check_room(call, receive, place, false));
  }
  return check_overlap(call, send, receive);
}

}  // namespace espalier::communicator
