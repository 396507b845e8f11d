#include "golden.h"
#include "tests/bare/check.h"
#include "tests/bare/golden/digests.h"
#include "tests/bare/node_c.h"

const std::uint8_t* golden_image(std::uint32_t node, std::uint32_t* bytes) {
  using namespace espalier::golden;
  constexpr const std::uint8_t* kImages[] = {node_0, node_1, node_2, node_3};
  constexpr std::uint32_t kSizes[] = {sizeof node_0, sizeof node_1, sizeof node_2, sizeof node_3};
  *bytes = kSizes[node];
  return kImages[node];
}

const std::uint8_t* golden_key() { return espalier::golden::key; }

std::uint64_t golden_results(std::uint32_t which) {
  return espalier::golden::kDigests[which].results;
}

void check(int good, const char* file, int line, const char* what) {
  espalier::checks::check(good != 0, file, static_cast<std::uint32_t>(line), what);
}

int finish_checks() { return espalier::checks::finish(); }
