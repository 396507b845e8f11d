// Without libfabric (-Dofi=false).

#include <stdexcept>

#include "tests/storm/carrier.h"

namespace espalier::storm {

std::unique_ptr<Carrier> real_carrier(const Plan& plan, const Schedule& /*schedule*/) {
  throw std::runtime_error(std::string("this build has no libfabric, so no carrier ") +
                           over_name(plan.over));
}

}  // namespace espalier::storm
