#include "planner/workload/reference.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "base/counted.h"
#include "base/splitmix64.h"
#include "base/try.h"
#include "collectives/machine/affine.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier::reference {
namespace {

// A position-dependent number: a block in the wrong place, or left from another repetition, shows.
std::uint64_t noise(std::uint32_t rank, std::uint32_t repetition, std::uint64_t i) {
  return splitmix64(i ^ (std::uint64_t{rank} << 48) ^ (std::uint64_t{repetition} << 32));
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

// Values are 0 .. spread-1, or spread values around 0. 97 fits the 8-bit types, where min and max
// must not wrap.
std::uint64_t spread(const ReferenceInput& run) {
  const std::uint64_t most = run.op.op == Op::kSum ? exact_limit(run.op.type) / run.ranks : 1009;
  return std::min<std::uint64_t>(most, element_bytes(run.op) == 1 ? 97 : 1009);
}

std::int64_t value(const ReferenceInput& run, std::uint64_t spread, std::uint32_t rank,
                   std::uint32_t repetition, std::uint64_t i) {
  const std::uint64_t number = noise(rank, repetition, i);
  if (run.op.op == Op::kProduct && is_float(run.op.type)) return (number & 1) != 0 ? 1 : -1;
  const auto small = static_cast<std::int64_t>((number >> 20) % spread);
  return is_signed(run.op.type) ? small - static_cast<std::int64_t>(spread / 2) : small;
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

// Messages are little-endian.
template <typename T>
void put(std::uint8_t* out, std::uint64_t i, T number) {
  constexpr bool kIsFloat = std::is_floating_point_v<T>;
  using Wide = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  Wide bits = 0;
  if constexpr (kIsFloat) {
    bits = std::bit_cast<Wide>(number);
  } else {
    bits = number;
  }
  store_le(out + i * sizeof number, static_cast<std::uint64_t>(bits), sizeof number);
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

// Bytes [from, from + size) of what rank gives.
void fill_bytes(std::uint64_t from, std::uint64_t size, std::uint32_t rank,
                std::uint32_t repetition, std::uint8_t* out) {
  for (std::uint64_t i = from; i < from + size;) {
    const std::uint64_t inside = i % 8;
    const std::uint64_t word = little(noise(rank, repetition, i - inside));
    const std::uint64_t now = std::min(8 - inside, from + size - i);
    std::memcpy(out + (i - from), reinterpret_cast<const std::uint8_t*>(&word) + inside, now);
    i += now;
  }
}

bool is_affine(const ReferenceInput& run) { return run.op.op == Op::kCustom; }

// The map {a, b} that rank gives as element i; a is odd, so that no map forgets its argument.
void affine_of(std::uint32_t rank, std::uint32_t repetition, std::uint64_t i,
               std::uint32_t map[2]) {
  const std::uint64_t number = noise(rank, repetition, i);
  map[0] = static_cast<std::uint32_t>(number) | 1;
  map[1] = static_cast<std::uint32_t>(number >> 32);
}

// The combination of the ranks' inputs so far, one element at a time. For affine maps: the images
// of 0 and 1.
class Folded {
 public:
  explicit Folded(const ReferenceInput& run, std::uint32_t repetition)
      : run_(run),
        repetition_(repetition),
        affine_(is_affine(run)),
        values_(affine_ ? 2 : spread(run)) {}
  // Adds the rank's elements, beginning with `first`, after (on the right of) all that were added
  // before.
  void add(std::uint32_t rank, std::uint64_t first, std::vector<std::uint64_t>& state) const {
    if (affine_) {
      for (std::uint64_t i = 0; i < state.size() / 2; ++i) {
        std::uint32_t map[2];
        affine_of(rank, repetition_, first + i, map);
        for (std::uint64_t x = 0; x < 2; ++x) {
          const std::uint64_t from = rank == 0 ? x : state[2 * i + x];
          state[2 * i + x] = static_cast<std::uint32_t>(map[0] * from + map[1]);
        }
      }
      return;
    }
    for (std::uint64_t i = 0; i < state.size(); ++i) {
      const std::int64_t next = value(run_, values_, rank, repetition_, first + i);
      const auto before = static_cast<std::int64_t>(state[i]);
      state[i] = static_cast<std::uint64_t>(rank == 0 ? next : combine(run_.op.op, before, next));
    }
  }
  void write(const std::vector<std::uint64_t>& state, std::uint8_t* out) const {
    if (affine_) {
      for (std::uint64_t i = 0; i < state.size(); i += 2) {
        put(out, i, static_cast<std::uint32_t>(state[i + 1] - state[i]));
        put(out, i + 1, static_cast<std::uint32_t>(state[i]));
      }
      return;
    }
    for (std::uint64_t i = 0; i < state.size(); ++i) {
      encode(run_.op.type, static_cast<std::int64_t>(state[i]), out, i);
    }
  }
  // Numbers of state for `elements`.
  [[nodiscard]] std::uint64_t numbers(std::uint64_t elements) const {
    return affine_ ? 2 * elements : elements;
  }
  // Elements [first, first + elements) of all ranks combined.
  void write_all(std::uint64_t first, std::uint64_t elements, std::uint8_t* out) const {
    constexpr std::uint64_t kPiece = 4096;
    std::vector<std::uint64_t> state;
    for (std::uint64_t i = 0; i < elements; i += kPiece) {
      state.assign(numbers(std::min(kPiece, elements - i)), 0);
      for (std::uint32_t rank = 0; rank < run_.ranks; ++rank) add(rank, first + i, state);
      write(state, out + i * element_bytes(run_.op));
    }
  }

 private:
  const ReferenceInput& run_;
  std::uint32_t repetition_;
  bool affine_;
  std::uint64_t values_;
};

bool per_rank(Collective collective) {
  return collective == Collective::kScatter || collective == Collective::kGather ||
         collective == Collective::kAllgather || collective == Collective::kReduceScatter ||
         collective == Collective::kAllToAll;
}

// Bytes of the part that goes from rank `from` to rank `to`.
std::uint64_t part_bytes(const ReferenceInput& run, std::uint32_t from, std::uint32_t to) {
  if (run.counts.empty()) return run.bytes;
  const bool by_origin =
      run.collective == Collective::kGather || run.collective == Collective::kAllgather;
  const std::uint64_t row = run.collective == Collective::kAllToAll ? from * run.ranks : 0;
  return run.counts[row + (by_origin ? from : to)] * element_bytes(run.op);
}

// Bytes of the parts that rank `from` sends to ranks 0 .. end-1.
std::uint64_t bytes_before(const ReferenceInput& run, std::uint32_t from, std::uint32_t end) {
  if (run.counts.empty()) return run.bytes * end;
  std::uint64_t sum = 0;
  for (std::uint32_t to = 0; to < end; ++to) sum += part_bytes(run, from, to);
  return sum;
}

// Bytes of the parts that all ranks send to rank `to`.
std::uint64_t bytes_to(const ReferenceInput& run, std::uint32_t to) {
  if (run.counts.empty()) return run.bytes * run.ranks;
  std::uint64_t sum = 0;
  for (std::uint32_t from = 0; from < run.ranks; ++from) sum += part_bytes(run, from, to);
  return sum;
}

}  // namespace

bool combines(Collective collective) {
  switch (collective.value()) {
    case Collective::kReduce:
    case Collective::kAllreduce:
    case Collective::kScan:
    case Collective::kExscan:
    case Collective::kReduceScatter: return true;
    default: return false;
  }
}

Result<Operator> parse_operator(const std::string& op, const std::string& type) {
  if (op == "affine") return affine();
  Operator out;
  if (!parse_op(op.c_str(), out.op) || out.op < Op::kSum || out.op > Op::kXor) {
    return fail(
        "unknown operator '" + op +
        "'; expected sum, product, min, max, and, or, xor or affine (which does not commute)");
  }
  if (!parse_type(type.c_str(), out.type) || out.type < Type::kI8 || out.type > Type::kF64) {
    return fail("unknown type '" + type +
                "'; expected i8 to i64, u8 to u64, f16, bf16, f32 or f64");
  }
  if (!can_combine(out)) {
    return fail("there is no " + op + " on " + type + "; and, or, xor need an integer type");
  }
  return out;
}

std::string operator_name(const Operator& op) {
  return op.op == Op::kCustom && op.custom_id == kAffineId ? "affine" : op_name(op.op);
}

Operator default_operator(Collective collective) {
  Operator op;
  if (!combines(collective)) return op;
  op.op = Op::kSum;
  op.type = Type::kF32;
  return op;
}

Result<void> check_whole_elements(const ReferenceInput& run) {
  if (run.collective == Collective::kBarrier && run.bytes != 0) {
    return fail("a barrier moves no bytes, not " + std::to_string(run.bytes) + "; expected 0");
  }
  if (!combines(run.collective)) return {};
  const std::uint32_t size = element_bytes(run.op);
  if (run.bytes % size == 0) return {};
  const std::string type = is_affine(run) ? "affine maps" : type_name(run.op.type);
  return fail(counted(run.bytes, "byte") + (run.bytes == 1 ? " is" : " are") +
              " no whole number of " + type + "; expected a multiple of " + std::to_string(size));
}

Result<void> check_supported(const ReferenceInput& run) {
  ESPALIER_TRY(check_whole_elements(run));
  if (!combines(run.collective) || is_affine(run) || spread(run) >= 2) return {};
  return fail("a sum over " + counted(run.ranks, "rank") + " is not exact in " +
              type_name(run.op.type) + "; take a wider type");
}

std::uint64_t count(const ReferenceInput& run) { return run.bytes / element_bytes(run.op); }

bool has_input(const ReferenceInput& run, std::uint32_t rank) {
  switch (run.collective.value()) {
    case Collective::kBroadcast:
    case Collective::kScatter: return rank == run.root;
    case Collective::kBarrier: return false;
    default: return true;
  }
}

bool has_result(const ReferenceInput& run, std::uint32_t rank) {
  switch (run.collective.value()) {
    case Collective::kBroadcast: return rank != run.root;
    case Collective::kReduce:
    case Collective::kGather: return rank == run.root;
    case Collective::kExscan: return rank != 0;
    case Collective::kBarrier: return false;
    default: return true;
  }
}

std::uint64_t input_bytes(const ReferenceInput& run, std::uint32_t rank) {
  const bool own =
      run.collective == Collective::kGather || run.collective == Collective::kAllgather;
  if (!has_input(run, rank)) return 0;
  if (!per_rank(run.collective)) return run.bytes;
  return own ? part_bytes(run, rank, rank) : bytes_before(run, rank, run.ranks);
}

std::uint64_t result_bytes(const ReferenceInput& run, std::uint32_t rank) {
  const bool own =
      run.collective == Collective::kScatter || run.collective == Collective::kReduceScatter;
  if (!has_result(run, rank)) return 0;
  if (!per_rank(run.collective)) return run.bytes;
  return own ? part_bytes(run, rank, rank) : bytes_to(run, rank);
}

void fill_input(const ReferenceInput& run, std::uint32_t rank, std::uint32_t repetition,
                std::uint8_t* out) {
  const std::uint64_t bytes = input_bytes(run, rank);
  if (!combines(run.collective)) return fill_bytes(0, bytes, rank, repetition, out);
  const std::uint64_t elements = bytes / element_bytes(run.op);
  if (is_affine(run)) {
    for (std::uint64_t i = 0; i < elements; ++i) {
      std::uint32_t map[2];
      affine_of(rank, repetition, i, map);
      std::memcpy(out + i * sizeof map, map, sizeof map);
    }
    return;
  }
  const std::uint64_t values = spread(run);
  for (std::uint64_t i = 0; i < elements; ++i) {
    encode(run.op.type, value(run, values, rank, repetition, i), out, i);
  }
}

const std::vector<std::uint8_t>& Results::of(std::uint32_t rank) {
  if (made_) return result_;
  result_.resize(result_bytes(run_, rank));
  switch (run_.collective.value()) {
    case Collective::kReduce:
    case Collective::kAllreduce:
      Folded(run_, repetition_).write_all(0, count(run_), result_.data());
      made_ = true;
      break;
    case Collective::kReduceScatter: {
      const std::uint32_t size = element_bytes(run_.op);
      Folded(run_, repetition_)
          .write_all(bytes_before(run_, rank, rank) / size, part_bytes(run_, rank, rank) / size,
                     result_.data());
      break;
    }
    case Collective::kScan:
    case Collective::kExscan: scan(rank); break;
    default: move(rank); break;
  }
  return result_;
}

// Makes a result of a collective that moves data unchanged.
void Results::move(std::uint32_t rank) {
  std::uint8_t* next = result_.data();
  switch (run_.collective.value()) {
    case Collective::kBroadcast:
      fill_bytes(0, run_.bytes, run_.root, repetition_, next);
      made_ = true;
      break;
    case Collective::kScatter:
      fill_bytes(bytes_before(run_, run_.root, rank), part_bytes(run_, run_.root, rank), run_.root,
                 repetition_, next);
      break;
    case Collective::kGather:
    case Collective::kAllgather:
      for (std::uint32_t from = 0; from < run_.ranks; ++from) {
        const std::uint64_t bytes = part_bytes(run_, from, rank);
        fill_bytes(0, bytes, from, repetition_, next);
        next += bytes;
      }
      made_ = true;
      break;
    case Collective::kAllToAll:
      for (std::uint32_t from = 0; from < run_.ranks; ++from) {
        const std::uint64_t bytes = part_bytes(run_, from, rank);
        fill_bytes(bytes_before(run_, from, rank), bytes, from, repetition_, next);
        next += bytes;
      }
      break;
    default: break;
  }
}

void Results::scan(std::uint32_t rank) {
  const Folded folded(run_, repetition_);
  prefix_.resize(folded.numbers(count(run_)));
  const std::uint32_t end = run_.collective == Collective::kScan ? rank + 1 : rank;
  for (; scanned_ < end; ++scanned_) folded.add(scanned_, 0, prefix_);
  folded.write(prefix_, result_.data());
}

}  // namespace espalier::reference
