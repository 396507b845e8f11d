#pragma once
// What spares-rig and spares-cluster share: how they fail, and the options that both have.

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>

#include "base/loss.h"
#include "collectives/machine/recovery.h"
#include "tests/hil/spares_reference.h"

namespace espalier {

// Ends the program, and with it what it started.
struct Failure {
  int status;
  std::string line;
};
[[noreturn]] inline void fail(int status, const std::string& line) { throw Failure{status, line}; }

// --loss link:A,B|node:V, --returns N, --seed N, --deadline-ms N.
struct LossOptions {
  Loss loss;
  std::uint32_t returns = 0;
  std::uint64_t seed = 1;
  std::uint32_t deadline_ms = 3000;
};

template <typename Number>
Number number_of(const std::string& word, const std::string& value) {
  Number number = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || stop != end) fail(2, word + ": expected a number, not " + value);
  return number;
}

inline Loss loss_of(const std::string& value) {
  unsigned a = 0, b = 0;
  char more = 0;
  if (std::sscanf(value.c_str(), "link:%u,%u%c", &a, &b, &more) == 2 && a != b) {
    return Loss::link(a, b);
  }
  if (std::sscanf(value.c_str(), "node:%u%c", &a, &more) == 1) return Loss::node(a);
  fail(2, "--loss: expected link:A,B or node:V, not " + value);
}

// Returns whether `word` is one of these options, and reads its value.
inline bool read_option(LossOptions& options, const std::string& word, const std::string& value) {
  if (word == "--loss") {
    options.loss = loss_of(value);
  } else if (word == "--returns") {
    options.returns = number_of<std::uint32_t>(word, value);
  } else if (word == "--seed") {
    options.seed = number_of<std::uint64_t>(word, value);
  } else if (word == "--deadline-ms") {
    options.deadline_ms = number_of<std::uint32_t>(word, value);
  } else {
    return false;
  }
  return true;
}

inline void check_options(const LossOptions& options) {
  if (options.loss.kind == Loss::Kind::kNothing || options.deadline_ms == 0) {
    fail(2, "expected --loss link:A,B|node:V, and no --deadline-ms 0");
  }
  if (options.returns > Recovery::kReturns + 1 ||
      (options.returns != 0 && options.loss.kind == Loss::Kind::kLink)) {
    fail(2, "expected --returns of at most " + std::to_string(Recovery::kReturns + 1) +
                ", and of a node");
  }
}

// Calls run(moment), which gives `moment` what is lost and when. Returns the exit status.
template <typename Run>
int report_failure(const char* program, Run run) {
  std::string moment;
  try {
    run(moment);
    return 0;
  } catch (const Failure& failure) {
    if (!moment.empty()) moment += ": ";
    std::fprintf(stderr, "%s: %s%s\n", program, moment.c_str(), failure.line.c_str());
    return failure.status;
  }
}

}  // namespace espalier
