// Start-up code has enabled physical memory protection: no instruction is fetched from memory, and
// a stack that grows into variables ends the program before it changes them.

#include "boards/riscv/processor.h"
#include "boards/startup.h"
#include "tests/bare/check.h"

extern "C" {
extern char bss_end[];
[[noreturn]] void after_trap();
}

namespace espalier {
namespace {

constexpr std::uint32_t kFetchFault = 1, kStoreFault = 7;

std::uint32_t lowest = 0;  // the lowest address of the stack that was used

// Uses up the stack.
[[gnu::noinline]] std::uint32_t overflow(std::uint32_t depth) {
  volatile std::uint32_t room[16];
  room[0] = depth;
  if (room[0] == 0) return 0;  // never
  lowest = reinterpret_cast<std::uint32_t>(&room[0]);
  return overflow(depth | 1) + room[0];
}

[[gnu::naked, gnu::aligned(4)]] void trapped() {
  asm volatile(
      "la sp, stack_top\n"
      "j after_trap");
}

void check_entries() {
  std::uint32_t entries = 0;
  asm volatile("csrr %0, pmpcfg0" : "=r"(entries));
  // Locked, a power of two; without access, and for reading and writing.
  CHECK_EQ(entries, 0x9b98u);
}

// The program continues in after_trap().
[[noreturn]] void fetch_from_memory() {
  static volatile std::uint32_t code;
  code = 0x80828082;  // ret, twice
  asm volatile("csrw mtvec, %0" : : "r"(&trapped));
  reinterpret_cast<void (*)()>(reinterpret_cast<std::uint32_t>(&code))();
  CHECK(false && "memory is executable");
  startup::stop(checks::finish());
}

}  // namespace
}  // namespace espalier

void after_trap() {
  using namespace espalier;
  std::uint32_t cause = 0;
  asm volatile("csrr %0, mcause" : "=r"(cause));
  if (lowest == 0) {
    CHECK_EQ(cause, kFetchFault);
    (void)overflow(1);
    CHECK(false && "the stack has no end");
  }
  CHECK_EQ(cause, kStoreFault);
  const auto end = reinterpret_cast<std::uint32_t>(bss_end);
  CHECK(lowest >= end && lowest < end + 640);
  bare::Text() << "the stack ended " << lowest - end << " bytes above the variables\n";
  startup::stop(checks::finish());
}

int main() {
  using namespace espalier;
  check_entries();
  fetch_from_memory();
}
