// FIPS 180-4's examples, computed by this target's library.

#include "firmware/image/testing/sha256_vectors.h"
#include "tests/bare/check.h"

int main() {
  CHECK(espalier::sha256_is_good());
  return espalier::checks::finish();
}
