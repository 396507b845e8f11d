#pragma once
// The command line of a Linux node. Host only.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/command_line.h"
#include "espalier/base/result.h"
#include "espalier/internal/base/limits.h"
#include "firmware/boot/file_flash.h"

namespace espalier::node {

// A link of the topology, as the launcher describes it.
struct Link {
  std::uint32_t peer = 0;  // node at the other end
  std::uint32_t out = 1;   // lanes from this node to the peer
  std::uint32_t in = 1;    // lanes from the peer to this node
  // The interface by which each lane leaves, max(out, in) of them; empty: the fabric chooses.
  struct Interface {
    std::string name = {};
    std::uint32_t mtu = 0;  // bytes, which it must have; 0: any
  };
  std::vector<Interface> interfaces = {};
};

// The run of which the node is, as its launcher named it, for the node's record.
struct RunJob {
  std::string name;         // hexadecimal digits; empty: there is no record
  std::uint32_t nodes = 0;  // that the launcher starts
  std::uint32_t ranks = 0;  // of the schedule; the other nodes are routers
};

struct BootOptions {
  std::vector<std::string> schedules;  // paths; at most kMaxPrograms
  // Path of an image or of a flash with slots (boot_image.h), instead of schedules. %r in it is the
  // node's number.
  std::string image, flash;
  FlashShape flash_shape = {ESPALIER_FLASH_SHAPE};  // of the file `flash`
  std::string public_key;       // path; images must be signed with its private key
  bool takes_unsigned = false;  // accepts any image, signed or not; excludes public_key
  std::string board = ESPALIER_BOARD;
  std::uint32_t counter = 0;         // images with a lower security counter are refused
  std::vector<std::uint32_t> nodes;  // the nodes that this process drives
  std::string topology;              // canonical specification of the topology; empty: any
  std::string provider = "tcp";
  std::string address;        // IP to bind; empty: the provider's default
  std::vector<int> controls;  // the control channel of each node
  // Hop by hop: all links of each node. Empty: the fabric routes, and a node has a link to each
  // peer of its programs.
  std::vector<std::vector<Link>> links;
  std::uint32_t window = kMaxWindow;
  std::uint64_t deadline_ns = 5'000'000'000;
  bool check_blocks = false;       // sends and checks a CRC-32 of every block
  bool authenticate_data = false;  // authenticates the payload of long messages, too
  RunJob job;
  bool log = false;  // keeps a log if the launcher provides memory for one
  // Instead of serving runs: the nodes of `espalier update` have a roll call, and settle on one
  // release; with an origin, they then update all from it. Only with `flash`, or on a board.
  bool settles = false;
  std::uint32_t update_origin = kNoOrigin;
  std::string new_images;  // path of the new image of each node, for the origin; with %r
  static constexpr std::uint32_t kNoOrigin = 0xffffffff;
  [[nodiscard]] bool updates() const { return settles || update_origin != kNoOrigin; }
  bool comes_back = false;       // the others went on without the node; it asks to be taken in
  bool check_only = false;       // loads and prints the descriptors, then ends
  bool lists_providers = false;  // prints the providers, then ends
  bool help = false;
};

// The options that read_boot_options() accepts.
[[nodiscard]] std::span<const OptionSpec> boot_option_specs();
// Whether the options must say what the node boots: a gateway's node may know it by itself.
enum class BootSource { kRequired, kOptional };
// Reads options that split_options() found with those specs. Errors: a bad value, or options that
// do not fit together.
[[nodiscard]] Result<BootOptions> read_boot_options(const std::vector<GivenOption>& given,
                                                    BootSource source);
// Splits and reads the words of a command line. Errors: those of both.
[[nodiscard]] Result<BootOptions> parse_options(std::span<const std::string> words);
[[nodiscard]] const char* usage();

}  // namespace espalier::node
