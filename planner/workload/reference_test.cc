#include "planner/workload/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "base/testing/contains.h"
#include "base/testing/results.h"
#include "collectives/machine/affine.h"

namespace espalier::reference {
namespace {

template <typename T>
std::vector<T> input_of(const ReferenceInput& run, std::uint32_t rank, std::uint32_t repetition) {
  std::vector<std::uint8_t> bytes(input_bytes(run, rank));
  fill_input(run, rank, repetition, bytes.data());
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<std::uint8_t> result_of(const ReferenceInput& run, std::uint32_t rank,
                                    std::uint32_t repetition) {
  return Results(run, repetition).of(rank);
}

template <typename T>
std::vector<T> expected_of(const ReferenceInput& run, std::uint32_t repetition) {
  const std::vector<std::uint8_t> bytes = result_of(run, 0, repetition);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Operator plain(Op op, Type type) { return {.op = op, .type = type}; }

ReferenceInput reduction(Op op, Type type, std::uint32_t ranks, std::uint64_t bytes) {
  return {Collective::kAllreduce, ranks, 0, plain(op, type), bytes};
}

// Combining the inputs in any order gives the expected bits: forwards, backwards and by halves.
template <typename T, typename Combine>
void check_any_order(Op op, Type type, std::uint32_t ranks, Combine combine) {
  const ReferenceInput run = reduction(op, type, ranks, 512 * sizeof(T));
  ASSERT_EQ(message_of(check_supported(run)), "");
  for (std::uint32_t repetition = 0; repetition < 2; ++repetition) {
    const std::vector<T> wanted = expected_of<T>(run, repetition);
    std::vector<std::vector<T>> inputs;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      inputs.push_back(input_of<T>(run, rank, repetition));
    }
    bool varied = false;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      T forwards = inputs[0][i];
      for (std::uint32_t rank = 1; rank < ranks; ++rank) {
        forwards = combine(forwards, inputs[rank][i]);
      }
      T backwards = inputs[ranks - 1][i];
      for (std::uint32_t rank = ranks - 1; rank-- > 0;) {
        backwards = combine(inputs[rank][i], backwards);
      }
      ASSERT_EQ(std::memcmp(&forwards, &wanted[i], sizeof(T)), 0) << "element " << i;
      ASSERT_EQ(std::memcmp(&backwards, &wanted[i], sizeof(T)), 0) << "element " << i;
      varied = varied || wanted[i] != wanted[0];
    }
    EXPECT_TRUE(varied) << "a constant result shows nothing";
  }
}

TEST(Reference, FloatsAreExactInAnyOrder) {
  for (const std::uint32_t ranks : {2u, 16u, 100u}) {
    check_any_order<float>(Op::kSum, Type::kF32, ranks, [](float a, float b) { return a + b; });
    check_any_order<double>(Op::kSum, Type::kF64, ranks, [](double a, double b) { return a + b; });
    check_any_order<float>(Op::kProduct, Type::kF32, ranks, [](float a, float b) { return a * b; });
    check_any_order<float>(Op::kMin, Type::kF32, ranks,
                           [](float a, float b) { return a < b ? a : b; });
  }
}

TEST(Reference, IntegersWrapAround) {
  check_any_order<std::int32_t>(Op::kSum, Type::kI32, 16, [](int a, int b) { return a + b; });
  check_any_order<std::uint8_t>(Op::kSum, Type::kU8, 16, [](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(a + b);
  });
  check_any_order<std::uint64_t>(Op::kProduct, Type::kU64, 16,
                                 [](std::uint64_t a, std::uint64_t b) { return a * b; });
  check_any_order<std::int8_t>(Op::kMax, Type::kI8, 16,
                               [](std::int8_t a, std::int8_t b) { return a > b ? a : b; });
  check_any_order<std::uint16_t>(Op::kXor, Type::kU16, 16, [](std::uint16_t a, std::uint16_t b) {
    return static_cast<std::uint16_t>(a ^ b);
  });
}

// The bits of a half or bfloat16 as a number.
double half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10 & 31) - 25;
  const int fraction = (bits & 1023) | ((bits >> 10 & 31) != 0 ? 1024 : 0);
  return ((bits & 0x8000) != 0 ? -1 : 1) * std::ldexp(fraction, exponent);
}

