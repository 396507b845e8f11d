#pragma once
// A script of faults to inject: a short text that people write and logs repeat.
//
//   drop link=2 message=5; delay link=0 message=3 ns=1000000; kill after=100
//   random seed=7 drop=0.001 delay=0.1 ns=50000
//
// Statements are separated by ';'. A link number is a link of the endpoint. Message numbers count
// the sends posted on the link from 0, over the endpoint's whole lifetime.
//   drop, duplicate      link= message=
//   reorder              link= message= [ns=]   sends it after the next message of its link, or
//                                               when none was posted for ns (default 1000000)
//   corrupt              link= message= [bit=]  flips this bit of the payload, modulo its length
//   delay                link= message= ns=     also delays all later messages of its link
//   kill                 after=                 at the post (send or receive) after this many posts
//   random               seed= [drop= duplicate= reorder= corrupt= delay=] [ns=]  probabilities
//                                               per message

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/result.h"

namespace espalier::fault {

// The statements above except `random`: kDrop, kDuplicate, kReorder, kCorrupt, kDelay, kKill.
enum class Kind : std::uint8_t { kDrop, kDuplicate, kReorder, kCorrupt, kDelay, kKill };
inline constexpr std::uint32_t kMessageKinds = 5;  // the kinds before kKill

// One fault: a statement of the script. Each kind uses the fields that its statement has.
struct Fault {
  Kind kind = Kind::kDrop;
  std::uint32_t link = 0;
  std::uint64_t message = 0;
  std::uint64_t ns = 1'000'000;  // kDelay, kReorder
  std::uint64_t bit = 0;         // kCorrupt
  std::uint64_t after = 0;       // kKill
};

// A parsed script.
struct Faults {
  std::vector<Fault> script;
  double chance[kMessageKinds] = {};  // of each kind, for messages that the script does not name
  std::uint64_t seed = 0;
  std::uint64_t ns = 1'000'000;  // random kDelay and kReorder
};

// Parses a script. The error names the statement, its fault and the correct form.
[[nodiscard]] Result<Faults> parse_faults(const std::string& text);

[[nodiscard]] const char* kind_name(Kind kind);  // "drop"

}  // namespace espalier::fault
