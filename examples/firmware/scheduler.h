#ifndef SCHEDULER_H
#define SCHEDULER_H
// A tiny cooperative scheduler, which stands in for a real-time operating system. A task has a
// stack of its own and runs until it waits.

#include <stddef.h>
#include <stdint.h>

enum { MAX_TASKS = 4 };

// Adds a task, which begins once run_tasks() is called. stack: `bytes` bytes, at a multiple of 8.
// `run` must not return.
void add_task(void (*run)(void), uint64_t* stack, size_t bytes);
// Runs the tasks until one calls end_tasks(). Returns its status.
int run_tasks(void);
// Ends all tasks. Does not return.
void end_tasks(int status);

// The calling task waits until the time `until`.
void wait_until(uint64_t until);
// The same, or until a UART has received; may return early.
void wait_for_link(uint64_t until);

#endif
