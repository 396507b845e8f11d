#pragma once
// Two slots for images in flash, and the choice of the slot that a node boots. Freestanding;
// docs/images.md describes how the slots survive a power failure at any time.
//
// A slot is the image's blocks, then one block of marks, appended one after the other:
//   committed   the image is complete; contains the installation number; the last write of an
//               installation
//   tried       the image is about to run for the first time
//   confirmed   the image has run successfully
// An update of a whole cluster (firmware/update) writes two others instead (ESPALIER_UPDATES):
//   prepared    the image is complete and waits for the other nodes; boot does not take it
//   switched    all nodes have prepared it: committed and confirmed at once
// A mark that is neither valid nor blank (power failed) counts as tried, the cautious reading.
// After `prepared` it counts as nothing: the image still waits.
// The stored security counter is the board's own (security_counter.h), if it has one. Otherwise it
// is the largest value in a log of records in flash, which has two blocks. It never decreases, but
// someone who can write the flash can erase the log.

#include <cstdint>

#include "firmware/boot/flash.h"
#include "firmware/boot/security_counter.h"
#include "firmware/image/image.h"

namespace espalier {

// The positions of the slots in the flash; all are multiples of a block.
struct SlotPlan {
  std::uint32_t slots[2] = {};   // offsets
  std::uint32_t slot_bytes = 0;  // per slot: at least two blocks, the last one for its marks
  std::uint32_t counters = 0;    // offset of two blocks
};
// Returns the plan with the largest slots that fit: counters, then the slots.
[[nodiscard]] SlotPlan whole_flash(const Flash& flash);

struct SlotReport {
  bool looked_at = false;       // false: the other slot booted, and this one has an older image
  Status status = Status::kOk;  // why it was refused
  bool tried = false;
  bool confirmed = false;
  std::uint32_t sequence = 0;  // installation number; 0: not committed
  std::uint32_t release = 0;   // unchecked, from the image's header
  std::uint32_t counter = 0;   // its security counter, unchecked, from the image's header
#if ESPALIER_UPDATES
  bool prepared = false;  // waits for switch_over(); its status is kUnfinished
#endif
};

struct BootReport {
  SlotReport slots[2];
  std::uint32_t slot = 0;     // the slot that booted
  std::uint32_t counter = 0;  // the stored counter
  // Whether `counter` could be read. If not, both slots were refused with this status.
  Status counter_status = Status::kOk;
  // The image is not confirmed: unless confirm() is called, the next boot takes the other slot.
  bool trial = false;
  // The image was tried before and never confirmed, but the other slot does not boot.
  bool last_resort = false;
};

// A further check of an image before it boots, for example that its programs load.
struct Acceptance {
  // Returns kOk or the reason to refuse the image; null: accepts all images.
  Status (*accepts)(void* context, const Image& image) = nullptr;
  void* context = nullptr;
};

class Slots {
 public:
  // The flash and the counter must outlive the slots. Without a counter, the stored counter is in
  // flash; with one, its blocks in flash are neither read nor written.
  constexpr Slots(Flash& flash, const SlotPlan& plan, SecurityCounter* own_counter = nullptr)
      : flash_(flash), plan_(plan), own_counter_(own_counter) {}

  // Chooses a slot and returns its image. A slot boots if it meets these conditions:
  //  * it is committed;
  //  * check_image() accepts it, with the larger of the stored and the expected counter;
  //  * the stored counter can be raised to the image's;
  //  * `acceptance` accepts it;
  //  * it was not tried before without being confirmed.
  // Tries the slot with the higher release first, of equal releases the one installed later, then
  // the other slot. If neither boots, takes a slot that fails only the last condition (the last
  // resort). Marks the slot as tried before its first run.
  // Statuses of a refused slot, besides those of check_image() and of `acceptance`:
  //  * kNoImage: it is blank; kUnfinished: not committed; kUnconfirmed: tried before.
  //  * kTooLarge: there is no room for a mark, or the image's counter is above the largest that the
  //    board can store.
  //  * kBackEnd: the mark could not be written, or the stored counter could not be read.
  // kNothingToBoot: both slots were refused; kBadArgument: the plan does not fit the flash.
  [[nodiscard]] Status boot(const Expectation& expectation, const Acceptance& acceptance,
                            Image& image, BootReport& report);

