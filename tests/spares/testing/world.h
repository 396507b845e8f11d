#pragma once
// Links in virtual time, of several generations, for tests that go on after a loss.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/loss.h"
#include "espalier/hal/endpoint.h"
#include "espalier/hal/sim/network.h"
#include "hal/serial/testing/hub.h"

namespace espalier::testing {

class World {
 public:
  using Links = std::vector<std::vector<std::uint32_t>>;  // peers, by node

  virtual ~World() = default;
  [[nodiscard]] virtual std::uint64_t deadline_ns() const = 0;  // D
  [[nodiscard]] virtual Endpoint& endpoint(std::uint32_t node) = 0;
  // Gives the endpoint the links of this generation, which is one above the present one.
  [[nodiscard]] virtual bool reopen(std::uint32_t node, std::uint32_t generation) = 0;
  virtual void lose(const Loss& /*loss*/) {}
  // Starts a node anew that was killed.
  virtual void revive(std::uint32_t /*node*/) {}
  [[nodiscard]] virtual bool alive(std::uint32_t /*node*/) const { return true; }
  [[nodiscard]] virtual std::uint64_t now_ns() { return endpoint(0).now(); }
  // Lets time pass until something happens, or until `until_ns`.
  virtual void pass(std::uint64_t until_ns) = 0;
};

[[nodiscard]] std::unique_ptr<World> simulated_world(const World::Links& links,
                                                     const sim::Model& model);
// Each node has one carrier, as a board has; a generation is a set of its channels.
[[nodiscard]] std::unique_ptr<World> framed_world(const World::Links& links,
                                                  std::uint32_t generations,
                                                  const serial::CarrierFaults& faults,
                                                  const std::uint8_t* key = nullptr);

}  // namespace espalier::testing
