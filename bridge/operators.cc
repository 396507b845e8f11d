#include "bridge/operators.h"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "bridge/layout.h"
#include "bridge/types.h"

namespace espalier::bridge {
namespace {

enum class Kind : std::uint8_t { kInteger, kFortranInteger, kFloat, kLogical, kByte, kPair };

// A basic type that Espalier's operators, or those below, can combine.
struct BasicType {
  MPI_Datatype type;
  Kind kind;
  Type element;  // kCustom: a pair that Espalier does not have
};

std::vector<BasicType> basic_types;
std::map<MPI_Op, KnownOperator> user_operators;
std::mutex user_operators_mutex;

constexpr std::uint32_t kLogicalId = 1, kLocationId = 11, kUserId = 21;

void add(MPI_Datatype type, Kind kind, Type element) {
  if (is_listed(type)) basic_types.push_back({type, kind, element});
}
void add_integer(MPI_Datatype type, Kind kind, bool is_signed) {
  if (!is_listed(type)) return;
  switch (size_of(type)) {
    case 1: return add(type, kind, is_signed ? Type::kI8 : Type::kU8);
    case 2: return add(type, kind, is_signed ? Type::kI16 : Type::kU16);
    case 4: return add(type, kind, is_signed ? Type::kI32 : Type::kU32);
    case 8: return add(type, kind, is_signed ? Type::kI64 : Type::kU64);
    default: return;
  }
}
void add_float(MPI_Datatype type) {
  if (!is_listed(type)) return;
  if (size_of(type) == sizeof(float)) add(type, Kind::kFloat, Type::kF32);
  if (size_of(type) == sizeof(double)) add(type, Kind::kFloat, Type::kF64);
}

// MPI's logical operators have results 0 and 1.
enum class Logic : std::uint8_t { kAnd, kOr, kXor };
template <typename T, Logic kLogic>
void combine_logical(void* into, const void* a, const void* b, std::uint64_t count, void*) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const bool x = static_cast<const T*>(a)[i] != 0, y = static_cast<const T*>(b)[i] != 0;
    const bool z = kLogic == Logic::kAnd ? x && y : kLogic == Logic::kOr ? x || y : x != y;
    static_cast<T*>(into)[i] = static_cast<T>(z ? 1 : 0);
  }
}
template <Logic kLogic>
CombineFn logical_of(Type element) {
  switch (element) {
    case Type::kI8:
    case Type::kU8: return combine_logical<std::uint8_t, kLogic>;
    case Type::kI16:
    case Type::kU16: return combine_logical<std::uint16_t, kLogic>;
    case Type::kI32:
    case Type::kU32: return combine_logical<std::uint32_t, kLogic>;
    default: return combine_logical<std::uint64_t, kLogic>;
  }
}

// Pairs of C's struct layout. The bytes between the members are copied, too.
template <typename V, typename I>
struct Pair {
  V value;
  I index;
};
template <typename P, bool kLarger>
void combine_location(void* into, const void* a, const void* b, std::uint64_t count, void*) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const P x = static_cast<const P*>(a)[i], y = static_cast<const P*>(b)[i];
    const bool takes_x = x.value == y.value ? x.index <= y.index
                         : kLarger          ? x.value > y.value
                                            : x.value < y.value;
    static_cast<P*>(into)[i] = takes_x ? x : y;
  }
}
template <bool kLarger>
CombineFn location_of(MPI_Datatype type) {
  if (type == MPI_DOUBLE_INT) return combine_location<Pair<double, int>, kLarger>;
  if (type == MPI_LONG_INT) return combine_location<Pair<long, int>, kLarger>;
  if (type == MPI_SHORT_INT) return combine_location<Pair<short, int>, kLarger>;
  if (type == MPI_2REAL) return combine_location<Pair<float, float>, kLarger>;
  if (type == MPI_2DOUBLE_PRECISION) return combine_location<Pair<double, double>, kLarger>;
  return nullptr;
}

void call_fortran([[maybe_unused]] void (*function)(), [[maybe_unused]] void* left,
                  [[maybe_unused]] void* right, [[maybe_unused]] int length,
                  [[maybe_unused]] MPI_Datatype type) {
#ifndef ESPALIER_MPI_ABI  // the standard's ABI is of C alone
  MPI_Fint handle = MPI_Type_c2f(type);
  reinterpret_cast<void (*)(void*, void*, MPI_Fint*, MPI_Fint*)>(function)(left, right, &length,
                                                                           &handle);
#endif
}

