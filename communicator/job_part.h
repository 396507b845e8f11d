#pragma once
// A communicator of some processes of a job whose addresses travel outside of Espalier, as an MPI
// library makes one. Host only.

#include <cstdint>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/bootstrap/bootstrap.h"
#include "espalier/communicator.h"

namespace espalier::communicator {

class JobPart {
 public:
  // Makes a communicator of these ranks of `whole`, which is the communicator of join(). Each of
  // them must call it; `exchange` is a membership of these processes alone, in this order. The part
  // uses the job's progress thread. Another thread may use `whole` meanwhile. Errors: as
  // Communicator::split().
  [[nodiscard]] static Result<Communicator> make(const Communicator& whole,
                                                 const std::vector<std::uint32_t>& ranks,
                                                 bootstrap::Bootstrap& exchange);
  // For tests: between two calls, this process no longer replies to others, as if it were stopped.
  static void silence(const Communicator& communicator);

 private:
  [[nodiscard]] static Result<Communicator> connect(const Communicator& whole,
                                                    const std::vector<std::uint32_t>& ranks,
                                                    bootstrap::Bootstrap& exchange);
};

}  // namespace espalier::communicator
