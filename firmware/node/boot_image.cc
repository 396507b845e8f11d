#include "firmware/node/boot_image.h"

#include <string_view>
#include <utility>

#include "base/counted.h"
#include "base/digest.h"
#include "base/one_line.h"
#include "base/read_file.h"
#include "base/try.h"
#include "espalier/internal/base/little_endian.h"
#include "firmware/boot/boot_report.h"
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
      return "it needs more than this node's limits (include/espalier/internal/base/limits.h)";
    case Status::kNothingToBoot: return "install an image that this node accepts";
    default: return "see the status";
  }
}

// A boot report, or a part of one, as a text.
class StringText {
 public:
  explicit StringText(std::string flash = {}) : flash_(std::move(flash)) {}
  StringText& operator<<(const char* part) {
    text += part;
    return *this;
  }
  StringText& operator<<(std::uint32_t value) {
    text += std::to_string(value);
    return *this;
  }
  void flash() { text += flash_ + " "; }
  void name(const char* part) { text += one_line(part); }
  void count(std::uint32_t value, std::string_view nouns) {
    text += counted(value, nouns.substr(1, nouns.size() - 2));
  }

  std::string text;

 private:
  std::string flash_;
};

// Returns the counter that refuses images. `stored`: the counter in flash; 0 without a flash.
CounterLimit limit_of(std::uint32_t stored, std::uint32_t expected) {
  if (stored > expected) return {stored, "the counter in flash"};
  return {expected, "which --counter gives"};
}

Result<void> boot_flash(const BootOptions& options, const std::string& path,
                        const Expectation& expectation, BootedImage& booted, Programs& programs) {
  ESPALIER_TRY(booted.flash.open(path, options.flash_shape, false));
  booted.slots = std::make_unique<Slots>(booted.flash, whole_flash(booted.flash));
  const Acceptance loads{accept_loaded, static_cast<NodePrograms*>(&programs)};
  const Status status =
      options.check_only
          ? booted.slots->inspect(expectation, loads, booted.image, booted.slot_report)
          : booted.slots->boot(expectation, loads, booted.image, booted.slot_report);
  const CounterLimit limit = limit_of(booted.slot_report.counter, expectation.counter);
  StringText report(path);
  print_slots(report, booted.slot_report, limit);
  if (status == Status::kOk && booted.slot_report.last_resort) {
    report << "boot: the unconfirmed image is the last resort\n";
  }
  booted.report = report.text;
  if (status == Status::kOk) return {};
  StringText error;
  error << refusal_text(path, status).c_str();
  for (std::uint32_t slot = 0; slot < 2; ++slot) {
    error << "; slot " << slot << ": ";
    print_refusal(error, booted.slot_report.slots[slot], limit);
  }
  return fail(error.text);
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
    error += "; its security counter " + std::to_string(load_u32(bytes + kImageCounterAt)) +
             " is below " + std::to_string(expectation.counter) + ", which --counter gives";
  }
  return fail(error);
}

}  // namespace

std::string refusal_text(const std::string& path, Status status) {
  StringText text;
  text << path.c_str() << " is refused: ";
  print_status(text, status);
  text << ": " << image_remedy(status);
  return text.text;
}

Result<void> boot_image(const BootOptions& options, std::uint32_t node, BootedImage& booted,
                        Programs& programs) {
  if (!options.takes_unsigned) {
    ESPALIER_TRY_TO(booted.key, read_public_key(options.public_key));
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
  ESPALIER_TRY(flash ? boot_flash(options, path, expectation, booted, programs)
                     : boot_file(path, expectation, booted, programs));
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
  StringText report;
  report << "boot: " << path.c_str();
  print_image(report, image, programs);
  booted.report += report.text;
  for (std::uint32_t i = 0; i < image.programs; ++i) {
    programs.sources.push_back(path + " program " + std::to_string(i));
  }
  return {};
}

}  // namespace espalier::node
