// --start of `espalier run`.

#include <charconv>
#include <sstream>

#include "tools/common/failure.h"
#include "tools/common/output.h"
#include "tools/run/run.h"

namespace espalier::run_command {
namespace {

// "5" or "4-7"; false if it is neither.
bool parse_range(const std::string& text, std::uint32_t& first, std::uint32_t& last) {
  const char* end = text.data() + text.size();
  const auto low = std::from_chars(text.data(), end, first);
  last = first;
  if (low.ec != std::errc() || low.ptr == end) return low.ec == std::errc();
  if (*low.ptr != '-') return false;
  const auto high = std::from_chars(low.ptr + 1, end, last);
  return high.ec == std::errc() && high.ptr == end && first <= last;
}

}  // namespace

std::vector<std::string> start_commands(const std::vector<std::string>& starts,
                                        std::uint32_t nodes) {
  std::vector<std::string> commands(nodes);
  for (const std::string& start : starts) {
    const std::string whole = "bad --start '" + tools::one_line(start) + "': ";
    const std::size_t equals = start.find('=');
    const std::string command = equals == std::string::npos ? "" : start.substr(equals + 1);
    if (command.find_first_not_of(" \t\n") == std::string::npos) {
      tools::bad_input(whole + "expected NODES=COMMAND, e.g. 4,5=qemu-aarch64-static -L / NODE");
    }
    std::istringstream ranges(start.substr(0, equals) + ",");
    for (std::string range; std::getline(ranges, range, ',');) {
      std::uint32_t first = 0;
      std::uint32_t last = 0;
      if (!parse_range(range, first, last) || last >= nodes) {
        tools::bad_input(whole + "expected nodes from 0 to " + std::to_string(nodes - 1) +
                         ", as 4,5 or 4-7");
      }
      for (std::uint32_t node = first; node <= last; ++node) {
        if (!commands[node].empty()) {
          tools::bad_input(whole + "node " + std::to_string(node) +
                           " is started twice; expected one command a node");
        }
        commands[node] = command;
      }
    }
  }
  return commands;
}

}  // namespace espalier::run_command
