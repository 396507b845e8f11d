#pragma once
// The boot report, the same on every kind of node: slots, image, programs and selections, one line
// each. Freestanding.
//
// Text is where it goes. It has << for texts and for numbers without a sign, flash() for the file
// of the flash if there is one, name() for a text of an image, and count() for a number with its
// noun: a blank and the plural.

#include <cstdint>

#include "collectives/schedule/node_programs.h"
#include "firmware/boot/slots.h"

namespace espalier {

// Images with a lower security counter are refused.
struct CounterLimit {
  std::uint32_t value = 0;
  const char* name = "";  // "the counter in flash"
};

template <typename Text>
void print_release(Text& text, std::uint32_t release) {
  text << (release >> 24) << "." << (release >> 16 & 255) << "." << (release & 65535);
}

template <typename Text>
void print_status(Text& text, Status status) {
  text << status_name(status) << " (status " << static_cast<std::uint32_t>(status) << ")";
}

// Prints why a slot was refused.
template <typename Text>
void print_refusal(Text& text, const SlotReport& slot, const CounterLimit& limit) {
  print_status(text, slot.status);
  if (slot.status != Status::kRolledBack) return;
  text << ": its security counter " << slot.counter << " is below " << limit.value << ", "
       << limit.name;
}

template <typename Text>
[[gnu::always_inline]] inline void print_slots(Text& text, const BootReport& report,
                                               const CounterLimit& limit) {
  for (std::uint32_t slot = 0; slot < 2; ++slot) {
    const SlotReport& entry = report.slots[slot];
    text << "boot: ";
    text.flash();
    text << "slot " << slot << ": ";
    bool waits = false;
#if ESPALIER_UPDATES
    waits = entry.prepared;
#endif
    if (waits || (entry.status == Status::kOk && !entry.looked_at)) {
      text << "release ";
      print_release(text, entry.release);
      text << (waits ? " waits for all nodes to switch" : ", the older one");
    } else if (entry.status != Status::kOk) {
      text << "refused, ";
      print_refusal(text, entry, limit);
    } else {
      text << "boots, " << (report.trial ? "for the first time" : "confirmed");
    }
    text << "\n";
  }
}

// Prints the rest of the line of the image that booted, then its programs and selections.
template <typename Text>
[[gnu::always_inline]] inline void print_image(Text& text, const Image& image,
                                               const NodePrograms& node) {
  text << ": board ";
  text.name(image.board);
  text << ", node " << image.node << ", release ";
  print_release(text, image.release);
  text << ", counter " << image.counter << ", "
       << (image.signature_checked ? "signature checked" : "SIGNATURE NOT CHECKED: takes any image")
       << ", ";
  text.count(image.links, " links");
  text << ", ";
  text.count(image.programs, " programs");
  text << ", " << image.size << " bytes\n";
  for (std::uint32_t i = 0; i < image.programs; ++i) {
    const ProgramRow row = image.program(i);
    text << "boot: program " << i << ": " << collective_name(row.collective) << ", ";
    text.name(row.algorithm);
    text << ", root " << row.root << ", " << row.size << " bytes\n";
  }
#if ESPALIER_SPARES
  if (image.spares != 0) {
    text << "boot: ";
    text.count(image.spares, " spares");
    text << "\n";
  }
#endif
#if ESPALIER_MAX_SELECTIONS > 0
  for (std::uint32_t i = 0; i < node.selections_count; ++i) {
    const NodeSelection& selection = node.selections[i];
    const std::uint32_t first = selection.first_program;
    text << "boot: selection " << i << ": programs " << first << " to "
         << first + selection.table.schedules_count - 1 << ", ";
    text.count(selection.table.rows_count, " rows");
    text << "\n";
  }
#else
  static_cast<void>(node);
#endif
}

}  // namespace espalier
