#pragma once
// What carries a trial's messages: endpoints of all nodes, and their common time.

#include <cstdint>
#include <memory>

#include "espalier/base/result.h"
#include "espalier/hal/endpoint.h"
#include "tests/storm/plan.h"
#include "tests/storm/schedule.h"

namespace espalier::storm {

class Carrier {
 public:
  virtual ~Carrier() = default;
  Carrier() = default;
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  // The node's endpoint; after start_again() the new one.
  [[nodiscard]] virtual Endpoint& endpoint(std::uint32_t node) = 0;
  // ns since the beginning of the trial.
  [[nodiscard]] virtual std::uint64_t now_ns() = 0;
  // Lets time pass until something happens, at most until `until_ns`. False: nothing happens by
  // then, or ever if it is kNever.
  virtual bool advance(std::uint64_t until_ns) = 0;
  // Whether the node's endpoint may have a completion.
  [[nodiscard]] virtual bool ready(std::uint32_t node) = 0;
  // The time at which the node must be polled even if nothing arrives; kNever: never. Called after
  // each poll.
  [[nodiscard]] virtual std::uint64_t due_ns(std::uint32_t /*node*/) { return kNever; }
  virtual void kill(std::uint32_t node) = 0;
  // The killed node boots. Returns whether it has a new endpoint, which can reach its peers. False:
  // it tries to connect to them, and they must not take it for the node that it was.
  [[nodiscard]] virtual bool start_again(std::uint32_t /*node*/) { return false; }
  // Whether a node for which start_again() returned false has connected.
  [[nodiscard]] virtual bool is_mistaken(std::uint32_t /*node*/) { return false; }

  // Takes over a fault of links, so that the line loses frames instead of an endpoint messages.
  // False: it does not; the caller's endpoints must lose them.
  [[nodiscard]] virtual bool take_fault(const Fault& /*fault*/, std::size_t /*number*/) {
    return false;
  }
  // Whether the fault that was taken over as `number` lost anything.
  [[nodiscard]] virtual bool has_struck(std::size_t /*number*/) { return false; }
};

// In virtual time over the simulated network.
[[nodiscard]] std::unique_ptr<Carrier> simulated_carrier(const Plan& plan,
                                                         const Schedule& schedule);
// In virtual time over framed links (hal/serial).
[[nodiscard]] std::unique_ptr<Carrier> framed_carrier(const Plan& plan, const Schedule& schedule);
// In real time, over libfabric or mem. Throws std::runtime_error if the endpoints do not connect.
[[nodiscard]] std::unique_ptr<Carrier> real_carrier(const Plan& plan, const Schedule& schedule);

}  // namespace espalier::storm
