// Fuzz target: any text is refused with one reason, or is a script of faults whose numbers are in
// their ranges.

#include "hal/fault/faults.h"

#include "tests/fuzz/expect.h"

namespace espalier::fuzz {

using namespace fault;

void run(Input& input) {
  const auto faults = parse_faults(input.text());
  if (!faults) {
    expect(faults.error().message.starts_with("fault \""), "an error names the statement");
    return;
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
}

}  // namespace espalier::fuzz
