#include "espalier/internal/base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace espalier {

#ifdef ESPALIER_ASSERTIONS
void assertion_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "%s:%d: programming error: expected %s\n", file, line, condition);
  std::abort();
}
#endif

}  // namespace espalier
