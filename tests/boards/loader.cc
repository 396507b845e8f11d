// loader: reads the output of writer and loads each program like a node with the board's limits: it
// is built with that board's in-memory program. Fails if a program loads that should not, or the
// reverse.

#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "espalier/collectives/schedule/program.h"

int main() {
  using namespace espalier;
  unsigned expected = 0, wrong = 0;
  std::map<unsigned, unsigned> seen;
  std::string name, text;
  while (std::cin >> expected >> name >> text) {
    std::vector<std::uint8_t> bytes;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
      bytes.push_back(static_cast<std::uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
    }
    static DecodedProgram program;
    const auto status = static_cast<unsigned>(
        decode_program(bytes.data(), bytes.size(), kAnyTopology, kAnyNode, program));
    ++seen[status];
    if (status == expected) continue;
    ++wrong;
    std::cout << name << ": the node says " << status << ", the command " << expected << "\n";
  }
  for (const auto& [status, times] : seen) {
    std::cout << times << " programs with status " << status << "\n";
  }
  // All statuses must occur, otherwise this test shows nothing.
  const bool all = seen[0] > 100 && seen[static_cast<unsigned>(Status::kTooLarge)] > 100 &&
                   seen[static_cast<unsigned>(Status::kUnknownFeature)] > 0;
  return wrong == 0 && all ? 0 : 1;
}
