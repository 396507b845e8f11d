/* What the programs of this folder share: lines of results in FOLDER/RANK, which must be the same with another library in front. */
#pragma once
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined OPEN_MPI && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PERSISTENT(NAME) MPIX_##NAME##_init
#else
#define PERSISTENT(NAME) MPI_##NAME##_init
#endif

static FILE* results;
static int rank, ranks;

/* A program of the standard's ABI knows only at run time which library it has. */
__attribute__((unused)) static int is_open_mpi(void) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  return strncmp(version, "Open MPI", 8) == 0;
}

static void begin(int argument_count, char** arguments) {
  char path[4096];
  MPI_Init(&argument_count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  snprintf(path, sizeof(path), "%s/%d", argument_count > 1 ? arguments[1] : ".", rank);
  results = fopen(path, "w");
  if (results == NULL) {
    fprintf(stderr, "cannot write '%s'\n", path);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
}

__attribute__((format(printf, 1, 2), unused)) static void result(const char* format, ...) {
  va_list values;
  va_start(values, format);
  vfprintf(results, format, values);
  va_end(values);
  fputc('\n', results);
  fflush(results);
}

__attribute__((unused)) static void result_row(const char* name, const int* values, int count) {
  fprintf(results, "%s:", name);
  for (int i = 0; i < count; ++i) fprintf(results, " %d", values[i]);
  fputc('\n', results);
  fflush(results);
}

static int end(void) {
  fclose(results);
  MPI_Finalize();
  return 0;
}
