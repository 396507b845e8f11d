#pragma once
// What one rank alone decides, for every N. Internal to collectives/verify.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives/verify/check.h"
#include "collectives/verify/streams.h"

namespace espalier::verify {

// Where a node's data comes from, by streams: the same for each of their blocks and every N.
struct RankFlow {
  // What each operand of a stream holds, by who wrote it: a stream, or kInput (the rank's own).
  static constexpr std::int32_t kInput = -1;
  struct Sources {
    std::int32_t a = kInput, b = kInput;
    bool known = false;
  };
  std::vector<Sources> sources;  // by stream
  std::vector<std::int32_t>
      results;  // by output segment, then first block: the last writer; -1: none
};

// Proves ranks alone: their instances name what exists, ports, hazards, and that each operand comes
// from the same action and block for every N. Ranks that do the same but for names and a shift in
// time are proven once. The argument stands in docs/verifier.md, "For every N".
class RankProofs {
 public:
  // `at`: topology and common are set, instances has a place for each rank; scratch otherwise. Adds
  // to `verdict` what it counts, and clears in_place where it does not hold.
  RankProofs(Case& at, Verdict& verdict) : at_(at), verdict_(verdict) {}

  // Null `flow` if the rank is refused (the result) or cannot be proven for every N (`why`).
  [[nodiscard]] Finding prove(std::uint32_t node, const Program& program, const Streams& streams,
                              const RankFlow*& flow, std::string& why);

  [[nodiscard]] std::int64_t most_blocks() const { return most_blocks_; }  // N* of all ranks
  [[nodiscard]] std::int64_t period() const { return period_; }

 private:
  [[nodiscard]] Finding prove_shape(std::uint32_t node, const Program& program,
                                    const Streams& streams, RankFlow& flow, std::string& why);
  [[nodiscard]] Finding check_blocks(std::uint32_t node, const Program& program,
                                     const Streams& streams, std::int64_t blocks, RankFlow& flow,
                                     std::string& why);
  [[nodiscard]] Finding check_residues(std::uint32_t node, const Program& program,
                                       const Streams& streams, std::string& why);
  [[nodiscard]] Finding follow_one(std::uint32_t node, const Instance& one, RankFlow& flow,
                                   std::string& why);
  [[nodiscard]] Finding follow(std::uint32_t node, const Streams& streams, RankFlow& flow,
                               std::string& why);
  [[nodiscard]] Finding source(std::uint32_t node, const Instance& reader, const PlaceAt& place,
                               std::int32_t& from, std::string& why);
  void write(const Instance& writer);
  Case& at_;
  Verdict& verdict_;
  std::unordered_map<std::string, RankFlow> shapes_;
  RankFlow alone_;                                // of a shape too large to be kept
  std::vector<const Instance*> slots_, outputs_;  // the last writers of each place
  const Streams* streams_ = nullptr;              // of the node at hand
  std::int64_t longest_ = 0;  // most steps from a write of a slot to a read of it
  std::int64_t most_blocks_ = 1, period_ = 1;
};

}  // namespace espalier::verify