double bfloat_value(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

TEST(Reference, SmallFloatsAreExactSumsOfTheirInputs) {
  for (const Type type : {Type::kF16, Type::kBf16}) {
    const ReferenceInput run = reduction(Op::kSum, type, 20, 1024);
    const auto value = type == Type::kF16 ? half_value : bfloat_value;
    const auto wanted = expected_of<std::uint16_t>(run, 3);
    std::set<double> seen;
    std::vector<double> sums(wanted.size());
    for (std::uint32_t rank = 0; rank < run.ranks; ++rank) {
      const auto input = input_of<std::uint16_t>(run, rank, 3);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += value(input[i]);
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      ASSERT_EQ(value(wanted[i]), sums[i]) << "element " << i;
      seen.insert(sums[i]);
    }
    EXPECT_GT(seen.size(), 10u);
  }
}

TEST(Reference, NoBlockLooksLikeAnother) {
  const ReferenceInput run{Collective::kBroadcast, 4, 2, {}, 1 << 16};
  std::set<std::vector<std::uint8_t>> blocks;
  for (std::uint32_t repetition = 0; repetition < 3; ++repetition) {
    const std::vector<std::uint8_t> bytes = result_of(run, 0, repetition);
    for (std::size_t i = 0; i < bytes.size(); i += 64) {
      const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(i);
      EXPECT_TRUE(blocks.insert({from, from + 64}).second);
    }
  }
}

TEST(Reference, ScansAreTheReductionsOfTheRanksBefore) {
  for (const bool order : {false, true}) {
    ReferenceInput run = reduction(Op::kSum, Type::kI32, 6, 800);
    if (order) run.op = affine();
    run.collective = Collective::kScan;
    ReferenceInput before = run;
    before.collective = Collective::kExscan;
    Results inclusive(run, 2);
    Results exclusive(before, 2);
    EXPECT_FALSE(has_result(before, 0));
    std::vector<std::uint8_t> last;
    for (std::uint32_t rank = 0; rank < run.ranks; ++rank) {
      ReferenceInput some = run;
      some.collective = Collective::kAllreduce;
      some.ranks = rank + 1;
      if (rank > 0) {
        EXPECT_EQ(exclusive.of(rank), last) << "rank " << rank;
      }
      last = inclusive.of(rank);
      EXPECT_EQ(last, result_of(some, 0, 2)) << "rank " << rank;
    }
  }
}

TEST(Reference, AffineMapsComposeInOrder) {
  ReferenceInput run = reduction(Op::kNone, Type::kBytes, 5, 64);
  run.op = affine();
  ASSERT_EQ(message_of(check_supported(run)), "");
  std::vector<std::uint8_t> forwards(64);
  std::vector<std::uint8_t> swapped(64);
  fill_input(run, 0, 1, forwards.data());
  for (std::uint32_t rank = 1; rank < run.ranks; ++rank) {
    std::vector<std::uint8_t> next(64);
    fill_input(run, rank, 1, next.data());
    combine_affine(forwards.data(), forwards.data(), next.data(), 8, nullptr);
  }
  EXPECT_EQ(forwards, result_of(run, 0, 1));
  std::vector<std::uint8_t> first(64);
  fill_input(run, 0, 1, first.data());
  fill_input(run, 1, 1, swapped.data());
  combine_affine(swapped.data(), swapped.data(), first.data(), 8, nullptr);
  for (const std::uint32_t rank : {2u, 3u, 4u}) {
    std::vector<std::uint8_t> next(64);
    fill_input(run, rank, 1, next.data());
    combine_affine(swapped.data(), swapped.data(), next.data(), 8, nullptr);
  }
  EXPECT_NE(swapped, forwards) << "two ranks out of order must show";
}

// Rank r's part of the whole, from inputs as the ranks give them.
TEST(Reference, PartsAreWhereTheCollectiveSays) {
  constexpr std::uint32_t kRanks = 3;
  constexpr std::uint64_t kPart = 13;
  const auto part = [](const std::vector<std::uint8_t>& of, std::uint32_t at) {
    const auto from = of.begin() + static_cast<std::ptrdiff_t>(at * kPart);
    return std::vector<std::uint8_t>(from, from + kPart);
  };
  ReferenceInput run{Collective::kScatter, kRanks, 1, {}, kPart};
  const auto scattered = input_of<std::uint8_t>(run, 1, 5);
  ASSERT_EQ(scattered.size(), kRanks * kPart);
  for (std::uint32_t r = 0; r < kRanks; ++r) {
    run.collective = Collective::kScatter;
    EXPECT_EQ(result_of(run, r, 5), part(scattered, r));
    run.collective = Collective::kAllgather;
    EXPECT_EQ(part(result_of(run, 0, 5), r), input_of<std::uint8_t>(run, r, 5));
    run.collective = Collective::kGather;
    EXPECT_EQ(part(result_of(run, 1, 5), r), input_of<std::uint8_t>(run, r, 5));
    EXPECT_EQ(result_bytes(run, r), r == 1 ? kRanks * kPart : 0);
    run.collective = Collective::kAllToAll;
    for (std::uint32_t q = 0; q < kRanks; ++q) {
      EXPECT_EQ(part(result_of(run, r, 5), q), part(input_of<std::uint8_t>(run, q, 5), r));
    }
  }
  run.collective = Collective::kReduceScatter;
  run.op = plain(Op::kXor, Type::kU8);
  std::vector<std::uint8_t> all(kRanks * kPart);
  for (std::uint32_t q = 0; q < kRanks; ++q) {
    const auto input = input_of<std::uint8_t>(run, q, 5);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] ^= input[i];
  }
  for (std::uint32_t r = 0; r < kRanks; ++r) EXPECT_EQ(result_of(run, r, 5), part(all, r));
}

