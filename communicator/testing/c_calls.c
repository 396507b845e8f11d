#include "communicator/testing/c_calls.h"

#include <stddef.h>

// Ranks at most, and elements of each part.
enum { kRanks = 8, kPart = 3, kAll = kRanks * kPart };

// Ends the check with the text of what does not hold.
#define REQUIRE(condition)               \
  do {                                   \
    if (!(condition)) return #condition; \
  } while (0)

// Element i of rank r's data.
static int64_t value(uint32_t rank, uint64_t i) { return (int64_t)(rank * 1000 + i); }

static int64_t sum_of(uint32_t ranks, uint64_t i) {
  int64_t sum = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) sum += value(rank, i);
  return sum;
}

// Elements from the place `first` on are `base` + their index.
static int is_row(const int64_t* row, int64_t base, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    if (row[i] != base + (int64_t)i) return 0;
  }
  return 1;
}

static int is_sum(const int64_t* row, uint32_t ranks, uint64_t first, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    if (row[i] != sum_of(ranks, first + i)) return 0;
  }
  return 1;
}

static void fill(int64_t* row, uint32_t rank, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) row[i] = value(rank, i);
}

static const char* check_reductions(espalier_comm* world, uint32_t me, uint32_t ranks) {
  int64_t own[kAll], out[kAll];
  const uint32_t root = ranks - 1;
  fill(own, me, kAll);
  fill(out, 99, kAll);
  REQUIRE(espalier_reduce(own, out, kPart, ESPALIER_I64, ESPALIER_SUM, root, world) == 0);
  REQUIRE(me == root ? is_sum(out, ranks, 0, kPart) : is_row(out, value(99, 0), kPart));
  REQUIRE(espalier_allreduce(own, out, kPart, ESPALIER_I64, ESPALIER_SUM, world) == 0);
  REQUIRE(is_sum(out, ranks, 0, kPart));
  REQUIRE(espalier_scan(own, out, kPart, ESPALIER_I64, ESPALIER_SUM, world) == 0);
  REQUIRE(is_sum(out, me + 1, 0, kPart));
  fill(out, 99, kAll);
  REQUIRE(espalier_exscan(own, out, kPart, ESPALIER_I64, ESPALIER_SUM, world) == 0);
  REQUIRE(me == 0 ? is_row(out, value(99, 0), kPart) : is_sum(out, me, 0, kPart));
  REQUIRE(espalier_reduce_scatter(own, out, kPart, ESPALIER_I64, ESPALIER_SUM, world) == 0);
  REQUIRE(is_sum(out, ranks, me * kPart, kPart));
  REQUIRE(espalier_allreduce(own, own, kPart, ESPALIER_I64, ESPALIER_MAX, world) == 0);
  REQUIRE(is_row(own, value(ranks - 1, 0), kPart));
  return NULL;
}

static const char* check_moves(espalier_comm* world, uint32_t me, uint32_t ranks) {
  int64_t own[kAll], out[kAll];
  fill(own, me == 0 ? 5 : 99, kAll);
  REQUIRE(espalier_broadcast(own, kAll, ESPALIER_I64, 0, world) == 0);
  REQUIRE(is_row(own, value(5, 0), kAll));
  REQUIRE(espalier_scatter(own, out, kPart, ESPALIER_I64, 0, world) == 0);
  REQUIRE(is_row(out, value(5, me * kPart), kPart));
  fill(own, me, kAll);
  REQUIRE(espalier_gather(own, out, kPart, ESPALIER_I64, 0, world) == 0);
  for (uint32_t rank = 0; rank < ranks && me == 0; ++rank) {
    REQUIRE(is_row(out + rank * kPart, value(rank, 0), kPart));
  }
  REQUIRE(espalier_allgather(own, out, kPart, ESPALIER_I64, world) == 0);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    REQUIRE(is_row(out + rank * kPart, value(rank, 0), kPart));
  }
  REQUIRE(espalier_all_to_all(own, out, kPart, ESPALIER_I64, world) == 0);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    REQUIRE(is_row(out + rank * kPart, value(rank, me * kPart), kPart));
  }
  REQUIRE(espalier_barrier(world) == 0);
  return NULL;
}

