// Programs that fault, for fault_test.py. WRONG: what goes wrong.

#include <cstdint>

namespace {

[[gnu::noinline]] std::uint32_t go_wrong() {
#if WRONG == 1
  asm volatile("udf #1");
  return 0;
#else
  // No memory and no device of these boards is there.
  return *reinterpret_cast<volatile std::uint32_t*>(0xb0000000);
#endif
}

}  // namespace

int main() { return go_wrong() == 0 ? 0 : 1; }
