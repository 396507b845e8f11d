#pragma once
// What carries a trial's messages: endpoints of all nodes, and their common time.

#include <cstdint>
#include <memory>

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

  [[nodiscard]] virtual Endpoint& endpoint(std::uint32_t node) = 0;
  // ns since the beginning of the trial.
  [[nodiscard]] virtual std::uint64_t now_ns() = 0;
  // Lets time pass until something happens, at most until `until_ns`. False: nothing happens by
  // then, or ever if it is kNever.
  virtual bool advance(std::uint64_t until_ns) = 0;
  // Whether the node's endpoint may have a completion.
  [[nodiscard]] virtual bool ready(std::uint32_t node) = 0;
  virtual void kill(std::uint32_t node) = 0;
  // Messages that all nodes have sent.
  [[nodiscard]] virtual std::uint64_t messages() = 0;
};

[[nodiscard]] std::unique_ptr<Carrier> simulated_carrier(const Plan& plan,
                                                         const Schedule& schedule);

}  // namespace espalier::storm
