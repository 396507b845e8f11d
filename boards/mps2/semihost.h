#pragma once
// Services of the emulator's host for a program: files, the command line, the exit status.
// Specified in Arm's "Semihosting for AArch32 and AArch64".

#include <cstdint>

namespace espalier::semihost {

enum class Mode : std::uint32_t { kRead = 1, kUpdate = 3 };  // fopen's "rb" and "r+b"

// Opens a file. Returns its handle, or -1.
[[nodiscard]] int open(const char* path, Mode mode);
void close(int file);
// Read or write `size` bytes from `offset` onward. Return whether all were transferred.
[[nodiscard]] bool read(int file, std::uint32_t offset, void* bytes, std::uint32_t size);
[[nodiscard]] bool write(int file, std::uint32_t offset, const void* bytes, std::uint32_t size);
// Returns the size of an open file in bytes, or -1.
[[nodiscard]] int length(int file);
// Gets the words of -semihosting-config arg=..., separated by one space. False if they do not fit.
[[nodiscard]] bool command_line(char* text, std::uint32_t size);
// Ends the emulator with this exit status.
[[noreturn]] void exit(int status);

}  // namespace espalier::semihost
