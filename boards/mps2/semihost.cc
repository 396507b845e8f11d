#include "boards/mps2/semihost.h"

namespace espalier::semihost {
namespace {

constexpr std::uint32_t kOpen = 0x01, kClose = 0x02, kWrite = 0x05, kRead = 0x06, kSeek = 0x0a,
                        kLength = 0x0c, kCommandLine = 0x15, kExitExtended = 0x20;
constexpr std::uint32_t kApplicationExit = 0x20026;

int call(std::uint32_t operation, const void* arguments) {
  register std::uint32_t r0 asm("r0") = operation;
  register const void* r1 asm("r1") = arguments;
  asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return static_cast<int>(r0);
}

std::uint32_t word(const void* pointer) { return reinterpret_cast<std::uint32_t>(pointer); }

bool seek(int file, std::uint32_t offset) {
  const std::uint32_t arguments[] = {static_cast<std::uint32_t>(file), offset};
  return call(kSeek, arguments) == 0;
}

// Reads or writes. The host returns the number of bytes that it did not transfer.
bool transfer(std::uint32_t operation, int file, std::uint32_t offset, const void* bytes,
              std::uint32_t size) {
  const std::uint32_t arguments[] = {static_cast<std::uint32_t>(file), word(bytes), size};
  return seek(file, offset) && call(operation, arguments) == 0;
}

}  // namespace

int open(const char* path, Mode mode) {
  std::uint32_t size = 0;
  while (path[size] != '\0') ++size;
  const std::uint32_t arguments[] = {word(path), static_cast<std::uint32_t>(mode), size};
  return call(kOpen, arguments);
}

void close(int file) {
  const std::uint32_t arguments[] = {static_cast<std::uint32_t>(file)};
  (void)call(kClose, arguments);
}

bool read(int file, std::uint32_t offset, void* bytes, std::uint32_t size) {
  return transfer(kRead, file, offset, bytes, size);
}

bool write(int file, std::uint32_t offset, const void* bytes, std::uint32_t size) {
  return transfer(kWrite, file, offset, bytes, size);
}

int length(int file) {
  const std::uint32_t arguments[] = {static_cast<std::uint32_t>(file)};
  return call(kLength, arguments);
}

bool command_line(char* text, std::uint32_t size) {
  const std::uint32_t arguments[] = {word(text), size};
  return call(kCommandLine, arguments) == 0;
}

void exit(int status) {
  const std::uint32_t arguments[] = {kApplicationExit, static_cast<std::uint32_t>(status)};
  (void)call(kExitExtended, arguments);
  for (;;) {
  }
}

}  // namespace espalier::semihost
