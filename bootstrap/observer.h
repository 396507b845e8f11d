#pragma once
// What a program keeps of the processes of its job on this host, beside the job's server and the
// launcher. Waits ask it. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/result.h"

namespace espalier::bootstrap {

// A start of a job, as its launcher tells it before all processes have come.
struct Start {
  std::string name = {};  // the same on all processes of this start
  std::uint32_t rank = 0, size = 0;
  bool is_one_host = false;  // false also if that is not known
};

class Observer {
 public:
  virtual ~Observer() = default;
  // A process manager has named the start. Called before this process waits for the others.
  // Error: join() then fails.
  [[nodiscard]] virtual Result<void> started(const Start& start) = 0;
  // Returns which ranks of the start have not come, as far as this host shows it: "rank 3 never
  // started". Empty: nothing is known.
  [[nodiscard]] virtual std::string absent() = 0;
  // Returns what these ranks do, for which accept() or rejoin() waits: "rank 3 has not called
  // accept(): computing for 12 s". Empty: this host does not show it.
  [[nodiscard]] virtual std::string facts(const std::vector<std::uint32_t>& ranks) = 0;
};

}  // namespace espalier::bootstrap