void call_user(const UserOperator& user, void* left, void* right, std::uint64_t count) {
  MPI_Datatype type = user.type;
  const auto function = user.known.function;
  if (user.known.signature == KnownOperator::Signature::kLargeCount) {
    auto length = static_cast<MPI_Count>(count);
    reinterpret_cast<void (*)(void*, void*, MPI_Count*, MPI_Datatype*)>(function)(left, right,
                                                                                  &length, &type);
    return;
  }
  const auto extent = static_cast<std::uint64_t>(extent_of(type));
  for (std::uint64_t done = 0; done < count;) {
    int length = static_cast<int>(std::min<std::uint64_t>(count - done, INT_MAX));
    auto* const a = static_cast<std::uint8_t*>(left) + done * extent;
    auto* const b = static_cast<std::uint8_t*>(right) + done * extent;
    if (user.known.signature == KnownOperator::Signature::kFortran) {
      call_fortran(function, a, b, length, type);
    } else if (user.known.signature == KnownOperator::Signature::kWithState) {
      reinterpret_cast<void (*)(void*, void*, MPI_Count, MPI_Datatype, void*)>(function)(
          a, b, length, type, user.known.state.get());
    } else {
      reinterpret_cast<MPI_User_function*>(function)(a, b, &length, &type);
    }
    done += static_cast<std::uint64_t>(length);
  }
}

// MPI's functions compute b = a (+) b.
void combine_by_user(void* into, const void* a, const void* b, std::uint64_t count, void* context) {
  const auto& user = *static_cast<const UserOperator*>(context);
  const std::size_t bytes = count * size_of(user.type);
  std::vector<std::uint8_t> copy;  // of the result, if it must not be where a is
  void* result = into;
  if (into == a && into != b) {
    copy.resize(bytes);
    result = copy.data();
  }
  if (result != b) std::memcpy(result, b, bytes);
  call_user(user, const_cast<void*>(a), result, count);
  if (result != into) std::memcpy(into, result, bytes);
}

// An element of a type with gaps, in memory of its own.
class Element {
 public:
  explicit Element(MPI_Datatype type) : type_(type), size_(size_of(type)) {
    MPI_Aint lower = 0, extent = 0;
    PMPI_Type_get_true_extent(type, &lower, &extent);
    words_.resize(static_cast<std::size_t>(extent) / sizeof(std::max_align_t) + 2);
    // The element's address is aligned, though its data begin `lower` bytes behind it.
    const MPI_Aint unit = sizeof(std::max_align_t);
    const MPI_Aint shift = ((lower % unit) + unit) % unit;
    address_ = reinterpret_cast<std::uintptr_t>(words_.data()) +
               static_cast<std::uintptr_t>(shift - lower);
  }
  [[nodiscard]] void* address() const { return reinterpret_cast<void*>(address_); }
  void read(const std::uint8_t* row) { unpack(row, address(), 1, type_); }
  void write(std::uint8_t* row) const { pack(address(), 1, type_, row); }
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  MPI_Datatype type_;
  std::uint64_t size_;
  std::vector<std::max_align_t> words_;
  std::uintptr_t address_ = 0;
};

// The same for operands that are packed.
void combine_packed_by_user(void* into, const void* a, const void* b, std::uint64_t count,
                            void* context) {
  const auto& user = *static_cast<const UserOperator*>(context);
  Element left(user.type), right(user.type);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t offset = i * left.size();
    left.read(static_cast<const std::uint8_t*>(a) + offset);
    right.read(static_cast<const std::uint8_t*>(b) + offset);
    call_user(user, left.address(), right.address(), 1);
    right.write(static_cast<std::uint8_t*>(into) + offset);
  }
}

Operator custom(CombineFn function, std::uint32_t id, MPI_Datatype type) {
  return {.op = Op::kCustom,
          .type = Type::kCustom,
          .element_bytes = static_cast<std::uint32_t>(extent_of(type)),
          .custom_id = id,
          .custom = function};
}

std::optional<Operator> logical_operator(MPI_Op op, const BasicType& basic) {
  if (op == MPI_LAND) return custom(logical_of<Logic::kAnd>(basic.element), kLogicalId, basic.type);
  if (op == MPI_LOR) {
    return custom(logical_of<Logic::kOr>(basic.element), kLogicalId + 1, basic.type);
  }
  if (op == MPI_LXOR) {
    return custom(logical_of<Logic::kXor>(basic.element), kLogicalId + 2, basic.type);
  }
  return {};
}

std::optional<Operator> location_operator(MPI_Op op, const BasicType& basic) {
  if (op != MPI_MINLOC && op != MPI_MAXLOC) return {};
  const bool larger = op == MPI_MAXLOC;
  if (basic.element != Type::kCustom) {
    return Operator{.op = larger ? Op::kMaxLoc : Op::kMinLoc, .type = basic.element};
  }
  const CombineFn function =
      larger ? location_of<true>(basic.type) : location_of<false>(basic.type);
  return custom(function, kLocationId + (larger ? 1 : 0), basic.type);
}

