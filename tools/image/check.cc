// espalier image check and install: as a node would.

#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "espalier/internal/base/little_endian.h"
#include "firmware/boot/file_flash.h"
#include "firmware/boot/slots.h"
#include "planner/board/board.h"
#include "planner/make/plan.h"
#include "tools/common/failure.h"
#include "tools/common/json.h"
#include "tools/common/numbers.h"
#include "tools/image/image.h"
#include "tools/image/spares.h"
#include "tools/options/plan_options.h"

namespace espalier::tools::image {
namespace {

struct CheckArguments {
  std::string file, board, topology, node, counter = "0", flash;
  bool confirmed = false;
  Trust trust;
  Format format = Format::kText;
};

// The expected header of the image; `board` must outlive it.
Expectation expectation_of(const CheckArguments& arguments, const std::string& board) {
  Expectation expectation{.board = board.c_str()};
  if (!arguments.topology.empty()) {
    expectation.topology_digest = parse_topology(arguments.topology)->digest();
  }
  if (!arguments.node.empty()) {
    expectation.node =
        static_cast<std::uint32_t>(whole_number("--node", arguments.node, 0, kMaxNodes));
  }
  expectation.counter =
      static_cast<std::uint32_t>(whole_number("--counter", arguments.counter, 0, UINT32_MAX));
  expectation.authority = &arguments.trust.authority;
  return expectation;
}

// The rules in check_image()'s order. One refuses for each of its statuses; several may for one.
struct Rule {
  const char* text;
  std::vector<Status> refuses;
};
const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = {
      {"an image, whole, of a format this release knows",
       {Status::kTruncated, Status::kNoImage, Status::kBadVersion}},
      {"its SHA-256", {Status::kCorrupt}},
      {"its signature", {Status::kUnsigned, Status::kBadSignature}},
      {"its board", {Status::kWrongBoard}},
      {"its topology", {Status::kWrongTopology}},
      {"its node", {Status::kWrongNode}},
      {"its security counter", {Status::kRolledBack}},
      {"its tables: within limits and as the format has them",
       {Status::kTooLarge, Status::kMalformed}},
      {"its programs, selections and spares load", {}},
  };
  return all;
}

std::size_t failing_rule(Status status) {
  for (std::size_t i = 0; i < rules().size(); ++i) {
    for (const Status refuses : rules()[i].refuses) {
      if (refuses == status) return i;
    }
  }
  return rules().size() - 1;
}

Status load_all(const Image& image, std::string& which) {
  const auto program = std::make_unique<DecodedProgram>();
  for (std::uint32_t i = 0; i < image.programs; ++i) {
    const Status status = image.load(i, *program);
    if (status == Status::kOk) continue;
    which = "program " + std::to_string(i) + " does not load: " + load_reason(status);
    return status;
  }
  for (std::uint32_t i = 0; i < image.selections; ++i) {
    NodeSelection selection;
    const Status status = load_selection(image, i, selection);
    if (status == Status::kOk) continue;
    which = "selection " + std::to_string(i) + " does not load: " + load_reason(status);
    return status;
  }
  for (std::uint32_t i = 0; i < image.spares; ++i) {
    for (std::uint32_t k = 0; k <= image.programs; ++k) {
      const Status status = image.load_spare(i, k, *program);
      if (status == Status::kOk || status == Status::kUnsupported) continue;
      which = "program " + std::to_string(k) + " of the spare for the loss of " +
              loss_text(image.spare(i).loss) + " does not load: " + load_reason(status);
      return status;
    }
  }
  return Status::kOk;
}

std::string board_name(const std::string& board, const std::vector<std::uint8_t>& bytes) {
  std::error_code ignored;
  if (!board.empty()) {
    return std::filesystem::exists(board, ignored) ? or_bad_input(planner::read_board(board)).name()
                                                   : board;
  }
  // Whatever it says itself.
  if (bytes.size() < kImageHeaderBytes) return "any";
  return claimed_board(bytes);
}

// Returns the reason if an image with this security counter was refused as rolled back, with both
// values. `stored` is the counter in flash, if there is a flash.
std::string counter_reason(std::uint32_t counter, std::uint32_t stored, std::uint32_t expected) {
  const bool in_flash = stored > expected;
  return "rolled back: its security counter " + std::to_string(counter) + " is below " +
         std::to_string(in_flash ? stored : expected) +
         (in_flash ? ", the counter in flash" : ", which --counter gives");
}

void run_check(CheckArguments& arguments) {
  settle(arguments.trust);
  const std::vector<std::uint8_t> bytes = read_bytes(arguments.file);
  const std::string board = board_name(arguments.board, bytes);
  const Expectation expectation = expectation_of(arguments, board);
  Image image;
  std::string which;
  std::size_t failed = rules().size();
  Status status = check_image(bytes.data(), bytes.size(), expectation, image);
  if (status == Status::kOk && image.size != bytes.size()) {
    status = Status::kMalformed;
    which = "bytes behind its end: " + reason(status);
  }
  if (status != Status::kOk) {
    failed = failing_rule(status);
  } else if (status = load_all(image, which); status != Status::kOk) {
    failed = rules().size() - 1;
  }
  if (arguments.format == Format::kJson) {
    auto verdicts = Json::array();
    for (std::size_t i = 0; i <= failed && i < rules().size(); ++i) {
      verdicts.push_back({{"rule", rules()[i].text}, {"kept", i != failed}});
    }
    print_json({{"file", arguments.file},
                {"status", status_name(status)},
                {"code", static_cast<unsigned>(status)},
                {"signature_checked", !arguments.trust.takes_unsigned},
                {"rules", verdicts}});
  } else {
    for (std::size_t i = 0; i <= failed && i < rules().size(); ++i) {
      const bool unchecked = arguments.trust.takes_unsigned && i == failing_rule(Status::kUnsigned);
      std::printf("%-8s %s\n", i == failed ? "REFUSED" : unchecked ? "any" : "ok", rules()[i].text);
    }
  }
  if (status == Status::kOk) return;
  if (status == Status::kRolledBack) {
    which = counter_reason(load_u32(bytes.data() + kImageCounterAt), 0, expectation.counter);
  }
  const std::string says = claims(bytes);
  negative("'" + one_line(arguments.file) + "' is refused: " +
           (which.empty() ? reason(status) : which) + (says.empty() ? "" : "; " + says));
}

void print_slots(const std::string& path, const BootReport& report, std::uint32_t expected) {
  for (std::uint32_t slot = 0; slot < 2; ++slot) {
    const SlotReport& found = report.slots[slot];
    std::printf("%s: slot %u: ", one_line(path).c_str(), slot);
    std::string refused = found.status == Status::kOk ? "" : status_name(found.status);
    if (found.status == Status::kRolledBack) {
      refused = counter_reason(found.counter, report.counter, expected);
    }
    if (found.status == Status::kNoImage) {
      std::printf("blank\n");
      continue;
    }
    std::printf("release %s, installation %u, %s%s%s\n", release_text(found.release).c_str(),
                found.sequence,
                found.confirmed ? "confirmed"
                : found.tried   ? "tried, not confirmed"
                                : "never run",
                refused.empty() ? "" : ", refused: ", refused.c_str());
  }
}

void run_install(CheckArguments& arguments) {
  settle(arguments.trust);
  const board::BoardFile board = or_bad_input(planner::read_board(arguments.board));
  if (!board.has_flash()) {
    bad_input("board '" + board.name() + "' has no flash; expected flash { ... } in " +
              one_line(arguments.board));
  }
  const std::vector<std::uint8_t> bytes = read_bytes(arguments.file);
  const Expectation expectation = expectation_of(arguments, board.name());
  FileFlash flash;
  or_bad_input(flash.open(
      arguments.flash,
      {board.flash().bytes(), board.flash().block_bytes(), board.flash().unit_bytes()}, true));
  Slots slots(flash, whole_flash(flash));
  const Acceptance loads{[](void*, const Image& image) {
                           std::string which;
                           return load_all(image, which);
                         },
                         nullptr};
  Image image;
  BootReport report;
  Status status = slots.inspect(expectation, loads, image, report);
  if (status == Status::kOk || status == Status::kNothingToBoot) {
    status = slots.begin(static_cast<std::uint32_t>(bytes.size()));
  }
  if (status == Status::kOk) {
    status = slots.append(bytes.data(), static_cast<std::uint32_t>(bytes.size()));
  }
  if (status == Status::kOk) status = slots.finish(expectation, loads);
  if (status == Status::kUnconfirmed) {
    negative(
        "'" + one_line(arguments.flash) +
        "': its newest image was not confirmed yet, and the other slot is its fall-back; boot it "
        "first");
  }
  if (status != Status::kOk) {
    std::string why = reason(status);
    if (status == Status::kRolledBack) {
      why = counter_reason(load_u32(bytes.data() + kImageCounterAt), slots.counter(),
                           expectation.counter);
    } else if (status == Status::kOlderRelease) {
      why = "older release: its release " + release_text(load_u32(bytes.data() + kImageReleaseAt)) +
            " is below " + release_text(report.slots[report.slot].release) +
            ", the release that boots";
    }
    negative("'" + one_line(arguments.file) + "' is not installed: " + why);
  }
  status = slots.inspect(expectation, loads, image, report);
  if (status == Status::kOk && arguments.confirmed) {
    status = slots.confirm();
    if (status == Status::kOk) status = slots.inspect(expectation, loads, image, report);
  }
  if (status != Status::kOk) negative("the flash does not boot: " + reason(status));
  print_slots(arguments.flash, report, expectation.counter);
  std::printf("%s: slot %u boots next\n", one_line(arguments.flash).c_str(), report.slot);
}

void add_expectation(Command command, CheckArguments& arguments) {
  command.text("image", arguments.file, "The image").required();
  command.text("--topology", arguments.topology, "Refuse it if it is for another");
  command.text("--node", arguments.node, "Refuse it if it is for another");
  command.text("--counter", arguments.counter, "Refuse it if its security counter is below")
      .show_default(arguments.counter);
  add_trust(command, arguments.trust);
}

}  // namespace

