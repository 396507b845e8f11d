#include "tools/reference.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace espalier::reference {
namespace {

// A bijection of 64 bits that leaves no pattern (the finaliser of splitmix64, Steele et al. 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// A position-dependent number: a block in the wrong place, or left from another repetition, shows.
std::uint64_t noise(std::uint32_t rank, std::uint32_t repetition, std::uint64_t i) {
  return mix(i ^ (std::uint64_t{rank} << 48) ^ (std::uint64_t{repetition} << 32));
}

bool is_float(Type type) {
  return type == Type::kF16 || type == Type::kBf16 || type == Type::kF32 || type == Type::kF64;
}

bool is_signed(Type type) {
  return is_float(type) || type == Type::kI8 || type == Type::kI16 || type == Type::kI32 ||
         type == Type::kI64;
}

// Integers up to this magnitude are exact in `type`; integer types wrap around, exactly too.
std::uint64_t exact_limit(Type type) {
  switch (type) {
    case Type::kF16: return 1u << 11;
    case Type::kBf16: return 1u << 8;
    case Type::kF32: return 1u << 24;
    case Type::kF64: return 1ull << 53;
    default: return 1ull << 62;
  }
}

// Values are 0 .. spread-1, or as many around 0. 97 fits the 8-bit types, where min and max must
// not wrap.
std::uint64_t spread(const Case& run) {
  const std::uint64_t most = run.op == Op::kSum ? exact_limit(run.type) / run.ranks : 1009;
  const Operator op{run.op, run.type};
  return std::min<std::uint64_t>(most, element_bytes(op) == 1 ? 97 : 1009);
}

std::int64_t value(const Case& run, std::uint64_t spread, std::uint32_t rank,
                   std::uint32_t repetition, std::uint64_t i) {
  const std::uint64_t number = noise(rank, repetition, i);
  if (run.op == Op::kProduct && is_float(run.type)) return (number & 1) != 0 ? 1 : -1;
  const auto small = static_cast<std::int64_t>((number >> 20) % spread);
  return is_signed(run.type) ? small - static_cast<std::int64_t>(spread / 2) : small;
}

// (a op b) on integers; sums and products wrap around as the types do.
std::int64_t combine(Op op, std::int64_t a, std::int64_t b) {
  const auto x = static_cast<std::uint64_t>(a);
  const auto y = static_cast<std::uint64_t>(b);
  switch (op) {
    case Op::kSum: return static_cast<std::int64_t>(x + y);
    case Op::kProduct: return static_cast<std::int64_t>(x * y);
    case Op::kMin: return std::min(a, b);
    case Op::kMax: return std::max(a, b);
    case Op::kAnd: return static_cast<std::int64_t>(x & y);
    case Op::kOr: return static_cast<std::int64_t>(x | y);
    case Op::kXor: return static_cast<std::int64_t>(x ^ y);
    default: return a;
  }
}

// The half-precision bits of an integer that is exact in it.
std::uint16_t half(std::int64_t value) {
  if (value == 0) return 0;
  const auto magnitude = static_cast<std::uint32_t>(value < 0 ? -value : value);
  const int exponent = std::bit_width(magnitude) - 1;
  const std::uint32_t fraction =
      exponent <= 10 ? magnitude << (10 - exponent) : magnitude >> (exponent - 10);
  return static_cast<std::uint16_t>((value < 0 ? 0x8000u : 0u) |
                                    static_cast<std::uint32_t>(exponent + 15) << 10 |
                                    (fraction & 0x3ffu));
}

template <typename T>
void put(std::uint8_t* out, std::uint64_t i, T number) {
  std::memcpy(out + i * sizeof number, &number, sizeof number);
}

void encode(Type type, std::int64_t value, std::uint8_t* out, std::uint64_t i) {
  switch (type) {
    case Type::kI8:
    case Type::kU8: return put(out, i, static_cast<std::uint8_t>(value));
    case Type::kI16:
    case Type::kU16: return put(out, i, static_cast<std::uint16_t>(value));
    case Type::kI32:
    case Type::kU32: return put(out, i, static_cast<std::uint32_t>(value));
    case Type::kI64:
    case Type::kU64: return put(out, i, static_cast<std::uint64_t>(value));
    case Type::kF16: return put(out, i, half(value));
    case Type::kBf16: {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
      return put(out, i, static_cast<std::uint16_t>(bits >> 16));
    }
    case Type::kF32: return put(out, i, static_cast<float>(value));
    case Type::kF64: return put(out, i, static_cast<double>(value));
    default: return;
  }
}

void fill_bytes(std::uint64_t bytes, std::uint32_t rank, std::uint32_t repetition,
                std::uint8_t* out) {
  for (std::uint64_t at = 0; at < bytes; at += 8) {
    const std::uint64_t word = noise(rank, repetition, at);
    std::memcpy(out + at, &word, std::min<std::uint64_t>(8, bytes - at));
  }
}

}  // namespace

