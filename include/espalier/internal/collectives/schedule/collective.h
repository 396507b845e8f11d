#pragma once
// The collective operations, by name. Freestanding, and without the generated code of a program.

#include <cstdint>

namespace espalier {

// Whether `T` is the enumeration that nanopb generates for Collective: enumerations.h says so.
template <typename T>
inline constexpr bool kIsGeneratedCollective = false;
template <typename T>
concept GeneratedCollective = kIsGeneratedCollective<T>;

// The collective operation of a schedule: a number of the enumeration in proto/schedule.proto, to
// which it converts and from which it is made.
class Collective {
 public:
  // As a parameter of node code, which takes it in a register.
  enum Value : std::uint32_t {};
  // By default kNone, which no valid program has.
  constexpr Collective(Value value = Value{}) : value_(value) {}
  template <GeneratedCollective Generated>
  constexpr Collective(Generated value) : value_(static_cast<Value>(value)) {}
  // The value of a number; none is refused here.
  explicit constexpr Collective(std::int64_t value) : value_(static_cast<Value>(value)) {}
  // Returns the number. A switch needs it: GCC 12 converts no object there that has a template of
  // conversions.
  [[nodiscard]] constexpr Value value() const { return value_; }
  // For comparisons.
  constexpr operator Value() const { return value_; }
  // For the fields of programs.
  template <GeneratedCollective Generated>
  constexpr operator Generated() const {
    return static_cast<Generated>(value_);
  }
  // Whether a field of a program has this value.
  template <GeneratedCollective Generated>
  friend constexpr bool operator==(Collective collective, Generated field) {
    return collective.value_ == static_cast<Value>(field);
  }

  static const Collective kNone, kBroadcast, kReduce, kAllreduce, kScan, kExscan, kScatter, kGather,
      kAllgather, kReduceScatter, kAllToAll, kBarrier;

 private:
  Value value_;
};

inline constexpr Collective Collective::kNone{0};
inline constexpr Collective Collective::kBroadcast{1};
inline constexpr Collective Collective::kReduce{2};
inline constexpr Collective Collective::kAllreduce{3};
inline constexpr Collective Collective::kScan{4};
inline constexpr Collective Collective::kExscan{5};
inline constexpr Collective Collective::kScatter{6};
inline constexpr Collective Collective::kGather{7};
inline constexpr Collective Collective::kAllgather{8};
inline constexpr Collective Collective::kReduceScatter{9};
inline constexpr Collective Collective::kAllToAll{10};
inline constexpr Collective Collective::kBarrier{11};
// Every collective, in order of value.
inline constexpr Collective kAllCollectives[] = {
    Collective::kBroadcast, Collective::kReduce,    Collective::kAllreduce,
    Collective::kScan,      Collective::kExscan,    Collective::kScatter,
    Collective::kGather,    Collective::kAllgather, Collective::kReduceScatter,
    Collective::kAllToAll,  Collective::kBarrier};

}  // namespace espalier
