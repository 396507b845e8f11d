// An allreduce, a broadcast and a barrier among all processes of the job.
#include <espalier/espalier.h>
#include <stdio.h>

enum { kCount = 1000 };

int main(void) {
  espalier_comm* world = NULL;
  if (espalier_join(NULL, &world) != ESPALIER_OK) {
    fprintf(stderr, "%s\n", espalier_error());
    return 2;
  }
  const uint32_t rank = espalier_rank(world), ranks = espalier_size(world);
  float sums[kCount];
  int32_t data[kCount];
  for (int i = 0; i < kCount; ++i) {
    sums[i] = (float)(rank + 1);
    data[i] = rank == 0 ? 42 : 0;
  }

  int status = espalier_allreduce(sums, sums, kCount, ESPALIER_F32, ESPALIER_SUM, world);
  if (status == ESPALIER_OK) status = espalier_broadcast(data, kCount, ESPALIER_I32, 0, world);
  if (status == ESPALIER_OK) status = espalier_barrier(world);
  if (status != ESPALIER_OK) fprintf(stderr, "%s\n", espalier_error());
  espalier_leave(world);
  if (status != ESPALIER_OK) return 1;

  const int good = sums[kCount - 1] == (float)(ranks * (ranks + 1) / 2) && data[kCount - 1] == 42;
  printf("rank %u of %u: sum %g, data %d: %s\n", (unsigned)rank, (unsigned)ranks, sums[kCount - 1],
         (int)data[kCount - 1], good ? "right" : "wrong");
  return good ? 0 : 1;
}
