// espalier image build: schedule files, a board and a node to an image.

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/command_line.h"
#include "base/counted.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/lower/lower.h"
#include "espalier/collectives/verify/verify.h"
#include "firmware/boot/file_flash.h"
#include "firmware/boot/slots.h"
#include "firmware/image/image_writer.h"
#include "planner/board/board.h"
#include "planner/board/board_limits.h"
#include "planner/files/schedule_set.h"
#include "planner/make/plan.h"
#include "tools/common/failure.h"
#include "tools/common/json.h"
#include "tools/common/numbers.h"
#include "tools/common/schedules.h"
#include "tools/image/image.h"
#include "tools/image/spares.h"

namespace espalier::tools::image {
namespace {

using board::BoardFile;

struct BuildArguments {
  std::vector<std::string> schedules;
  std::string board, node, release, counter = "0", key, output, spares;
  bool fewer_spares = false;
  Format format = Format::kText;
};

// The content that all nodes' images share.
struct Sources {
  std::vector<planner::LoadedSchedule> schedules;
  std::vector<ImageContent::SelectionBytes> selections;
  BoardFile board;
  ImageContent common;
  bool is_signed = false;
  Key seed{};
  std::vector<Spare> spares;
  std::vector<std::string> left_out;  // losses without a spare, each with its reason
};

// Throws Failure (bad input) if the schedule does not verify.
void prove(const planner::LoadedSchedule& schedule) {
  // As `espalier run`: where only ranks have programs the fabric routes.
  const verify::Verdict verdict = verdict_of(
      schedule, {.links = schedule.file.nodes() > schedule.file.ranks(), .progress = {}});
  if (verdict.valid) return;
  bad_input("'" + one_line(schedule.name) +
            "' does not verify and goes into no image: " + verdict.counterexample.message);
}

// Refuses a schedule beside another that it could be mistaken for.
void check_alone(const Sources& sources, std::size_t first) {
  const planner::LoadedSchedule& loaded = sources.schedules.back();
  const planner::LoadedSchedule& front = sources.schedules.front();
  if (loaded.file.topology_digest() != front.file.topology_digest()) {
    bad_input("'" + one_line(loaded.name) + "' is for topology " + loaded.topology->title() +
              ", '" + one_line(front.name) + "' for " + front.topology->title() +
              "; an image has one topology");
  }
  // Schedules of one selection may be of one algorithm: its table tells them apart.
  for (std::size_t i = 0; i < first; ++i) {
    const planner::LoadedSchedule& other = sources.schedules[i];
    const Program& a = other.programs.front();
    const Program& b = loaded.programs.front();
    if (a.collective == b.collective && a.root == b.root &&
        std::string_view(a.algorithm) == b.algorithm) {
      bad_input("'" + one_line(loaded.name) + "' and '" + one_line(other.name) + "' are both " +
                collective_name(a.collective) + " by " + a.algorithm + ", root " +
                std::to_string(a.root) + "; an image has one of each");
    }
  }
}

void read_file_of(const std::string& path, Sources& sources) {
  planner::ScheduleSet set = tools::read_schedules(path);
  const std::size_t first = sources.schedules.size();
  if (set.selected) {
    const std::uint32_t most = sources.board.limits().selections();
    if (sources.selections.size() == most) {
      bad_input("'" + one_line(path) + "' is a selection; board '" + sources.board.name() +
                "' has room for " + counted(most, "selection") + " (limits); expected " +
                (most == 0 ? "'espalier compile --board' or --bytes, which write one schedule"
                           : "fewer selections"));
    }
    sources.selections.push_back({static_cast<std::uint32_t>(first), set.encoded});
  }
  for (planner::ScheduleSet::Member& member : set.members) {
    sources.schedules.push_back(
        load_schedule(member.name, std::move(member.bytes), sources.board.position().topology()));
    check_alone(sources, set.selected ? first : sources.schedules.size() - 1);
    prove(sources.schedules.back());
  }
}

void read_schedules(const BuildArguments& arguments, Sources& sources) {
  for (const std::string& path : arguments.schedules) read_file_of(path, sources);
  const std::uint32_t most = sources.board.limits().programs();
  if (sources.schedules.size() > most) {
    bad_input(counted(sources.schedules.size(), "schedule") + "; board '" + sources.board.name() +
              "' has room for " + counted(most, "program"));
  }
}

// The bytes of an image for which the board's slots have room.
std::size_t room_of(const BoardFile& board) {
  if (!board.has_flash()) return UINT32_MAX;
  return image_room(board.flash().bytes(), board.flash().block_bytes());
}

// The link table: the board's own links, or as many as the node has neighbours.
std::vector<LinkRow> link_table(const BoardFile& board, const std::vector<std::uint32_t>& peers,
                                std::uint32_t node) {
  std::vector<LinkRow> table;
  const auto room = static_cast<std::uint32_t>(board.link_size());
  const auto row = [](std::uint32_t peer, const BoardFile::Link& link) {
    return LinkRow{peer, static_cast<std::uint16_t>(link.device()),
                   static_cast<std::uint16_t>(link.port())};
  };
  if (room > 0 && board.link(0).has_peer()) {
    for (const BoardFile::Link& link : board.link()) table.push_back(row(link.peer(), link));
    for (const std::uint32_t peer : peers) {
      const auto leads = [peer](const LinkRow& link) { return link.peer == peer; };
      if (std::any_of(table.begin(), table.end(), leads)) continue;
      bad_input("node " + std::to_string(node) + " has a program with a link to node " +
                std::to_string(peer) + "; board '" + board.name() + "' has none");
    }
    return table;
  }
  const std::uint32_t most = room > 0 ? room : board.limits().links();
  if (peers.size() > most) {
    bad_input("the programs of node " + std::to_string(node) + " need " +
              counted(peers.size(), "link") + "; board '" + board.name() + "' has " +
              std::to_string(most));
  }
  for (std::size_t i = 0; i < peers.size(); ++i) {
    BoardFile::Link made;
    made.set_port(static_cast<std::uint32_t>(i));
    table.push_back(row(peers[i], room > 0 ? board.link(static_cast<int>(i)) : made));
  }
  return table;
}

std::vector<std::uint8_t> build_node(const Sources& sources, std::uint32_t node) {
  ImageContent content = sources.common;
  content.node = node;
  content.selections = sources.selections;
  std::vector<std::uint32_t> peers;
  for (const planner::LoadedSchedule& schedule : sources.schedules) {
    if (node >= schedule.file.nodes()) {
      bad_input("'" + one_line(schedule.name) + "' has no node " + std::to_string(node) +
                ": its nodes are 0 to " + std::to_string(schedule.file.nodes() - 1));
    }
    const Program& program = schedule.programs[node];
    for (std::uint32_t link = 0; link < links_count(program); ++link) {
      peers.push_back(peer_of(program, link));
    }
    if (const auto loads = planner::check_limits(sources.board.limits(), program); !loads) {
      bad_input("'" + one_line(schedule.name) + "': node " + std::to_string(node) + "'s program " +
                loads.error().message + "; board '" + sources.board.name() +
                "' loads no such program");
    }
    content.programs.push_back(image_descriptor(schedule, node));
  }
  for (const Spare& spare : sources.spares) {
    // A node has no spare for its own loss.
    if (spare.loss == Loss::node(node)) continue;
    content.spares.push_back(image_spare(sources.schedules, spare, node, peers));
  }
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  content.links = link_table(sources.board, peers, node);
  std::vector<std::uint8_t> bytes;
  if (const Status status = write_image(content, bytes); status != Status::kOk) {
    bad_input("node " + std::to_string(node) + " gets no image: " + reason(status));
  }
  if (sources.is_signed) {
    sign_image(bytes, [&sources](std::span<const std::uint8_t> part) {
      return sign(sources.seed, part.data(), part.size());
    });
  }
  const std::size_t room = room_of(sources.board);
  if (bytes.size() > room) {
    bad_input("the image of node " + std::to_string(node) + " has " +
              counted(bytes.size(), "byte") + "; a slot of board '" + sources.board.name() +
              "' has room for " + std::to_string(room));
  }
  return bytes;
}

// Whether nodes load the programs of the spare. Error: the first that exceeds the board's limits.
Result<void> check_spare(const Sources& sources, const Spare& spare) {
  const auto check = [&](const planner::LoadedSchedule& schedule) -> Result<void> {
    for (const Program& program : schedule.programs) {
      if (const auto loads = planner::check_limits(sources.board.limits(), program); !loads) {
        return fail(std::string(collective_name(program.collective)) + " by " + program.algorithm +
                    " " + loads.error().message);
      }
    }
    return {};
  };
  if (const auto checked = check(spare.agreement); !checked) return checked;
  for (const planner::LoadedSchedule& schedule : spare.schedules) {
    if (const auto checked = check(schedule); !checked) return checked;
  }
  return {};
}

// The bytes that a spare adds to the image of a node.
std::size_t bytes_of(const Sources& sources, const Spare& spare, std::uint32_t node) {
  std::vector<std::uint32_t> peers;
  const ImageContent::SpareDescriptors content = image_spare(sources.schedules, spare, node, peers);
  std::size_t bytes = kSpareRowBytes + content.programs.size() * kProgramRowBytes;
  for (const ImageContent::Descriptor& program : content.programs) {
    bytes += (program.bytes.size() + 3) / 4 * 4;
    if (spare.loss.kind == Loss::Kind::kNothing) break;  // the others are there already
  }
  return bytes;
}

// Makes the spares for each single loss. Those that the board cannot hold, and losses after which
// nothing is left to run, end the build, or with --fewer-spares are left out on all nodes.
void make_spares(const BuildArguments& arguments, Sources& sources) {
  const bool links = arguments.spares == "links" || arguments.spares == "both";
  const bool nodes = arguments.spares == "nodes" || arguments.spares == "both";
  if (!links && !nodes) {
    bad_input("--spares '" + one_line(arguments.spares) + "': expected links, nodes or both");
  }
  if (!sources.board.limits().spares()) {
    bad_input("board '" + sources.board.name() +
              "' can hold no spares: its firmware is built without them; expected limits { spares: "
              "true }");
  }
  if (!sources.selections.empty()) {
    bad_input("--spares with a selection; expected files of one schedule each");
  }
  const topology::Topology& topology = *sources.schedules.front().topology;
  for (const planner::LoadedSchedule& schedule : sources.schedules) {
    if (lower::is_hop_by_hop(topology, schedule.programs)) continue;
    bad_input("'" + one_line(schedule.name) +
              "' is routed, and the fabric may route over a lost link; --spares expects 'espalier "
              "compile --links hop-by-hop'");
  }
  if (nodes && topology.ranks() < 3) {
    bad_input("--spares " + arguments.spares + " on " + topology.title() +
              ": with fewer than three ranks each could go on without the other; expected links");
  }
  const auto leave_out = [&](const Loss& loss, const std::string& why) {
    if (!arguments.fewer_spares) {
      bad_input("no spare for the loss of " + loss_text(loss) + ": " + why +
                "; --fewer-spares builds images without it");
    }
    sources.left_out.push_back(loss_text(loss) + ": " + why);
  };
  Progress progress("spares");
  std::vector<std::size_t> bytes;
  for (std::uint32_t node = 0; node < topology.nodes(); ++node) {
    bytes.push_back(build_node(sources, node).size());
  }
  std::vector<Loss> losses = single_losses(topology, links, nodes);
  if (nodes) losses.insert(losses.begin(), Loss());  // for a node that comes back
  const std::size_t room = room_of(sources.board);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    progress.show(static_cast<double>(i) / static_cast<double>(losses.size()));
    std::optional<Spare> spare;
    try {
      spare = make_spare(topology, sources.schedules, losses[i]);
    } catch (const Failure& failure) {
      leave_out(losses[i], failure.line);
      continue;
    }
    if (const auto held = check_spare(sources, *spare); !held) {
      leave_out(losses[i], held.error().message + "; board '" + sources.board.name() +
                               "' loads no such program");
      continue;
    }
    std::vector<std::size_t> with = bytes;
    for (std::uint32_t node = 0; node < topology.nodes(); ++node) {
      if (losses[i] != Loss::node(node)) with[node] += bytes_of(sources, *spare, node);
    }
    if (*std::max_element(with.begin(), with.end()) > room) {
      leave_out(losses[i], "a slot of board '" + sources.board.name() + "' has room for " +
                               counted(room, "byte") + ", which hold " +
                               std::to_string(sources.spares.size()) + " of the " +
                               counted(losses.size(), "spare"));
      continue;
    }
    bytes = with;
    sources.spares.push_back(*std::move(spare));
  }
}

// One node, or where the output has %r and no node is given all of them.
std::vector<std::uint32_t> chosen_nodes(const BuildArguments& arguments, const Sources& sources) {
  const std::uint32_t nodes = sources.schedules.front().file.nodes();
  if (!arguments.node.empty()) {
    const auto node =
        static_cast<std::uint32_t>(whole_number("--node", arguments.node, 0, nodes - 1));
    const BoardFile::Position& position = sources.board.position();
    if (position.has_node() && position.node() != node) {
      bad_input("--node " + arguments.node + ": board '" + sources.board.name() + "' is node " +
                std::to_string(position.node()) + "; expected no --node");
    }
    return {node};
  }
  if (sources.board.position().has_node()) return {sources.board.position().node()};
  if (arguments.output.find("%r") == std::string::npos) {
    bad_input("which node? expected --node, or -o with %r for the number of each");
  }
  std::vector<std::uint32_t> all(nodes);
  for (std::uint32_t node = 0; node < nodes; ++node) all[node] = node;
  return all;
}

void run_build(const BuildArguments& arguments) {
  check_writable(with_node_number(arguments.output, 0));
  Sources sources;
  sources.board = or_bad_input(planner::read_board(arguments.board));
  sources.common.board = sources.board.name();
  sources.common.release = parse_release(arguments.release);
  sources.common.counter =
      static_cast<std::uint32_t>(whole_number("--counter", arguments.counter, 0, UINT32_MAX));
  sources.is_signed = !arguments.key.empty();
  if (sources.is_signed) sources.seed = or_bad_input(read_private_key(arguments.key));
  read_schedules(arguments, sources);
  sources.common.topology_digest = sources.schedules.front().file.topology_digest();
  // All are made before any is written.
  const std::vector<std::uint32_t> nodes = chosen_nodes(arguments, sources);
  for (const std::uint32_t node : nodes) check_writable(with_node_number(arguments.output, node));
  if (!arguments.spares.empty()) {
    make_spares(arguments, sources);
  } else if (arguments.fewer_spares) {
    bad_input("--fewer-spares without --spares");
  }
  std::vector<std::vector<std::uint8_t>> images;
  images.reserve(nodes.size());
  for (const std::uint32_t node : nodes) images.push_back(build_node(sources, node));
  Json json = Json::array();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string path = with_node_number(arguments.output, nodes[i]);
    write_file(path, images[i]);
    json.push_back({{"file", path}, {"node", nodes[i]}, {"bytes", images[i].size()}});
    std::size_t spares = 0, spare_bytes = 0;
    for (const Spare& spare : sources.spares) {
      if (spare.loss == Loss::node(nodes[i])) continue;
      ++spares;
      spare_bytes += bytes_of(sources, spare, nodes[i]);
    }
    if (!arguments.spares.empty()) {
      json.back()["spares"] = spares;
      json.back()["spare_bytes"] = spare_bytes;
    }
    if (arguments.format == Format::kJson) continue;
    const std::string of_spares =
        arguments.spares.empty()
            ? ""
            : ", of them " + std::to_string(spare_bytes) + " for " + counted(spares, "spare");
    std::printf("%s: node %u, %s, %zu bytes%s, %s\n", one_line(path).c_str(), nodes[i],
                counted(sources.schedules.size(), "program").c_str(), images[i].size(),
                of_spares.c_str(), sources.is_signed ? "signed" : "unsigned");
  }
  for (const std::string& loss : sources.left_out) {
    if (arguments.format != Format::kJson) std::printf("no spare for %s\n", loss.c_str());
  }
  if (arguments.format == Format::kJson) print_json(json);
}

}  // namespace

