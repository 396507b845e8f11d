#include "communicator/failure/call_comparison.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/digest.h"
#include "communicator/record/call_word.h"
#include "espalier/internal/collectives/schedule/element_counts.h"

namespace espalier::communicator {
namespace {

constexpr std::uint8_t kAlgorithm = 1, kCounts = 2, kFlows = 4;
// Where the parts of Details are in a half of a note.
constexpr std::uint32_t kScheduleAt = 8, kFlagsAt = 12, kNameAt = 13;

using Half = FailureNote::Half;

void put(Half& bytes, std::uint32_t position, std::uint64_t value, std::uint32_t size) {
  for (std::uint32_t i = 0; i < size; ++i) {
    bytes[position + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

std::uint64_t take(const Half& bytes, std::uint32_t position, std::uint32_t size) {
  std::uint64_t value = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    value |= std::uint64_t{bytes[position + i]} << (8 * i);
  }
  return value;
}

// Whether a rank told what it called.
bool is_call(std::uint64_t word) { return word != 0 && word != kLeavingWord; }

std::string hex(std::uint32_t value) {
  char text[9];
  std::snprintf(text, sizeof(text), "%08x", value);
  return text;
}

// The elements that go from rank `from` to rank `to`, as far as the counts say.
std::uint64_t flow(const CallComparison::Place& call, std::uint32_t from, std::uint32_t to) {
  if (call.collective == Collective::kScatter) return from == call.root ? call.counts[to] : 0;
  if (call.collective == Collective::kGather) return to == call.root ? call.counts[from] : 0;
  if (call.collective != Collective::kAllToAll) return 0;
  return call.counts[std::size_t{from} * call.ranks + to];
}

// For a rank that did not learn more.
std::string hidden_text(const MismatchedCalls& calls) {
  const std::string hidden = hidden_difference(calls.detector, calls.peer);
  return hidden.empty() ? "" : "; " + hidden;
}

// The differences so far, each with both values.
class DifferenceText {
 public:
  explicit DifferenceText(const Cause& cause) : cause_(cause) {}
  void add(const std::string& name, const std::string& detector, const std::string& peer) {
    if (detector == peer) return;
    text_ += "; " + name + ": " + detector + " on rank " + std::to_string(cause_.detector) + ", " +
             peer + " on rank " + std::to_string(cause_.peer);
  }
  void add(const std::string& name, std::uint64_t detector, std::uint64_t peer) {
    add(name, std::to_string(detector), std::to_string(peer));
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  const Cause& cause_;
  std::string text_;
};

}  // namespace

Half CallComparison::Details::to_bytes() const {
  Half bytes = {};
  put(bytes, 0, operands, 8);
  put(bytes, kScheduleAt, schedule, 4);
  bytes[kFlagsAt] = static_cast<std::uint8_t>(
      (has_algorithm ? kAlgorithm : 0) | (has_counts ? kCounts : 0) | (has_flows ? kFlows : 0));
  if (has_flows) {
    put(bytes, kNameAt, flows[0], 8);
    put(bytes, kNameAt + 8, flows[1], 8);
  } else {
    std::memcpy(bytes.data() + kNameAt, algorithm.data(), kNameBytes);
  }
  return bytes;
}

CallComparison::Details CallComparison::Details::of_bytes(const Half& bytes) {
  static_assert(kNameAt + kNameBytes == std::tuple_size_v<Half>);
  Details details;
  details.operands = take(bytes, 0, 8);
  details.schedule = static_cast<std::uint32_t>(take(bytes, kScheduleAt, 4));
  details.has_algorithm = (bytes[kFlagsAt] & kAlgorithm) != 0;
  details.has_counts = (bytes[kFlagsAt] & kCounts) != 0;
  details.has_flows = (bytes[kFlagsAt] & kFlows) != 0;
  if (details.has_flows) {
    details.flows = {take(bytes, kNameAt, 8), take(bytes, kNameAt + 8, 8)};
  } else {
    std::memcpy(details.algorithm.data(), bytes.data() + kNameAt, kNameBytes);
  }
  return details;
}

std::uint64_t CallComparison::Range::start_of(std::uint64_t part) const {
  return is_last() ? std::min(begin + part, end) : begin + (end - begin) * part / kParts;
}

CallComparison::Details CallComparison::own_details(const Place& place, const Cause& cause,
                                                    std::uint32_t back) {
  Details details;
  const CallExtra& extra = place.history->extra(back);
  details.operands = extra.operands;
  if (extra.algorithm != nullptr) {
    details.has_algorithm = true;
    details.schedule = static_cast<std::uint32_t>(extra.program->schedule_digest & UINT32_MAX);
    const std::string& name = *extra.algorithm;
    if (name.size() <= kNameBytes) {
      std::copy(name.begin(), name.end(), details.algorithm.begin());
    } else {
      std::fill_n(details.algorithm.begin(), 3, '.');
      std::copy(name.end() - (kNameBytes - 3), name.end(), details.algorithm.begin() + 3);
    }
  }
  if (back != 0 || place.counts.empty()) return details;
  details.has_counts = !place.has_own_counts;
  details.has_flows = place.has_own_counts;
  details.flows = {flow(place, cause.detector, cause.peer),
                   flow(place, cause.peer, cause.detector)};
  return details;
}

Half CallComparison::own_counts(const Place& place, const Range& range) {
  Half bytes = {};
  for (std::uint32_t part = 0; part < kParts; ++part) {
    std::uint64_t value = range.is_last() ? 0 : kDigestSeed;
    for (std::uint64_t i = range.start_of(part); i < range.start_of(part + 1); ++i) {
      const std::uint64_t count = place.counts[i];
      value = range.is_last() ? count : digest_u64(value, count);
    }
    put(bytes, 8 * part, value, 8);
  }
  return bytes;
}

void CallComparison::find_count(const Place& place, const Cause& cause, std::uint64_t entries) {
  const bool is_named = place.rank == cause.detector || place.rank == cause.peer;
  Range range = {0, entries};
  for (std::uint32_t round = 2;; ++round) {
    FailureNote note;
    note.make_halves(cause, place.rank, is_named ? own_counts(place, range) : Half());
    exchange_note(*place.endpoint, place.links, note, place.within_ns, round);
    if (!note.is_complete()) return;
    const Half detector = note.half(0), peer = note.half(1);
    std::uint32_t part = 0;
    while (part < kParts && take(detector, 8 * part, 8) == take(peer, 8 * part, 8)) ++part;
    if (part == kParts) return;
    if (range.is_last()) {
      has_count_ = true;
      count_index_ = range.begin + part;
      counts_ = {take(detector, 8 * part, 8), take(peer, 8 * part, 8)};
      return;
    }
    range = {range.start_of(part), range.start_of(part + 1)};
  }
}

void CallComparison::learn(const Place& place, const Cause& cause, const FailureNote& first) {
  const MismatchedCalls calls = first.calls();
  if (!first.is_complete() || !is_call(calls.detector) || !is_call(calls.peer)) return;
  Half own = {};
  if (place.rank == cause.detector) {
    own = own_details(place, cause, calls.detector_back).to_bytes();
  } else if (place.rank == cause.peer) {
    own = own_details(place, cause, calls.peer_back).to_bytes();
  }
  FailureNote note;
  note.make_halves(cause, place.rank, own);
  exchange_note(*place.endpoint, place.links, note, place.within_ns, 1);
  if (!note.is_complete()) return;
  is_known_ = true;
  ranks_ = place.ranks;
  details_ = {Details::of_bytes(note.half(0)), Details::of_bytes(note.half(1))};
  const Collective collective = collective_of_word(calls.detector);
  if (collective != collective_of_word(calls.peer)) return;
  if (!details_[0].has_counts || !details_[1].has_counts) return;
  find_count(place, cause, unequal_entries(collective, place.ranks));
}

std::string CallComparison::text(const Cause& cause, const MismatchedCalls& calls) const {
  if (!is_call(calls.detector) || !is_call(calls.peer)) return "";
  DifferenceText lines(cause);
  for (const WordDifference& each : differences(calls.detector, calls.peer)) {
    lines.add(each.field, each.a, each.b);
  }
  if (!is_known_) {
    return lines.text().empty() ? hidden_text(calls) : lines.text();
  }
  const auto& [detector, peer] = details_;
  const Collective collective = collective_of_word(calls.detector);
  const bool is_same = collective == collective_of_word(calls.peer);
  if (has_count_) {
    const std::string at = collective == Collective::kAllToAll
                               ? " from rank " + std::to_string(count_index_ / ranks_) +
                                     " to rank " + std::to_string(count_index_ % ranks_)
                               : " of rank " + std::to_string(count_index_);
    lines.add("count" + at, counts_[0], counts_[1]);
  }
  if (detector.has_flows && peer.has_flows) {
    const std::string ends[] = {std::to_string(cause.detector), std::to_string(cause.peer)};
    lines.add("count from rank " + ends[0] + " to rank " + ends[1], detector.flows[0],
              peer.flows[0]);
    lines.add("count from rank " + ends[1] + " to rank " + ends[0], detector.flows[1],
              peer.flows[1]);
  }
  if (is_same && has_same_type(calls.detector, calls.peer)) {
    lines.add("bytes of an element", detector.operands & UINT32_MAX, peer.operands & UINT32_MAX);
    lines.add("number of the operator", detector.operands >> 32, peer.operands >> 32);
  }
  if (detector.has_algorithm && peer.has_algorithm && !detector.has_flows && !peer.has_flows) {
    lines.add("algorithm", detector.algorithm.data(), peer.algorithm.data());
    // Equal names: of other files or models.
    if (lines.text().empty()) {
      lines.add("schedule, by its file or model", hex(detector.schedule), hex(peer.schedule));
    }
  }
  return lines.text();
}

}  // namespace espalier::communicator
