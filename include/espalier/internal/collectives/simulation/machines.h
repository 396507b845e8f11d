#pragma once
// The machines that a run polls: all in memory at once, or loaded one after the other
// (paged_machines.h). Host only.

#include <cstdint>

#include "espalier/collectives/machine/machine.h"

namespace espalier::sim {

// The machines of nodes 0 .. size()-1; nodes without one are not polled.
class Machines {
 public:
  // Returns the number of nodes.
  [[nodiscard]] virtual std::uint32_t size() const = 0;
  // Whether the node has a machine.
  [[nodiscard]] virtual bool has(std::uint32_t node) const = 0;
  // Returns node's machine, which must exist. The reference is valid until the next call.
  [[nodiscard]] virtual Machine& at(std::uint32_t node) = 0;
  // Announces that at(node) will be called soon, in stages. Each stage needs the data that the
  // previous stage prefetched.
  virtual void expect(std::uint32_t /*node*/, std::size_t /*stage*/) const {}

 protected:
  ~Machines() = default;
};

}  // namespace espalier::sim
