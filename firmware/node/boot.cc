#include "firmware/node/boot.h"

#include <fcntl.h>
#include <getopt.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <sstream>

#include "espalier/base/digest.h"
#include "espalier/collectives/schedule/file.h"

namespace espalier::node {
namespace {

template <typename T>
bool parse_number(const char* text, T& value) {
  const char* end = text + std::strlen(text);
  const auto [stop, status] = std::from_chars(text, end, value);
  return status == std::errc() && stop == end && stop != text;
}

// A file in memory for as long as this lives; only the pages that are read come from the disk.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (size_ != 0) munmap(const_cast<std::uint8_t*>(bytes_), size_);
  }
  // False and errno on failure.
  bool open(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    struct stat about {};
    bool mapped = fstat(file, &about) == 0;
    if (mapped && about.st_size > 0) {
      void* bytes =
          mmap(nullptr, static_cast<std::size_t>(about.st_size), PROT_READ, MAP_PRIVATE, file, 0);
      mapped = bytes != MAP_FAILED;
      if (mapped) {
        bytes_ = static_cast<const std::uint8_t*>(bytes);
        size_ = static_cast<std::size_t>(about.st_size);
      }
    }
    const int kept = errno;
    ::close(file);
    errno = kept;
    return mapped;
  }
  const std::uint8_t* bytes() const { return bytes_; }
  std::size_t size() const { return size_; }

 private:
  const std::uint8_t* bytes_ = nullptr;
  std::size_t size_ = 0;
};

// What to do about a descriptor that does not load.
const char* remedy(Status status) {
  switch (status) {
    case Status::kTruncated: return "the file ends too early; copy or compile it again";
    case Status::kCorrupt: return "a checksum does not match; copy or compile it again";
    case Status::kBadVersion: return "compile it with this release";
    case Status::kUnknownFeature: return "compile it for this node's release";
    case Status::kTooLarge: return "it needs more than this node's limits (schedule.options)";
    case Status::kMalformed: return "it is not a schedule of `espalier compile`";
    case Status::kWrongTopology: return "compile it for this node's topology";
    case Status::kWrongNode: return "give the node's own number";
    default: return "see the status";
  }
}

// As Topology::digest() makes it of a canonical specification.
std::uint64_t topology_digest(const char* spec, std::size_t size) {
  const std::uint64_t digest = digest_bytes(kDigestSeed, spec, size);
  return digest == 0 ? 1 : digest;
}

// Whether the file's topology is the one that it spells out. Nodes do not read the specification.
bool is_specified(const ScheduleFile& file) {
  return topology_digest(file.spec(), file.spec_size()) == file.topology_digest();
}

bool load_program(const std::string& path, const Options& options, std::uint32_t node,
                  Programs& programs, std::string& error) {
  MappedFile mapped;
  if (!mapped.open(path)) {
    error = "cannot read the schedule " + path + ": " + std::strerror(errno);
    return false;
  }
  ScheduleFile file;
  Status status = file.open(mapped.bytes(), mapped.size());
  if (status == Status::kOk) {
    if (!is_specified(file)) {
      error = path + " is not consistent: its topology's digest is not that of the specification " +
              "beside it; compile it again";
      return false;
    }
    if (!options.topology.empty() &&
        topology_digest(options.topology.data(), options.topology.size()) !=
            file.topology_digest()) {
      error = path + " was compiled for the topology " +
              std::string(file.spec(), file.spec_size()) + ", this node is in " + options.topology +
              "; " + remedy(Status::kWrongTopology);
      return false;
    }
    if (node >= file.nodes()) {
      error = path + " has no node " + std::to_string(node) + ": its nodes are 0 to " +
              std::to_string(file.nodes() - 1);
      return false;
    }
    const auto decoded = std::make_unique<DecodedProgram>();
    status = file.program(node, *decoded);
    programs.programs[programs.count] = *decoded;
  }
  if (status == Status::kOk) {
    programs.sources.push_back(path);
  } else {
    error = "cannot load node " + std::to_string(node) + "'s descriptor from " + path + ": " +
            status_name(status) + "; " + remedy(status);
  }
  return status == Status::kOk;
}