  // Finds the slot that boot() would take, and writes nothing: for installing on a host. Later
  // calls treat that slot as the one that booted.
  [[nodiscard]] Status inspect(const Expectation& expectation, const Acceptance& acceptance,
                               Image& image, BootReport& report);

  // Records that the booted image has run successfully: marks it as confirmed, then raises the
  // stored counter to the counter of the image. kBadArgument: no image was booted; kBackEnd;
  // kTooLarge: no room for another mark.
  [[nodiscard]] Status confirm();

  // begin(), append() and finish() install an image into the slot that did not boot (slot 0 if none
  // did). Power may fail at any time: the slot boots only after the last write of finish().

  // Erases the slot for an image of `size` bytes. Errors:
  //  * kUnconfirmed: the running image must be confirmed first; the other slot is its fall-back.
  //  * kTruncated: `size` is less than a header.
  //  * kTooLarge: the slot has no room for `size` bytes.
  //  * kBadArgument: the plan does not fit the flash.
  //  * kBackEnd: the flash failed.
  [[nodiscard]] Status begin(std::uint32_t size);
  // Appends bytes of the image, in pieces of any size. Errors:
  //  * kTooLarge: more bytes than begin() announced.
  //  * kBadArgument: no installation, or null bytes.
  //  * kBackEnd: the flash failed, and the installation is abandoned.
  [[nodiscard]] Status append(const std::uint8_t* bytes, std::uint32_t size);
  // Checks the image in its slot as boot() would, then commits it. After an error other than
  // kBackEnd the slot is uncommitted. Errors:
  //  * kBadArgument: no installation.
  //  * kTruncated: fewer bytes than announced; more may follow.
  //  * check_image()'s and the acceptance's errors.
  //  * kMalformed: the image has another size.
  //  * kOlderRelease: the image's release is below that of the running image, which boot() would
  //    always prefer.
  //  * kTooLarge: the image's counter is above the largest that the board can store.
  //  * kBackEnd: the flash failed.
  [[nodiscard]] Status finish(const Expectation& expectation, const Acceptance& acceptance);

#if ESPALIER_UPDATES
  // An update of all nodes (firmware/update): prepare() takes the place of finish(), and erasing
  // may be done block by block. An image must have booted.

  // Checks what begin() checks, with its errors; then call erase_next() until it does not return
  // kBusy, and append().
  [[nodiscard]] Status begin_erasing(std::uint32_t size);
  // Erases at most one block. kBusy: call it again; kBadArgument: no installation; kBackEnd.
  [[nodiscard]] Status erase_next();
  // As finish(), but the image waits in its slot: boot does not take it before switch_over().
  [[nodiscard]] Status prepare(const Expectation& expectation, const Acceptance& acceptance);
  // Returns the image that waits, checked again. kNoImage: none waits; the errors of prepare().
  [[nodiscard]] Status find_prepared(const Expectation& expectation, const Acceptance& acceptance,
                                     Image& image) const;
  // Makes the image that waits the one that boots from now on, as one that is confirmed. Errors,
  // after which it still waits: kNoImage: none waits; kTooLarge: no room for a mark; kBackEnd.
  [[nodiscard]] Status switch_over();
  // Gives up the image that waits, if there is one. kBackEnd: the flash failed.
  [[nodiscard]] Status withdraw();
  // The bytes that an image may have.
  [[nodiscard]] std::uint32_t room() const { return image_bytes(); }
  // Whether the image that booted is confirmed.
  [[nodiscard]] bool is_confirmed() const {
    return running_ != kNone && read_marks(running_).confirmed;
  }
#endif

