// Preloaded into `costs`: counts what it and libfabric ask of the C library. Threads are not told apart.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>

// The order of kCounters in costs.cc. The first of each pair is libfabric's, the second is everyone else's.
enum { kCopied = 0, kPolls = 2, kYields = 4, kSleeps = 6, kFutexes = 8, kEmptyPolls = 10, kCounters = 11 };
uint64_t costs_counters[kCounters];

static uintptr_t first, end;  // of libfabric's code

static int find(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size, (void)data;
  if (strstr(info->dlpi_name, "/libfabric.so") == NULL) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || (part->p_flags & PF_X) == 0) continue;
    first = info->dlpi_addr + part->p_vaddr;
    end = first + part->p_memsz;
  }
  return 1;
}

static void* (*copy)(void*, const void*, size_t);
static void* (*move)(void*, const void*, size_t);
static int (*wait_events)(int, struct epoll_event*, int, int);
static int (*wait_poll)(struct pollfd*, nfds_t, const struct timespec*, const sigset_t*);
static int (*yield)(void);
static int (*pause_ns)(const struct timespec*, struct timespec*);
static long (*call)(long, long, long, long, long, long, long);

__attribute__((constructor)) static void begin(void) {
  dl_iterate_phdr(find, NULL);
  *(void**)&move = dlsym(RTLD_NEXT, "memmove");
  *(void**)&wait_events = dlsym(RTLD_NEXT, "epoll_wait");
  *(void**)&wait_poll = dlsym(RTLD_NEXT, "ppoll");
  *(void**)&yield = dlsym(RTLD_NEXT, "sched_yield");
  *(void**)&pause_ns = dlsym(RTLD_NEXT, "nanosleep");
  *(void**)&call = dlsym(RTLD_NEXT, "syscall");
  *(void**)&copy = dlsym(RTLD_NEXT, "memcpy");
}

static void count(int what, void* caller, uint64_t by) {
  const uintptr_t at = (uintptr_t)caller;
  costs_counters[what + (at >= first && at < end ? 0 : 1)] += by;
}

// begin() has not run, or is running.
static void* copy_bytes(void* to, const void* from, size_t size) {
  volatile char* into = to;
  const volatile char* at = from;
  if ((uintptr_t)to <= (uintptr_t)from) {
    for (size_t i = 0; i < size; ++i) into[i] = at[i];
  } else {
    for (size_t i = size; i-- > 0;) into[i] = at[i];
  }
  return to;
}

void* memcpy(void* restrict to, const void* restrict from, size_t size) {
  count(kCopied, __builtin_return_address(0), size);
  return copy != NULL ? copy(to, from, size) : copy_bytes(to, from, size);
}

void* memmove(void* to, const void* from, size_t size) {
  count(kCopied, __builtin_return_address(0), size);
  return move != NULL ? move(to, from, size) : copy_bytes(to, from, size);
}

// Libraries that are built with _FORTIFY_SOURCE call these.
void* __memcpy_chk(void* restrict to, const void* restrict from, size_t size, size_t room);
void* __memcpy_chk(void* restrict to, const void* restrict from, size_t size, size_t room) {
  (void)room;
  count(kCopied, __builtin_return_address(0), size);
  return copy != NULL ? copy(to, from, size) : copy_bytes(to, from, size);
}

int epoll_wait(int on, struct epoll_event* events, int room, int timeout) {
  count(kPolls, __builtin_return_address(0), 1);
  const int found = wait_events(on, events, room, timeout);
  if (found == 0) ++costs_counters[kEmptyPolls];
  return found;
}

int ppoll(struct pollfd* on, nfds_t number, const struct timespec* timeout, const sigset_t* mask) {
  count(kPolls, __builtin_return_address(0), 1);
  return wait_poll(on, number, timeout, mask);
}

int sched_yield(void) {
  count(kYields, __builtin_return_address(0), 1);
  return yield();
}

int nanosleep(const struct timespec* time, struct timespec* rest) {
  count(kSleeps, __builtin_return_address(0), 1);
  return pause_ns(time, rest);
}

// As in the C library, whose declaration has no names for the arguments.
long costs_syscall(long number, long a, long b, long c, long d, long e, long f) __asm__("syscall");
long costs_syscall(long number, long a, long b, long c, long d, long e, long f) {
  if (call == NULL) begin();  // the constructor of another library
  if (number == SYS_futex) count(kFutexes, __builtin_return_address(0), 1);
  return call(number, a, b, c, d, e, f);
}
