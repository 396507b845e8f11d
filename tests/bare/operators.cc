// Every operator on every type gives the same bits on every target, over numbers without a pattern
// and over the special ones. operator_digests.h has the digests.

#include "espalier/collectives/machine/operators.h"

#include <cstring>

#include "base/digest.h"
#include "collectives/machine/testing/operator_numbers.h"
#include "espalier/collectives/schedule/program.h"
#include "tests/bare/check.h"
#include "tests/bare/operator_digests.h"

namespace espalier {
namespace {

constexpr std::uint32_t kElements = 512;
constexpr std::uint32_t kMaxBytes = 16;
alignas(16) std::uint8_t left[kElements * kMaxBytes];
alignas(16) std::uint8_t right[kElements * kMaxBytes];
alignas(16) std::uint8_t into[kElements * kMaxBytes];

}  // namespace
}  // namespace espalier

int main() {
  using namespace espalier;
  fill_operand(left, sizeof left, 0);
  fill_operand(right, sizeof right, 1);
  std::uint32_t row = 0;
  for (std::uint8_t type = 0; type < static_cast<std::uint8_t>(Type::kCustom); ++type) {
    for (std::uint8_t op = 1; op < static_cast<std::uint8_t>(Op::kCustom); ++op) {
      Operator oper{.op = static_cast<Op>(op), .type = static_cast<Type>(type)};
      if (!can_combine(oper)) continue;
      const std::uint32_t bytes = kElements * element_bytes(oper);
      combine(oper, into, left, right, kElements);
      std::uint64_t digest = digest_bytes(kDigestSeed, into, bytes);
      std::memcpy(into, right, bytes);  // in place, with the operands exchanged
      combine(oper, into, into, left, kElements);
      digest = digest_bytes(digest, into, bytes);
      const bool known = row < sizeof kOperatorDigests / sizeof kOperatorDigests[0];
      if (!CHECK(known && digest == kOperatorDigests[row])) {
        bare::Text() << "  " << op_name(oper.op) << " " << type_name(oper.type) << ": ";
        checks::print_hex(digest);
        bare::Text() << "\n";
      }
      ++row;
    }
  }
  CHECK_EQ(row, sizeof kOperatorDigests / sizeof kOperatorDigests[0]);
  return checks::finish();
}
