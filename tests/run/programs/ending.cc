// A program that joins its job and then ends by the signal that its argument names.

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "espalier/communicator.h"

namespace {

[[noreturn]] void handle(int /*signal*/) { std::_Exit(42); }

int end_by(const char* name) {
  if (std::strcmp(name, "abort") == 0) std::abort();
  if (std::strcmp(name, "segv") == 0) {
    volatile int* volatile nowhere = nullptr;
    *nowhere = 1;
  }
  if (std::strcmp(name, "term") == 0) return raise(SIGTERM);
  if (std::strcmp(name, "int") == 0) return raise(SIGINT);
  if (std::strcmp(name, "bus") == 0) return raise(SIGBUS);
  if (std::strcmp(name, "ill") == 0) return raise(SIGILL);
  return 2;
}

}  // namespace

// ending abort|segv|term|int|bus|ill [handled]
int main(int argc, char** argv) {
  if (argc > 2) {
    for (const int each : {SIGABRT, SIGSEGV, SIGTERM, SIGINT, SIGBUS, SIGILL}) signal(each, handle);
  }
  auto world = espalier::join();
  if (!world) {
    std::fprintf(stderr, "ending: %s\n", world.error().message.c_str());
    return 2;
  }
  if (auto done = world->barrier(); !done) {
    std::fprintf(stderr, "ending: %s\n", done.error().message.c_str());
    return 2;
  }
  return argc > 1 ? end_by(argv[1]) : 2;
}
