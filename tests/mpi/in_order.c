/* MPI_Reduce_scatter with an operator that does not commute: equal counts, and unequal ones, which are for the MPI library on all ranks.

   in_order FOLDER */
#include "results.h"

enum { kMaxRanks = 16 };

/* Maps x -> a x + b, modulo a prime. */
static void compose(void* left, void* right, int* length, MPI_Datatype* type) {
  const int* const a = left;
  int* const b = right;
  (void)type;
  for (int i = 0; i < 2 * *length; i += 2) {
    b[i + 1] = (a[i + 1] * b[i] + b[i + 1]) % 1009;
    b[i] = a[i] * b[i] % 1009;
  }
}

static void scatter(const char* name, const int* counts, MPI_Op op) {
  int in[8 * kMaxRanks], out[8], later[8];
  MPI_Request request;
  for (int i = 0; i < 8 * kMaxRanks; ++i) in[i] = (7 * rank + i) % 1009;
  for (int i = 0; i < 8; ++i) out[i] = later[i] = -1;
  MPI_Reduce_scatter(in, out, counts, MPI_2INT, op, MPI_COMM_WORLD);
  result_row(name, out, 2 * counts[rank]);
  MPI_Ireduce_scatter(in, later, counts, MPI_2INT, op, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  result_row(name, later, 2 * counts[rank]);
}

int main(int argument_count, char** arguments) {
  int equal[kMaxRanks], unequal[kMaxRanks];
  MPI_Op op;
  begin(argument_count, arguments);
  for (int i = 0; i < ranks; ++i) {
    equal[i] = 2;
    unequal[i] = i % 3;
  }
  MPI_Op_create(compose, 0, &op);
  scatter("equal", equal, op);
  scatter("unequal", unequal, op);
  MPI_Op_free(&op);
  return end();
}
