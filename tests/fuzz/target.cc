// Gives libFuzzer's inputs to a target.

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/expect.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  espalier::fuzz::Input input(bytes, size);
  espalier::fuzz::run(input);
  return 0;
}
