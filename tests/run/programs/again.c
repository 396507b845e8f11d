/* Loads the C library, joins a job, sums, and leaves: any number of times. It counts the files, the
 * memory and the shared memory that remain.
 *
 *     again LIBRARY load|keep TIMES [FOLDER JOB RANK SIZE]
 *
 * load: the library is loaded for each time, and unloaded. FOLDER ...: joins by a folder. */
#include <dirent.h>
#include <dlfcn.h>
#include <espalier/espalier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void* library;

static void* find(const char* name) {
  void* const found = dlsym(library, name);
  if (found == NULL) {
    fprintf(stderr, "again: %s\n", dlerror());
    exit(2);
  }
  return found;
}

static void load(const char* path) {
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "again: %s\n", dlerror());
    exit(2);
  }
}

static int entries(const char* path) {
  int count = 0;
  DIR* const folder = opendir(path);
  while (folder != NULL && readdir(folder) != NULL) ++count;
  if (folder != NULL) closedir(folder);
  return count;
}

static long resident_kib(void) {
  long size = 0, resident = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &size, &resident) != 2) resident = -1;
  if (file != NULL) fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Joins, sums, and leaves. */
static void once(const espalier_join_options* options, int round) {
  int (*join)(const espalier_join_options*, espalier_comm**);
  int (*allreduce)(const void*, void*, uint64_t, espalier_type, espalier_op, espalier_comm*);
  void (*leave)(espalier_comm*);
  uint32_t (*size)(const espalier_comm*);
  const char* (*error)(void);
  *(void**)&join = find("espalier_join");
  *(void**)&allreduce = find("espalier_allreduce");
  *(void**)&leave = find("espalier_leave");
  *(void**)&size = find("espalier_size");
  *(void**)&error = find("espalier_error");
  espalier_comm* world = NULL;
  int32_t one = 1, sum = 0;
  if (join(options, &world) != ESPALIER_OK) {
    fprintf(stderr, "again: join %d: %s\n", round, error());
    exit(1);
  }
  if (allreduce(&one, &sum, 1, ESPALIER_I32, ESPALIER_SUM, world) != ESPALIER_OK) {
    fprintf(stderr, "again: allreduce %d: %s\n", round, error());
    exit(1);
  }
  if (sum != (int32_t)size(world)) {
    fprintf(stderr, "again: sum %d of %d\n", (int)sum, (int)size(world));
    exit(1);
  }
  leave(world);
}

int main(int count, char** words) {
  if (count != 4 && count != 8) return 2;
  const int loads = strcmp(words[2], "load") == 0;
  const int times = atoi(words[3]);
  espalier_join_options options = espalier_default_join_options();
  if (count == 8) {
    options.method = ESPALIER_FILE;
    options.folder = words[4];
    options.job = words[5];
    options.rank = (uint32_t)atoi(words[6]);
    options.size = (uint32_t)atoi(words[7]);
  }
  /* Libraries allocate once what they keep. */
  const int warm = times / 5;
  int files = 0;
  long memory = 0;
  if (!loads) load(words[1]);
  for (int round = 0; round < times; ++round) {
    if (loads) load(words[1]);
    once(&options, round);
    if (loads) dlclose(library);
    if (round != warm) continue;
    files = entries("/proc/self/fd");
    memory = resident_kib();
  }
  const int more_files = entries("/proc/self/fd") - files;
  const long more_memory = resident_kib() - memory;
  if (more_files != 0 || more_memory > 4096) {
    fprintf(stderr, "again: %d more files and %ld KiB more memory after %d joins\n", more_files,
            more_memory, times - warm);
    return 1;
  }
  printf("joined %d times\n", times);
  return 0;
}
