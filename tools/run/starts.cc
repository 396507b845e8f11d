// Options of `espalier run` that name nodes: --start, --image, --flash.

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <sstream>

#include "base/command_line.h"
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

// Returns the nodes of "4,5" or "4-7", of 0 .. nodes-1; none if the text is not such a list.
std::optional<std::vector<std::uint32_t>> parse_nodes(const std::string& text,
                                                      std::uint32_t nodes) {
  std::vector<std::uint32_t> list;
  std::istringstream ranges(text + ",");
  for (std::string range; std::getline(ranges, range, ',');) {
    std::uint32_t first = 0, last = 0;
    if (!parse_range(range, first, last) || last >= nodes) return std::nullopt;
    for (std::uint32_t node = first; node <= last; ++node) list.push_back(node);
  }
  return list;
}

std::string expected_nodes(std::uint32_t nodes) {
  return "expected nodes from 0 to " + std::to_string(nodes - 1) + ", as 4,5 or 4-7";
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
      tools::bad_input(whole + "expected NODES=COMMAND, e.g. 4,5=qemu-aarch64 -L / NODE");
    }
    const auto started = parse_nodes(start.substr(0, equals), nodes);
    if (!started) tools::bad_input(whole + expected_nodes(nodes));
    for (const std::uint32_t node : *started) {
      if (!commands[node].empty()) {
        tools::bad_input(whole + "node " + std::to_string(node) +
                         " is started twice; expected one command a node");
      }
      commands[node] = command;
    }
  }
  return commands;
}

BootFile boot_file(const std::string& value) {
  const std::size_t equals = value.find('=');
  const bool list = equals != 0 && value.find_first_not_of("0123456789,-") == equals;
  if (equals == std::string::npos || !list) return {"", value};
  return {value.substr(0, equals), value.substr(equals + 1)};
}

std::vector<bool> boot_nodes(const RunOptions& options) {
  const bool flash = !options.flash.empty();
  const std::string& value = flash ? options.flash : options.image;
  const BootFile boot = boot_file(value);
  if (boot.nodes.empty()) return {};
  const std::string whole =
      std::string("bad --") + (flash ? "flash" : "image") + " '" + tools::one_line(value) + "': ";
  const auto listed = parse_nodes(boot.nodes, options.launch.nodes);
  if (!listed) tools::bad_input(whole + expected_nodes(options.launch.nodes));
  if (boot.file.empty()) tools::bad_input(whole + "expected NODES=FILE");
  std::vector<bool> boots(options.launch.nodes, false);
  for (const std::uint32_t node : *listed) boots[node] = true;
  for (std::uint32_t node = 0; node < options.launch.nodes; ++node) {
    if (boots[node] || !options.launch.commands[node].empty()) continue;
    tools::bad_input(whole + "node " + std::to_string(node) +
                     " boots nothing; expected it in NODES, or a --start that says what it boots");
  }
  return boots;
}

void check_boot_files(const cluster::LaunchOptions& launch) {
  if (launch.boot.empty() || !launch.prefix.empty()) return;
  for (std::uint32_t node = 0; node < launch.nodes; ++node) {
    const bool boots = launch.boots.empty() || launch.boots[node];
    if (!boots || !launch.commands[node].empty()) continue;
    const std::string path = with_node_number(launch.boot[1], node);
    if (access(path.c_str(), R_OK) == 0) continue;
    tools::bad_input("cannot read '" + tools::one_line(path) + "', which node " +
                     std::to_string(node) + " boots: " + std::strerror(errno));
  }
}

}  // namespace espalier::run_command
