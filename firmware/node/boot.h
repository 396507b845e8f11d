#pragma once
// What a Linux node reads before it starts: its command line and its descriptors. Host only.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/limits.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier::node {

// A link of the topology, as the launcher hands it over.
struct Link {
  std::uint32_t peer = 0;  // node at the other end
  std::uint32_t out = 1;   // lanes from here
  std::uint32_t in = 1;    // and to here
};

struct Options {
  std::vector<std::string> schedules;  // paths; at most kMaxPrograms
  // Or an image: a file, or a flash with slots (boot_image.h); %r is the node's number.
  std::string image, flash;
  std::string public_key;       // file; whose images are taken
  bool takes_unsigned = false;  // instead of a key: anybody's
  std::string board = ESPALIER_BOARD;
  std::uint32_t counter = 0;         // images with a lower security counter are refused
  const char* image_only = nullptr;  // the name of a given option that is for images alone
  std::vector<std::uint32_t> nodes;  // that this process drives
  std::string topology;              // canonical specification of the node's topology; empty: any
  std::string provider = "tcp";
  std::string address;        // IP to bind; empty: the provider's default
  std::vector<int> controls;  // the control channel of each node
  // Modelled: the links of each node, all that it has. Empty: direct, a node has links to whomever
  // its programs name.
  std::vector<std::vector<Link>> links;
  std::uint32_t window = kMaxWindow;
  std::uint64_t deadline_ns = 5'000'000'000;
  bool check_blocks = false;  // CRC-32 of every block
  bool log = false;           // keeps a log where the launcher gives memory for one
  bool check_only = false;    // load the descriptors, say what they are, end
  bool help = false;
};

// Reads the command line; false and one line in `error` if it is wrong.
[[nodiscard]] bool parse_options(int argc, char** argv, Options& options, std::string& error);
[[nodiscard]] const char* usage();

// A node's programs, decoded once, and every node that any of them has a link to, ascending.
struct Programs {
  // They own their tables: a file may be written anew under a running node.
  std::array<OwnedProgram, kMaxPrograms> programs;
  std::uint32_t count = 0;
  std::vector<std::uint32_t> peers;  // of an image: in the order of its link table
  std::vector<std::string> sources;  // where each came from, for messages
};

// Loads node's own descriptor of every schedule file. False and one line in `error` (what was
// wrong, where, what would be right) if any is truncated, corrupt, for another topology or beyond
// this node's limits; `programs` is then not to be used.
[[nodiscard]] bool load_programs(const Options& options, std::uint32_t node, Programs& programs,
                                 std::string& error);

}  // namespace espalier::node
