#pragma once
// Assertions: they end the program at a programming error, such as a violated precondition. Bad
// input is an error instead (result.h, status.h). Freestanding.
//
// Compiled in where ESPALIER_ASSERTIONS is defined: meson.build defines it on hosts, except with
// -Db_ndebug=true and, in release builds, for hot code (hot_args, release_args). Boards have none.

#ifdef ESPALIER_ASSERTIONS
namespace espalier {
// Prints the condition and its place, and aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line) noexcept;
}  // namespace espalier
#define ESPALIER_ASSERT(condition)    \
  ((condition) ? static_cast<void>(0) \
               : ::espalier::assertion_failed(#condition, __FILE__, __LINE__))
#else
#define ESPALIER_ASSERT(condition) static_cast<void>(sizeof((condition) ? 1 : 0))
#endif
