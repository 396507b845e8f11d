#pragma once
// Two slots for images in flash, and which of them a node boots. Freestanding; docs/images.md has
// the proof that power may go at any time.
//
// A slot is the image's blocks, then one block of marks, appended one after the other:
//   committed   the image is whole, and its place in the order of installation; written last
//   tried       the image is about to run for the first time
//   confirmed   it has run well
// A mark that is neither whole nor blank (power went) counts as tried, which is the careful side.
// The stored counter is the largest of a log of records in two blocks of its own: it never falls.

#include <cstddef>
#include <cstdint>

#include "firmware/boot/flash.h"
#include "firmware/image/image.h"

namespace espalier {

// Where the slots lie in the flash, at multiples of its blocks.
struct SlotPlan {
  std::uint32_t slots[2] = {};   // offsets
  std::uint32_t slot_bytes = 0;  // of each: at least two blocks, the last one for its marks
  std::uint32_t counters = 0;    // offset of two blocks
};
// Both slots as large as the flash allows: counters, then the slots.
[[nodiscard]] SlotPlan whole_flash(const Flash& flash);

struct SlotReport {
  bool looked_at = false;       // a slot that claims to be older is not, if the newer one boots
  Status status = Status::kOk;  // why it was refused
  std::uint32_t sequence = 0;   // of its installation; 0: not committed
  std::uint32_t release = 0;    // as it claims
  bool tried = false;
  bool confirmed = false;
};

struct BootReport {
  SlotReport slots[2];
  std::uint32_t slot = 0;     // the one that boots
  std::uint32_t counter = 0;  // the stored one
  // Its first run: unless confirm() comes, the next boot takes the other one.
  bool trial = false;
  // It was tried before and never confirmed, but the other slot has nothing that boots.
  bool last_resort = false;
};

// What else an image must bear before it boots, e.g. that its programs load: kOk, or why not.
struct Acceptance {
  Status (*accepts)(void* context, const Image& image) = nullptr;  // null: everything
  void* context = nullptr;
};

class Slots {
 public:
  // The flash outlives this.
  constexpr Slots(Flash& flash, const SlotPlan& plan) : flash_(flash), plan_(plan) {}

  // Takes the slot with the higher release, of equal ones the one installed later, if it is
  // committed, check_image() takes it with the stored counter (or the expectation's, whichever is
  // higher), `acceptance` too, and it was not tried in vain before; else the other one; else one
  // that was tried in vain. Marks it as tried before its first run. Statuses of a refused slot:
  // kNoImage (blank), kUnfinished, kUnconfirmed, check_image()'s, the acceptance's, kBackEnd (the
  // mark could not be written).
  // kNothingToBoot: both were refused; kBadArgument: the plan does not fit the flash.
  [[nodiscard]] Status boot(const Expectation& expectation, const Acceptance& acceptance,
                            Image& image, BootReport& report);

  // Finds what boot() would take, and writes nothing: for whoever installs from outside. What
  // follows then concerns that slot as if it had been booted.
  [[nodiscard]] Status inspect(const Expectation& expectation, const Acceptance& acceptance,
                               Image& image, BootReport& report);

  // Says that the image that boot() gave has run well: marks it, then raises the stored counter to
  // the image's. kBadArgument: nothing was booted; kBackEnd; kTooLarge: no room for another mark.
  [[nodiscard]] Status confirm();

  // Installs an image into the slot that was not booted (slot 0 if none was): begin, append its
  // bytes in pieces of any size, finish. Power may go at any time; until finish() returns the slot
  // does not boot, and after that it does.
  // begin: erases the slot. kUnconfirmed: confirm what runs first, the other slot is its fall-back;
  // kTooLarge: the slot has no room for `size` bytes; kBackEnd.
  [[nodiscard]] Status begin(std::uint32_t size);
  // kTooLarge: more bytes than begun; kBadArgument: nothing begun; kBackEnd.
  [[nodiscard]] Status append(const std::uint8_t* bytes, std::uint32_t size);
  // Checks the image in its slot as boot() would, then commits it. kTruncated: fewer bytes than
  // begun; check_image()'s and the acceptance's: the slot stays uncommitted; kRolledBack: also
  // where its release is below the running one's, which boot would prefer for ever; kBackEnd.
  [[nodiscard]] Status finish(const Expectation& expectation, const Acceptance& acceptance);

  // The stored security counter; 0 if none was ever stored.
  [[nodiscard]] std::uint32_t counter() const;

 private:
  enum class Mark : std::uint32_t { kCommitted, kTried, kConfirmed, kCounter };
  struct Marks {
    std::uint32_t sequence = 0;
    bool tried = false;
    bool confirmed = false;
    bool any = false;       // something stands there
    std::uint32_t end = 0;  // where the next mark goes, from the block's beginning
  };

  [[nodiscard]] bool plan_fits() const;
  [[nodiscard]] std::uint32_t record_bytes() const;
  [[nodiscard]] std::uint32_t image_bytes() const {
    return plan_.slot_bytes - flash_.block_bytes();
  }
  [[nodiscard]] std::uint32_t marks_at(std::uint32_t slot) const {
    return plan_.slots[slot] + image_bytes();
  }
  [[nodiscard]] const std::uint8_t* at(std::uint32_t offset) const {
    return flash_.memory() + offset;
  }
  [[nodiscard]] bool blank(std::uint32_t offset, std::uint32_t size) const;
  [[nodiscard]] bool read_record(std::uint32_t offset, Mark kind, std::uint32_t& value) const;
  [[nodiscard]] Status write_record(std::uint32_t offset, Mark kind, std::uint32_t value);
  [[nodiscard]] std::uint32_t log_end(std::uint32_t block) const;
  [[nodiscard]] Marks read_marks(std::uint32_t slot) const;
  [[nodiscard]] Status add_mark(std::uint32_t slot, Mark kind);
  [[nodiscard]] std::uint32_t highest(std::uint32_t block, bool& any) const;
  [[nodiscard]] Status raise_counter(std::uint32_t value);
  [[nodiscard]] Status examine(std::uint32_t slot, const Expectation& expectation,
                               const Acceptance& acceptance, Image& image) const;
  void look(std::uint32_t slot, SlotReport& told) const;
  [[nodiscard]] Status choose(const Expectation& expectation, const Acceptance& acceptance,
                              bool write, Image& image, BootReport& report);
  [[nodiscard]] Status take(std::uint32_t slot, const Image& image, bool write, BootReport& report);
  [[nodiscard]] std::uint32_t other_slot() const { return running_ == kNone ? 0 : 1 - running_; }

  static constexpr std::uint32_t kNone = 2;

  Flash& flash_;
  SlotPlan plan_;
  std::uint32_t running_ = kNone;
  std::uint32_t running_release_ = 0;
  std::uint32_t running_counter_ = 0;
  std::uint32_t size_ = 0;      // of the image being installed; 0: none
  std::uint32_t received_ = 0;  // bytes of it so far
  std::uint8_t unit_[kMaxFlashUnit] = {};
};

}  // namespace espalier
