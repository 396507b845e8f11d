#pragma once
// Inputs for a run and what must come out of it, by plain loops that know nothing of schedules. The
// values are integers small enough that every order of combining gives the same bits. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/machine/operators.h"
#include "collectives/schedule/program.h"

namespace espalier::reference {

struct Case {
  Collective collective = espalier_Collective_BROADCAST;
  std::uint32_t ranks = 1;
  std::uint32_t root = 0;
  Op op = Op::kNone;
  Type type = Type::kBytes;
  std::uint64_t bytes = 0;  // of the whole message
};

// False and one line in `error` if `run` cannot check this collective, operator and type exactly.
[[nodiscard]] bool supported(const Case& run, std::string& error);

// Whether rank gives input, and whether it holds the result.
[[nodiscard]] bool has_input(const Case& run, std::uint32_t rank);
[[nodiscard]] bool has_result(const Case& run, std::uint32_t rank);

// Writes rank's input of the given repetition: run.bytes bytes, different each repetition.
void fill_input(const Case& run, std::uint32_t rank, std::uint32_t repetition, std::uint8_t* out);

// What every rank that holds the result must have, of the same repetition.
[[nodiscard]] std::vector<std::uint8_t> expected(const Case& run, std::uint32_t repetition);

}  // namespace espalier::reference
