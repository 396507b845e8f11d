#pragma once
// One seed of the campaign: a random schedule, and the same with one program broken, before the
// verifier and before brute force.

#include <cstdint>
#include <string>
#include <vector>

namespace espalier::random {

enum class Answer : std::uint8_t {
  kNone,      // there is no such schedule: the dice led to none, or nothing could be broken
  kUnloaded,  // the loader refuses a program
  kRefused,   // the verifier does
  kLimited,   // valid, but not for every N
  kAccepted,  // proven for every N
};

struct Opinion {
  Answer answer = Answer::kNone;
  std::string reason;  // of the verifier, without numbers; empty where it accepts
  std::string wrong;   // what brute force finds; empty: nothing
  std::string line;    // the verifier's
};

struct Trial {
  std::uint64_t seed = 0;
  bool pipelined = false, differ = false;  // differ: in strides, paces or instances
  Opinion whole, broken;
  std::string name;         // "broadcast on complete:4, window 2"
  std::string broken_kind;  // empty: it was not broken
  std::string broken_where;
  std::uint64_t runs = 0, drifts = 0, windows = 0;
  // Schedule files of what is accepted and wrong.
  std::vector<std::uint8_t> whole_file, broken_file;

  // Whether the verifier or the generator made a mistake.
  [[nodiscard]] bool accepted_wrong() const;
  [[nodiscard]] bool made_wrong() const;
};

[[nodiscard]] Trial run_trial(std::uint64_t seed);

}  // namespace espalier::random
