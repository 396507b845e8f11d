#pragma once
// Ranks that wait in accept() or rejoin(), and those for which they wait. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "communicator/record/diagnosis.h"

namespace espalier::record {

// "accept()", "rejoin()"; empty: the rank waits in neither.
[[nodiscard]] std::string agreement_text(const RankView& rank);

// The ranks for which the rank waits in accept() or rejoin(): those of its communicator that have
// a record and have not called it, ascending.
[[nodiscard]] std::vector<std::uint32_t> awaited_ranks(const JobView& job, const RankView& rank);
// For whom the rank waits there: "rank 3", "2 newcomers"; empty: that is not known.
[[nodiscard]] std::string awaited_text(const JobView& job, const RankView& rank);

// What these ranks do in place of the call: "rank 3 has not called accept(): computing for 12 s".
// Empty: none of them has a record, or `waiting` waits in neither call.
[[nodiscard]] std::string absent_text(const JobView& job, const RankView& waiting,
                                      const std::vector<std::uint32_t>& ranks);

// Adds the ranks, and the newcomers, for which others have waited for 1 s.
void find_agreements(const JobView& job, Diagnosis& found);

}  // namespace espalier::record
