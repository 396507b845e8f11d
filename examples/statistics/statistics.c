// statistics [N]: mean and variance of N numbers, of which each process has a part. A custom type
// and operator join the statistics of two parts. The operator does not commute in the last bit, and
// says so: the result is then the same for every algorithm.
#include <espalier/espalier.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct moments {
  double count, mean;
  double squares;  // sum of (x - mean)^2
};

// The statistics of the parts a and b together (Chan, Golub and LeVeque, 1979).
static struct moments join_parts(struct moments a, struct moments b) {
  const double count = a.count + b.count;
  if (count == 0) return a;
  const double delta = b.mean - a.mean;
  const struct moments both = {count, a.mean + delta * (b.count / count),
                               a.squares + b.squares + delta * delta * (a.count * b.count / count)};
  return both;
}

static void combine(void* into, const void* a, const void* b, uint64_t count, void* context) {
  (void)context;
  for (uint64_t i = 0; i < count; ++i) {
    ((struct moments*)into)[i] =
        join_parts(((const struct moments*)a)[i], ((const struct moments*)b)[i]);
  }
}

// Number i of the data.
static double number(uint64_t i) { return (double)(i * 7919 % 10007) / 16.0; }

static struct moments measure(uint64_t first, uint64_t end) {
  struct moments all = {0, 0, 0};
  for (uint64_t i = first; i < end; ++i) {
    const struct moments one = {1, number(i), 0};
    all = join_parts(all, one);
  }
  return all;
}

int main(int argument_count, char** arguments) {
  espalier_comm* world = NULL;
  if (espalier_join(NULL, &world) != ESPALIER_OK) {
    fprintf(stderr, "statistics: %s\n", espalier_error());
    return 2;
  }
  const uint64_t total = argument_count > 1 ? strtoull(arguments[1], NULL, 10) : 1000000;
  const uint64_t rank = espalier_rank(world), ranks = espalier_size(world);
  const struct moments part = measure(total * rank / ranks, total * (rank + 1) / ranks);
  struct moments all = {0, 0, 0};

  espalier_call call = espalier_default_call();
  call.collective = ESPALIER_ALLREDUCE;
  call.type = ESPALIER_CUSTOM_TYPE;
  call.element_bytes = sizeof(struct moments);
  call.op = ESPALIER_CUSTOM_OP;
  call.combine = combine;
  call.commutes = 0;
  call.send = &part;
  call.receive = &all;
  call.count = 1;
  const int status = espalier_run(&call, world);
  if (status != ESPALIER_OK) fprintf(stderr, "statistics: %s\n", espalier_error());
  espalier_leave(world);
  if (status != ESPALIER_OK) return 1;

  const struct moments serial = measure(0, total);
  const double variance = all.squares / all.count;
  const double serial_variance = serial.squares / serial.count;
  const int good = all.count == (double)total &&
                   fabs(all.mean - serial.mean) < 1e-9 * serial.mean &&
                   fabs(variance - serial_variance) < 1e-9 * serial_variance;
  if (rank == 0) {
    printf("%.0f numbers: mean %.17g, variance %.17g: %s\n", all.count, all.mean, variance,
           good ? "as one process finds" : "wrong");
  }
  return good ? 0 : 1;
}
