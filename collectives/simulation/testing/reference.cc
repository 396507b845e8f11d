#include "collectives/simulation/testing/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/splitmix64.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier::testing {
namespace {

// Returns a floating-point value whose reduction is exact in any order.
double real(Op op, std::uint64_t random) {
  constexpr double kSpecial[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1.5, -2.5, 100.0};
  constexpr double kPowers[] = {1, 2, 0.5, -1};
  switch (op) {
    case Op::kSum: return static_cast<double>(random % 9) - 4;
    case Op::kProduct: return kPowers[random % 4];
    default: return kSpecial[random % 8];
  }
}

// Returns the 16 bits of a value of real(), which both formats hold exactly.
std::uint16_t half_bits(double value, bool bf16) {
  const auto single = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &single, sizeof bits);
  if (bf16) return static_cast<std::uint16_t>(bits >> 16);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  if (std::isnan(value)) return sign | 0x7e00;
  if (std::isinf(value)) return sign | 0x7c00;
  if (value == 0) return sign;
  return static_cast<std::uint16_t>(sign | (((bits & 0x7fffffff) >> 13) - (112 << 10)));
}

// Messages are little-endian.
template <typename T>
void put(Bytes& bytes, std::size_t offset, T value) {
  std::uint8_t* const at = bytes.data() + offset;
  std::memcpy(at, &value, sizeof value);
  if constexpr (!kIsLittleEndian) std::reverse(at, at + sizeof value);
}

void put_element(const Operator& op, Bytes& bytes, std::size_t offset, std::uint64_t random) {
  switch (op.type) {
    case Type::kF16: return put(bytes, offset, half_bits(real(op.op, random), false));
    case Type::kBf16: return put(bytes, offset, half_bits(real(op.op, random), true));
    case Type::kF32: return put(bytes, offset, static_cast<float>(real(op.op, random)));
    case Type::kF64: return put(bytes, offset, real(op.op, random));
    case Type::kF32Loc: put(bytes, offset, static_cast<float>(real(op.op, random))); break;
    case Type::kF64Loc: put(bytes, offset, real(op.op, random)); break;
    case Type::kI32Loc: put(bytes, offset, static_cast<std::int32_t>(random % 5)); break;
    case Type::kI64Loc: put(bytes, offset, static_cast<std::int64_t>(random % 5)); break;
    default:
      for (std::uint32_t byte = 0; byte < element_bytes(op); ++byte) {
        bytes[offset + byte] = static_cast<std::uint8_t>(splitmix64(random + byte));
      }
      return;
  }
  const auto index = static_cast<std::int64_t>(splitmix64(random) % 1000);
  if (element_bytes(op) == 8) return put(bytes, offset + 4, static_cast<std::int32_t>(index));
  put(bytes, offset + 8, index);
}

// Returns the elements of the part that goes from rank `from` to rank `to`.
std::uint64_t part_elements(const Job& job, std::uint32_t ranks, std::uint32_t from,
                            std::uint32_t to) {
  if (job.counts.empty()) return job.count;
  switch (job.collective.value()) {
    case Collective::kAllToAll: return job.counts[std::size_t{from} * ranks + to];
    case Collective::kGather:
    case Collective::kAllgather: return job.counts[from];
    default: return job.counts[to];
  }
}

// Returns the elements of the parts that rank `from` sends to ranks 0 .. end-1.
std::uint64_t elements_before(const Job& job, std::uint32_t ranks, std::uint32_t from,
                              std::uint32_t end) {
  std::uint64_t sum = 0;
  for (std::uint32_t to = 0; to < end; ++to) sum += part_elements(job, ranks, from, to);
  return sum;
}

// Returns this many elements of the rank's input, from element `first` onward. An element depends
// only on the seed, the rank and its index, so a part is made without the rest of the input.
Bytes values(const Job& job, std::uint32_t rank, std::uint64_t first, std::uint64_t elements) {
  const std::uint32_t size = element_bytes(job.op);
  const std::uint64_t start = splitmix64(job.seed + 1000ull * rank);
  Bytes bytes(elements * size);
  for (std::uint64_t i = 0; i < elements; ++i) {
    put_element(job.op, bytes, i * size, splitmix64(start + first + i));
  }
  return bytes;
}

