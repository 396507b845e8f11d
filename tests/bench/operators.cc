// Measures the built-in operators: every version of every operator and type, in turn with memcpy.
// Prints the record of docs/results/operators.md, of which operators_page.py makes the page.
//
//   operators [rounds]

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <vector>

#include "collectives/machine/operator_versions.h"
#include "collectives/machine/testing/operator_numbers.h"

namespace espalier {
namespace {

constexpr std::size_t kVersionCount = std::size(kVersions);
constexpr std::size_t kTurnBytes = 4 << 20;  // of a turn, if a block is smaller

constexpr std::array<std::size_t, 3> kSizes = {8 << 10, 4 << 20, 64 << 20};

// Returns the bits of 1, in each 64-bit number, of a floating-point type.
std::optional<std::uint64_t> one_of(Type type) {
  switch (type) {
    case Type::kF16: return 0x3c003c003c003c00;
    case Type::kBf16: return 0x3f803f803f803f80;
    case Type::kF32: return 0x3f8000003f800000;
    case Type::kF64: return 0x3ff0000000000000;
    default: return std::nullopt;
  }
}

struct Memory {
  explicit Memory(std::size_t bytes) : size(bytes), a(bytes), b(bytes) {}
  // Fills the operands. Products multiply by 1: with others, all numbers become subnormal in time.
  void fill(const Operator& op) {
    fill_operand(a.data(), size, 0);
    fill_operand(b.data(), size, 1);
    const std::optional<std::uint64_t> one = one_of(op.type);
    if (op.op != Op::kProduct || !one.has_value()) return;
    for (std::size_t i = 0; i < size; i += 8) std::memcpy(b.data() + i, &*one, 8);
  }
  std::size_t size;
  std::vector<std::uint8_t> a, b;
};

// Time of this thread: other processes do not count, except by what they displace from the caches.
double cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e9 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec);
}

// Returns GB/s of a turn; work() takes one block.
template <typename Work>
double speed(std::size_t bytes, const Work& work) {
  const std::size_t blocks = std::max<std::size_t>(1, kTurnBytes / bytes);
  const double begin = cpu_ns();
  for (std::size_t i = 0; i < blocks; ++i) work();
  return static_cast<double>(blocks * bytes) / (cpu_ns() - begin);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// GB/s, medians over the rounds.
struct Speeds {
  std::array<std::optional<double>, kVersionCount> versions;  // none: not of this processor
  double copy = 0;                                            // memcpy
  double ratio = 0;  // of combine(), which takes the best version, to memcpy
};

Speeds measure(const Operator& op, Memory& memory, std::uint32_t rounds) {
  const std::uint64_t count = memory.size / element_bytes(op);
  memory.fill(op);
  std::array<std::vector<double>, kVersionCount> versions;
  std::vector<double> copies, ratios;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const double copy = speed(memory.size, [&] {
      std::memcpy(memory.a.data(), memory.b.data(), memory.size);
      asm volatile("" : : "r"(memory.a.data()) : "memory");
    });
    copies.push_back(copy);
    for (std::size_t i = 0; i < kVersionCount; ++i) {
      if (kVersions[i] > best_version()) continue;
      versions[i].push_back(speed(memory.size, [&] {
        combine_by(kVersions[i], op, memory.a.data(), memory.a.data(), memory.b.data(), count);
      }));
    }
    const double best = speed(memory.size, [&] {
      combine(op, memory.a.data(), memory.a.data(), memory.b.data(), count);
    });
    ratios.push_back(best / copy);
  }
  Speeds speeds;
  for (std::size_t i = 0; i < kVersionCount; ++i) {
    if (!versions[i].empty()) speeds.versions[i] = median(versions[i]);
  }
  speeds.copy = median(copies);
  speeds.ratio = median(ratios);
  return speeds;
}

void print_rows(std::size_t bytes, std::uint32_t rounds) {
  Memory memory(bytes);
  for (std::uint8_t type = 0; type < static_cast<std::uint8_t>(Type::kCustom); ++type) {
    for (std::uint8_t number = 1; number < static_cast<std::uint8_t>(Op::kCustom); ++number) {
      Operator op{.op = static_cast<Op>(number), .type = static_cast<Type>(type)};
      if (!can_combine(op)) continue;
      const Speeds speeds = measure(op, memory, rounds);
      std::printf("%zu,%u,%s,%s", bytes, rounds, type_name(op.type), op_name(op.op));
      for (const auto& gigabytes : speeds.versions) {
        if (gigabytes.has_value()) std::printf(",%.1f", *gigabytes);
        if (!gigabytes.has_value()) std::printf(",none");
      }
      std::printf(",%.1f,%.2f\n", speeds.copy, speeds.ratio);
      std::fflush(stdout);
    }
  }
}

void print_record(std::uint32_t rounds) {
  std::printf("bytes,rounds,type,operator");
  for (const Version version : kVersions) std::printf(",%s", version_name(version));
  std::printf(",memcpy,ratio\n");
  for (const std::size_t bytes : kSizes) print_rows(bytes, rounds);
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 15;
  if (argc > 2 || rounds < 1) {
    std::fprintf(stderr, "usage: operators [rounds]; expected a number from 1\n");
    return 2;
  }
  espalier::print_record(static_cast<std::uint32_t>(rounds));
  return 0;
}
