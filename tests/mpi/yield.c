/* Yields the processor when UCX, which MPICH polls in every wait, made no progress. MPICH 4.0 has no setting for it: with more ranks than
 * processors each rank polls to the end of its time slice. suites.py preloads it into every run under MPICH, plain and with the bridge. */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <sched.h>

typedef unsigned (*Progress)(void* worker);

unsigned ucp_worker_progress(void* worker);

/* Python loads MPICH and UCX with names of their own, which RTLD_NEXT does not see. */
static Progress find_progress(void) {
  void* next = dlsym(RTLD_NEXT, "ucp_worker_progress");
  return (Progress)(next ? next
                         : dlsym(dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD),
                                 "ucp_worker_progress"));
}

unsigned ucp_worker_progress(void* worker) {
  static Progress progress;
  if (!progress) progress = find_progress();
  const unsigned events = progress(worker);
  if (events == 0) sched_yield();
  return events;
}
