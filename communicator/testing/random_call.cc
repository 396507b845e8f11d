#include "communicator/testing/random_call.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/schedule/selection.h"
#include "espalier/collectives/machine/operators.h"
#include "espalier/collectives/schedule/program.h"

namespace espalier::communicator::testing {
namespace {

constexpr std::int64_t kUntouched = -1;

// A type, and a limit of values whose sum over 16 ranks it holds exactly.
struct ElementType {
  Type type;
  std::uint64_t values;
};
constexpr ElementType kTypes[] = {
    {Type::kI8, 8},          {Type::kU8, 16},         {Type::kI16, 2048},
    {Type::kU16, 4096},      {Type::kI32, 1'000'003}, {Type::kU32, 1'000'003},
    {Type::kI64, 1'000'003}, {Type::kU64, 1'000'003}, {Type::kF32, 1'000'003},
    {Type::kF64, 1'000'003},
};

template <typename T>
void encode_as(const std::vector<std::int64_t>& values, std::byte* out) {
  for (const std::int64_t value : values) {
    const T element = static_cast<T>(value);
    std::memcpy(out, &element, sizeof(element));
    out += sizeof(element);
  }
}

std::uint32_t bytes_of(Type type) { return element_bytes({.type = type}); }

std::vector<std::byte> encode(Type type, const std::vector<std::int64_t>& values) {
  std::vector<std::byte> bytes(values.size() * bytes_of(type));
  switch (type) {
    case Type::kI8:
    case Type::kU8: encode_as<std::uint8_t>(values, bytes.data()); break;
    case Type::kI16:
    case Type::kU16: encode_as<std::uint16_t>(values, bytes.data()); break;
    case Type::kI32:
    case Type::kU32: encode_as<std::uint32_t>(values, bytes.data()); break;
    case Type::kF32: encode_as<float>(values, bytes.data()); break;
    case Type::kF64: encode_as<double>(values, bytes.data()); break;
    default: encode_as<std::uint64_t>(values, bytes.data());
  }
  return bytes;
}

}  // namespace

Drawn::Drawn(std::uint64_t seed, std::uint64_t number, std::uint32_t of)
    : ranks(of), random_(seed * 1'000'003 + number) {
  collective = kAllCollectives[random_() % std::size(kAllCollectives)];
  salt_ = random_() % 1000;
  if (has_root(collective)) root = static_cast<std::uint32_t>(random_() % ranks);
  const ElementType& drawn = kTypes[random_() % std::size(kTypes)];
  type = drawn.type;
  values_ = drawn.values;
  if (combines_operands(collective)) draw_operator();
  count = draw_count();
  // A broadcast has one buffer. Exscan does not set the output of rank 0, so memory in place has
  // no reference there.
  in_place = collective != Collective::kExscan && random_() % 4 == 0;
  if (collective == Collective::kBroadcast) in_place = true;
  if (counts_per_rank(collective)) draw_counts();
  // The parts of an all-to-all in place would have to be as long in both directions.
  if (collective == Collective::kAllToAll && !unequal.empty()) in_place = false;
}

void Drawn::draw_operator() {
  constexpr Op kOperators[] = {Op::kSum, Op::kMax, Op::kXor};
  const bool is_float = type == Type::kF32 || type == Type::kF64;
  op = kOperators[random_() % (is_float ? 2 : std::size(kOperators))];
}

std::uint64_t Drawn::draw_count() {
  switch (random_() % 16) {
    case 0: return 0;
    case 1: return 1;
    case 2: return 20'000 + random_() % 20'000;
    default: return random_() % (random_() % 2 == 0 ? 64 : 3000);
  }
}

void Drawn::draw_counts() {
  if (random_() % 3 != 0) return;
  unequal.resize(collective == Collective::kAllToAll ? ranks * ranks : ranks);
  for (std::uint64_t& one : unequal) one = random_() % 4 == 0 ? 0 : draw_count() % 5000;
}

std::uint64_t Drawn::offset(std::uint32_t o, std::uint32_t d) const {
  std::uint64_t sum = 0;
  for (std::uint32_t before = 0; before < d; ++before) sum += part(o, before);
  return sum;
}

std::int64_t Drawn::reduced(std::uint32_t of, std::uint64_t i) const {
  std::int64_t all = value(0, i);
  for (std::uint32_t rank = 1; rank < of; ++rank) {
    const std::int64_t next = value(rank, i);
    if (op == Op::kSum) all += next;
    if (op == Op::kMax) all = std::max(all, next);
    if (op == Op::kXor) all ^= next;
  }
  return all;
}

RandomCall::RandomCall(std::uint64_t seed, std::uint64_t number, std::uint32_t ranks,
                       std::uint32_t rank)
    : drawn_(seed, number, ranks), number_(number), me_(rank) {
  fill();
  expected_ = encode(drawn_.type, expected_values_);
  restore();
}

void RandomCall::restore() {
  // The memory keeps its place: a plan has it.
  const auto set = [this](Bytes& bytes, const Values& values) {
    const Bytes encoded = encode(drawn_.type, values);
    bytes.resize(encoded.size());
    std::copy(encoded.begin(), encoded.end(), bytes.begin());
  };
  set(send_, send_values_);
  set(receive_, receive_values_);
}

Call RandomCall::call() {
  if (drawn_.collective == Collective::kBarrier) return call::barrier();
  const std::uint32_t size = bytes_of(drawn_.type);
  return {.collective = drawn_.collective,
          .send = send_.data() + sent_from_ * size,
          .receive = (drawn_.in_place ? send_.data() : receive_.data()) + received_from_ * size,
          .count = drawn_.count,
          .counts = drawn_.unequal,
          .op = {.op = drawn_.op, .type = drawn_.type},
          .root = drawn_.root};
}

std::string RandomCall::check() const {
  const Bytes& out = drawn_.in_place ? send_ : receive_;
  if (out == expected_) return "";
  const auto differs = std::mismatch(out.begin(), out.end(), expected_.begin(), expected_.end());
  const std::uint32_t size = bytes_of(drawn_.type);
  return text() + ": element " + std::to_string((differs.first - out.begin()) / size) + " of " +
         std::to_string(out.size() / size) + " is incorrect";
}

std::string RandomCall::text() const {
  return std::string(collective_name(drawn_.collective)) + " of " + type_name(drawn_.type) +
         " number " + std::to_string(number_) + " on rank " + std::to_string(me_);
}

void RandomCall::fill() {
  if (drawn_.collective == Collective::kBarrier) {
    drawn_.in_place = false;
    return;
  }
  if (counts_per_rank(drawn_.collective)) {
    fill_parts();
  } else {
    fill_vectors();
  }
}

// Broadcast, reduce, allreduce, scan and exscan: every rank has one vector.
void RandomCall::fill_vectors() {
  const std::uint64_t count = drawn_.count;
  send_values_.resize(count);
  for (std::uint64_t i = 0; i < count; ++i) send_values_[i] = drawn_.value(me_, i);
  if (!drawn_.in_place) receive_values_.assign(count, kUntouched);
  expected_values_ = drawn_.in_place ? send_values_ : receive_values_;
  const bool is_root = me_ == drawn_.root;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::int64_t& expected = expected_values_[i];
    switch (drawn_.collective.value()) {
      case Collective::kBroadcast: expected = drawn_.value(drawn_.root, i); break;
      case Collective::kReduce:
        if (is_root) expected = drawn_.reduced(drawn_.ranks, i);
        break;
      case Collective::kAllreduce: expected = drawn_.reduced(drawn_.ranks, i); break;
      case Collective::kScan: expected = drawn_.reduced(me_ + 1, i); break;
      default:
        if (me_ > 0) expected = drawn_.reduced(me_, i);
    }
  }
}

