/* More than 2 GiB in one call, forked children, and MPI_COMM_SELF, which cannot be freed.

   edges FOLDER */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "results.h"

/* The bytes of a unit repeat through the whole buffer. */
enum { kUnit = 1 << 24, kUnits = 129, kCount = (1 << 28) + 8 };

/* Returns kUnits times kUnit bytes that share the memory of one unit: the machine need not have more. */
static int64_t* map_repeated(void) {
  const int file = memfd_create("unit", 0);
  char* const all =
      mmap(NULL, (size_t)kUnits * kUnit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (file < 0 || ftruncate(file, kUnit) != 0 || all == MAP_FAILED) MPI_Abort(MPI_COMM_WORLD, 3);
  for (size_t i = 0; i < kUnits; ++i)
    if (mmap(all + i * kUnit, kUnit, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) ==
        MAP_FAILED)
      MPI_Abort(MPI_COMM_WORLD, 3);
  close(file);
  return (int64_t*)all;
}

/* 2 GiB and 64 bytes: neither fits into an int. */
static void check_size(void) {
  MPI_Comm pair;
  MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, rank, &pair);
  if (pair == MPI_COMM_NULL) return;
  int64_t* const data = map_repeated();
  if (rank == 0)
    for (int i = 0; i < kUnit / 8; ++i) data[i] = 3 * (int64_t)i + 1;
  MPI_Bcast(data, kCount, MPI_INT64_T, 0, pair);
  int wrong = 0;
  for (int i = 0; i < kUnit / 8; ++i) wrong += data[i] != 3 * (int64_t)i + 1;
  result("2 GiB: %d elements of a unit are wrong", wrong);
  munmap(data, (size_t)kUnits * kUnit);
  MPI_Comm_free(&pair);
}




/* A child that ends by exit() or _exit(), or starts another program, while a collective is active. */
static void check_forks(void) {

  for (int way = 0; way < 3; ++way) {
    int sum = 0, status = -1;
    MPI_Request request;
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    const pid_t child = fork();
    if (child == 0) {
      if (way == 0) exit(7);
      if (way == 1) _exit(7);
      execl("/bin/sh", "sh", "-c", "exit 7", (char*)NULL);
      _exit(1);
    }
    waitpid(child, &status, 0);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    result("fork: status %d, sum %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1, sum);
    MPI_Bcast(&sum, 1, MPI_INT, 1, MPI_COMM_WORLD);
    result("then: %d", sum);
  }
}

static void check_self(void) {
  MPI_Comm self = MPI_COMM_SELF;
  int class = -1, sum = -1;
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Error_class(MPI_Comm_free(&self), &class);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
  result("free of self: class %d, is self %d, then %d", class, self == MPI_COMM_SELF, sum);
}

int main(int argument_count, char** arguments) {
  begin(argument_count, arguments);
  check_self();
  check_forks();
  check_size();
  return end();
}