Op arithmetic_of(MPI_Op op) {
  if (op == MPI_SUM) return Op::kSum;
  if (op == MPI_PROD) return Op::kProduct;
  if (op == MPI_MIN) return Op::kMin;
  if (op == MPI_MAX) return Op::kMax;
  return Op::kNone;
}
Op bitwise_of(MPI_Op op) {
  if (op == MPI_BAND) return Op::kAnd;
  if (op == MPI_BOR) return Op::kOr;
  if (op == MPI_BXOR) return Op::kXor;
  return Op::kNone;
}

std::optional<Operator> predefined_operator(MPI_Op op, MPI_Datatype type) {
  const auto found = std::find_if(basic_types.begin(), basic_types.end(),
                                  [type](const BasicType& one) { return one.type == type; });
  if (found == basic_types.end()) return {};
  const Kind kind = found->kind;
  if (kind == Kind::kPair) return location_operator(op, *found);
  if (kind == Kind::kLogical) return logical_operator(op, *found);
  const bool is_integer = kind == Kind::kInteger || kind == Kind::kFortranInteger;
  if (is_integer || kind == Kind::kFloat) {
    const Op arithmetic = arithmetic_of(op);
    if (arithmetic != Op::kNone) return Operator{.op = arithmetic, .type = found->element};
  }
  if (is_integer || kind == Kind::kByte) {
    const Op bitwise = bitwise_of(op);
    if (bitwise != Op::kNone) return Operator{.op = bitwise, .type = found->element};
  }
  if (kind == Kind::kInteger) return logical_operator(op, *found);
  return {};
}

}  // namespace

void list_types() {
  if (!basic_types.empty()) return;
  list_named_types();
  for (MPI_Datatype type :
       {MPI_SIGNED_CHAR, MPI_SHORT, MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_INT8_T, MPI_INT16_T,
        MPI_INT32_T, MPI_INT64_T, MPI_AINT, MPI_COUNT, MPI_OFFSET}) {
    add_integer(type, Kind::kInteger, true);
  }
  for (MPI_Datatype type :
       {MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG,
        MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T}) {
    add_integer(type, Kind::kInteger, false);
  }
  for (MPI_Datatype type : {MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8}) {
    add_integer(type, Kind::kFortranInteger, true);
  }
  for (MPI_Datatype type :
       {MPI_FLOAT, MPI_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8}) {
    add_float(type);
  }
  for (MPI_Datatype type : {MPI_C_BOOL, MPI_CXX_BOOL}) add_integer(type, Kind::kLogical, false);
#ifndef ESPALIER_MPI_ABI  // MPI_Abi_set_fortran_booleans() may give .true. any value
  add_integer(MPI_LOGICAL, Kind::kLogical, false);
#endif
  add(MPI_BYTE, Kind::kByte, Type::kU8);
  add(MPI_2INT, Kind::kPair, Type::kI32Loc);
  add(MPI_2INTEGER, Kind::kPair, Type::kI32Loc);
  add(MPI_FLOAT_INT, Kind::kPair, Type::kF32Loc);
  for (MPI_Datatype type :
       {MPI_DOUBLE_INT, MPI_LONG_INT, MPI_SHORT_INT, MPI_2REAL, MPI_2DOUBLE_PRECISION}) {
    add(type, Kind::kPair, Type::kCustom);
  }
}

void add_user_operator(MPI_Op op, KnownOperator known) {
  const std::lock_guard lock(user_operators_mutex);
  std::swap(user_operators[op], known);
}
void remove_user_operator(MPI_Op op) {
  KnownOperator removed;  // outlives the lock: the destructor of its state may call MPI
  const std::lock_guard lock(user_operators_mutex);
  const auto found = user_operators.find(op);
  if (found == user_operators.end()) return;
  removed = std::move(found->second);
  user_operators.erase(found);
}
std::optional<KnownOperator> find_user_operator(MPI_Op op) {
  const std::lock_guard lock(user_operators_mutex);
  const auto found = user_operators.find(op);
  if (found == user_operators.end()) return {};
  return found->second;
}

bool has_packed_operands(const std::optional<KnownOperator>& user, MPI_Datatype type) {
  return user && !is_dense(type);
}

std::optional<Operator> operator_of(MPI_Op op, const std::optional<KnownOperator>& known,
                                    MPI_Datatype type, UserOperator& user) {
  if (!known) return predefined_operator(op, type);
  user = {*known, type};
  const std::uint64_t size = size_of(type);
  if (size == 0 || size > UINT32_MAX) return {};
  Operator made = {
      .op = Op::kCustom,
      .type = Type::kCustom,
      .commutes = known->commutes,
      .element_bytes = static_cast<std::uint32_t>(size),
      .custom_id = kUserId,
      .custom = has_packed_operands(known, type) ? combine_packed_by_user : combine_by_user,
      .context = &user};
  return made;
}

}  // namespace espalier::bridge