// Scatter, gather, allgather, reduce-scatter and all-to-all: a part for each rank.
void RandomCall::fill_parts() {
  const Collective collective = drawn_.collective;
  const bool is_exchange = collective == Collective::kAllToAll;
  const bool sends_all = is_exchange || collective == Collective::kReduceScatter ||
                         (collective == Collective::kScatter && me_ == drawn_.root);
  const bool receives_all = is_exchange || collective == Collective::kAllgather ||
                            (collective == Collective::kGather && me_ == drawn_.root);
  const std::uint64_t own = drawn_.part(me_, me_);
  const std::uint64_t place = drawn_.offset(me_, me_);
  const std::uint64_t all = drawn_.offset(me_, drawn_.ranks);
  Values input(sends_all ? all : own), output;
  for (std::uint64_t i = 0; i < input.size(); ++i) input[i] = drawn_.value(me_, i);
  if (collective == Collective::kScatter && !sends_all) input.clear();
  if (receives_all) {
    for (std::uint32_t from = 0; from < drawn_.ranks; ++from) {
      const std::uint64_t begin = is_exchange ? drawn_.offset(from, me_) : 0;
      for (std::uint64_t i = 0; i < drawn_.part(from, is_exchange ? me_ : from); ++i) {
        output.push_back(drawn_.value(from, begin + i));
      }
    }
  } else if (collective != Collective::kGather) {
    output.resize(own);
    for (std::uint64_t i = 0; i < own; ++i) {
      output[i] = collective == Collective::kScatter ? drawn_.value(drawn_.root, place + i)
                                                     : drawn_.reduced(drawn_.ranks, place + i);
    }
  }
  place_parts(std::move(input), std::move(output), sends_all, receives_all);
}

void RandomCall::place_parts(Values input, Values output, bool sends_all, bool receives_all) {
  const auto place = static_cast<std::ptrdiff_t>(drawn_.offset(me_, me_));
  // Elsewhere memory in place is that of the part alone, and no other than input or output.
  drawn_.in_place = drawn_.in_place && (sends_all || receives_all);
  if (!drawn_.in_place) {
    send_values_ = std::move(input);
    receive_values_.assign(output.size(), kUntouched);
    expected_values_ = std::move(output);
    return;
  }
  if (sends_all && receives_all) {
    send_values_ = std::move(input);
    expected_values_ = std::move(output);
  } else if (sends_all) {  // The own part of the result is at its place in the whole.
    send_values_ = std::move(input);
    expected_values_ = send_values_;
    std::copy(output.begin(), output.end(), expected_values_.begin() + place);
    received_from_ = static_cast<std::uint64_t>(place);
  } else {
    send_values_.assign(output.size(), kUntouched);
    std::copy(input.begin(), input.end(), send_values_.begin() + place);
    expected_values_ = std::move(output);
    sent_from_ = static_cast<std::uint64_t>(place);
  }
}

}  // namespace espalier::communicator::testing
