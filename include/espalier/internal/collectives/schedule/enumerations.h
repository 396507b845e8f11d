#pragma once
// The enumerations of proto/schedule.proto, which explains their values, with scoped names; that of
// the collectives: collective.h. Freestanding.

#include <cstdint>

#include "espalier/internal/collectives/schedule/collective.h"
#include "espalier/internal/proto/schedule.pb.h"

namespace espalier {

// A value of `Generated`, the C enumeration in nanopb's structs; it converts to and from that.
template <typename Generated>
class Enumeration {
 public:
  // As a parameter of node code, which takes it in a register.
  using Value = Generated;
  // The generated value; by default the one of number 0, which no valid program has.
  constexpr Enumeration(Generated value = Generated{}) : value_(value) {}
  // The value of a number; none is refused here.
  explicit constexpr Enumeration(std::int64_t value) : value_(static_cast<Generated>(value)) {}
  // For the fields of programs, and in a switch.
  constexpr operator Generated() const { return value_; }

 private:
  Generated value_;
};

// The largest number of messages per node and step.
struct PortModel : Enumeration<espalier_PortModel> {
  using Enumeration::Enumeration;
  static const PortModel kNone, kOnePortDuplex, kSimplex, kSingleSend, kMultiport;
};
// That links carry no more than their capacity: in lock step, or under any timing skew.
struct ContentionGuarantee : Enumeration<espalier_ContentionGuarantee> {
  using Enumeration::Enumeration;
  static const ContentionGuarantee kNone, kSlot, kAsync;
};
// The kind of an action.
struct ActionKind : Enumeration<espalier_ActionKind> {
  using Enumeration::Enumeration;
  static const ActionKind kNone, kSend, kReceive, kCombine, kCopy;
};
// The memory of an operand.
struct Buffer : Enumeration<espalier_Buffer> {
  using Enumeration::Enumeration;
  static const Buffer kNone, kInput, kOutput, kScratch;
};

// The numbers of collective.h are the generated ones.
template <>
inline constexpr bool kIsGeneratedCollective<espalier_Collective> = true;
static_assert(Collective::kNone == espalier_Collective_COLLECTIVE_NONE);
static_assert(Collective::kBroadcast == espalier_Collective_BROADCAST);
static_assert(Collective::kReduce == espalier_Collective_REDUCE);
static_assert(Collective::kAllreduce == espalier_Collective_ALLREDUCE);
static_assert(Collective::kScan == espalier_Collective_SCAN);
static_assert(Collective::kExscan == espalier_Collective_EXSCAN);
static_assert(Collective::kScatter == espalier_Collective_SCATTER);
static_assert(Collective::kGather == espalier_Collective_GATHER);
static_assert(Collective::kAllgather == espalier_Collective_ALLGATHER);
static_assert(Collective::kReduceScatter == espalier_Collective_REDUCE_SCATTER);
static_assert(Collective::kAllToAll == espalier_Collective_ALL_TO_ALL);
static_assert(Collective::kBarrier == espalier_Collective_BARRIER);

inline constexpr PortModel PortModel::kNone = espalier_PortModel_PORT_NONE;
inline constexpr PortModel PortModel::kOnePortDuplex = espalier_PortModel_ONE_PORT_DUPLEX;
inline constexpr PortModel PortModel::kSimplex = espalier_PortModel_SIMPLEX;
inline constexpr PortModel PortModel::kSingleSend = espalier_PortModel_SINGLE_SEND;
inline constexpr PortModel PortModel::kMultiport = espalier_PortModel_MULTIPORT;

inline constexpr ContentionGuarantee ContentionGuarantee::kNone =
    espalier_ContentionGuarantee_CONTENTION_NONE;
inline constexpr ContentionGuarantee ContentionGuarantee::kSlot = espalier_ContentionGuarantee_SLOT;
inline constexpr ContentionGuarantee ContentionGuarantee::kAsync =
    espalier_ContentionGuarantee_ASYNC;

inline constexpr ActionKind ActionKind::kNone = espalier_ActionKind_KIND_NONE;
inline constexpr ActionKind ActionKind::kSend = espalier_ActionKind_SEND;
inline constexpr ActionKind ActionKind::kReceive = espalier_ActionKind_RECEIVE;
inline constexpr ActionKind ActionKind::kCombine = espalier_ActionKind_COMBINE;
inline constexpr ActionKind ActionKind::kCopy = espalier_ActionKind_COPY;

inline constexpr Buffer Buffer::kNone = espalier_Buffer_BUFFER_NONE;
inline constexpr Buffer Buffer::kInput = espalier_Buffer_INPUT;
inline constexpr Buffer Buffer::kOutput = espalier_Buffer_OUTPUT;
inline constexpr Buffer Buffer::kScratch = espalier_Buffer_SCRATCH;

}  // namespace espalier
