#include "tools/commands/testing/command_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <set>
#include <vector>

#include "tests/whole.h"
#include "tools/commands/program.h"

namespace espalier {
namespace {

bool redirect(int to, const char* path, int flags) {
  const int from = open(path, flags, 0666);
  return from >= 0 && dup2(from, to) == to && close(from) == 0;
}

// Looking for leaks takes a fifth of a command's time under ASan: in a small sample, one in so many
// commands does.
constexpr std::uint64_t kLeakSample = 8;

[[noreturn]] void run_here(const std::filesystem::path& directory, std::vector<char*>& arguments,
                           bool finds_leaks) {
  constexpr int kNewFile = O_WRONLY | O_CREAT | O_TRUNC;
  if (chdir(directory.c_str()) != 0 || !redirect(STDIN_FILENO, "/dev/null", O_RDONLY) ||
      !redirect(STDOUT_FILENO, ".out", kNewFile) || !redirect(STDERR_FILENO, ".err", kNewFile)) {
    _exit(127);
  }
  const int words = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  const int status = tools::run_program(words, arguments.data());
  if (finds_leaks) std::exit(status);
  std::cout.flush();
  std::fflush(nullptr);
  _exit(status);
}

int status_of(int waited) { return WIFEXITED(waited) ? WEXITSTATUS(waited) : -1; }

}  // namespace

int run_built_command(const std::filesystem::path& directory, const std::string& arguments) {
  const std::string command = "cd '" + directory.string() + "' && '" + ESPALIER_BINARY + "' " +
                              arguments + " > .out 2> .err < /dev/null";
  return status_of(std::system(command.c_str()));
}

int run_forked_command(const std::filesystem::path& directory, const std::string& arguments) {
  static const std::set<std::string> kStartPrograms = {"run", "launch", "measure", "update",
                                                       "doctor"};
  wordexp_t split;
  if (kStartPrograms.contains(arguments.substr(0, arguments.find(' '))) ||
      wordexp(arguments.c_str(), &split, WRDE_NOCMD) != 0) {
    return run_built_command(directory, arguments);
  }
  std::string name = "espalier";
  std::vector<char*> words = {name.data()};
  words.insert(words.end(), split.we_wordv, split.we_wordv + split.we_wordc);
  static std::uint64_t number = 0;
  const bool finds_leaks = !small_sample() || sampled(number++, kLeakSample);
  std::fflush(nullptr);  // what waits in a buffer would be written twice
  const pid_t child = fork();
  if (child == 0) run_here(directory, words, finds_leaks);
  wordfree(&split);
  int waited = 0;
  return child > 0 && waitpid(child, &waited, 0) == child ? status_of(waited) : -1;
}

}  // namespace espalier
