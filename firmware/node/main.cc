// espalier-node: one or several Linux nodes in one process. Boots them from schedule files or
// images, connects them to their neighbours, serves the launcher.

#include <sched.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/counted.h"
#include "base/process/file_limit.h"
#include "base/process/inherited.h"
#include "base/process/open_files.h"
#include "base/try.h"
#include "espalier/hal/ofi/ofi_endpoint.h"
#include "firmware/node/boot_image.h"
#include "firmware/node/boot_options.h"
#include "firmware/node/control.h"
#include "firmware/node/generations.h"
#include "firmware/node/lane_addresses.h"
#include "firmware/node/node_record.h"
#include "firmware/node/node_server.h"
#include "firmware/node/node_spares.h"
#include "firmware/node/schedule_files.h"
#include "firmware/node/standard_io.h"
#include "firmware/node/update_server.h"
#include "firmware/node/wire_up.h"
#include "hal/fabric/provider_list.h"

namespace espalier::node {
namespace {

constexpr int kFailed = 1;
constexpr int kBadInput = 2;

// One node of this process.
struct LocalNode {
  std::uint32_t number = 0;
  int channel = -1;
  BootedImage booted;  // if it boots from an image
  Programs programs;
  Generations generations;
  NodeRecord record;
  std::unique_ptr<NodeSpares> spares;  // if its image has any
};
using Nodes = std::vector<std::unique_ptr<LocalNode>>;

// Reports `what` to the launcher, or on stderr if there is none. Returns `status`.
int fail(int status, int channel, const std::string& what) {
  control::send_failure(channel, "espalier-node", what, status == kBadInput);
  return status;
}

// The same of a node whose record may be kept.
int fail(int status, LocalNode& node, const std::string& what) {
  node.record.ended(what);
  return fail(status, node.channel, what);
}

void describe(const LocalNode& node) {
  for (std::uint32_t i = 0; i < node.programs.count; ++i) {
    const Program& program = node.programs.programs[i];
    std::printf(
        "%s: node %u of %s%s, %s, %s, %s, window %u, %s, "
        "schedule %016" PRIx64 "\n",
        node.programs.sources[i].c_str(), program.node, counted(program.ranks, "rank").c_str(),
        is_router(program) ? " (a router)" : "", program.algorithm,
        counted(program.actions_count, "action").c_str(),
        counted(links_count(program), "link").c_str(), program.window,
        counted(program.scratch_blocks, "scratch block").c_str(), program.schedule_digest);
  }
  for (std::uint32_t k = 0; k < node.programs.selections_count; ++k) {
    const NodeSelection& selection = node.programs.selections[k];
    const SelectionTable& table = selection.table;
    const std::uint32_t first = selection.first_program;
    std::printf("%s: a selection of %s, %016" PRIx64 ":\n", node.programs.sources[first].c_str(),
                counted(table.schedules_count, "program").c_str(), selection.digest);
    for (std::uint32_t i = 0; i < table.rows_count; ++i) {
      const SelectionRow& row = table.rows[i];
      std::printf("  from %s%s: program %u, %s\n", counted(row.from_bytes, "byte").c_str(),
                  row.needs_commutative ? ", operators that commute" : "", first + row.program,
                  node.programs.programs[first + row.program].algorithm);
    }
  }
}

// Errors: the interfaces that the launcher's words name.
Result<ofi::FixedConfig> endpoint_config(const BootOptions& options, const Nodes& nodes,
                                         std::size_t index) {
  ofi::FixedConfig config;
  config.provider = options.provider;
  config.local_address = options.address;
  config.node = nodes[index]->number;
  config.window = options.window;
  config.authenticate_data = options.authenticate_data;
  config.connect_deadline_ns = std::max(config.connect_deadline_ns, options.deadline_ns);
  if (options.links.empty()) {
    config.peers = nodes[index]->programs.peers;
    return config;
  }
  for (const Link& link : options.links[index]) {
    config.peers.push_back(link.peer);
    config.lanes.push_back({link.out, link.in});
  }
  ESPALIER_TRY_TO(config.lane_addresses, lane_addresses(options.links[index]));
  return config;
}

Result<void> open_links(const BootOptions& options, const ofi::FixedConfig& config, Nodes& nodes,
                        std::size_t index, std::uint32_t generations) {
  using Opened = Result<std::shared_ptr<ofi::FixedLinks>>;
  const auto open = [&]() -> Opened {
    auto opened = ofi::FixedLinks::open(config);
    if (opened) return *std::move(opened);
    const std::string where = options.address.empty() ? "" : " on " + options.address;
    return espalier::fail("cannot open " + options.provider + where + ": " +
                          opened.error().message);
  };
  return nodes[index]->generations.open(open, generations);
}

// Allows as many open files as the endpoints need: a node without one would wait for its
// neighbours until they give up. Counted on libfabric 1.17: a tcp endpoint has 12, and two per
// lane.
Result<void> allow_files(const BootOptions& options, const Nodes& nodes) {
  constexpr std::uint64_t kOwn = 12;
  constexpr std::uint64_t kPerEndpoint = 12;
  if (!ofi::binds_address(options.provider)) return {};
  std::uint64_t lanes = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    lanes += options.links.empty() ? nodes[i]->programs.peers.size() : options.links[i].size();
  }
  return allow_open_files(kOwn + kPerEndpoint * nodes.size() + 2 * lanes,
                          counted(lanes, "lane") + " over " + options.provider);
}

// Notes in the records that the nodes, which are being connected, live.
void beat(const Nodes& nodes) {
  const std::uint64_t now = monotonic_ns();
  for (const std::unique_ptr<LocalNode>& node : nodes) node->record.look(now, nullptr, 0);
}

// Opens the endpoints of all nodes, publishes their addresses, then connects them. All nodes take
// turns in each part, because nodes of one process may be neighbours. Returns 0, or the exit
// status.
int connect(const BootOptions& options, Nodes& nodes) {
  const auto allowed = allow_files(options, nodes);
  if (!allowed) return fail(kFailed, *nodes.front(), allowed.error().message);
  std::vector<ControlWireUp> wire_ups;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    LocalNode& node = *nodes[i];
    const std::uint32_t generations = node.booted.image.spares != 0 ? Recovery::kAllGenerations : 1;
    const auto config = endpoint_config(options, nodes, i);
    if (!config) return fail(kBadInput, node, config.error().message);
    const auto opened = open_links(options, *config, nodes, i, generations);
    if (!opened) return fail(kFailed, node, opened.error().message);
    wire_ups.emplace_back(node.channel);
    wire_ups.back().set_release(node.booted.image.release, node.booted.releases.running);
    wire_ups.back().on_wait([&nodes] { beat(nodes); });
    const auto published = publish_all(node.generations.newest(), node.number, wire_ups.back());
    if (!published) return fail(kFailed, node, published.error().message);
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto started = start_connecting_all(nodes[i]->generations.newest(), wire_ups[i]);
    if (!started) return fail(kFailed, *nodes[i], started.error().message);
  }
  bool busy = true;
  while (busy) {
    busy = false;
    for (const std::unique_ptr<LocalNode>& node : nodes) {
      const auto connected = go_on_connecting_all(node->generations.newest());
      if (!connected) return fail(kFailed, *node, connected.error().message);
      busy = busy || !*connected;
      // The neighbours of a lost launcher's node may have ended before they could connect.
      if (control::is_closed(node->channel)) return kFailed;
    }
    beat(nodes);
    if (busy) sched_yield();
  }
  for (const std::unique_ptr<LocalNode>& node : nodes) {
    node->generations.take();
    node->record.connected();
  }
  return 0;
}

