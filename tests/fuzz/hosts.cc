// Fuzz target: any text is refused as a hostfile with its line, or is a list of hosts that shares
// any number of ranks out without a gap. The first two bytes are the number of ranks.

#include "tools/launch/hosts.h"

#include <string>

#include "tests/fuzz/memory_file.h"

namespace espalier::fuzz {
namespace {

void share_out(const std::vector<launch::Host>& hosts, std::uint32_t ranks) {
  const auto placed = launch::place(hosts, ranks);
  if (!placed) {
    expect(placed.error().message.find("expected ") != std::string::npos,
           "an error says what is expected");
    return;
  }
  std::uint64_t next = 0;
  for (const launch::Host& host : *placed) {
    expect(host.first == next && host.count > 0, "hosts share the ranks");
    expect(host.slots == 0 || host.count <= host.slots, "a host keeps its limit");
    next += host.count;
  }
  expect(next == ranks, "every rank has a host");
}

}  // namespace

void run(Input& input) {
  const std::uint32_t ranks = 1 + input.below(65536);
  const MemoryFile file(input.rest(), input.left());
  const auto hosts = launch::read_hostfile(file.path());
  if (hosts) {
    share_out(*hosts, ranks);
  } else {
    expect(hosts.error().message.find("expected ") != std::string::npos,
           "an error says what is expected");
  }
}

}  // namespace espalier::fuzz
