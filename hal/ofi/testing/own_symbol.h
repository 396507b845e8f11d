#pragma once
// For tests: which definition of a function the shared libraries of this program call.

#include <dlfcn.h>

namespace espalier::ofi {

// Whether the program's shared libraries call a function `name` of the program itself. Otherwise
// they call the one of a shared library, such as the C library.
[[nodiscard]] inline bool in_this_program(const char* name) {
  static const char own = '\0';
  Dl_info function = {};
  Dl_info program = {};
  void* const found = dlsym(RTLD_DEFAULT, name);
  return found != nullptr && dladdr(found, &function) != 0 && dladdr(&own, &program) != 0 &&
         function.dli_fbase == program.dli_fbase;
}

}  // namespace espalier::ofi
