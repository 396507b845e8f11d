#include "firmware/node/boot_options.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "base/counted.h"
#include "base/network/address.h"
#include "base/one_line.h"
#include "base/parse_number.h"
#include "base/try.h"
#include "espalier/collectives/schedule/program.h"
#include "hal/fabric/provider_list.h"

// The text of a macro that may contain commas.
#define TEXT(...) #__VA_ARGS__
#define TEXT_OF(macro) TEXT(macro)

namespace espalier::node {
namespace {

// Reads "NAME" or "NAME/MTU".
bool parse_interface(const std::string& text, Link::Interface& interface) {
  const std::size_t slash = text.find('/');
  interface.name = text.substr(0, slash);
  if (interface.name.empty()) return false;
  if (slash == std::string::npos) return true;
  return parse_number(text.substr(slash + 1), interface.mtu) && interface.mtu != 0;
}

// Reads "PEER:OUT:IN[:INTERFACE...],..."; "" for a node without links.
bool parse_links(const std::string& text, std::vector<Link>& links) {
  std::istringstream entries(text);
  for (std::string entry; std::getline(entries, entry, ',');) {
    std::istringstream numbers(entry);
    std::string peer, out, in;
    std::getline(numbers, peer, ':');
    std::getline(numbers, out, ':');
    std::getline(numbers, in, ':');
    Link& link = links.emplace_back();
    if (!parse_number(peer, link.peer) || !parse_number(out, link.out) ||
        !parse_number(in, link.in) || entry.ends_with(':')) {
      return false;
    }
    for (std::string interface; std::getline(numbers, interface, ':');) {
      if (!parse_interface(interface, link.interfaces.emplace_back())) return false;
    }
    const bool has_all = link.interfaces.size() == std::max(link.out, link.in);
    if (!link.interfaces.empty() && !has_all) return false;
  }
  return true;
}

bool parse_deadline(const std::string& text, std::uint64_t& deadline_ns) {
  std::uint32_t milliseconds = 0;
  if (!parse_number(text, milliseconds) || milliseconds == 0) return false;
  deadline_ns = std::uint64_t{milliseconds} * 1'000'000;
  return true;
}

// Reads "NAME:NODES:RANKS".
bool parse_job(const std::string& text, RunJob& job) {
  constexpr std::size_t kMaxName = 20;  // communicator/record/layout.h:Process::job has room
  std::istringstream words(text);
  std::string nodes, ranks;
  std::getline(words, job.name, ':');
  std::getline(words, nodes, ':');
  std::getline(words, ranks);
  return !job.name.empty() && job.name.size() <= kMaxName &&
         job.name.find_first_not_of("0123456789abcdef") == std::string::npos &&
         parse_number(nodes, job.nodes) && parse_number(ranks, job.ranks) &&
         job.nodes <= kMaxNodes && 1 <= job.ranks && job.ranks <= job.nodes;
}

// Stores the value of one option; false if the option cannot have this value.
using Setter = bool (*)(BootOptions& options, const std::string& value);

template <std::string BootOptions::*field>
bool set_text(BootOptions& options, const std::string& value) {
  options.*field = value;
  return true;
}

template <auto field, auto parse>
bool set_parsed(BootOptions& options, const std::string& value) {
  return parse(value, options.*field);
}

// The same for an option with a value for each node.
template <auto field, auto parse>
bool add_parsed(BootOptions& options, const std::string& value) {
  return parse(value, (options.*field).emplace_back());
}

template <bool BootOptions::*field>
bool set_flag(BootOptions& options, const std::string&) {
  options.*field = true;
  return true;
}

// Reads "BYTES,BLOCK,UNIT" as in a board's description.
bool parse_shape(const std::string& text, FlashShape& shape) {
  std::istringstream numbers(text);
  std::string bytes, block, unit;
  std::getline(numbers, bytes, ',');
  std::getline(numbers, block, ',');
  std::getline(numbers, unit);
  return parse_number(bytes, shape.bytes) && parse_number(block, shape.block_bytes) &&
         parse_number(unit, shape.unit_bytes) && is_flash_shape(shape);
}

// When an option has an effect; otherwise it is refused. Images: --image, --flash; runs: no
// --check; updates: --flash and no --check.
enum class Applies { kAlways, kToImages, kToFlash, kToRuns, kToUpdates };

struct BootOption {
  OptionSpec spec;
  Setter set;
  Applies applies = Applies::kAlways;
};

constexpr BootOption kBootOptions[] = {
    {{"schedule"},
     [](BootOptions& options, const std::string& value) {
       options.schedules.push_back(value);
       return true;
     }},
    {{"image"}, set_text<&BootOptions::image>},
    {{"flash"}, set_text<&BootOptions::flash>},
    {{"flash-shape"}, set_parsed<&BootOptions::flash_shape, parse_shape>, Applies::kToFlash},
    {{"public-key"}, set_text<&BootOptions::public_key>, Applies::kToImages},
    {{"unsigned", false}, set_flag<&BootOptions::takes_unsigned>, Applies::kToImages},
    {{"board"}, set_text<&BootOptions::board>, Applies::kToImages},
    {{"counter"},
     set_parsed<&BootOptions::counter, parse_number<std::uint32_t>>,
     Applies::kToImages},
    {{"node"}, add_parsed<&BootOptions::nodes, parse_number<std::uint32_t>>},
    {{"topology"}, set_text<&BootOptions::topology>},
    {{"provider"}, set_text<&BootOptions::provider>},
    {{"address"}, set_text<&BootOptions::address>, Applies::kToRuns},
    {{"control"},
     [](BootOptions& options, const std::string& value) {
       return parse_number(value, options.controls.emplace_back()) && options.controls.back() >= 0;
     },
     Applies::kToRuns},
    {{"links"}, add_parsed<&BootOptions::links, parse_links>, Applies::kToRuns},
    {{"job"}, set_parsed<&BootOptions::job, parse_job>, Applies::kToRuns},
    {{"window"},
     [](BootOptions& options, const std::string& value) {
       return parse_number(value, options.window) && options.window >= 1 &&
              options.window <= kMaxWindow;
     },
     Applies::kToRuns},
    {{"deadline"}, set_parsed<&BootOptions::deadline_ns, parse_deadline>, Applies::kToRuns},
    {{"check-blocks", false}, set_flag<&BootOptions::check_blocks>, Applies::kToRuns},
    {{"authenticate-data", false}, set_flag<&BootOptions::authenticate_data>, Applies::kToRuns},
    {{"log", false}, set_flag<&BootOptions::log>, Applies::kToRuns},
    {{"comes-back", false}, set_flag<&BootOptions::comes_back>, Applies::kToRuns},
    {{"settle", false}, set_flag<&BootOptions::settles>, Applies::kToUpdates},
    {{"update-from"},
     [](BootOptions& options, const std::string& value) {
       return parse_number(value, options.update_origin) &&
              options.update_origin != BootOptions::kNoOrigin;
     },
     Applies::kToUpdates},
    {{"new"}, set_text<&BootOptions::new_images>, Applies::kToUpdates},
    {{"check", false}, set_flag<&BootOptions::check_only>},
    {{"providers", false}, set_flag<&BootOptions::lists_providers>},
    {{"help", false}, set_flag<&BootOptions::help>},
};

bool has_image(const BootOptions& options) {
  return !options.image.empty() || !options.flash.empty();
}

// Checks that every given option has an effect.
Result<void> check_effects(const BootOptions& options, const std::vector<GivenOption>& given,
                           BootSource source) {
  for (const GivenOption& each : given) {
    for (const BootOption& option : kBootOptions) {
      if (option.spec.name != each.name) continue;
      if (option.applies == Applies::kToImages && !has_image(options)) {
        return fail("--" + each.name + " applies only to --image and --flash");
      }
      const bool updates = option.applies == Applies::kToUpdates;
      const bool needs_flash = updates && source == BootSource::kRequired;  // a board has its own
      if ((option.applies == Applies::kToFlash || needs_flash) && options.flash.empty()) {
        return fail("--" + each.name + " applies only to --flash");
      }
      if ((option.applies == Applies::kToRuns || updates) && options.check_only) {
        return fail("--" + each.name +
                    " has no effect with --check, which starts nothing; expected one of them");
      }
    }
  }
  return {};
}

// Writes the IP to bind as libfabric reads it, without brackets.
Result<void> take_address(BootOptions& options) {
  if (options.address.empty()) return {};
  const auto address = network::parse_ip(options.address);
  if (!address || (address->needs_scope() && address->scope == 0)) {
    return fail("--address '" + one_line(options.address) +
                "' is not an IPv4 or IPv6 address; expected e.g. 127.0.0.1, ::1 or fe80::1%eth0, "
                "with an interface of this host");
  }
  if (const auto right = network::check_host_address(*address); !right) {
    return fail("--address: " + right.error().message);
  }
  options.address = address->host();
  return {};
}

// Checks that the interfaces of links have an effect.
Result<void> check_interfaces(const BootOptions& options) {
  std::size_t with = 0, links = 0;
  for (const std::vector<Link>& of_node : options.links) {
    links += of_node.size();
    for (const Link& link : of_node) with += link.interfaces.empty() ? 0 : 1;
  }
  if (with == 0) return {};
  if (with != links) {
    return fail("--links has interfaces for " + counted(with, "link") + " of " +
                std::to_string(links) + "; expected them for all or for none");
  }
  if (!options.address.empty()) {
    return fail("--links names interfaces, whose addresses are bound; expected no --address");
  }
  if (ofi::binds_address(options.provider)) return {};
  return fail("--links names interfaces, and " + options.provider +
              " binds no IP; expected --provider tcp");
}

// Checks that a node has at most one boot source and, for an image, whose images it accepts.
Result<void> check_source(const BootOptions& options) {
  if (options.schedules.empty() + options.image.empty() + options.flash.empty() < 2) {
    return fail("more than one boot source: give exactly one of --schedule, --image and --flash");
  }
  if (has_image(options) && options.public_key.empty() != options.takes_unsigned) {
    return fail("--image and --flash need exactly one of --public-key FILE and --unsigned");
  }
  if (options.schedules.size() > kMaxPrograms) {
    return fail(counted(options.schedules.size(), "schedule") + "; expected at most " +
                std::to_string(kMaxPrograms));
  }
  return {};
}

// Checks that an update has an origin and its images, and runs alone.
Result<void> check_update(const BootOptions& options) {
  if (options.updates() && !options.schedules.empty()) {
    return fail("an update is of what nodes boot from flash; expected no --schedule");
  }
  const bool updates = options.update_origin != BootOptions::kNoOrigin;
  if (updates == options.new_images.empty()) {
    return fail("an update needs both --update-from NODE and --new FILE");
  }
  if (updates && options.settles) {
    return fail("--settle and --update-from are given; expected one of them");
  }
  if ((updates || options.settles) && (options.log || options.nodes.size() > 1)) {
    return fail(
        "an update has one node per process and keeps no log; expected one --node and no "
        "--log");
  }
  return {};
}

// Checks that there is one control channel and, hop by hop, one list of links for each node.
Result<void> check_nodes(const BootOptions& options) {
  const bool can_come_back =
      options.nodes.size() == 1 && options.schedules.empty() && !options.updates();
  if (options.comes_back && !can_come_back) {
    return fail(
        "--comes-back is for one node with spares; expected one --node, no --schedule, and "
        "no update");
  }
  if (options.nodes.empty()) return fail("no node number; expected --node I");
  if (std::set(options.nodes.begin(), options.nodes.end()).size() < options.nodes.size()) {
    return fail("the same --node is given twice; expected each node once");
  }
  const std::string nodes = counted(options.nodes.size(), "node") + " and ";
  if (!options.check_only && options.controls.size() != options.nodes.size()) {
    return fail(nodes + counted(options.controls.size(), "control channel") +
                "; expected one --control FD for each --node, or --check to load "
                "the descriptors only");
  }
  if (!options.links.empty() && options.links.size() != options.nodes.size()) {
    return fail(nodes + counted(options.links.size(), "list") +
                " of links; expected one --links LIST for each --node");
  }
  return {};
}

}  // namespace

const char* usage() {
  return "usage: espalier-node --schedule FILE [--schedule FILE ...] --node I --control FD\n"
         "                     [--links PEER:OUT:IN[:INTERFACE[/MTU]...],...]\n"
         "                     [--topology SPEC] [--provider tcp|mem]\n"
         "                     [--address IP] [--window W] [--deadline MS] [--check-blocks]\n"
         "                     [--authenticate-data] [--log] [--job NAME:NODES:RANKS]\n"
         "       espalier-node --schedule FILE [--schedule FILE ...] --node I --check\n"
         "       espalier-node (--image FILE | --flash FILE) (--public-key FILE | --unsigned)\n"
         "                     --node I (--control FD | --check) [--board NAME] [--counter N]\n"
         "                     [--flash-shape BYTES,BLOCK,UNIT] ...\n"
         "       espalier-node --flash FILE ... (--settle | --update-from NODE --new FILE)\n"
         "       espalier-node --stdio [any of these]\n"
         "       espalier-node --provider P --check\n"
         "       espalier-node --providers\n"
         "\n"
         "Loads node I's descriptors and exchanges addresses with the neighbours through the\n"
         "control channel (an inherited SOCK_SEQPACKET socket, as `espalier run` passes it). Then\n"
         "runs the collectives that the launcher requests, until the channel ends.\n"
         "\n"
         "--check loads and prints the descriptors, then ends; options of a run are refused. It\n"
         "reads only node I's own descriptor of a schedule file. Without a schedule, image or\n"
         "flash it reports whether the provider serves.\n"
         "\n"
         "--providers lists the providers for 'espalier doctor', one per line: name,\n"
         "version, what serves by that name, otherwise why it cannot and what to do, and its\n"
         "offers, between tabs.\n"
         "\n"
         "--stdio: the launcher is at the other end of standard input and output, through\n"
         "espalier-gateway --node-command, which sends the rest of the command line and the\n"
         "schedules. Options of this command line override those that arrive.\n"
         "\n"
         "Several pairs of --node and --control: one thread of one process drives all these "
         "nodes.\n"
         "\n"
         "  --image FILE      boot from this image; %r is the node's number\n"
         "  --flash FILE      boot from the newest valid slot of this flash, and confirm the "
         "image\n"
         "                    after its first successful run; %r is the node's number\n"
         "  --flash-shape BYTES,BLOCK,UNIT  of FILE, as the board's description has them "
         "(default\n"
         "                    " TEXT_OF(ESPALIER_FLASH_SHAPE) ")\n"
         "  --public-key FILE accept only images signed with this key's private key\n"
         "  --unsigned        accept any image, signed or not\n"
         "  --board NAME      refuse images for another board (default " ESPALIER_BOARD
         ")\n"
         "  --counter N       refuse images with a lower security counter (default 0)\n"
         "  --links LIST      hop by hop: the node has exactly these links. OUT and IN are the\n"
         "                    numbers of lanes from and to the node; each lane is an endpoint of\n"
         "                    its own. One LIST for each --node. INTERFACE, one per lane: the\n"
         "                    lane binds its link-local IPv6 address; MTU: that it must have\n"
         "  --job NAME:NODES:RANKS  the run for `espalier status`: the node then keeps a record\n"
         "  --topology SPEC   refuse schedules for another topology, e.g. mesh:4x4\n"
         "  --deadline MS     how long a link may stay silent before it is declared dead "
         "(default 5000)\n"
         "  --window W        maximum number of steps in flight (default: the program's window)\n"
         "  --check-blocks    send a CRC-32 with every block and check it\n"
         "  --authenticate-data authenticate the payload of long messages, too; all nodes or none\n"
         "  --comes-back      the others went on without the node: it asks to be taken in again\n"
         "  --settle          with the others: end what is left of an update (espalier update)\n"
         "  --update-from NODE, --new FILE: with the others: update all from this node, which "
         "reads\n"
         "                    FILE for each of them; %r is the node's number\n"
         "  --log             keep a log of the last collective if the launcher provides memory\n"
         "\n"
         "Exit status: 0 the launcher ended the node, 1 a failure while running, 2 bad input.\n";
}

std::span<const OptionSpec> boot_option_specs() {
  static const std::vector<OptionSpec> specs = [] {
    std::vector<OptionSpec> all;
    for (const BootOption& option : kBootOptions) all.push_back(option.spec);
    return all;
  }();
  return specs;
}

Result<BootOptions> read_boot_options(const std::vector<GivenOption>& given, BootSource source) {
  BootOptions options;
  for (const GivenOption& each : given) {
    for (const BootOption& option : kBootOptions) {
      if (option.spec.name != each.name) continue;
      if (option.set(options, each.value)) break;
      return fail("bad value for --" + each.name + ": '" + each.value +
                  "'; see espalier-node --help");
    }
  }
  if (options.help) return options;
  if (options.lists_providers) {
    if (given.size() == 1) return options;
    return fail("--providers lists the providers, then ends; expected no other option");
  }
  ESPALIER_TRY(check_effects(options, given, source));
  const bool boots = !options.schedules.empty() || has_image(options);
  if (options.check_only && !boots && options.nodes.empty()) {
    if (options.topology.empty()) return options;
    return fail("--topology has no effect without --schedule, --image or --flash");
  }
  if (!boots && source == BootSource::kRequired) {
    return fail("no schedule; expected --schedule FILE, --image FILE or --flash FILE");
  }
  ESPALIER_TRY(check_source(options));
  ESPALIER_TRY(ofi::check_not_refused(options.provider));
  if (!ofi::has_fixed_links(options.provider)) {
    return fail("--provider " + options.provider +
                " is for programs that join a job; expected tcp, mem or another");
  }
  if (!ofi::binds_address(options.provider) && !options.address.empty()) {
    return fail("--address has no effect with --provider " + options.provider +
                ", which binds no IP; expected --provider tcp");
  }
  ESPALIER_TRY(take_address(options));
  ESPALIER_TRY(check_interfaces(options));
  if (options.authenticate_data && !ofi::authenticates_data(options.provider)) {
    return fail("--authenticate-data: " + options.provider +
                " cannot authenticate payloads; expected --provider tcp");
  }
  ESPALIER_TRY(check_update(options));
  ESPALIER_TRY(check_nodes(options));
  return options;
}

Result<BootOptions> parse_options(std::span<const std::string> words) {
  ESPALIER_TRY_TO(const auto given, split_options("espalier-node", words, boot_option_specs()));
  return read_boot_options(given, BootSource::kRequired);
}

}  // namespace espalier::node