// Returns the part that goes from rank `from` to rank `to`.
Bytes part(const Job& job, std::uint32_t ranks, std::uint32_t from, std::uint32_t to) {
  return values(job, from, elements_before(job, ranks, from, to),
                part_elements(job, ranks, from, to));
}

// Returns these elements of the inputs of ranks 0 .. end-1, combined in this order.
Bytes combined(const Job& job, std::uint32_t end, std::uint64_t first, std::uint64_t elements) {
  Bytes result = values(job, 0, first, elements);
  for (std::uint32_t rank = 1; rank < end; ++rank) {
    const Bytes next = values(job, rank, first, elements);
    combine(job.op, result.data(), result.data(), next.data(), elements);
  }
  return result;
}

}  // namespace

std::string describe(const Job& job, std::uint32_t ranks) {
  std::string text = std::string(collective_name(job.collective)) + " " +
                     (job.programs != nullptr ? "given" : job.algorithm) + " p " +
                     std::to_string(ranks) + " root " + std::to_string(job.root) + " count " +
                     std::to_string(job.count) + " " + op_name(job.op.op) + " " +
                     type_name(job.op.type);
  if (job.programs == nullptr) {
    text += " window " + std::to_string(job.window) + " block " + std::to_string(job.block_bytes);
  }
  for (const std::uint64_t count : job.counts) text += " " + std::to_string(count);
  return text + (job.in_place ? " in place" : "");
}

Bytes input_of(const Job& job, std::uint32_t ranks, std::uint32_t rank) {
  switch (job.collective.value()) {
    case Collective::kBarrier: return {};
    case Collective::kBroadcast:
      return rank == job.root ? values(job, rank, 0, job.count) : Bytes();
    case Collective::kScatter:
      if (rank != job.root) return {};
      [[fallthrough]];
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
      return values(job, rank, 0, elements_before(job, ranks, rank, ranks));
    case Collective::kGather:
    case Collective::kAllgather: return values(job, rank, 0, part_elements(job, ranks, rank, 0));
    default: return values(job, rank, 0, job.count);
  }
}

Bytes output_of(const Job& job, std::uint32_t ranks, std::uint32_t rank) {
  const bool root = rank == job.root;
  Bytes all;
  switch (job.collective.value()) {
    case Collective::kBroadcast: return root ? Bytes() : input_of(job, ranks, job.root);
    case Collective::kReduce: return root ? combined(job, ranks, 0, job.count) : Bytes();
    case Collective::kAllreduce: return combined(job, ranks, 0, job.count);
    case Collective::kScan: return combined(job, rank + 1, 0, job.count);
    case Collective::kExscan: return rank == 0 ? Bytes() : combined(job, rank, 0, job.count);
    case Collective::kScatter: return part(job, ranks, job.root, rank);
    case Collective::kReduceScatter:
      return combined(job, ranks, elements_before(job, ranks, 0, rank),
                      part_elements(job, ranks, 0, rank));
    case Collective::kGather:
      if (!root) return {};
      [[fallthrough]];
    case Collective::kAllgather:
    case Collective::kAllToAll:
      for (std::uint32_t from = 0; from < ranks; ++from) {
        const bool to_all = job.collective == Collective::kAllToAll;
        const Bytes rank_part = to_all ? part(job, ranks, from, rank) : input_of(job, ranks, from);
        all.insert(all.end(), rank_part.begin(), rank_part.end());
      }
      return all;
    default: return {};
  }
}

std::vector<Bytes> outputs_of(const Job& job, std::uint32_t ranks) {
  std::vector<Bytes> outputs(ranks);
  const auto same_everywhere = [&] {
    outputs.assign(ranks, output_of(job, ranks, ranks - 1));
    return outputs;
  };
  switch (job.collective.value()) {
    case Collective::kAllreduce:
    case Collective::kAllgather: return same_everywhere();
    case Collective::kScan:
    case Collective::kExscan: {
      const std::uint32_t shift = job.collective == Collective::kScan ? 0 : 1;
      Bytes sum = values(job, 0, 0, job.count);
      for (std::uint32_t rank = shift; rank < ranks; ++rank) {
        if (rank > shift) {
          const Bytes next = values(job, rank - shift, 0, job.count);
          combine(job.op, sum.data(), sum.data(), next.data(), job.count);
        }
        outputs[rank] = sum;
      }
      return outputs;
    }
    default:
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        outputs[rank] = output_of(job, ranks, rank);
      }
      return outputs;
  }
}

}  // namespace espalier::testing
