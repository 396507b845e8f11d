// A library for LD_PRELOAD: makes the node of rank HOLD_RANK wait for a signal for ever where it is
// about to release a spin lock in memory that it shares with other processes. It does so the
// HOLD_COUNT-th time since the node runs collectives. Only locks in the memory of the node itself
// (HOLD_WHOSE=own) or of another node (peer) count. It says so on stderr. HOLD_MY_RANK is the rank
// of this process.

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <unordered_map>

namespace {

enum class Whose { kNobody, kOwn, kPeer };

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// The path of the file that is mapped at `address`; empty if none is.
std::string file_at(const volatile void* address) {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    char* rest = nullptr;
    const std::uintptr_t begin = std::strtoull(line.c_str(), &rest, 16);
    const std::uintptr_t end = std::strtoull(rest + 1, nullptr, 16);
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (at < begin || at >= end) continue;
    return line.find('/') == std::string::npos ? "" : line.substr(line.find('/'));
  }
  return "";
}

Whose whose(const volatile void* lock) {
  const std::string folder = "/dev/shm/";
  const std::string file = file_at(lock);
  if (!file.starts_with(folder)) return Whose::kNobody;
  const bool own = file.starts_with(folder + std::to_string(getpid()) + ":");
  return own ? Whose::kOwn : Whose::kPeer;
}

// A node that runs collectives has mapped their memory.
bool runs() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    if (line.find("memfd:espalier") != std::string::npos) return true;
  }
  return false;
}

void unlocks(const volatile void* lock) {
  static const bool victim = variable("HOLD_RANK") == variable("HOLD_MY_RANK");
  static const Whose wanted = variable("HOLD_WHOSE") == "own" ? Whose::kOwn : Whose::kPeer;
  static const long count = std::atol(variable("HOLD_COUNT").c_str());
  if (!victim) return;
  static bool running = false;
  static long looks = 0;
  if (!running && ++looks % 64 == 0) running = runs();
  if (!running) return;
  static std::unordered_map<const volatile void*, Whose> known;
  const auto found = known.find(lock);
  if (found == known.end() ? (known[lock] = whose(lock)) != wanted : found->second != wanted) {
    return;
  }
  static long seen = 0;
  if (++seen != count) return;
  std::fprintf(stderr, "holds %s\n", file_at(lock).c_str());
  while (true) pause();
}

}  // namespace

extern "C" int pthread_spin_unlock(pthread_spinlock_t* lock) noexcept {
  using Unlock = int (*)(pthread_spinlock_t*);
  static const auto next = reinterpret_cast<Unlock>(dlsym(RTLD_NEXT, "pthread_spin_unlock"));
  unlocks(lock);
  return next(lock);
}
