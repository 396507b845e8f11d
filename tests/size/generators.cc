// A board's program that reaches the freestanding parts that its firmware does without: all
// generators, the encoder and schedule files. Linked by tests/size; never run.

#include <cstddef>
#include <cstdint>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/file.h"
#include "espalier/collectives/schedule/program.h"

namespace {

constinit espalier::DecodedProgram program = {};
std::uint8_t bytes[4096];

espalier::Status plan() {
  espalier::CollectiveParameters parameters;
  parameters.ranks = espalier::kMaxLinks;
  for (const espalier::Algorithm& algorithm : espalier::algorithms()) {
    if (algorithm.generate(parameters, 0, program) == espalier::Status::kOk) break;
  }
  std::size_t written = 0;
  return espalier::encode_program(program, bytes, sizeof(bytes), written);
}

}  // namespace

int main() {
  espalier::ScheduleFile file;
  espalier::Status status = file.open(bytes, sizeof(bytes));
  if (status == espalier::Status::kOk) status = file.program(0, program);
  if (status != espalier::Status::kOk) status = plan();
  return static_cast<int>(status);
}
