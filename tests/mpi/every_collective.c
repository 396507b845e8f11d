/* Calls every collective of MPI with every predefined operator on every type that the operator is defined for, on communicators of
   several kinds, in place, with no elements, with operators of the user's own, and non-blocking. Each rank writes a line for each
   result to FOLDER/RANK: a run with another library below, or with one in front, must write the same.

   every_collective FOLDER         everything
   every_collective FOLDER pairs   one MPI_Allreduce for each pair of an operator and a type */
#include <complex.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  kInteger = 1,
  kFortranInteger = 2,
  kFloat = 4,
  kComplex = 8,
  kLogical = 16,
  kByte = 32,
  kPair = 64
};
enum { kMaxCount = 1024, kMaxRanks = 16 };

struct type {
  const char* name;
  MPI_Datatype type;
  int kind;
};
struct operator{
  const char* name;
  MPI_Op op;
  int kinds;
};

static struct type types[64];
static int type_count;
static FILE* results;
static char send[kMaxCount * kMaxRanks * 32], receive[kMaxCount * kMaxRanks * 32];

static void add(const char* name, MPI_Datatype type, int kind) {
  if (type != MPI_DATATYPE_NULL) types[type_count++] = (struct type){name, type, kind};
}
#define ADD(type, kind) add(#type, type, kind)

static void list_types(void) {
  ADD(MPI_SIGNED_CHAR, kInteger);
  ADD(MPI_UNSIGNED_CHAR, kInteger);
  ADD(MPI_SHORT, kInteger);
  ADD(MPI_UNSIGNED_SHORT, kInteger);
  ADD(MPI_INT, kInteger);
  ADD(MPI_UNSIGNED, kInteger);
  ADD(MPI_LONG, kInteger);
  ADD(MPI_UNSIGNED_LONG, kInteger);
  ADD(MPI_LONG_LONG, kInteger);
  ADD(MPI_UNSIGNED_LONG_LONG, kInteger);
  ADD(MPI_INT8_T, kInteger);
  ADD(MPI_INT16_T, kInteger);
  ADD(MPI_INT32_T, kInteger);
  ADD(MPI_INT64_T, kInteger);
  ADD(MPI_UINT8_T, kInteger);
  ADD(MPI_UINT16_T, kInteger);
  ADD(MPI_UINT32_T, kInteger);
  ADD(MPI_UINT64_T, kInteger);
  ADD(MPI_FLOAT, kFloat);
  ADD(MPI_DOUBLE, kFloat);
  ADD(MPI_LONG_DOUBLE, kFloat);
  ADD(MPI_C_FLOAT_COMPLEX, kComplex);
  ADD(MPI_C_DOUBLE_COMPLEX, kComplex);
  ADD(MPI_C_BOOL, kLogical);
  ADD(MPI_BYTE, kByte);
  ADD(MPI_2INT, kPair);
  ADD(MPI_FLOAT_INT, kPair);
  ADD(MPI_DOUBLE_INT, kPair);
  ADD(MPI_LONG_INT, kPair);
  ADD(MPI_SHORT_INT, kPair);
}

static const struct operator operators[] = {
    {"sum", MPI_SUM, kInteger | kFloat | kComplex},
    {"product", MPI_PROD, kInteger | kFloat | kComplex},
    {"min", MPI_MIN, kInteger | kFloat},
    {"max", MPI_MAX, kInteger | kFloat},
    {"land", MPI_LAND, kInteger | kLogical},
    {"lor", MPI_LOR, kInteger | kLogical},
    {"lxor", MPI_LXOR, kInteger | kLogical},
    {"band", MPI_BAND, kInteger | kByte},
    {"bor", MPI_BOR, kInteger | kByte},
    {"bxor", MPI_BXOR, kInteger | kByte},
    {"minloc", MPI_MINLOC, kPair},
    {"maxloc", MPI_MAXLOC, kPair},
};
enum { kOperators = sizeof(operators) / sizeof(operators[0]) };

static int extent_of(MPI_Datatype type) {
  MPI_Aint lower, extent;
  MPI_Type_get_extent(type, &lower, &extent);
  return (int)extent;
}

/* Small numbers: sums and products of floats are exact, products of integers fit. */
static int value(int rank, int i) { return (rank * 7 + i * 3) % 4; }

