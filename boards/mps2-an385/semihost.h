#pragma once
// What the emulator's host does for a program: files, the command line, the end. Semihosting, as
// Arm's "Semihosting for AArch32 and AArch64" has it.

#include <cstdint>

namespace espalier::semihost {

enum class Mode : std::uint32_t { kRead = 1, kUpdate = 3 };  // fopen's "rb" and "r+b"

// A handle, or -1.
[[nodiscard]] int open(const char* path, Mode mode);
void close(int file);
// Whether all `size` bytes from `offset` on were read or written.
[[nodiscard]] bool read(int file, std::uint32_t offset, void* bytes, std::uint32_t size);
[[nodiscard]] bool write(int file, std::uint32_t offset, const void* bytes, std::uint32_t size);
// Bytes of an open file, or -1.
[[nodiscard]] int length(int file);
// The words of -semihosting-config arg=..., one space between them; false if they do not fit.
[[nodiscard]] bool command_line(char* text, std::uint32_t size);
// Ends the emulator with this exit status.
[[noreturn]] void exit(int status);

}  // namespace espalier::semihost
