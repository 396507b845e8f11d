#pragma once
// The machines that a run polls: all in memory at once, or brought in one after the other
// (paged_machines.h). Host only.

#include <cstdint>
#include <vector>

#include "espalier/collectives/machine/machine.h"

namespace espalier::sim {

class Machines {
 public:
  [[nodiscard]] virtual std::uint32_t size() const = 0;
  [[nodiscard]] virtual bool has(std::uint32_t node) const = 0;
  // node's machine, if it has one; until the next call.
  [[nodiscard]] virtual Machine& at(std::uint32_t node) = 0;
  // at(node) will be called soon: in stages, of which each needs what the one before fetched.
  virtual void expect(std::uint32_t /*node*/, std::size_t /*stage*/) const {}

 protected:
  ~Machines() = default;
};

}  // namespace espalier::sim
