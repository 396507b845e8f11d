#include "tools/formats/goal.h"

#include <map>

namespace espalier::tools::formats {

std::string write_goal(const SizedOperations& sized) {
  const std::vector<NodeOperations>& nodes = sized.expanded.nodes;
  std::string text = "num_ranks " + std::to_string(nodes.size()) + "\n";
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    text += "rank " + std::to_string(node) + " {\n";
    std::map<std::uint32_t, std::size_t> last;  // by peer: the last send
    for (std::size_t i = 0; i < nodes[node].operations.size(); ++i) {
      const Operation& operation = nodes[node].operations[i];
      const std::string label = "l" + std::to_string(i);
      const bool sends = operation.kind == ActionKind::kSend;
      if (sends || operation.kind == ActionKind::kReceive) {
        text += label + (sends ? ": send " : ": recv ") + std::to_string(sized.bytes[node][i]) +
                (sends ? "b to " : "b from ") + std::to_string(operation.peer) + " tag " +
                std::to_string(operation.number) + "\n";
      } else {
        text += label + ": calc " + std::to_string(sized.duration_ns[node][i]) + "\n";
      }
      for (const std::uint32_t before : operation.after) {
        text += label + " requires l" + std::to_string(before) + "\n";
      }
      if (!sends) continue;
      const auto [found, fresh] = last.try_emplace(operation.peer, i);
      if (!fresh) text += label + " irequires l" + std::to_string(found->second) + "\n";
      found->second = i;
    }
    text += "}\n";
  }
  return text;
}

}  // namespace espalier::tools::formats