void add_build(Command image) {
  Command command =
      image.add_command("build", "Makes a node's image from schedule files and a board");
  auto& arguments = command.bind<BuildArguments>(run_build);
  command
      .arguments(
          "schedules", arguments.schedules,
          "Schedule files; the image has one program of each, and of a selection one of each of "
          "its schedules")
      .required();
  command.text("--board", arguments.board, "The board's folder or its board.textproto").required();
  command.text("--node", arguments.node,
               "The node; default: the board's; all nodes if the output has %r");
  command.text("--release", arguments.release, "Like 1.2.3: the highest one boots").required();
  command
      .text("--counter", arguments.counter,
            "Security counter: once it has run, no image with a lower one boots")
      .show_default(arguments.counter);
  command.text("--spares", arguments.spares,
               "links, nodes or both: also programs for what is left after each single loss, on "
               "hop-by-hop schedules");
  command.flag("--fewer-spares", arguments.fewer_spares,
               "With --spares: leave out the losses for which the board can hold no spare");
  command.text("--key", arguments.key, "Sign it with this private key");
  command.text("-o,--output", arguments.output, "The image; %r is the node's number").required();
  add_format(command, arguments.format);
  command.set_footer(
      "Each schedule is verified first. Examples:\n"
      "  espalier image build b.esp --board boards/linux-x86_64 --node 3 --release 1.0.0 -o 3.img\n"
      "  espalier image build b.esp a.esp --board boards/linux-x86_64 --release 1.0.1 \\\n"
      "      --counter 1 --key release.key -o images/node-%r.img\n"
      "  espalier image build m.esp --board boards/linux-x86_64 --release 1.0.0 --spares both \\\n"
      "      -o node-%r.img");
}

}  // namespace espalier::tools::image
