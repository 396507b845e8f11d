#include "firmware/node/boot_image.h"

#include <cstdio>

#include "base/counted.h"
#include "base/one_line.h"
#include "base/read_file.h"
#include "espalier/base/digest.h"
#include "espalier/base/little_endian.h"
#include "firmware/image/load_all.h"

namespace espalier::node {
namespace {

// Returns what to do about a refused image.
const char* image_remedy(Status status) {
  switch (status) {
    case Status::kTruncated: return "it ends too early; copy or build it again";
    case Status::kCorrupt: return "its SHA-256 does not match; copy or build it again";
    case Status::kNoImage:
      return "it is not an image; expected the output of `espalier image build`";
    case Status::kBadVersion: return "build it with this release";
    case Status::kMalformed: return "its layout is invalid; build it again";
    case Status::kUnsigned:
      return "this node accepts only signed images; sign it with `espalier image sign`";
    case Status::kBadSignature:
      return "sign it with the private key of the public key that this node has";
    case Status::kWrongBoard: return "build it for this node's board";
    case Status::kWrongTopology: return "build it for this node's topology";
    case Status::kWrongNode: return "give the node the image of its own number";
    case Status::kRolledBack: return "build it with a higher security counter";
    case Status::kTooLarge:
      return "it needs more than this node's limits (include/espalier/base/limits.h)";
    case Status::kNothingToBoot: return "install an image that this node accepts";
    default: return "see the status";
  }
}

// Returns which counter refused an image whose security counter is `counter`, with both values.
// `stored` is the counter in flash, if there is a flash.
std::string counter_text(std::uint32_t counter, std::uint32_t stored, std::uint32_t expected) {
  const bool in_flash = stored > expected;
  return "its security counter " + std::to_string(counter) + " is below " +
         std::to_string(in_flash ? stored : expected) +
         (in_flash ? ", the counter in flash" : ", which --counter gives");
}

// Returns the reason why a slot was refused.
std::string slot_reason(const BootReport& report, std::uint32_t slot, std::uint32_t expected) {
  const SlotReport& entry = report.slots[slot];
  std::string text = std::string(status_name(entry.status)) + " (status " +
                     std::to_string(static_cast<unsigned>(entry.status)) + ")";
  if (entry.status == Status::kRolledBack) {
    text += ": " + counter_text(entry.counter, report.counter, expected);
  }
  return text;
}

std::string slots_text(const std::string& path, const BootReport& report, Status status,
                       std::uint32_t expected) {
  std::string text;
  for (std::uint32_t slot = 0; slot < 2; ++slot) {
    const SlotReport& entry = report.slots[slot];
    text += "boot: " + path + " slot " + std::to_string(slot) + ": ";
    if (!entry.looked_at) {
      text += "release " + release_text(entry.release) + ", the older one\n";
    } else if (entry.prepared) {
      text += "release " + release_text(entry.release) + " waits for all nodes to switch\n";
    } else if (entry.status != Status::kOk) {
      text += "refused, " + slot_reason(report, slot, expected) + "\n";
    } else {
      text += std::string("boots, ") + (report.trial ? "for the first time" : "confirmed") + "\n";
    }
  }
  if (status == Status::kOk && report.last_resort) {
    text += "boot: the unconfirmed image is the last resort\n";
  }
  return text;
}

Result<void> boot_flash(const BootOptions& options, const std::string& path,
                        const Expectation& expectation, BootedImage& booted, Programs& programs) {
  if (auto opened = booted.flash.open(path, options.flash_shape, false); !opened) return opened;
  booted.slots = std::make_unique<Slots>(booted.flash, whole_flash(booted.flash));
  const Acceptance loads{accept_loaded, static_cast<NodePrograms*>(&programs)};
  const Status status =
      options.check_only
          ? booted.slots->inspect(expectation, loads, booted.image, booted.slot_report)
          : booted.slots->boot(expectation, loads, booted.image, booted.slot_report);
  booted.report = slots_text(path, booted.slot_report, status, expectation.counter);
  if (status == Status::kOk) return {};
  std::string error = refusal_text(path, status);
  for (std::uint32_t slot = 0; slot < 2; ++slot) {
    error += "; slot " + std::to_string(slot) + ": " +
             slot_reason(booted.slot_report, slot, expectation.counter);
  }
  return fail(error);
}

Result<void> boot_file(const std::string& path, const Expectation& expectation, BootedImage& booted,
                       Programs& programs) {
  auto contents = read_file(path, FileKind::kImage);
  if (!contents) return fail("the image: " + contents.error().message);
  booted.bytes = *std::move(contents);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(booted.bytes.data());
  Status status = check_image(bytes, booted.bytes.size(), expectation, booted.image);
  if (status == Status::kOk) status = load_all(booted.image, programs);
  if (status == Status::kOk) return {};
  std::string error = refusal_text(path, status);
  if (status == Status::kRolledBack) {
    const std::uint32_t counter = load_u32(bytes + kImageCounterAt);
    error += "; " + counter_text(counter, 0, expectation.counter);
  }
  return fail(error);
}

}  // namespace

std::string refusal_text(const std::string& path, Status status) {
  return path + " is refused: " + status_name(status) + " (status " +
         std::to_string(static_cast<unsigned>(status)) + "): " + image_remedy(status);
}

std::string release_text(std::uint32_t release) {
  return std::to_string(release >> 24) + "." + std::to_string(release >> 16 & 255) + "." +
         std::to_string(release & 65535);
}

Result<void> boot_image(const BootOptions& options, std::uint32_t node, BootedImage& booted,
                        Programs& programs) {
  if (!options.takes_unsigned) {
    const Result<Key> key = read_public_key(options.public_key);
    if (!key) return fail(key.error());
    booted.key = *key;
    booted.authority = ed25519_authority(booted.key.data());
  }
  Expectation& expectation = booted.expectation;
  expectation.board = options.board.c_str();
  if (!options.topology.empty()) {
    expectation.topology_digest =
        digest_bytes(kDigestSeed, options.topology.data(), options.topology.size());
  }
  expectation.node = node;
  expectation.counter = options.counter;
  expectation.authority = &booted.authority;
  const bool flash = !options.flash.empty();
  const std::string path = with_node_number(flash ? options.flash : options.image, node);
  auto ready = flash ? boot_flash(options, path, expectation, booted, programs)
                     : boot_file(path, expectation, booted, programs);
  if (!ready) return ready;
  const Image& image = booted.image;
  expectation.topology_digest = image.topology_digest;
  const auto memory = std::make_unique<DecodedProgram>();
  const Status read =
      booted.slots != nullptr
          ? read_release_state(*booted.slots, expectation, image, *memory, booted.releases)
          : release_digest(image, *memory, booted.releases.running);
  if (read != Status::kOk) return fail(refusal_text(path, read));
  programs.peers.clear();
  for (std::uint32_t link = 0; link < image.links; ++link) {
    programs.peers.push_back(image.link(link).peer);
  }
  char line[256];
  std::snprintf(
      line, sizeof line, "board %s, node %u, release %s, counter %u, %s, %s, %s, %u bytes\n",
      one_line(image.board).c_str(), image.node, release_text(image.release).c_str(), image.counter,
      image.signature_checked ? "signature checked" : "SIGNATURE NOT CHECKED: takes any image",
      counted(image.links, "link").c_str(), counted(image.programs, "program").c_str(), image.size);
  booted.report += "boot: " + path + ": " + line;
  for (std::uint32_t i = 0; i < image.programs; ++i) {
    const ProgramRow row = image.program(i);
    programs.sources.push_back(path + " program " + std::to_string(i));
    std::snprintf(line, sizeof line, "boot: program %u: %s, root %u, %u bytes\n", i,
                  one_line(row.algorithm).c_str(), row.root, row.size);
    booted.report += line;
  }
  for (std::uint32_t i = 0; i < programs.selections_count; ++i) {
    const NodeSelection& selection = programs.selections[i];
    std::snprintf(line, sizeof line, "boot: selection %u: programs %u to %u, %s\n", i,
                  selection.first_program,
                  selection.first_program + selection.table.schedules_count - 1,
                  counted(selection.table.rows_count, "row").c_str());
    booted.report += line;
  }
  return {};
}

}  // namespace espalier::node
