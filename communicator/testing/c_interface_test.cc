// The C interface, called from C by the threads of one process, over tcp on the loopback interface.

#include "communicator/c_interface.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <utility>

#include "base/version.h"
#include "communicator/testing/c_calls.h"
#include "communicator/testing/local_job.h"

namespace espalier {
namespace {

void check_calls_in_c(std::uint32_t ranks) {
  communicator::testing::on_all(ranks, [ranks](Communicator& world) {
    const std::uint32_t rank = world.rank();
    espalier_comm* handle = communicator::make_handle(std::move(world));
    const char* bad = check_c_calls(handle);
    EXPECT_EQ(bad, nullptr) << "rank " << rank << " of " << ranks << ": " << bad << "; "
                            << espalier_error();
    espalier_leave(handle);
  });
}

TEST(CInterface, OneRank) { check_calls_in_c(1); }
TEST(CInterface, TwoRanks) { check_calls_in_c(2); }
TEST(CInterface, FourRanks) { check_calls_in_c(4); }
TEST(CInterface, FiveRanks) { check_calls_in_c(5); }

TEST(CInterface, NumbersAreThoseOfTheCppEnumerations) {
  EXPECT_STREQ(type_name(static_cast<Type>(ESPALIER_BF16)), "bf16");
  EXPECT_STREQ(type_name(static_cast<Type>(ESPALIER_F64)), "f64");
  EXPECT_STREQ(type_name(static_cast<Type>(ESPALIER_U64)), "u64");
  EXPECT_STREQ(op_name(static_cast<Op>(ESPALIER_XOR)), "xor");
  EXPECT_STREQ(op_name(static_cast<Op>(ESPALIER_PRODUCT)), "product");
  EXPECT_EQ(ESPALIER_DEAD_LINK, static_cast<int>(Status::kDeadLink));
  EXPECT_EQ(ESPALIER_MISMATCH, static_cast<int>(Status::kMismatch));
  EXPECT_STREQ(espalier_version(), kVersion);
}

espalier_comm* alone() {
  espalier_join_options options = espalier_default_join_options();
  options.method = ESPALIER_ALONE;
  espalier_comm* world = nullptr;
  EXPECT_EQ(espalier_join(&options, &world), ESPALIER_OK) << espalier_error();
  return world;
}

TEST(CInterface, AllocatesMemoryForCollectives) {
  espalier_comm* world = alone();
  auto* const numbers = static_cast<float*>(espalier_allocate(100'000 * sizeof(float)));
  ASSERT_NE(numbers, nullptr);
  EXPECT_EQ(numbers[99'999], 0.0f);
  numbers[99'999] = 3;
  EXPECT_EQ(espalier_allreduce(numbers, numbers, 100'000, ESPALIER_F32, ESPALIER_SUM, world), 0);
  EXPECT_EQ(numbers[99'999], 3.0f);
  espalier_deallocate(numbers);
  espalier_deallocate(nullptr);
  EXPECT_EQ(espalier_allocate(SIZE_MAX), nullptr);
  espalier_leave(world);
}

TEST(CInterface, MemoryThatCannotBeGivenBackIsNamed) {
  auto* const bytes = static_cast<char*>(espalier_allocate(100));
  ASSERT_NE(bytes, nullptr);
  int own = 1;
  for (void* const foreign : {static_cast<void*>(&own), static_cast<void*>(bytes + 64)}) {
    espalier_deallocate(foreign);
    EXPECT_NE(std::strstr(espalier_error(), "is not of allocate(), or was given back before"),
              nullptr)
        << espalier_error();
  }
  espalier_deallocate(bytes);
  EXPECT_EQ(espalier_wait(nullptr), ESPALIER_OK);
  espalier_deallocate(bytes);
  EXPECT_NE(std::strstr(espalier_error(), "nothing is freed"), nullptr) << espalier_error();
}

TEST(CInterface, BadArgumentsAreNamed) {
  espalier_comm* world = alone();
  ASSERT_NE(world, nullptr);
  int x = 1;
  EXPECT_EQ(espalier_allreduce(&x, &x, 1, static_cast<espalier_type>(99), ESPALIER_SUM, world),
            ESPALIER_BAD_ARGUMENT);
  EXPECT_STREQ(espalier_error(), "type is 99; expected a number from 0 to 17");
  EXPECT_EQ(espalier_broadcast(&x, 1, ESPALIER_I32, 5, world), ESPALIER_BAD_ARGUMENT);
  EXPECT_STREQ(espalier_error(), "broadcast: root 5 of 1 rank");
  EXPECT_EQ(espalier_allreduce(&x, &x, 1, ESPALIER_F32, ESPALIER_AND, world),
            ESPALIER_BAD_ARGUMENT);
  int numbers[3] = {};
  EXPECT_EQ(espalier_allreduce(numbers, numbers + 1, 2, ESPALIER_I32, ESPALIER_SUM, world),
            ESPALIER_BAD_ARGUMENT);
  EXPECT_STREQ(
      espalier_error(),
      "allreduce: `send` and `receive` overlap; expected the same memory or none in common");
  EXPECT_EQ(espalier_barrier(nullptr), ESPALIER_BAD_ARGUMENT);
  EXPECT_STREQ(espalier_error(), "comm is null; expected a pointer");
  EXPECT_EQ(espalier_rank(nullptr), UINT32_MAX);
  EXPECT_EQ(espalier_size(nullptr), 0U);
  EXPECT_EQ(espalier_cause_of(nullptr).status, ESPALIER_BAD_ARGUMENT);
  EXPECT_EQ(espalier_plan_start(nullptr), ESPALIER_BAD_ARGUMENT);
  EXPECT_STREQ(espalier_error(), "plan is null; expected a pointer");
  EXPECT_EQ(espalier_cause_of(nullptr).status, ESPALIER_BAD_ARGUMENT);
  EXPECT_STREQ(espalier_error(), "comm is null; expected a pointer");
  EXPECT_STREQ(espalier_plan_algorithm(nullptr), "");
  EXPECT_STREQ(espalier_error(), "plan is null; expected a pointer");
  EXPECT_EQ(espalier_join(nullptr, nullptr), ESPALIER_BAD_ARGUMENT);
  EXPECT_EQ(espalier_wait(nullptr), ESPALIER_OK);
  espalier_plan_free(nullptr);
  EXPECT_EQ(espalier_leave(world), ESPALIER_OK);
  EXPECT_EQ(espalier_leave(nullptr), ESPALIER_OK);
}

TEST(CInterface, StructsOfOtherHeaders) {
  espalier_comm* world = alone();
  ASSERT_NE(world, nullptr);
  // A newer header: the members that this library does not have must be zero.
  struct {
    espalier_call call = espalier_default_call();
    std::array<char, 16> more = {};
  } newer;
  newer.call.struct_size = sizeof(newer);
  newer.call.collective = ESPALIER_BARRIER;
  EXPECT_EQ(espalier_run(&newer.call, world), ESPALIER_OK) << espalier_error();
  newer.more[3] = 1;
  EXPECT_EQ(espalier_run(&newer.call, world), ESPALIER_BAD_ARGUMENT);
  // An older one: the members that it does not have are not read.
  espalier_call older = espalier_default_call();
  older.collective = ESPALIER_BARRIER;
  older.type = static_cast<espalier_type>(99);
  older.struct_size = offsetof(espalier_call, type);
  EXPECT_EQ(espalier_run(&older, world), ESPALIER_OK) << espalier_error();
  older.struct_size = 0;
  EXPECT_EQ(espalier_run(&older, world), ESPALIER_BAD_ARGUMENT);
  EXPECT_STREQ(espalier_error(),
               "espalier_call.struct_size is 0; initialize it with espalier_default_call()");
  espalier_leave(world);
}

TEST(CInterface, OptionsThatCannotBeUsed) {
  espalier_join_options options = espalier_default_join_options();
  espalier_comm* world = nullptr;
  options.rank = 3;
  EXPECT_EQ(espalier_join(&options, &world), ESPALIER_BAD_ARGUMENT);
  EXPECT_EQ(world, nullptr);
  options.rank = 0;
  options.method = ESPALIER_TABLE;
  options.size = 2;
  EXPECT_EQ(espalier_join(&options, &world), ESPALIER_BAD_ARGUMENT);
  EXPECT_STREQ(espalier_error(), "table is null; expected a pointer");
  options = espalier_default_join_options();
  options.method = ESPALIER_ALONE;
  options.provider = "carrier-pigeon";
  EXPECT_EQ(espalier_join(&options, &world), ESPALIER_BACK_END);
  options.provider = "tcp";
  options.image = "image";
  options.flash = "flash";
  options.takes_unsigned = 1;
  EXPECT_EQ(espalier_join(&options, &world), ESPALIER_BACK_END);
  EXPECT_STREQ(espalier_error(), "image: a file and a flash; expected one of them");
}

}  // namespace
}  // namespace espalier