  // Returns the stored security counter; 0 if none was ever stored, or if it cannot be read (no
  // image boots then).
  [[nodiscard]] std::uint32_t counter() const;
  [[nodiscard]] bool has_own_counter() const { return own_counter_ != nullptr; }

 private:
  enum class Mark : std::uint32_t {
    kCommitted,
    kTried,
    kConfirmed,
    kCounter,
    kPrepared,
    kSwitched
  };
  struct Marks {
    std::uint32_t sequence = 0;
    bool tried = false;
    bool confirmed = false;
    bool any = false;       // the block is not blank
    std::uint32_t end = 0;  // offset of the next mark, from the block's beginning
#if ESPALIER_UPDATES
    std::uint32_t prepared = 0;  // installation number of an image that waits; 0: none
#endif
  };

  [[nodiscard]] bool plan_fits() const;
  [[nodiscard]] std::uint32_t record_bytes() const;
  [[nodiscard]] std::uint32_t image_bytes() const {
    return plan_.slot_bytes - flash_.block_bytes();
  }
  [[nodiscard]] std::uint32_t marks_at(std::uint32_t slot) const {
    return plan_.slots[slot] + image_bytes();
  }
  [[nodiscard]] const std::uint8_t* bytes_at(std::uint32_t offset) const {
    return flash_.memory() + offset;
  }
  [[nodiscard]] bool blank(std::uint32_t offset, std::uint32_t size) const;
  [[nodiscard]] bool read_record(std::uint32_t offset, Mark kind, std::uint32_t& value) const;
  [[nodiscard]] Status write_record(std::uint32_t offset, Mark kind, std::uint32_t value);
  [[nodiscard]] std::uint32_t log_end(std::uint32_t block) const;
  [[nodiscard]] Marks read_marks(std::uint32_t slot) const;
  [[nodiscard]] Status add_mark(std::uint32_t slot, Mark kind);
  [[nodiscard]] std::uint32_t highest(std::uint32_t block, bool& any) const;
  [[nodiscard]] Status read_counter(std::uint32_t& value) const;
  [[nodiscard]] std::uint32_t flash_counter() const;
  [[nodiscard]] Status raise_counter(std::uint32_t value);
  [[nodiscard]] Status raise_flash_counter(std::uint32_t value);
  [[nodiscard]] Status examine(std::uint32_t slot, const Expectation& expectation,
                               const Acceptance& acceptance, Image& image) const;
  void look(std::uint32_t slot, SlotReport& entry) const;
  [[nodiscard]] Status choose(const Expectation& expectation, const Acceptance& acceptance,
                              bool write, Image& image, BootReport& report);
  [[nodiscard]] Status take(std::uint32_t slot, const Image& image, bool write, BootReport& report);
  [[nodiscard]] Status check_size(std::uint32_t size) const;
  [[nodiscard]] Status complete(const Expectation& expectation, const Acceptance& acceptance,
                                Mark mark);
#if ESPALIER_UPDATES
  void read_prepared(std::uint32_t block, Marks& marks) const;
#endif
  [[nodiscard]] std::uint32_t other_slot() const { return running_ == kNone ? 0 : 1 - running_; }

  static constexpr std::uint32_t kNone = 2;

  Flash& flash_;
  SlotPlan plan_;
  SecurityCounter* own_counter_;
  std::uint32_t running_ = kNone;
  std::uint32_t running_release_ = 0;
  std::uint32_t running_counter_ = 0;
  std::uint32_t size_ = 0;      // bytes of the image being installed; 0: no installation
  std::uint32_t received_ = 0;  // bytes appended so far
#if ESPALIER_UPDATES
  std::uint32_t erased_ = 0;  // bytes of the slot that erase_next() has passed
#endif
  std::uint8_t unit_[kMaxFlashUnit] = {};
};

}  // namespace espalier
