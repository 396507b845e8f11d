#pragma once
// One seed of the campaign: a random schedule, and the same with one program broken (for some seeds
// also with all windows longer), before the verifier and before brute force.

#include <cstdint>
#include <string>
#include <vector>

namespace espalier::random {

// The N, of those that occur, for which brute force runs a schedule. An accepted one: every N up to
// kAll (up to kMost of one schedule in kWhole), those next to the last that the proof expanded,
// kSome others and the last up to kMost. A refused one: the N that the verifier names, every N up
// to kAllRefused, kSomeRefused others, and the last up to kMost.
inline constexpr std::int64_t kAll = 40, kAllRefused = 16, kMost = 200;
inline constexpr int kSome = 4, kSomeRefused = 2;
inline constexpr std::uint32_t kWhole = 100;
// One in kLonger accepted schedules is tried with longer windows, too.
inline constexpr std::uint32_t kLonger = 16;
// One in kEach seeds is checked for every N up to a bound if it is not proven for every N at once.
// That takes longest.
inline constexpr std::uint64_t kEach = 16;
// Under random timing, N = 2 and one N from 3 to kMaxSkewed are run.
inline constexpr int kSkews = 2;
inline constexpr std::uint32_t kMaxSkewed = 12;

enum class Answer : std::uint8_t {
  kNone,      // there is no such schedule: the dice led to none, or nothing could be broken
  kUnloaded,  // the loader refuses a program
  kRefused,   // the verifier does
  kUnproven,  // it finds no proof for every N, and was not asked for a part of them
  kLimited,   // it finds none, but every N up to some bound is right
  kAccepted,  // proven for every N
};

struct Opinion {
  Answer answer = Answer::kNone;
  std::string reason;  // of the verifier, without numbers; empty where it accepts
  std::string wrong;   // what brute force finds; empty: nothing
  std::string line;    // the verifier's
};

// A change to a schedule, and its outcome.
struct Attempt {
  std::string kind, where;
  Opinion opinion;
  std::vector<std::uint8_t> file;  // the schedule, if it is accepted and wrong

  [[nodiscard]] bool accepted_wrong() const;
};

struct Trial {
  std::uint64_t seed = 0;
  bool pipelined = false, differ = false;  // differ: in strides, paces or instances
  Opinion whole;
  std::string name;                // "broadcast on complete:4, window 2"
  std::vector<std::uint8_t> file;  // the schedule, if it is wrong
  std::vector<Attempt> broken;     // if it is accepted
  std::uint64_t runs = 0, skews = 0, windows = 0;

  // Whether the verifier or the generator made a mistake.
  [[nodiscard]] bool accepted_wrong() const;
  [[nodiscard]] bool made_wrong() const;
};

[[nodiscard]] Trial run_trial(std::uint64_t seed);

}  // namespace espalier::random