// Rank r's part has r elements; in an all-to-all, rank r sends r elements to each.
static const char* check_unequal(espalier_comm* world, uint32_t me, uint32_t ranks) {
  int64_t own[kRanks * kRanks], out[kRanks * kRanks];
  uint64_t counts[kRanks], pairs[kRanks * kRanks];
  uint64_t before[kRanks];
  uint64_t total = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    counts[rank] = rank;
    before[rank] = total;
    total += rank;
    for (uint32_t to = 0; to < ranks; ++to) pairs[rank * ranks + to] = rank;
  }
  fill(own, me, kRanks * kRanks);
  REQUIRE(espalier_allgatherv(own, out, counts, ESPALIER_I64, world) == 0);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    REQUIRE(is_row(out + before[rank], value(rank, 0), rank));
  }
  REQUIRE(espalier_gatherv(own, out, counts, ESPALIER_I64, 0, world) == 0);
  for (uint32_t rank = 0; rank < ranks && me == 0; ++rank) {
    REQUIRE(is_row(out + before[rank], value(rank, 0), rank));
  }
  REQUIRE(espalier_scatterv(own, out, counts, ESPALIER_I64, 0, world) == 0);
  REQUIRE(is_row(out, value(0, before[me]), me));
  REQUIRE(espalier_reduce_scatterv(own, out, counts, ESPALIER_I64, ESPALIER_SUM, world) == 0);
  REQUIRE(is_sum(out, ranks, before[me], me));
  REQUIRE(espalier_all_to_allv(own, out, pairs, ESPALIER_I64, world) == 0);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    REQUIRE(is_row(out + before[rank], value(rank, (uint64_t)me * rank), rank));
  }
  REQUIRE(espalier_allgatherv(own, out, NULL, ESPALIER_I64, world) == ESPALIER_BAD_ARGUMENT);
  return NULL;
}

// The affine maps x -> scale * x + shift, one after the other: associative, and the order matters.
struct affine {
  int64_t scale, shift;
};
static void compose(void* into, const void* a, const void* b, uint64_t count, void* context) {
  *(uint32_t*)context += 1;
  for (uint64_t i = 0; i < count; ++i) {
    const struct affine first = ((const struct affine*)a)[i];
    const struct affine second = ((const struct affine*)b)[i];
    ((struct affine*)into)[i] =
        (struct affine){first.scale * second.scale, first.shift * second.scale + second.shift};
  }
}

static const char* check_calls(espalier_comm* world, uint32_t me, uint32_t ranks) {
  uint32_t composed = 0;
  struct affine own = {2, me + 1}, out = {0, 0};
  espalier_call call = espalier_default_call();
  call.collective = ESPALIER_ALLREDUCE;
  call.type = ESPALIER_CUSTOM_TYPE;
  call.element_bytes = sizeof(own);
  call.op = ESPALIER_CUSTOM_OP;
  call.combine = compose;
  call.custom_id = 1;
  call.context = &composed;
  call.send = &own;
  call.receive = &out;
  call.count = 1;
  REQUIRE(espalier_run(&call, world) == 0);
  int64_t x = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) x = 2 * x + rank + 1;
  REQUIRE(out.shift == x && out.scale == (int64_t)1 << ranks);

  // Two are started, and run in this order.
  struct affine again = {0, 0};
  espalier_request *first = NULL, *second = NULL;
  REQUIRE(espalier_start(&call, world, &first) == 0);
  call.send = &out;
  call.receive = &again;
  REQUIRE(espalier_start(&call, world, &second) == 0);
  int complete = 0;
  while (!complete) REQUIRE(espalier_test(second, &complete) == 0);
  REQUIRE(espalier_wait(first) == 0 && espalier_wait(second) == 0);
  REQUIRE(again.scale == (int64_t)1 << (ranks * ranks));

  espalier_plan* plan = NULL;
  call.send = &own;
  REQUIRE(espalier_plan_call(&call, world, &plan) == 0);
  REQUIRE(espalier_plan_algorithm(plan)[0] != '\0');
  for (int64_t round = 1; round < 4; ++round) {
    own.scale = round;
    own.shift = 0;
    REQUIRE(espalier_plan_start(plan) == 0 && espalier_plan_wait(plan) == 0);
    REQUIRE(espalier_plan_test(plan, &complete) == 0 && complete == 1);
    int64_t power = 1;
    for (uint32_t rank = 0; rank < ranks; ++rank) power *= round;
    REQUIRE(again.scale == power);
  }
  espalier_plan_free(plan);
  return NULL;
}

