#include "communicator/no_memory.h"

#include <cerrno>
#include <new>
#include <string>

#include "base/process/system_error.h"

namespace espalier::communicator {

Error memory_error(std::string_view who) {
  try {
    return {std::string(who) + "no memory" + limit_suffix(ENOMEM)};
  } catch (const std::bad_alloc&) {
    return {"no memory"};  // a string of this length needs none
  }
}

}  // namespace espalier::communicator