#define PUT(T, index, v) (*(T*)(to + (index)*extent) = (T)(v))
#define PUT_PAIR(V, v, n)                         \
  do {                                            \
    struct {                                      \
      V value;                                    \
      int index;                                  \
    } pair;                                       \
    memset(&pair, 0, sizeof(pair));               \
    pair.value = (V)(v);                          \
    pair.index = (n);                             \
    memcpy(to + i * extent, &pair, sizeof(pair)); \
  } while (0)

static void fill(char* to, const struct type* t, int rank, int count) {
  const int extent = extent_of(t->type);
  memset(to, 0, (size_t)(count * extent));
  for (int i = 0; i < count; ++i) {
    const int v = value(rank, i);
    if (t->type == MPI_FLOAT)
      PUT(float, i, v - 1);
    else if (t->type == MPI_DOUBLE)
      PUT(double, i, v - 1);
    else if (t->type == MPI_LONG_DOUBLE)
      PUT(long double, i, v - 1);
    else if (t->type == MPI_C_FLOAT_COMPLEX)
      PUT(float complex, i, v + I);
    else if (t->type == MPI_C_DOUBLE_COMPLEX)
      PUT(double complex, i, v + I);
    else if (t->type == MPI_C_BOOL)
      PUT(_Bool, i, v % 2);
    else if (t->type == MPI_2INT)
      PUT_PAIR(int, v, rank);
    else if (t->type == MPI_FLOAT_INT)
      PUT_PAIR(float, v, rank);
    else if (t->type == MPI_DOUBLE_INT)
      PUT_PAIR(double, v, rank);
    else if (t->type == MPI_LONG_INT)
      PUT_PAIR(long, v, rank);
    else if (t->type == MPI_SHORT_INT)
      PUT_PAIR(short, v, rank);
    else if (extent > 8) { /* of several int */
      for (int j = 0; j < extent / 4; ++j) memcpy(to + i * extent + 4 * j, &(const int){v + j}, 4);
    } else {
      const int64_t wide = t->type == MPI_BYTE ? v * 77 : v;
      memcpy(to + i * extent, &wide, (size_t)extent); /* little-endian */
    }
  }
}

/* The bytes between members, and those of a long double beyond its value, have no meaning. */
static void clear_gaps(char* bytes, const struct type* t, int count) {
  const int extent = extent_of(t->type);
  for (int i = 0; i < count; ++i) {
    char* one = bytes + i * extent;
    if (t->type == MPI_LONG_DOUBLE) memset(one + 10, 0, (size_t)extent - 10);
    if (t->type == MPI_DOUBLE_INT || t->type == MPI_LONG_INT)
      memset(one + 12, 0, (size_t)extent - 12);
    if (t->type == MPI_SHORT_INT) memset(one + 2, 0, 2);
  }
}

static void write_result(const char* what, const struct type* t, const char* op, const char* comm,
                         int count, int elements) {
  uint64_t hash = 14695981039346656037ULL; /* FNV-1a */
  clear_gaps(receive, t, elements);
  const int bytes = elements * extent_of(t->type);
  for (int i = 0; i < bytes; ++i) hash = (hash ^ (unsigned char)receive[i]) * 1099511628211ULL;
  fprintf(results, "%s %s %s %s %d: %016llx\n", what, t->name, op, comm, count,
          (unsigned long long)hash);
}

static void finish(MPI_Request* request, int number) {
  int done = 0;
  if (number % 2 == 0) MPI_Wait(request, MPI_STATUS_IGNORE);
  while (number % 2 == 1 && !done) MPI_Test(request, &done, MPI_STATUS_IGNORE);
}

static void clear(int elements, const struct type* t) {
  memset(receive, 0x55, (size_t)(elements * extent_of(t->type)));
}

