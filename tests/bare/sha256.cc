// FIPS 180-4's examples, by the library that this target has.

#include "firmware/image/sha256_vectors.h"
#include "tests/bare/check.h"

int main() {
  CHECK(espalier::sha256_is_good());
  return espalier::checks::finish();
}
