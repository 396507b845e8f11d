#include "firmware/bare/boot.h"

#include "espalier/base/assert.h"
#include "firmware/bare/board.h"
#include "firmware/bare/text.h"

namespace espalier::bare {
namespace {

#if ESPALIER_SPARES
// Decodes the programs of all spares, each into the same memory, which is not used otherwise yet.
Status check_spares(const Image& image, DecodedProgram& memory) {
  for (std::uint32_t i = 0; i < image.spares; ++i) {
    for (std::uint32_t which = 0; which <= image.programs; ++which) {
      const Status status = image.load_spare(i, which, memory);
      const bool has_lost_root = which != 0 && status == Status::kUnsupported;
      if (status != Status::kOk && !has_lost_root) return status;
    }
  }
  return Status::kOk;
}
#endif

// Decodes every program and selection of the image into `context`, Booted::programs or, with
// selections, a Booted. A slot is accepted only if this succeeds.
Status load_all(void* context, const Image& image) {
#if ESPALIER_MAX_SELECTIONS > 0
  Booted& booted = *static_cast<Booted*>(context);
  DecodedProgram* programs = booted.programs;
#else
  auto* programs = static_cast<DecodedProgram*>(context);
#endif
  for (std::uint32_t i = 0; i < image.links; ++i) {
    if (image.link(i).device != 0) return Status::kNoSuchPeer;
  }
#if ESPALIER_SPARES
  const Status checked = check_spares(image, programs[0]);
  if (checked != Status::kOk) return checked;
#endif
  ESPALIER_ASSERT(image.programs >= 1 && image.programs <= kMaxPrograms);
  for (std::uint32_t i = 0; i < image.programs; ++i) {
    const Status status = image.load(i, programs[i]);
    if (status != Status::kOk) return status;
  }
#if ESPALIER_MAX_SELECTIONS > 0
  for (std::uint32_t i = 0; i < image.selections; ++i) {
    const Status status = image.load_selection(i, programs, booted.selections[i]);
    if (status != Status::kOk) return status;
  }
#endif
  return Status::kOk;
}

Acceptance acceptance(Booted& booted) {
#if ESPALIER_MAX_SELECTIONS > 0
  return {load_all, &booted};
#else
  return {load_all, booted.programs};
#endif
}

const char* counter_place() {
  return board::security_counter() != nullptr ? "board's own counter" : "counter in flash";
}

void print_slot(const Booted& booted, std::uint32_t slot) {
  const SlotReport& entry = booted.report.slots[slot];
  Text line;
  line << "boot: slot " << slot << ": ";
#if ESPALIER_UPDATES
  if (entry.prepared) {
    line << "release " << Release{entry.release} << " waits for all nodes to switch\n";
    return;
  }
#endif
  if (entry.status != Status::kOk) {
    line << "refused, " << status_name(entry.status) << " (status " << entry.status << ")";
    if (entry.status == Status::kRolledBack) {
      line << ": its security counter " << entry.counter << " is below " << booted.report.counter
           << ", the " << counter_place();
    }
  } else if (!entry.looked_at) {
    line << "release " << Release{entry.release} << ", the older one";
  } else {
    line << "boots, " << (booted.report.trial ? "for the first time" : "confirmed");
  }
  line << "\n";
}

}  // namespace

Expectation expectation() {
  Expectation expected;
  expected.board = board::name();
  expected.authority = board::authority();
  return expected;
}

Status boot(Slots& slots, Booted& booted) {
  const Acceptance loads = acceptance(booted);
  booted.status = slots.boot(expectation(), loads, booted.image, booted.report);
  return booted.status;
}

#if ESPALIER_UPDATES
Status load(const Image& image, Booted& booted) {
  const Acceptance loads = acceptance(booted);
  return loads.accepts(loads.context, image);
}
#endif

Status install(Slots& slots, const std::uint8_t* bytes, std::uint32_t size, Booted& booted) {
  // A board without a key accepts no image and keeps its slots.
  if (board::authority() == nullptr) return Status::kBadArgument;
  const Acceptance loads = acceptance(booted);
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
  Text() << "boot: the " << counter_place() << " is ";
  if (booted.report.counter_status == Status::kOk) {
    Text() << booted.report.counter << "\n";
  } else {
    Text() << "unreadable: " << status_name(booted.report.counter_status) << " (status "
           << booted.report.counter_status << ")\n";
  }
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
    for (std::uint32_t i = 0; i < image.programs; ++i) {
      const ProgramRow row = image.program(i);
      Text() << "boot: program " << i << ": " << collective_name(row.collective) << ", "
             << row.algorithm << ", root " << row.root << ", " << row.size << " bytes\n";
    }
#if ESPALIER_SPARES
    if (image.spares != 0) Text() << "boot: " << image.spares << " spares\n";
#endif
#if ESPALIER_MAX_SELECTIONS > 0
    for (std::uint32_t i = 0; i < image.selections; ++i) {
      const NodeSelection& selection = booted.selections[i];
      const std::uint32_t first = selection.first_program;
      Text() << "boot: selection " << i << ": programs " << first << " to "
             << first + selection.table.schedules_count - 1 << ", "
             << std::uint32_t{selection.table.rows_count} << " rows\n";
    }
#endif
    for (std::uint32_t i = 0; i < image.links; ++i) {
      const LinkRow row = image.link(i);
      Text() << "boot: link " << i << ": node " << row.peer << ", device " << row.device
             << ", port " << row.port << "\n";
    }
  }
  const board::Memory memory = board::memory();
  Text() << "boot: ram " << memory.ram_used << " of " << memory.ram_given << " bytes, code "
         << memory.code_used << " bytes\n";
}

}  // namespace espalier::bare