static void check_reductions(const struct type* t, const char* name, MPI_Op op, MPI_Comm comm,
                             const char* comm_name, int count) {
  int rank, ranks, counts[kMaxRanks], all = 0;
  MPI_Request request;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  for (int i = 0; i < ranks; ++i) all += counts[i] = count == 0 ? 0 : (count + i) % 5;
  const int most = count * ranks > all ? count * ranks : all;
  for (int form = 0; form < 4; ++form) { /* bit 0: in place, bit 1: non-blocking */
    const int in_place = form & 1, later = form & 2, root = form % ranks;
    const char* forms[] = {"", "+in-place", "+non-blocking", "+in-place+non-blocking"};
    char what[64];
    fill(send, t, rank, most);
#define RUN(NAME, ELEMENTS, RESULT, BLOCKING, STARTING)                       \
  do {                                                                        \
    clear(most, t);                                                           \
    if (in_place) fill(receive, t, rank, most);                               \
    const void* from = in_place ? MPI_IN_PLACE : send;                        \
    (void)from;                                                               \
    if (later) {                                                              \
      STARTING;                                                               \
      finish(&request, form + count);                                         \
    } else {                                                                  \
      BLOCKING;                                                               \
    }                                                                         \
    snprintf(what, sizeof(what), NAME "%s", forms[form]);                     \
    write_result(what, t, name, comm_name, count, (RESULT) ? (ELEMENTS) : 0); \
  } while (0)
    RUN("allreduce", count, 1, MPI_Allreduce(from, receive, count, t->type, op, comm),
        MPI_Iallreduce(from, receive, count, t->type, op, comm, &request));
    RUN("scan", count, 1, MPI_Scan(from, receive, count, t->type, op, comm),
        MPI_Iscan(from, receive, count, t->type, op, comm, &request));
    RUN("exscan", count, rank > 0, MPI_Exscan(from, receive, count, t->type, op, comm),
        MPI_Iexscan(from, receive, count, t->type, op, comm, &request));
    RUN("reduce-scatter-block", count, 1,
        MPI_Reduce_scatter_block(from, receive, count, t->type, op, comm),
        MPI_Ireduce_scatter_block(from, receive, count, t->type, op, comm, &request));
    RUN("reduce-scatter", counts[rank], 1,
        MPI_Reduce_scatter(from, receive, counts, t->type, op, comm),
        MPI_Ireduce_scatter(from, receive, counts, t->type, op, comm, &request));
    RUN("reduce", count, rank == root,
        MPI_Reduce(rank == root ? from : send, receive, count, t->type, op, root, comm),
        MPI_Ireduce(rank == root ? from : send, receive, count, t->type, op, root, comm, &request));
  }
}

/* Every second element. */
static MPI_Datatype spaced(void) {
  MPI_Datatype type, resized;
  MPI_Type_vector(2, 1, 2, MPI_INT, &type);
  MPI_Type_create_resized(type, 0, 4 * sizeof(int), &resized);
  MPI_Type_commit(&resized);
  MPI_Type_free(&type);
  return resized;
}

/* Elements that a rank moves to and from each of the others; `gaps` are offsets with an element left out after each part. */
struct parts {
  int counts[kMaxRanks], offsets[kMaxRanks], gaps[kMaxRanks], total, spread;
  int sends[kMaxRanks], send_offsets[kMaxRanks], sent;
  int receives[kMaxRanks], receive_offsets[kMaxRanks], received;
};

static struct parts make_parts(int rank, int ranks, int count) {
  struct parts parts = {.total = 0};
  for (int i = 0; i < ranks; ++i) {
    parts.counts[i] = count == 0 ? 0 : (count + i) % 5;
    parts.offsets[i] = parts.total;
    parts.gaps[i] = parts.spread;
    parts.total += parts.counts[i];
    parts.spread += parts.counts[i] + 1;
    parts.sends[i] = count == 0 ? 0 : (rank + 2 * i + count) % 4;
    parts.receives[i] = count == 0 ? 0 : (i + 2 * rank + count) % 4;
    parts.send_offsets[i] = parts.sent;
    parts.receive_offsets[i] = parts.received;
    parts.sent += parts.sends[i];
    parts.received += parts.receives[i];
  }
  return parts;
}