// A lost node comes back: opens new links, and connects them.
Result<void> open_links_anew(const BootOptions& options, Nodes& nodes, std::uint32_t present,
                             std::uint32_t lost) {
  LocalNode& node = *nodes.front();
  ESPALIER_TRY_TO(const ofi::FixedConfig config, endpoint_config(options, nodes, 0));
  ESPALIER_TRY(open_links(options, config, nodes, 0, node.generations.count()));
  ControlWireUp wire_up(node.channel);
  wire_up.set_release(node.booted.image.release, node.booted.releases.running);
  auto connected = connect(node.generations, node.number, node.channel, wire_up);
  if (connected) node.generations.take(present, lost);
  return connected;
}

// Confirms the image that ran successfully, so that the next boot takes it.
void confirm(Slots& slots) {
  const Status status = slots.confirm();
  if (status == Status::kOk) {
    std::fprintf(stderr, "boot: confirmed, stored counter %u\n", slots.counter());
  } else {
    std::fprintf(stderr, "espalier-node: cannot confirm the image: %s\n", status_name(status));
  }
}

// Takes part in an update of all nodes.
int update(const BootOptions& options, LocalNode& node, Nodes& nodes) {
  std::optional<NewRelease> release;
  if (node.number == options.update_origin) {
    auto read = read_new_release(options.new_images, program_nodes(node.programs.programs[0]),
                                 node.number, node.booted.expectation, kUpdatePieceBytes);
    if (!read) return fail(kBadInput, node.channel, read.error().message);
    release = *std::move(read);
  }
  const int exit_status = connect(options, nodes);
  if (exit_status != 0) return exit_status;
  UpdateServer server(options, node.generations.first(), node.booted, node.programs,
                      release ? &*release : nullptr, node.channel);
  return server.serve();
}

