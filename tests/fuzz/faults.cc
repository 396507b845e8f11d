// Fuzz target: any text is refused with one reason, or is a script of faults whose numbers are in
// their ranges.

#include "espalier/hal/fault/faults.h"

#include <string>

#include "tests/fuzz/expect.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace espalier::fault;
  using espalier::fuzz::expect;
  const auto faults = parse_faults({reinterpret_cast<const char*>(bytes), size});
  if (!faults) {
    expect(faults.error().message.starts_with("fault \""), "an error names the statement");
    return 0;
  }
  double sum = 0;
  for (const double chance : faults->chance) {
    expect(chance >= 0 && chance <= 1, "a chance is a probability");
    sum += chance;
  }
  expect(sum <= 1.0, "the chances are of one message");
  for (const Fault& fault : faults->script) {
    expect(fault.link <= 0xffff && fault.kind <= Kind::kKill, "a fault has a link and a kind");
  }
  return 0;
}