static void check_moves(const struct type* t, MPI_Comm comm, const char* comm_name, int count) {
  int rank, ranks;
  MPI_Request request;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  const struct parts parts = make_parts(rank, ranks, count);
  const int most = (count + 5) * ranks;
  for (int form = 0; form < 4; ++form) {
    const int in_place = form & 1, later = form & 2, root = (form + 1) % ranks;
    const char* name = "-";
    const char* forms[] = {"", "+in-place", "+non-blocking", "+in-place+non-blocking"};
    char what[64];
    fill(send, t, rank, most);
    RUN("bcast", count, 1, MPI_Bcast(rank == root ? send : receive, count, t->type, root, comm),
        MPI_Ibcast(rank == root ? send : receive, count, t->type, root, comm, &request));
    RUN("gather", count * ranks, rank == root,
        MPI_Gather(rank == root ? from : send, count, t->type, receive, count, t->type, root, comm),
        MPI_Igather(rank == root ? from : send, count, t->type, receive, count, t->type, root, comm,
                    &request));
    RUN("gatherv", parts.spread, rank == root,
        MPI_Gatherv(rank == root ? from : send, parts.counts[rank], t->type, receive, parts.counts,
                    parts.gaps, t->type, root, comm),
        MPI_Igatherv(rank == root ? from : send, parts.counts[rank], t->type, receive, parts.counts,
                     parts.gaps, t->type, root, comm, &request));
    void* into = receive;
    RUN("scatter", count, !(in_place && rank == root),
        into = in_place && rank == root ? MPI_IN_PLACE : receive;
        MPI_Scatter(send, count, t->type, into, count, t->type, root, comm),
        into = in_place && rank == root ? MPI_IN_PLACE : receive;
        MPI_Iscatter(send, count, t->type, into, count, t->type, root, comm, &request));
    RUN("scatterv", parts.counts[rank], !(in_place && rank == root),
        into = in_place && rank == root ? MPI_IN_PLACE : receive;
        MPI_Scatterv(send, parts.counts, parts.gaps, t->type, into, parts.counts[rank], t->type,
                     root, comm),
        into = in_place && rank == root ? MPI_IN_PLACE : receive;
        MPI_Iscatterv(send, parts.counts, parts.gaps, t->type, into, parts.counts[rank], t->type,
                      root, comm, &request));
    RUN("allgather", count * ranks, 1,
        MPI_Allgather(from, count, t->type, receive, count, t->type, comm),
        MPI_Iallgather(from, count, t->type, receive, count, t->type, comm, &request));
    RUN("allgatherv", parts.total, 1,
        MPI_Allgatherv(from, parts.counts[rank], t->type, receive, parts.counts, parts.offsets,
                       t->type, comm),
        MPI_Iallgatherv(from, parts.counts[rank], t->type, receive, parts.counts, parts.offsets,
                        t->type, comm, &request));
    RUN("allgatherv-parts.gaps", parts.spread, 1,
        MPI_Allgatherv(from, parts.counts[rank], t->type, receive, parts.counts, parts.gaps,
                       t->type, comm),
        MPI_Iallgatherv(from, parts.counts[rank], t->type, receive, parts.counts, parts.gaps,
                        t->type, comm, &request));
    RUN("alltoall", count * ranks, 1,
        MPI_Alltoall(from, count, t->type, receive, count, t->type, comm),
        MPI_Ialltoall(from, count, t->type, receive, count, t->type, comm, &request));
    if (!in_place) {
      RUN("alltoallv", parts.received, 1,
          MPI_Alltoallv(from, parts.sends, parts.send_offsets, t->type, receive, parts.receives,
                        parts.receive_offsets, t->type, comm),
          MPI_Ialltoallv(from, parts.sends, parts.send_offsets, t->type, receive, parts.receives,
                         parts.receive_offsets, t->type, comm, &request));
    }
    MPI_Barrier(comm);
    MPI_Ibarrier(comm, &request);
    finish(&request, form);
  }
}

/* Affine maps x -> a x + b on unsigned numbers: associative; the order matters. */
static void compose(void* left, void* right, int* length, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *length; ++i) {
    const uint32_t* first = (const uint32_t*)left + 2 * i;
    uint32_t* second = (uint32_t*)right + 2 * i;
    const uint32_t shift = first[1] * second[0] + second[1];
    second[0] *= first[0];
    second[1] = shift;
  }
}
static void add_numbers(void* left, void* right, int* length, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *length; ++i) ((int*)right)[i] += ((const int*)left)[i];
}

/* Several at once, on two communicators, completed in all of MPI's ways. */
static void check_many(MPI_Comm a, MPI_Comm b) {
  const struct type t = {"MPI_INT", MPI_INT, kInteger};
  enum { kMany = 6 };
  int rank, in[kMany][3], *out = (int*)receive;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int way = 0; way < 5; ++way) {
    MPI_Request requests[kMany + 1];
    MPI_Status statuses[kMany + 1];
    int left = kMany, flag = 0, indices[kMany], some;
    for (int i = 0; i < kMany; ++i) {
      for (int j = 0; j < 3; ++j) in[i][j] = rank + i + j;
      MPI_Iallreduce(in[i], out + 3 * i, 3, MPI_INT, MPI_SUM, i % 2 ? a : b, &requests[i]);
    }
    requests[kMany] = MPI_REQUEST_NULL;
    if (way == 0) MPI_Waitall(kMany + 1, requests, statuses);
    if (way == 1)
      for (int i = kMany; i-- > 0;) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    if (way == 2)
      for (; left > 0; --left) MPI_Waitany(kMany, requests, &some, MPI_STATUS_IGNORE);
    if (way == 3)
      for (; left > 0; left -= some) MPI_Waitsome(kMany, requests, &some, indices, statuses);
    if (way == 4)
      while (!flag) MPI_Testall(kMany, requests, &flag, statuses);
    write_result("many", &t, "sum", "two", way, 3 * kMany);
  }
  /* A message of MPI's own that is under way while the ranks are in a collective. */
  int ranks;
  static char big[1 << 20], other[1 << 20];
  MPI_Request requests[2];
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  memset(big, rank, sizeof(big));
  MPI_Isend(big, sizeof(big), MPI_BYTE, (rank + 1) % ranks, 0, MPI_COMM_WORLD, &requests[0]);
  if (rank % 2 == 0) MPI_Barrier(a);
  MPI_Recv(other, sizeof(other), MPI_BYTE, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
  if (rank % 2 == 1) MPI_Barrier(a);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  fprintf(results, "message: %d\n", other[sizeof(other) - 1]);
}

