#pragma once
// How the calls of a mismatch differ, the same on all ranks. Their words (record/call_word.h)
// travel in the first note of the failure. The second note has the algorithms and what belongs to
// custom operators. Further notes find the first different count of two vectors of counts. Host
// only.

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "communicator/failure/call_exchange.h"
#include "espalier/internal/collectives/schedule/collective.h"

namespace espalier::communicator {

class CallComparison {
 public:
  // The exchange of a rank.
  struct Place {
    Endpoint* endpoint = nullptr;
    std::span<const std::uint32_t> links = {};
    std::uint64_t within_ns = 0;  // of exchange_note()
    std::uint32_t rank = 0, ranks = 0;
    const CallHistory* history = nullptr;
    // The counts of the last call of the history, if it is not complete and has one for each rank.
    std::span<const std::uint64_t> counts = {};
    bool has_own_counts = false;  // of `counts` this rank knows only its own
    Collective collective = Collective::kNone;
    std::uint32_t root = 0;
  };

  // Learns the rest from the other ranks. `first`: the first note. Allocates nothing.
  void learn(const Place& place, const Cause& cause, const FailureNote& first);

  // Returns "; count: 50 on rank 2, 100 on rank 3; root: ..."; empty if no difference is known.
  [[nodiscard]] std::string text(const Cause& cause, const MismatchedCalls& calls) const;

 private:
  // Bytes of an algorithm's name. A longer one, the path of a file, is cut at its beginning.
  static constexpr std::uint32_t kNameBytes = 47;
  // Counts, or digests of several, in a half of a note.
  static constexpr std::uint32_t kParts = 7;

  // What one of the two ranks says of its call.
  struct Details {
    bool has_algorithm = false;
    bool has_counts = false;     // the whole vector
    bool has_flows = false;      // its own counts only
    std::uint64_t operands = 0;  // Operation::operands
    std::uint32_t schedule = 0;  // digest
    std::array<char, kNameBytes + 1> algorithm = {};
    // Elements from the cause's detector to its peer, and back.
    std::array<std::uint64_t, 2> flows = {};

    [[nodiscard]] FailureNote::Half to_bytes() const;
    [[nodiscard]] static Details of_bytes(const FailureNote::Half& bytes);
  };
  // A part of a vector of counts: all of it at first.
  struct Range {
    std::uint64_t begin = 0, end = 0;
    [[nodiscard]] std::uint64_t start_of(std::uint64_t part) const;
    // Whether each part is one count.
    [[nodiscard]] bool is_last() const { return end - begin <= kParts; }
  };

  [[nodiscard]] static Details own_details(const Place& place, const Cause& cause,
                                           std::uint32_t back);
  [[nodiscard]] static FailureNote::Half own_counts(const Place& place, const Range& range);
  void find_count(const Place& place, const Cause& cause, std::uint64_t entries);

  bool is_known_ = false;
  std::array<Details, 2> details_;  // of the cause's detector and of its peer
  std::uint32_t ranks_ = 0;
  bool has_count_ = false;         // the next two are known
  std::uint64_t count_index_ = 0;  // of the first different count
  std::array<std::uint64_t, 2> counts_ = {};
};

}  // namespace espalier::communicator
