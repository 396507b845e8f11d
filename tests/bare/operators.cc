// Every operator on every type gives the same bits on every target, over numbers without a pattern
// and over the special ones. operator_digests.h has the digests.

#include "espalier/collectives/machine/operators.h"

#include <cstring>

#include "base/splitmix64.h"
#include "espalier/base/digest.h"
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

// Bits of zeros, infinities, NaNs, the smallest and largest numbers, 1, and values that need
// rounding, in f16, bf16, f32 and f64: the upper 16 bits first, then the lower ones.
constexpr std::uint64_t kSpecial[] = {
    0x0000000000000000, 0x8000000000000000, 0x7ff0000000000000, 0xfff0000000000000,
    0x7ff8000000000000, 0xfff8000000000001, 0x7ff0000000000001, 0x0000000000000001,
    0x8000000000000001, 0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff,
    0x3ff0000000000000, 0xbff0000000000001, 0x7f8000007f800001, 0xff80000000800000,
    0x7fc000007f7fffff, 0x807fffff00000001, 0x7c007c017bff0400, 0xfc00fe0003ff0001,
    0x3c003c01bc008001, 0x7f807f817f7f0080, 0xff80ffc0007f0001, 0x3f803f81bf808001};

std::uint64_t number(std::uint64_t at, std::uint64_t seed) {
  const std::uint64_t drawn = splitmix64(at * 2 + seed);
  // One number in four is special; every pair of two specials occurs. Two in four have nearby
  // exponents.
  constexpr std::uint64_t kCount = sizeof kSpecial / sizeof kSpecial[0];
  if (at % 4 == 0) return kSpecial[(seed == 0 ? at / 4 : at / 4 / kCount + at / 4) % kCount];
  return at % 4 == 1 ? drawn : (drawn & 0x83ff83ff83ff83ff) | 0x3c003c003c003c00;
}

void fill(std::uint8_t* bytes, std::uint64_t seed) {
  for (std::uint32_t i = 0; i < kElements * kMaxBytes / 8; ++i) {
    const std::uint64_t value = number(i, seed);
    std::memcpy(bytes + std::size_t{i} * 8, &value, 8);
  }
}

}  // namespace
}  // namespace espalier

int main() {
  using namespace espalier;
  fill(left, 0);
  fill(right, 1);
  std::uint32_t row = 0;
  for (std::uint8_t type = 0; type < static_cast<std::uint8_t>(Type::kCustom); ++type) {
    for (std::uint8_t op = 1; op < static_cast<std::uint8_t>(Op::kCustom); ++op) {
      Operator oper;
      oper.op = static_cast<Op>(op);
      oper.type = static_cast<Type>(type);
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