struct communicator {
  MPI_Comm comm;
  const char* name;
};

static void check_operators(int rank, int only_pairs, MPI_Comm half) {
  for (int i = 0; i < type_count; ++i) {
    for (int o = 0; o < kOperators; ++o) {
      if (!(operators[o].kinds & types[i].kind)) continue;
      if (only_pairs) {
        fill(send, &types[i], rank, 5);
        MPI_Allreduce(send, receive, 5, types[i].type, operators[o].op, MPI_COMM_WORLD);
        write_result("allreduce", &types[i], operators[o].name, "world", 5, 5);
        continue;
      }
      check_reductions(&types[i], operators[o].name, operators[o].op, MPI_COMM_WORLD, "world", 7);
      check_reductions(&types[i], operators[o].name, operators[o].op, half, "half", 3);
    }
  }
}

static void check_communicators(const struct communicator* comms, size_t many) {
  MPI_Op ordered, unordered;
  MPI_Datatype map, gapped = spaced();
  MPI_Type_contiguous(2, MPI_UNSIGNED, &map);
  MPI_Type_commit(&map);
  MPI_Op_create(compose, 0, &ordered);
  MPI_Op_create(add_numbers, 1, &unordered);
  const struct type maps = {"map", map, kInteger}, gaps = {"gapped", gapped, kInteger},
                    ints = {"MPI_INT", MPI_INT, kInteger};
  for (size_t c = 0; c < many; ++c) {
    for (int count = 0; count < 200; count = count * 10 + 1) {
      check_reductions(&ints, "sum", MPI_SUM, comms[c].comm, comms[c].name, count);
      check_reductions(&ints, "user", unordered, comms[c].comm, comms[c].name, count);
      check_reductions(&maps, "user-ordered", ordered, comms[c].comm, comms[c].name, count);
      for (int i = 0; i < type_count; i += 5)
        check_moves(&types[i], comms[c].comm, comms[c].name, count);
      check_moves(&gaps, comms[c].comm, comms[c].name, count);
    }
  }
  MPI_Op_free(&ordered);
  MPI_Op_free(&unordered);
  MPI_Type_free(&map);
  MPI_Type_free(&gapped);
}

int main(int argument_count, char** arguments) {
  MPI_Init(&argument_count, &arguments);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  char path[4096];
  snprintf(path, sizeof(path), "%s/%d", argument_count > 1 ? arguments[1] : ".", rank);
  results = fopen(path, "w");
  if (results == NULL || ranks > kMaxRanks) {
    fprintf(stderr, "every_collective: cannot write '%s', or more than %d ranks\n", path,
            kMaxRanks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  list_types();
  const int only_pairs = argument_count > 2 && strcmp(arguments[2], "pairs") == 0;
  MPI_Comm half, copy, grid;
  int sizes[2] = {0, 0}, periods[2] = {0, 0};
  MPI_Dims_create(ranks, 2, sizes);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 0, &grid);
  check_operators(rank, only_pairs, half);
  if (!only_pairs) {
    const struct communicator comms[] = {{MPI_COMM_WORLD, "world"},
                                         {half, "half"},
                                         {copy, "copy"},
                                         {grid, "grid"},
                                         {MPI_COMM_SELF, "self"}};
    check_communicators(comms, sizeof(comms) / sizeof(comms[0]));
  }
  check_many(copy, half);
  MPI_Comm_free(&half);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&grid);
  fclose(results);
  MPI_Finalize();
  return 0;
}
