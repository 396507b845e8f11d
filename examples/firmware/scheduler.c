#include "scheduler.h"

#include <stdbool.h>

#include "port.h"

#ifdef CORTEX_M

// A task's place: its stack pointer, below the registers that a function must preserve.
typedef uint32_t* place;
void switch_places(place* save, place* load);
#ifdef __ARM_FP
#define SAVE_FLOATS "vpush {s16-s31}\n"
#define LOAD_FLOATS "vpop {s16-s31}\n"
enum { FLOATS = 16 };
#else
#define SAVE_FLOATS
#define LOAD_FLOATS
enum { FLOATS = 0 };
#endif
__asm__(
    ".syntax unified\n.thumb\n.thumb_func\n.global switch_places\nswitch_places:\n"
    "push {r4-r11, lr}\n" SAVE_FLOATS
    "mov r2, sp\n"
    "str r2, [r0]\n"
    "ldr r2, [r1]\n"
    "mov sp, r2\n" LOAD_FLOATS "pop {r4-r11, pc}\n");

static void prepare(place* at, void (*run)(void), uint64_t* stack, size_t bytes) {
  *at = (place)(void*)(stack + bytes / 8) - (FLOATS + 9);
  (*at)[FLOATS + 8] = (uint32_t)(uintptr_t)run;
}

#else

#include <ucontext.h>

typedef ucontext_t place;
static void switch_places(place* save, place* load) { (void)swapcontext(save, load); }

static void prepare(place* at, void (*run)(void), uint64_t* stack, size_t bytes) {
  (void)getcontext(at);
  at->uc_stack.ss_sp = stack;
  at->uc_stack.ss_size = bytes;
  makecontext(at, run, 0);
}

#endif

static struct {
  place at;
  uint64_t until;  // it waits
  bool takes_links;
} tasks[MAX_TASKS];
static size_t tasks_count, current;
static place scheduler;
static bool ended;
static int end_status;

void add_task(void (*run)(void), uint64_t* stack, size_t bytes) {
  prepare(&tasks[tasks_count++].at, run, stack, bytes);
}

int run_tasks(void) {
  for (;;) {
    uint64_t first = UINT64_MAX;
    for (current = 0; current < tasks_count; ++current) {
      if (port_now() >= tasks[current].until || tasks[current].takes_links) {
        switch_places(&scheduler, &tasks[current].at);
        if (ended) return end_status;
      }
      if (tasks[current].until < first) first = tasks[current].until;
    }
    port_sleep(first);  // it does not say why it returns
  }
}

static void wait(uint64_t until, bool takes_links) {
  tasks[current].until = until;
  tasks[current].takes_links = takes_links;
  switch_places(&tasks[current].at, &scheduler);
}

void wait_until(uint64_t until) { wait(until, false); }
void wait_for_link(uint64_t until) { wait(until, true); }

void end_tasks(int status) {
  end_status = status;
  ended = true;
  wait_until(0);
}