// Each rank sends two numbers to the next one in a ring.
static const char* check_neighbors(espalier_comm* world, uint32_t me, uint32_t ranks) {
  const uint32_t next = (me + 1) % ranks, last = (me + ranks - 1) % ranks;
  espalier_neighbor neighbors[2] = {{next, 2, 0}, {last, 0, 2}};
  size_t neighbors_count = 2;
  if (next == last) {
    neighbors[0].receive = 2;
    neighbors_count = 1;
  }
  uint64_t counts[7 * 7];
  REQUIRE(espalier_neighbor_counts(neighbors, neighbors_count, counts, world) == 0);
  for (uint32_t i = 0; i < ranks * ranks; ++i) {
    REQUIRE(counts[i] == (i % ranks == (i / ranks + 1) % ranks ? 2 : 0));
  }
  const int32_t sent[2] = {(int32_t)me, -(int32_t)me};
  int32_t received[2] = {0, 0};
  REQUIRE(espalier_all_to_allv(sent, received, counts, ESPALIER_I32, world) == 0);
  REQUIRE(received[0] == (int32_t)last && received[1] == -(int32_t)last);
  neighbors[0].rank = ranks;
  REQUIRE(espalier_neighbor_counts(neighbors, 1, counts, world) == ESPALIER_BAD_ARGUMENT);
  return NULL;
}

// Even and odd ranks; the last rank gets none. The keys turn the order round.
static const char* check_split(espalier_comm* world, uint32_t me, uint32_t ranks) {
  espalier_comm* part = NULL;
  const int is_out = me == ranks - 1;
  REQUIRE(espalier_split(world, is_out ? -1 : (int64_t)(me % 2), -(int64_t)me, &part) == 0);
  REQUIRE((part == NULL) == is_out);
  if (is_out) return NULL;
  int64_t sum = me, expected = 0, larger = 0;
  for (uint32_t rank = me % 2; rank + 1 < ranks; rank += 2) {
    expected += rank;
    larger += rank > me;
  }
  REQUIRE(espalier_rank(part) == larger);
  REQUIRE(espalier_allreduce(&sum, &sum, 1, ESPALIER_I64, ESPALIER_SUM, part) == 0);
  REQUIRE(sum == expected);
  espalier_leave(part);
  return NULL;
}

// Rank 0 ends a part of all ranks; the whole job goes on.
static const char* check_cancel(espalier_comm* world, uint32_t me) {
  espalier_comm* part = NULL;
  volatile sig_atomic_t flag = 0;
  REQUIRE(espalier_split(world, 0, 0, &part) == 0);
  REQUIRE(espalier_cancel_on(part, &flag, NULL) == 0);
  if (me == 0) REQUIRE(espalier_cancel(part, "from C") == 0);
  int status = ESPALIER_OK;
  while (status == ESPALIER_OK) status = espalier_barrier(part);
  REQUIRE(status == ESPALIER_CANCELLED);
  REQUIRE(strcmp(espalier_error(), "barrier failed: cancelled by rank 0: from C") == 0);
  REQUIRE(espalier_cause_of(part).status == ESPALIER_CANCELLED);
  REQUIRE(espalier_leave(part) == ESPALIER_CANCELLED);
  REQUIRE(espalier_barrier(world) == 0);
  return NULL;
}

const char* check_c_calls(espalier_comm* world) {
  const uint32_t me = espalier_rank(world), ranks = espalier_size(world);
  REQUIRE(ranks <= 7);  // 2 to the power of ranks * ranks is an int64_t
  const char* bad = check_reductions(world, me, ranks);
  if (bad == NULL) bad = check_moves(world, me, ranks);
  if (bad == NULL) bad = check_unequal(world, me, ranks);
  if (bad == NULL) bad = check_calls(world, me, ranks);
  if (bad == NULL) bad = check_neighbors(world, me, ranks);
  if (bad == NULL) bad = check_split(world, me, ranks);
  if (bad == NULL) bad = check_cancel(world, me);
  REQUIRE(bad != NULL || espalier_cause_of(world).status == ESPALIER_OK);
  return bad;
}
