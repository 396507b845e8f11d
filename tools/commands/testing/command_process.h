#pragma once
// Test helper: the espalier command in a child of the test's process.

#include <filesystem>
#include <string>

namespace espalier {

// Both run `espalier ARGUMENTS`, quoted for a shell, in `directory`. Its stdout and stderr go to
// .out and .err there. They return the exit status, -1 if it has none.
[[nodiscard]] int run_built_command(const std::filesystem::path& directory,
                                    const std::string& arguments);
// By a child that starts no program. Falls back to the built one if the arguments need a shell, or
// the command starts programs (`espalier run`), which it looks for beside itself.
[[nodiscard]] int run_forked_command(const std::filesystem::path& directory,
                                     const std::string& arguments);

// The one that tests use. Under ASan loading the program takes most of the time of a short command.
[[nodiscard]] inline int run_command(const std::filesystem::path& directory,
                                     const std::string& arguments) {
#ifdef __SANITIZE_ADDRESS__
  return run_forked_command(directory, arguments);
#else
  return run_built_command(directory, arguments);
#endif
}

}  // namespace espalier