TEST(Reference, RefusesWhatItCannotCheck) {
  EXPECT_FALSE(parse_operator("minloc", "f32loc"));
  const auto bits = parse_operator("and", "f32");
  ASSERT_FALSE(bits);
  EXPECT_PRED2(contains, bits.error().message, "and on f32");
  EXPECT_FALSE(parse_operator("sum", "f33"));
  EXPECT_FALSE(or_throw(parse_operator("affine", "f32")).commutes);
  const auto part = check_supported(reduction(Op::kSum, Type::kF32, 4, 63));
  ASSERT_FALSE(part);
  EXPECT_PRED2(contains, part.error().message, "multiple of 4");
  EXPECT_FALSE(check_supported(reduction(Op::kSum, Type::kBf16, 200, 64)));
  EXPECT_FALSE(check_supported({Collective::kBarrier, 3, 0, {}, 7}));
  EXPECT_EQ(message_of(check_supported({Collective::kBroadcast, 3, 0, {}, 7})), "");
  EXPECT_EQ(message_of(check_supported(reduction(Op::kSum, Type::kBf16, 20, 64))), "");
}

// The same table as in the schedules: two writers, one meaning.
TEST(Reference, KnowsWhoHasWhat) {
  Program program{};
  program.ranks = 3;
  program.root = 1;
  for (const Collective collective : kAllCollectives) {
    program.collective = collective;
    program.segments = counts_per_rank(program.collective) ? 3 : 1;
    ReferenceInput run{program.collective, 3, 1, {}, collective == Collective::kBarrier ? 0u : 8u};
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      program.node = rank;
      Layout layout;
      ASSERT_EQ(make_layout(program, count(run), 1, layout), Status::kOk);
      EXPECT_EQ(input_bytes(run, rank), buffer_bytes(program, layout, Buffer::kInput))
          << collective_name(collective);
      EXPECT_EQ(result_bytes(run, rank), buffer_bytes(program, layout, Buffer::kOutput))
          << collective_name(collective);
    }
  }
}

// Results with a count for each rank, put together from the inputs.
TEST(Reference, UnequalCountsCutTheInputs) {
  const std::vector<std::uint64_t> vector = {3, 0, 5};
  const std::vector<std::uint64_t> matrix = {1, 2, 3, 0, 4, 0, 7, 0, 5};
  const auto case_of = [](Collective collective, const std::vector<std::uint64_t>& counts) {
    ReferenceInput run{collective, 3, 1, {}, 0};
    run.counts = counts;
    return run;
  };
  const ReferenceInput scatter = case_of(Collective::kScatter, vector);
  EXPECT_EQ(input_bytes(scatter, 0), 0u);
  const auto whole = input_of<std::uint8_t>(scatter, 1, 0);
  ASSERT_EQ(whole.size(), 8u);
  std::vector<std::uint8_t> joined;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const auto part = result_of(scatter, rank, 0);
    EXPECT_EQ(part.size(), vector[rank]);
    joined.insert(joined.end(), part.begin(), part.end());
  }
  EXPECT_EQ(joined, whole);

  joined.clear();
  const ReferenceInput gather = case_of(Collective::kAllgather, vector);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const auto part = input_of<std::uint8_t>(gather, rank, 0);
    EXPECT_EQ(part.size(), vector[rank]);
    joined.insert(joined.end(), part.begin(), part.end());
  }
  EXPECT_EQ(result_of(gather, 2, 0), joined);

  const ReferenceInput exchange = case_of(Collective::kAllToAll, matrix);
  for (std::uint32_t to = 0; to < 3; ++to) {
    joined.clear();
    for (std::uint32_t from = 0; from < 3; ++from) {
      const auto row = input_of<std::uint8_t>(exchange, from, 0);
      std::size_t begin = 0;
      for (std::uint32_t k = 0; k < to; ++k) begin += matrix[3 * from + k];
      for (std::size_t k = 0; k < matrix[3 * from + to]; ++k) joined.push_back(row[begin + k]);
    }
    EXPECT_EQ(result_of(exchange, to, 0), joined) << to;
  }
}

// A reduce-scatter cuts the allreduce of the same elements.
TEST(Reference, UnequalCountsCutTheReduction) {
  ReferenceInput run = reduction(Op::kSum, Type::kI32, 3, 8 * sizeof(std::int32_t));
  const std::vector<std::uint8_t> all = result_of(run, 0, 0);
  run.collective = Collective::kReduceScatter;
  run.counts = {3, 0, 5};
  std::vector<std::uint8_t> joined;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const auto part = result_of(run, rank, 0);
    EXPECT_EQ(part.size(), run.counts[rank] * sizeof(std::int32_t));
    joined.insert(joined.end(), part.begin(), part.end());
  }
  EXPECT_EQ(joined, all);
}

}  // namespace
}  // namespace espalier::reference