int run(const BootOptions& options, Nodes& nodes) {
  const int exit_status = connect(options, nodes);
  if (exit_status != 0) return exit_status;
  MachineConfig config{.window = options.window,
                       .deadline_ns = options.deadline_ns,
                       .check_blocks = options.check_blocks};
  std::vector<std::unique_ptr<NodeServer>> servers;
  for (const std::unique_ptr<LocalNode>& node : nodes) {
    servers.push_back(
        std::make_unique<NodeServer>(node->generations.first(), node->programs, node->channel));
    if (Slots* slots = node->booted.slots.get(); slots != nullptr) {
      servers.back()->after_first_good_run([slots] { confirm(*slots); });
    }
    servers.back()->use(node->record);
    const Status status = servers.back()->init(config, options.log);
    if (status == Status::kOk && node->generations.count() > 1) {
      node->spares =
          std::make_unique<NodeSpares>(node->booted.image, node->programs, node->generations);
      servers.back()->use(*node->spares, config.deadline_ns);
      if (nodes.size() == 1) {
        servers.back()->on_return([&](std::uint32_t present, std::uint32_t lost) {
          return open_links_anew(options, nodes, present, lost);
        });
      }
      if (options.comes_back) servers.back()->come_back();
    } else if (options.comes_back) {
      return fail(kBadInput, node->channel,
                  "--comes-back: its image has no spares; expected one built with --spares");
    }
    if (status == Status::kOk) continue;
    return fail(kFailed, *node, std::string("cannot use this endpoint: ") + status_name(status));
  }
  return serve(servers);
}

int main_of(const std::vector<std::string>& words) {
  const auto parsed = parse_options(words);
  if (!parsed) return fail(kBadInput, -1, parsed.error().message);
  const BootOptions& options = *parsed;
  if (options.help) {
    std::fputs(usage(), stdout);
    return 0;
  }
  if (options.lists_providers) {
    std::fputs(ofi::provider_list_text(ofi::list_providers()).c_str(), stdout);
    return 0;
  }
  Nodes nodes;
  for (std::size_t i = 0; i < options.nodes.size(); ++i) {
    nodes.push_back(std::make_unique<LocalNode>());
    nodes.back()->number = options.nodes[i];
    nodes.back()->channel = options.check_only ? -1 : options.controls[i];
  }
  if (const auto provider = ofi::check_provider(options.provider); !provider) {
    return fail(kBadInput, nodes.empty() ? -1 : nodes.front()->channel, provider.error().message);
  }
  for (const std::unique_ptr<LocalNode>& node : nodes) {
    const auto recorded = node->record.open(options, node->number);
    if (!recorded) return fail(kBadInput, node->channel, recorded.error().message);
    const auto loaded = !options.schedules.empty()
                            ? load_programs(options, node->number, node->programs)
                            : boot_image(options, node->number, node->booted, node->programs);
    std::fputs(node->booted.report.c_str(), options.check_only ? stdout : stderr);
    if (!loaded) return fail(kBadInput, *node, loaded.error().message);
    if (options.check_only) {
      describe(*node);
    } else if (!control::is_channel(node->channel)) {
      return fail(kBadInput, -1,
                  "--control " + std::to_string(node->channel) +
                      ": it is no socket; expected the node's end of the launcher's channel");
    }
  }
  if (options.check_only) return 0;
  return options.updates() ? update(options, *nodes.front(), nodes) : run(options, nodes);
}

}  // namespace
}  // namespace espalier::node

int main(int argc, char** argv) {
  espalier::repair_inherited();
  espalier::fail_beyond_file_limit();
  std::vector<std::string> words = espalier::words_of(argc, argv);
  const auto stdio_word = std::find(words.begin(), words.end(), "--stdio");
  if (stdio_word == words.end()) return espalier::node::main_of(words);
  words.erase(stdio_word);
  espalier::node::Stdio stdio;
  const auto all_words = stdio.begin(words);
  if (!all_words)
    return espalier::node::fail(espalier::node::kBadInput, -1, all_words.error().message);
  return espalier::node::main_of(*all_words);
}