void add_check(Command image) {
  Command command =
      image.add_command("check", "Checks an image as a node does, and names the violated rule");
  auto& arguments = command.bind<CheckArguments>(run_check);
  add_expectation(command, arguments);
  command.text("--board", arguments.board,
               "Refuse it if it is for another: a name, a folder or a board.textproto");
  add_format(command, arguments.format);
  command.set_footer(
      "Exit status 1 if it is refused. Examples:\n"
      "  espalier image check 3.img --public-key release.key.pub --board linux-x86_64 --node 3\n"
      "  espalier image check 3.img --unsigned");
}

void add_install(Command image) {
  Command command =
      image.add_command("install", "Writes an image into the free slot of a flash's file");
  auto& arguments = command.bind<CheckArguments>(run_install);
  add_expectation(command, arguments);
  command.text("--board", arguments.board, "The board that has the flash").required();
  command
      .text("--flash", arguments.flash,
            "File with the contents of the flash; created if it does not exist")
      .required();
  command.flag("--confirmed", arguments.confirmed,
               "Confirm it without a first run: for a factory, not for an update");
  command.set_footer(
      "Example:\n"
      "  espalier image install 3.img --board boards/linux-x86_64 --flash node-3.flash \\\n"
      "      --public-key release.key.pub --confirmed");
}

}  // namespace espalier::tools::image
