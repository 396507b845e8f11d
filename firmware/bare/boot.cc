#include "firmware/bare/boot.h"

#include "firmware/bare/board.h"
#include "firmware/bare/text.h"
#include "firmware/boot/boot_report.h"

namespace espalier::bare {
namespace {

// A slot is accepted only if all links use device 0 and all programs load. context: the Booted.
Status accept(void* context, const Image& image) {
  for (std::uint32_t i = 0; i < image.links; ++i) {
    if (image.link(i).device != 0) return Status::kNoSuchPeer;
  }
  return load_all(image, *static_cast<Booted*>(context));
}

const char* counter_name() {
  return board::security_counter() != nullptr ? "the board's own counter" : "the counter in flash";
}

}  // namespace

Expectation expectation() {
  Expectation expected;
  expected.board = board::name();
  expected.authority = board::authority();
  return expected;
}

Status boot(Slots& slots, Booted& booted) {
  booted.status = slots.boot(expectation(), {accept, &booted}, booted.image, booted.report);
  return booted.status;
}

#if ESPALIER_UPDATES
Status load(const Image& image, Booted& booted) { return accept(&booted, image); }
#endif

Status install(Slots& slots, const std::uint8_t* bytes, std::uint32_t size, Booted& booted) {
  // A board without a key accepts no image and keeps its slots.
  if (board::authority() == nullptr) return Status::kBadArgument;
  Status status = slots.begin(size);
  if (status == Status::kOk) status = slots.append(bytes, size);
  if (status == Status::kOk) status = slots.finish(expectation(), {accept, &booted});
  booted.status = Status::kNothingToBoot;
  return status;
}

void print_report(const Booted& booted) {
  const Image& image = booted.image;
  const BootReport& report = booted.report;
  Text text;
  print_slots(text, report, {report.counter, counter_name()});
  text << "boot: " << counter_name() << " is ";
  if (report.counter_status == Status::kOk) {
    text << report.counter;
  } else {
    text << "unreadable: ";
    print_status(text, report.counter_status);
  }
  if (booted.status != Status::kOk) {
    text << "\nboot: " << board::name() << ": ";
    print_status(text, booted.status);
    text << "\n";
  } else {
    if (report.last_resort) text << "\nboot: the unconfirmed image is the last resort";
    text << "\nboot: slot " << report.slot;
    print_image(text, image, booted);
    for (std::uint32_t i = 0; i < image.links; ++i) {
      const LinkRow row = image.link(i);
      text << "boot: link " << i << ": node " << row.peer << ", device " << row.device << ", port "
           << row.port << "\n";
    }
  }
  const board::Memory memory = board::memory();
  text << "boot: ram " << memory.ram_used << " of " << memory.ram_given << " bytes, code "
       << memory.code_used << " bytes\n";
}

}  // namespace espalier::bare
