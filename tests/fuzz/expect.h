#pragma once
// A fuzz target: its inputs, and the conditions that it demands for each of them.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace espalier::fuzz {

// Ends the process with the violated demand in words, so that libFuzzer keeps the input.
inline void expect(bool right, const char* demand) {
  if (right) return;
  // Not by stderr, which a target may silence.
  dprintf(STDERR_FILENO, "fuzz: not so: %s\n", demand);
  std::abort();
}

// Splits an input into numbers; past its end all bytes are 0.
class Input {
 public:
  Input(const unsigned char* bytes, std::size_t size) : bytes_(bytes), size_(size) {}
  [[nodiscard]] std::size_t left() const { return size_; }
  [[nodiscard]] const unsigned char* rest() const { return bytes_; }
  [[nodiscard]] std::string text() const { return {reinterpret_cast<const char*>(bytes_), size_}; }
  // A copy of exactly the remaining size, so that the sanitizers see reads past its end.
  [[nodiscard]] std::vector<unsigned char> copied_rest() const { return {bytes_, bytes_ + size_}; }
  // The next byte.
  unsigned byte() {
    if (size_ == 0) return 0;
    --size_;
    return *bytes_++;
  }
  // A number below `limit` (at least 1), from as few bytes as possible.
  unsigned below(unsigned limit) {
    unsigned value = byte();
    if (limit > 256) value = value << 8 | byte();
    return value % limit;
  }
  // Any 32 bits.
  unsigned word() {
    unsigned value = 0;
    for (int k = 0; k < 4; ++k) value = value << 8 | byte();
    return value;
  }

 private:
  const unsigned char* bytes_;
  std::size_t size_;
};

// The target, in its own file. Ends the process if a demand does not hold for the input.
void run(Input& input);

}  // namespace espalier::fuzz
