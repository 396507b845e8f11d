// Ranks of one job in different floating-point environments get the bits of the default one.

#include "collectives/machine/float_environment.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <cstring>
#include <vector>

#include "communicator/testing/local_job.h"
#include "espalier/communicator.h"

#ifdef ESPALIER_HAS_FLOAT_ENVIRONMENT

namespace espalier {
namespace {

using namespace communicator::testing;

constexpr std::uint32_t kNodes = 5;
constexpr std::size_t kPart = 200;  // elements
constexpr std::size_t kCount = kPart * kNodes;

// What rank `rank` has: numbers whose sums are rounded, subnormal ones, and ones that overflow.
template <typename T>
std::vector<T> numbers_of(std::uint32_t rank) {
  std::vector<T> numbers(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto fraction = static_cast<T>((i * 7 + rank * 13) % 101) / 7 + 1;
    const int exponents[] = {0, -static_cast<int>(rank) * 11, sizeof(T) == 4 ? -145 : -1070,
                             sizeof(T) == 4 ? 123 : 1019};
    numbers[i] = std::ldexp(i % 3 == 0 ? -fraction : fraction, exponents[i % 4]);
  }
  return numbers;
}

template <typename T>
void add(void* into, const void* a, const void* b, std::uint64_t count, void* /*context*/) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const volatile T left = static_cast<const T*>(a)[i];
    static_cast<T*>(into)[i] = left + static_cast<const T*>(b)[i] / 3;
  }
}

// The results of all calls, one after the other, as bytes. Leaves the caller's environment.
template <typename T>
std::vector<std::uint8_t> results_on(Communicator& world, const std::vector<T>& numbers) {
  std::vector<std::uint8_t> all;
  const auto keep = [&all](const Result<void>& done, const std::vector<T>& result) {
    ASSERT_TRUE(done) << done.error().message;
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(result.data());
    all.insert(all.end(), bytes, bytes + result.size() * sizeof(T));
  };
  using In = std::span<const T>;
  using Out = std::span<T>;
  for (const Op op : {Op::kSum, Op::kProduct, Op::kMin, Op::kMax}) {
    for (const std::size_t count : {std::size_t{1}, kCount}) {
      std::vector<T> whole(count), part(kPart), first(count);
      const In in = In(numbers).first(count);
      keep(world.allreduce(in, Out(whole), op), whole);
      keep(world.scan(in, Out(first), op), first);
      if (count == kCount) keep(world.reduce_scatter(in, Out(part), op), part);
      std::vector<T> at_root(count);
      keep(world.reduce(in, Out(at_root), op, kNodes - 1), at_root);
    }
  }
  std::vector<T> own(numbers);
  Call call = call::allreduce(Out(own), Out(own), Op::kCustom);
  call.op.custom = add<T>;
  call.op.custom_id = 1;
  call.op.commutes = false;
  keep(world.run(call), own);
  return all;
}

using Bits = FloatRegister::Bits;

// The environment of a rank: each another one.
Bits environment_of(std::uint32_t rank) {
  FloatRegister::write(FloatRegister::kDefault);
  const int roundings[kNodes] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST};
  std::fesetround(roundings[rank]);
  Bits bits = FloatRegister::read();
#if defined(__x86_64__)
  constexpr Bits kFlushToZero = 0x8000, kSubnormalsAreZero = 0x40;
  if (rank == 1 || rank == 4) bits |= kFlushToZero | kSubnormalsAreZero;
#elif defined(__aarch64__) || defined(__arm__)
  constexpr Bits kFlushToZero = Bits{1} << (sizeof(Bits) == 8 ? 56 : 24);
  if (rank == 1 || rank == 4) bits |= kFlushToZero;
#endif
  FloatRegister::write(bits);
  bits = FloatRegister::read();
  FloatRegister::write(FloatRegister::kDefault);
  return bits;
}

template <typename T>
void check() {
  std::vector<std::vector<std::uint8_t>> wanted(kNodes), found(kNodes);
  on_all(kNodes, [&](Communicator& world) {
    const std::uint32_t rank = world.rank();
    const std::vector<T> numbers = numbers_of<T>(rank);
    wanted[rank] = results_on<T>(world, numbers);
    const Bits own = environment_of(rank);
    FloatRegister::write(own);
    found[rank] = results_on<T>(world, numbers);
    const Bits after = FloatRegister::read();
    FloatRegister::write(FloatRegister::kDefault);
    EXPECT_EQ(after & FloatRegister::kControl, own & FloatRegister::kControl) << rank;
  });
  for (std::uint32_t rank = 0; rank < kNodes; ++rank) {
    EXPECT_FALSE(wanted[rank].empty());
    EXPECT_TRUE(found[rank] == wanted[rank]) << "rank " << rank;
  }
}

TEST(CommunicatorInFloatEnvironments, HasTheSameBitsInF32) { check<float>(); }
TEST(CommunicatorInFloatEnvironments, HasTheSameBitsInF64) { check<double>(); }

// Shows that the tests above can fail: without an environment of their own the sums differ.
TEST(CommunicatorInFloatEnvironments, TheNumbersDependOnIt) {
  const std::vector<float> left = numbers_of<float>(0), right = numbers_of<float>(1);
  for (std::uint32_t rank = 1; rank < 4; ++rank) {
    std::vector<float> sums[2];
    for (const bool is_own : {false, true}) {
      FloatRegister::write(is_own ? environment_of(rank) : FloatRegister::kDefault);
      sums[is_own].resize(kCount);
      add<float>(sums[is_own].data(), left.data(), right.data(), kCount, nullptr);
      FloatRegister::write(FloatRegister::kDefault);
    }
    EXPECT_NE(std::memcmp(sums[0].data(), sums[1].data(), kCount * sizeof(float)), 0) << rank;
  }
}

}  // namespace
}  // namespace espalier

#endif