bool supported(const Case& run, std::string& error) {
  if (run.collective == espalier_Collective_BROADCAST) return true;
  if (run.collective != espalier_Collective_REDUCE &&
      run.collective != espalier_Collective_ALLREDUCE) {
    error = "run checks broadcast, reduce and allreduce";
    return false;
  }
  const Operator op{run.op, run.type};
  const std::string both = std::string(op_name(run.op)) + " on " + type_name(run.type);
  const bool plain =
      run.op >= Op::kSum && run.op <= Op::kXor && run.type >= Type::kI8 && run.type <= Type::kF64;
  if (!plain) {
    error = "run cannot check " + both +
            "; it knows sum, product, min, max, and, or, xor on integers and floats";
  } else if (combine_function(op) == nullptr) {
    error = "there is no " + both + "; and, or, xor need an integer type";
  } else if (run.bytes % element_bytes(op) != 0) {
    error = std::to_string(run.bytes) + " bytes are no whole number of " + type_name(run.type) +
            "; give a multiple of " + std::to_string(element_bytes(op));
  } else if (spread(run) < 2) {
    error = "a sum over " + std::to_string(run.ranks) + " ranks is not exact in " +
            type_name(run.type) + "; take a wider type";
  }
  return error.empty();
}

bool has_input(const Case& run, std::uint32_t rank) {
  return run.collective != espalier_Collective_BROADCAST || rank == run.root;
}

bool has_result(const Case& run, std::uint32_t rank) {
  switch (run.collective) {
    case espalier_Collective_BROADCAST: return rank != run.root;
    case espalier_Collective_REDUCE: return rank == run.root;
    default: return true;
  }
}

void fill_input(const Case& run, std::uint32_t rank, std::uint32_t repetition, std::uint8_t* out) {
  if (run.collective == espalier_Collective_BROADCAST) {
    return fill_bytes(run.bytes, rank, repetition, out);
  }
  const std::uint64_t count = run.bytes / element_bytes({run.op, run.type});
  const std::uint64_t values = spread(run);
  for (std::uint64_t i = 0; i < count; ++i) {
    encode(run.type, value(run, values, rank, repetition, i), out, i);
  }
}

std::vector<std::uint8_t> expected(const Case& run, std::uint32_t repetition) {
  std::vector<std::uint8_t> result(run.bytes);
  if (run.collective == espalier_Collective_BROADCAST) {
    fill_bytes(run.bytes, run.root, repetition, result.data());
    return result;
  }
  const std::uint64_t count = run.bytes / element_bytes({run.op, run.type});
  const std::uint64_t values = spread(run);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::int64_t all = value(run, values, 0, repetition, i);
    for (std::uint32_t rank = 1; rank < run.ranks; ++rank) {
      all = combine(run.op, all, value(run, values, rank, repetition, i));
    }
    encode(run.type, all, result.data(), i);
  }
  return result;
}

}  // namespace espalier::reference
