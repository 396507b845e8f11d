// Preloaded into MPICH's processes where they exceed the processors: MPICH (ch4:ucx) yields the
// processor after each look that found nothing, as Open MPI does with mpi_yield_when_idle. It has
// no such setting of its own.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stddef.h>

unsigned ucp_worker_progress(void* worker);

unsigned ucp_worker_progress(void* worker) {
  static unsigned (*progress)(void*) = NULL;
  if (progress == NULL) *(void**)&progress = dlsym(RTLD_NEXT, "ucp_worker_progress");
  const unsigned events = progress(worker);
  if (events == 0) sched_yield();
  return events;
}
