// A rank that starts other processes in every way while it communicates, and whose communicator is
// a static object: a child's exit() destroys it, too.

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "espalier/communicator.h"

namespace {

espalier::Result<espalier::Communicator>& world() {
  static espalier::Result<espalier::Communicator> joined = espalier::join();
  return joined;
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "forking: rank %u: %s\n", world()->rank(), what.c_str());
  std::_Exit(1);
}

void sum() {
  std::vector<int> one = {1};
  if (auto done = world()->allreduce(one, espalier::Op::kSum); !done) {
    fail(done.error().message);
  }
  if (one[0] != static_cast<int>(world()->size())) fail("incorrect sum");
}

void expect_success(pid_t child) {
  int status = -1;
  if (waitpid(child, &status, 0) != child || status != 0)
    fail("a child ended with " + std::to_string(status));
}

pid_t start_child(int round) {
  const pid_t child = fork();
  if (child != 0) return child;
  alarm(600);
  if (round % 3 == 0) std::exit(0);  // which destroys static objects
  if (round % 3 == 1) _exit(0);
  execlp("true", "true", nullptr);
  _exit(127);
}

// No descriptor of the library may be open in a program that this process starts, except the job
// secret, which the launcher leaves to whatever program joins.
void check_descriptors() {
  std::FILE* const pipe = popen("ls -l /proc/self/fd", "r");
  std::string text;
  for (char line[512]; pipe != nullptr && std::fgets(line, sizeof line, pipe) != nullptr;)
    text += line;
  if (pipe == nullptr || pclose(pipe) != 0) fail("popen");
  for (const char* of_library : {"memfd:espalier ", "espalier-memory", "socket:", "anon_inode:"}) {
    if (text.find(of_library) != std::string::npos)
      fail("a program inherits descriptors:\n" + text);
  }
}

void spawn() {
  char name[] = "true";
  char* const words[] = {name, nullptr};
  pid_t child = 0;
  if (posix_spawnp(&child, name, nullptr, nullptr, words, environ) != 0) fail("posix_spawn");
  expect_success(child);
}

}  // namespace

int main() {
  if (!world()) {
    std::fprintf(stderr, "forking: %s\n", world().error().message.c_str());
    return 2;
  }
  std::fflush(stdout);
  for (int round = 0; round < 30; ++round) {
    const pid_t child = start_child(round);
    sum();
    expect_success(child);
    if (std::system("true") != 0) fail("system");
    check_descriptors();
    spawn();
    sum();
  }
  std::printf("rank %u: children did no harm\n", world()->rank());
  return 0;
}
