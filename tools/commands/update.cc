// espalier update: a new release for all nodes of a cluster over its own fabric (docs/updates.md).

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/one_line.h"
#include "base/process/variables.h"
#include "firmware/image/image.h"
#include "firmware/update/release.h"
#include "tools/cluster/start_cluster.h"
#include "tools/commands/commands.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"
#include "tools/image/image.h"
#include "tools/run/run.h"

namespace espalier::tools {
namespace {

using control::UpdateEnd;
using image::release_text;

constexpr std::uint32_t kMaxSessions = 6;    // without kills; two are enough
constexpr std::uint32_t kMaxUpdated = 4096;  // nodes

struct UpdateArguments {
  std::string images, flash, public_key;
  bool takes_unsigned = false;
  bool settles = false;
  std::uint32_t origin = 0;
  std::vector<std::string> kills, starts;
  cluster::LaunchOptions launch;
};

// The new release, as the origin's image has it.
struct NewImages {
  std::uint32_t release = 0;
  std::uint64_t digest = 0;
};

std::string status_text(Status status) {
  return std::string(status_name(status)) + " (status " +
         std::to_string(static_cast<unsigned>(status)) + ")";
}

// Sets launch.nodes, launch.commands and launch.boots: a node has a --start command, or a flash
// file. Throws Failure (bad input) if a node has neither, or if an option has no effect.
void find_nodes(UpdateArguments& arguments) {
  cluster::LaunchOptions& launch = arguments.launch;
  const std::string& flash = arguments.flash;
  launch.commands = run_command::start_commands(arguments.starts, kMaxUpdated);
  const auto has_file = [&flash](std::uint32_t node) {
    return !flash.empty() && std::filesystem::exists(cluster::expand_template(flash, node));
  };
  std::uint32_t& nodes = launch.nodes;
  bool boots_flash = false;
  for (; nodes < kMaxUpdated; ++nodes) {
    const bool started = !launch.commands[nodes].empty();
    if (!started && !has_file(nodes)) break;
    launch.boots.push_back(!started);
    if (started) continue;
    boots_flash = true;
    if (cluster::expand_template(flash, nodes + 1) == flash) {
      bad_input("--flash " + one_line(flash) + ": expected %r, the node's number, in its name");
    }
  }
  const bool is_last = std::all_of(launch.commands.begin() + nodes, launch.commands.end(),
                                   [](const std::string& command) { return command.empty(); });
  if (nodes == 0 || !is_last) {
    if (flash.empty()) {
      bad_input("node " + std::to_string(nodes) +
                " is not started; expected --flash FILE, or a --start for it");
    }
    bad_input("there is no flash file " + one_line(cluster::expand_template(flash, nodes)) +
              "; expected one per node, as `espalier image install --flash` writes it");
  }
  if (!boots_flash && !flash.empty()) {
    bad_input("--flash has no effect: all nodes have a --start; expected none");
  }
  launch.commands.resize(nodes);
}

// Reads the origin's new image. Throws Failure (bad input) if it is none, or lacks what the next
// update needs. Each node checks its own.
NewImages read_new_image(const UpdateArguments& arguments) {
  const std::string path = cluster::expand_template(arguments.images, arguments.origin);
  const std::vector<std::uint8_t> bytes = image::read_bytes(path);
  const std::string board(
      bytes.size() < kImageHeaderBytes
          ? ""
          : std::string(reinterpret_cast<const char*>(bytes.data()) + kImageBoardAt,
                        kBoardNameBytes - 1)
                .c_str());
  Expectation expectation{.board = board.c_str(), .authority = &kTakesUnsigned};
  Image image;
  NewImages found;
  const auto memory = std::make_unique<DecodedProgram>();
  Status status = check_image(bytes.data(), bytes.size(), expectation, image);
  if (status == Status::kOk) status = release_digest(image, *memory, found.digest);
  if (status != Status::kOk) bad_input(one_line(path) + " is refused: " + status_text(status));
  UpdatePrograms programs;
  if (find_update_programs(image, arguments.origin, programs) != Status::kOk) {
    bad_input(one_line(path) + " cannot be updated again: expected an allreduce, and a broadcast " +
              "and a scatter from root " + std::to_string(arguments.origin) + ", in its release");
  }
  found.release = image.release;
  return found;
}

// How a session of all nodes ended.
struct Session {
  UpdateEnd end = UpdateEnd::kNone;
  std::string why = {};  // kNone, kRefused and kMixed: one line
  std::uint32_t release = 0;
  std::uint64_t digest = 0;
};

std::string reason(const cluster::NodeProcesses& cluster, std::uint32_t node) {
  const cluster::Member& member = cluster.members()[node];
  const control::Report& report = member.report;
  if (member.state == cluster::Member::State::kReported &&
      static_cast<UpdateEnd>(report.blocks) == UpdateEnd::kRefused) {
    return "node " + std::to_string(report.cause.detector) +
           " refuses the update: " + status_text(report.status);
  }
  return "node " + std::to_string(node) + ": " + cluster.describe(node);
}

// Throws Failure (bad input) if `kill` is not NODE@MS with one of the nodes.
void add_kill(const std::string& kill, cluster::LaunchOptions& options) {
  if (parse_disturbance(kill, SIGKILL, options)) return;
  bad_input("bad --kill " + one_line(kill) + ": expected NODE@MS with a node from 0 to " +
            std::to_string(options.nodes - 1));
}

Session run_session(const UpdateArguments& arguments, bool updates, const std::string& kill) {
  cluster::LaunchOptions options = arguments.launch;
  options.boot = {"--flash", arguments.flash};
  if (arguments.takes_unsigned) {
    options.boot.emplace_back("--unsigned");
  } else {
    options.boot.insert(options.boot.end(), {"--public-key", arguments.public_key});
  }
  options.role = {"--settle"};
  if (updates) {
    options.role = {"--update-from", std::to_string(arguments.origin), "--new", arguments.images};
  }
  if (!kill.empty()) add_kill(kill, options);
  cluster::NodeProcesses cluster;
  start_cluster(options, {}, cluster);
  Session session{.release = cluster.members()[0].hello.release,
                  .digest = cluster.members()[0].hello.release_digest};
  (void)or_negative(cluster.run(control::RunRequest{}));
  for (std::uint32_t node = 0; node < options.nodes; ++node) {
    const cluster::Member& member = cluster.members()[node];
    const bool reported = member.state == cluster::Member::State::kReported;
    const auto end = reported ? static_cast<UpdateEnd>(member.report.blocks) : UpdateEnd::kNone;
    session.end = node == 0 || end == session.end ? end : UpdateEnd::kNone;
    const bool failed = end == UpdateEnd::kNone || end == UpdateEnd::kRefused;
    // A killed node is the reason of what the others report.
    if (failed && (session.why.empty() || !reported)) session.why = reason(cluster, node);
  }
  return session;
}

void update(UpdateArguments arguments) {
  if (arguments.settles == !arguments.images.empty()) {
    bad_input("expected the new images, or --settle to end what an update left");
  }
  const bool has_key = !arguments.public_key.empty() || arguments.takes_unsigned;
  if (has_key == arguments.flash.empty()) {
    bad_input(has_key ? "boards have their own key, and no node boots a --flash; expected neither "
                        "--public-key nor --unsigned"
                      : "nodes need a key: expected one of --public-key FILE and --unsigned");
  }
  if (!arguments.public_key.empty()) (void)image::trusted_key(arguments.public_key);
  find_nodes(arguments);
  if (arguments.origin >= arguments.launch.nodes) {
    bad_input("--from " + std::to_string(arguments.origin) + ": expected a node from 0 to " +
              std::to_string(arguments.launch.nodes - 1));
  }
  for (const std::string& kill : arguments.kills) {
    cluster::LaunchOptions checked = arguments.launch;
    add_kill(kill, checked);
  }
  arguments.launch.any_releases = true;
  NewImages fresh;
  if (!arguments.settles) fresh = read_new_image(arguments);
  find_node(arguments.launch);
  const std::string all = "all " + std::to_string(arguments.launch.nodes) + " nodes";
  bool updates = !arguments.settles;
  std::string failure;
  const std::size_t limit = kMaxSessions + arguments.kills.size();
  for (std::size_t number = 0; number < limit; ++number) {
    const bool is_killed = number < arguments.kills.size();
    const Session session =
        run_session(arguments, updates, is_killed ? arguments.kills[number] : "");
    switch (session.end) {
      case UpdateEnd::kSettled:
        std::printf("%s run release %s\n", all.c_str(), release_text(session.release).c_str());
        if (arguments.settles || session.digest == fresh.digest) return;
        negative("release " + release_text(fresh.release) + " was not installed: " + failure +
                 "; run the update again");
      case UpdateEnd::kSwitched:
        std::printf("%s switch to release %s\n", all.c_str(), release_text(fresh.release).c_str());
        updates = false;
        break;
      case UpdateEnd::kRestarts:
        std::printf("nodes of two releases finish the switch, and restart\n");
        break;
      case UpdateEnd::kRefused:
        negative(session.why + "; all run release " + release_text(session.release));
      case UpdateEnd::kMixed:
        negative(
            "the nodes run several releases, which no update explains; expected images of "
            "one release on all, see `espalier image install`");
      case UpdateEnd::kNone:
        std::printf("%s; all restart\n", session.why.c_str());
        failure = session.why;
        updates = false;
        break;
    }
    std::fflush(stdout);
  }
  negative("the nodes do not settle: " + failure);
}

constexpr const char* kUpdateExamples =
    "Sends each node its new image over the fabric, by the broadcast and the scatter of the "
    "release\n"
    "that runs. Each node checks it and writes it into the other slot of its flash; then all\n"
    "switch, or none. If nodes die meanwhile, all end in one release when they have restarted:\n"
    "run the command again. 'espalier run' refuses nodes of two releases.\n"
    "Examples:\n"
    "  espalier update new-%r.img --flash node-%r.flash --public-key release.key.pub\n"
    "  espalier update --settle --flash node-%r.flash --public-key release.key.pub\n"
    "  espalier update new-%r.img --start '0-3=espalier-gateway --device unix:g%r,b%r'\n"
    "Exit status: 0 all nodes run the new release (--settle: one release); 1 they do not, and the\n"
    "line says why; 2 bad input.";

}  // namespace

void add_update(Command app) {
  Command command = app.add_command(
      "update", "Installs a new release on all nodes over their own fabric, or on none");
  auto& arguments = command.bind<UpdateArguments>(update);
  Option images = command.text("images", arguments.images,
                               "The new image of each node; %r is the node's number");
  command.text("--flash", arguments.flash,
               "The flash file of each node that no --start starts; %r as above");
  command.texts("--start", arguments.starts,
                "NODES=COMMAND: the command that starts these nodes (4,5 or 4-7) instead of "
                "espalier-node, e.g. an espalier-gateway for a board");
  Option key = command.text("--public-key", arguments.public_key,
                            "Nodes accept only images signed with this key's private part");
  command.flag("--unsigned", arguments.takes_unsigned, "Nodes accept any image").excludes(key);
  command
      .number("--from", arguments.origin, 0, kMaxNodes,
              "The node that sends: the root of the release's broadcast and scatter")
      .excludes(command
                    .flag("--settle", arguments.settles,
                          "Only end what an update left: finish the switch, or go back")
                    .excludes(images));
  add_node_options(command, arguments.launch);
  // NODE@MS kills a node's process MS after the start; a second one in the second session.
  if (is_set(Variable::kTestFaults)) command.texts("--kill", arguments.kills, "").hide();
  command.set_footer(kUpdateExamples);
}

}  // namespace espalier::tools
