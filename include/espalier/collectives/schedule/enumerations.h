#pragma once
// The enumerations of proto/schedule.proto, which explains their values, with scoped names.
// Freestanding.

#include <cstdint>

#include "espalier/proto/schedule.pb.h"

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

// The collective operation of a schedule.
struct Collective : Enumeration<espalier_Collective> {
  using Enumeration::Enumeration;
  static const Collective kNone, kBroadcast, kReduce, kAllreduce, kScan, kExscan, kScatter, kGather,
      kAllgather, kReduceScatter, kAllToAll, kBarrier;
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

inline constexpr Collective Collective::kNone = espalier_Collective_COLLECTIVE_NONE;
inline constexpr Collective Collective::kBroadcast = espalier_Collective_BROADCAST;
inline constexpr Collective Collective::kReduce = espalier_Collective_REDUCE;
inline constexpr Collective Collective::kAllreduce = espalier_Collective_ALLREDUCE;
inline constexpr Collective Collective::kScan = espalier_Collective_SCAN;
inline constexpr Collective Collective::kExscan = espalier_Collective_EXSCAN;
inline constexpr Collective Collective::kScatter = espalier_Collective_SCATTER;
inline constexpr Collective Collective::kGather = espalier_Collective_GATHER;
inline constexpr Collective Collective::kAllgather = espalier_Collective_ALLGATHER;
inline constexpr Collective Collective::kReduceScatter = espalier_Collective_REDUCE_SCATTER;
inline constexpr Collective Collective::kAllToAll = espalier_Collective_ALL_TO_ALL;
inline constexpr Collective Collective::kBarrier = espalier_Collective_BARRIER;
// Every collective, in order of value.
inline constexpr Collective kAllCollectives[] = {
    Collective::kBroadcast, Collective::kReduce,    Collective::kAllreduce,
    Collective::kScan,      Collective::kExscan,    Collective::kScatter,
    Collective::kGather,    Collective::kAllgather, Collective::kReduceScatter,
    Collective::kAllToAll,  Collective::kBarrier};

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