enum Option {
  kSchedule,
  kImage,
  kFlash,
  kPublicKey,
  kUnsigned,
  kBoard,
  kCounter,
  kNode,
  kTopology,
  kProvider,
  kAddress,
  kControl,
  kLinks,
  kWindow,
  kDeadline,
  kCheckBlocks,
  kLog,
  kCheckOnly,
  kHelp
};
constexpr option kOptions[] = {{"schedule", required_argument, nullptr, kSchedule},
                               {"image", required_argument, nullptr, kImage},
                               {"flash", required_argument, nullptr, kFlash},
                               {"public-key", required_argument, nullptr, kPublicKey},
                               {"unsigned", no_argument, nullptr, kUnsigned},
                               {"board", required_argument, nullptr, kBoard},
                               {"counter", required_argument, nullptr, kCounter},
                               {"node", required_argument, nullptr, kNode},
                               {"topology", required_argument, nullptr, kTopology},
                               {"provider", required_argument, nullptr, kProvider},
                               {"address", required_argument, nullptr, kAddress},
                               {"control", required_argument, nullptr, kControl},
                               {"links", required_argument, nullptr, kLinks},
                               {"window", required_argument, nullptr, kWindow},
                               {"deadline", required_argument, nullptr, kDeadline},
                               {"check-blocks", no_argument, nullptr, kCheckBlocks},
                               {"log", no_argument, nullptr, kLog},
                               {"check", no_argument, nullptr, kCheckOnly},
                               {"help", no_argument, nullptr, kHelp},
                               {nullptr, 0, nullptr, 0}};

// "PEER:OUT:IN,...", or "" where a node has no links.
bool parse_links(const std::string& text, std::vector<Link>& links) {
  std::istringstream entries(text);
  for (std::string entry; std::getline(entries, entry, ',');) {
    std::istringstream numbers(entry);
    std::string peer, out, in;
    std::getline(numbers, peer, ':');
    std::getline(numbers, out, ':');
    std::getline(numbers, in);
    Link& link = links.emplace_back();
    if (!parse_number(peer.c_str(), link.peer) || !parse_number(out.c_str(), link.out) ||
        !parse_number(in.c_str(), link.in)) {
      return false;
    }
  }
  return true;
}

// Takes one option's value; false if it is not a value of that option.
bool take(int option, const char* value, Options& options) {
  switch (option) {
    case kSchedule: options.schedules.emplace_back(value); return true;
    case kImage: options.image = value; return true;
    case kFlash: options.flash = value; return true;
    case kPublicKey: options.public_key = value; return true;
    case kUnsigned: options.takes_unsigned = true; return true;
    case kBoard: options.board = value; return true;
    case kCounter: return parse_number(value, options.counter);
    case kNode: return parse_number(value, options.nodes.emplace_back());
    case kTopology: options.topology = value; return true;
    case kProvider: options.provider = value; return true;
    case kAddress: options.address = value; return true;
    case kControl:
      return parse_number(value, options.controls.emplace_back()) && options.controls.back() >= 0;
    case kLinks: return parse_links(value, options.links.emplace_back());
    case kWindow:
      return parse_number(value, options.window) && options.window >= 1 &&
             options.window <= kMaxWindow;
    case kDeadline: {
      std::uint32_t milliseconds = 0;
      if (!parse_number(value, milliseconds) || milliseconds == 0) return false;
      options.deadline_ns = std::uint64_t{milliseconds} * 1'000'000;
      return true;
    }
    case kCheckBlocks: options.check_blocks = true; return true;
    case kLog: options.log = true; return true;
    case kCheckOnly: options.check_only = true; return true;
    case kHelp: options.help = true; return true;
    default: return false;
  }
}

bool from_image(const Options& options) { return !options.image.empty() || !options.flash.empty(); }

// What a node starts from: schedules or an image, and of an image whom to trust.
void check_sources(const Options& options, std::string& error) {
  if (options.schedules.empty() && !from_image(options))
    error = "no schedule: give --schedule FILE";
  if (options.schedules.empty() + options.image.empty() + options.flash.empty() < 2) {
    error = "too much to boot from: give one of --schedule, --image and --flash";
  }
  if (from_image(options) && options.public_key.empty() != options.takes_unsigned) {
    error = "whom to trust? give one of --public-key FILE and --unsigned";
  }
  if (!from_image(options) && options.image_only != nullptr) {
    error = std::string("--") + options.image_only + " is for --image and --flash";
  }
}

}  // namespace

