#include "firmware/bare/boot.h"

#include "firmware/bare/board.h"
#include "firmware/bare/text.h"

namespace espalier::bare {
namespace {

// Decodes every program of the image into `context`, Booted's; also how a slot is accepted.
Status load_all(void* context, const Image& image) {
  auto* programs = static_cast<DecodedProgram*>(context);
  for (std::uint32_t at = 0; at < image.links; ++at) {
    if (image.link(at).device != 0) return Status::kNoSuchPeer;
  }
  for (std::uint32_t at = 0; at < image.programs; ++at) {
    const Status status = image.load(at, programs[at]);
    if (status != Status::kOk) return status;
  }
  return Status::kOk;
}

Expectation expectation() {
  Expectation expected;
  expected.board = board::name();
  expected.authority = board::authority();
  return expected;
}

void print_slot(const Booted& booted, std::uint32_t slot) {
  const SlotReport& told = booted.report.slots[slot];
  Text line;
  line << "boot: slot " << slot << ": ";
  if (told.status != Status::kOk) {
    line << "refused, " << status_name(told.status) << " (status " << told.status << ")";
  } else if (!told.looked_at) {
    line << "release " << Release{told.release} << ", the older one";
  } else {
    line << "boots, " << (booted.report.trial ? "for the first time" : "confirmed");
  }
  line << "\n";
}

}  // namespace

Status boot(Slots& slots, Booted& booted) {
  const Acceptance loads{load_all, booted.programs};
  booted.status = slots.boot(expectation(), loads, booted.image, booted.report);
  return booted.status;
}

Status install(Slots& slots, const std::uint8_t* bytes, std::uint32_t size, Booted& booted) {
  // Who has no key takes nothing, and keeps what it has.
  if (board::authority() == nullptr) return Status::kBadArgument;
  const Acceptance loads{load_all, booted.programs};
  Status status = slots.begin(size);
  if (status == Status::kOk) status = slots.append(bytes, size);
  if (status == Status::kOk) status = slots.finish(expectation(), loads);
  booted.status = Status::kNothingToBoot;
  return status;
}

void print_report(const Booted& booted) {
  const Image& image = booted.image;
  print_slot(booted, 0);
  print_slot(booted, 1);
  if (booted.status != Status::kOk) {
    Text() << "boot: " << board::name() << ": " << status_name(booted.status) << " (status "
           << booted.status << ")\n";
  } else {
    if (booted.report.last_resort) Text() << "boot: the unconfirmed image is the last resort\n";
    Text() << "boot: slot " << booted.report.slot << ": board " << image.board << ", node "
           << image.node << ", release " << Release{image.release} << ", counter " << image.counter
           << ", "
           << (image.signature_checked ? "signature checked"
                                       : "SIGNATURE NOT CHECKED: takes any image")
           << ", " << image.links << " links, " << image.programs << " programs, " << image.size
           << " bytes\n";
    for (std::uint32_t at = 0; at < image.programs; ++at) {
      const ProgramRow row = image.program(at);
      Text() << "boot: program " << at << ": " << collective_name(row.collective) << ", "
             << row.algorithm << ", root " << row.root << ", " << row.size << " bytes\n";
    }
    for (std::uint32_t at = 0; at < image.links; ++at) {
      const LinkRow row = image.link(at);
      Text() << "boot: link " << at << ": node " << row.peer << ", device " << row.device
             << ", port " << row.port << "\n";
    }
  }
  const board::Memory memory = board::memory();
  Text() << "boot: ram " << memory.ram_used << " of " << memory.ram_given << " bytes, code "
         << memory.code_used << " bytes\n";
}

}  // namespace espalier::bare