const char* usage() {
  return "usage: espalier-node --schedule FILE [--schedule FILE ...] --node I --control FD\n"
         "                     [--links PEER:OUT:IN,...] [--topology SPEC] [--provider tcp|shm]\n"
         "                     [--address IP] [--window W] [--deadline MS] [--check-blocks] "
         "[--log]\n"
         "       espalier-node --schedule FILE [--schedule FILE ...] --node I --check\n"
         "       espalier-node (--image FILE | --flash FILE) (--public-key FILE | --unsigned)\n"
         "                     --node I (--control FD | --check) [--board NAME] [--counter N] ...\n"
         "       espalier-node --stdio [any of these]\n"
         "       espalier-node --provider P --check\n"
         "\n"
         "Loads node I's descriptors, wires up with its neighbours through the control channel\n"
         "(an inherited SOCK_SEQPACKET socket; `espalier run` starts nodes so) and runs what it\n"
         "is told until the channel ends. --check loads the descriptors, prints them, and ends\n"
         "(of a schedule file node I's own: other nodes' are not looked at);\n"
         "without any it says whether libfabric has the provider.\n"
         "--stdio: the launcher is at the other end of standard input and output, through\n"
         "espalier-gateway --node-command, which sends the rest of the command line and the\n"
         "schedules; what stands here wins.\n"
         "--node and --control again, in pairs: one process and thread drives all these nodes.\n"
         "\n"
         "  --image FILE      boot from this image instead; %r is the node's number\n"
         "  --flash FILE      boot from the newest valid slot of this flash, and confirm it after\n"
         "                    its first good run; %r as above\n"
         "  --public-key FILE take only images that this key's owner signed; --unsigned: any\n"
         "  --board NAME      refuse images for another (default " ESPALIER_BOARD
         ")\n"
         "  --counter N       refuse images with a lower security counter (default 0)\n"
         "  --links LIST      modelled: the node has these links and no others, with so many "
         "lanes\n"
         "                    out and in, each an endpoint of its own; once for each --node\n"
         "  --topology SPEC   refuse schedules for any other topology, e.g. mesh:4x4\n"
         "  --deadline MS     silence after which a link is dead (default 5000)\n"
         "  --window W        steps in flight, at most (default: as many as a program allows)\n"
         "  --check-blocks    send a CRC-32 with every block and check it\n"
         "  --log             keep a log of the last collective where the launcher wants one\n"
         "\n"
         "Exit status: 0 told to end, 1 a failure while running, 2 bad input.\n";
}

bool parse_options(int argc, char** argv, Options& options, std::string& error) {
  opterr = 0;
  optind = 1;
  while (true) {
    const int at = optind;
    int which = -1;
    const int found = getopt_long(argc, argv, ":", kOptions, &which);
    if (found == -1) break;
    if (found == '?' || found == ':') {
      error = std::string(found == ':' ? "no value after " : "unknown option ") + argv[at] +
              "; see espalier-node --help";
      return false;
    }
    if (found >= kPublicKey && found <= kCounter) options.image_only = kOptions[found].name;
    if (!take(found, optarg, options)) {
      error = std::string("bad value for --") + kOptions[found].name + ": " + optarg +
              "; see espalier-node --help";
      return false;
    }
  }
  if (options.help) return true;
  if (optind < argc) error = std::string("unexpected argument ") + argv[optind];
  const bool boots = !options.schedules.empty() || from_image(options);
  if (options.check_only && !boots && options.nodes.empty()) return error.empty();
  check_sources(options, error);
  if (options.schedules.size() > kMaxPrograms) {
    error = "too many schedules: a node holds at most " + std::to_string(kMaxPrograms);
  }
  if (options.provider == "shm" && !options.address.empty()) {
    error = "--address is an IP to bind, and shm binds none; give --provider tcp";
  }
  if (options.nodes.empty()) error = "no node number: give --node I";
  if (!options.check_only && options.controls.size() != options.nodes.size()) {
    error = std::to_string(options.nodes.size()) + " nodes and " +
            std::to_string(options.controls.size()) +
            " control channels: give --control FD for each --node, or --check to load the "
            "descriptors only";
  }
  if (!options.links.empty() && options.links.size() != options.nodes.size()) {
    error = std::to_string(options.nodes.size()) + " nodes and " +
            std::to_string(options.links.size()) + " lists of links: give --links for each --node";
  }
  return error.empty();
}

bool load_programs(const Options& options, std::uint32_t node, Programs& programs,
                   std::string& error) {
  for (const std::string& path : options.schedules) {
    if (!load_program(path, options, node, programs, error)) return false;
    const Program& program = programs.programs[programs.count++];
    for (std::uint32_t i = 0; i < links_count(program); ++i) {
      programs.peers.push_back(peer_of(program, i));
    }
  }
  std::sort(programs.peers.begin(), programs.peers.end());
  programs.peers.erase(std::unique(programs.peers.begin(), programs.peers.end()),
                       programs.peers.end());
  if (options.links.empty() && programs.peers.size() > kMaxLinks) {
    error = "the schedules need " + std::to_string(programs.peers.size()) + " links, node " +
            std::to_string(node) + " has room for " + std::to_string(kMaxLinks) +
            " (ESPALIER_MAX_LINKS)";
    return false;
  }
  return true;
}

}  // namespace espalier::node
