#include "firmware/boot/slots.h"

#include <cstring>

#include "base/crc32.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier {
namespace {

// A record: magic, value, its complement, CRC-32 of these. Offsets in bytes.
constexpr std::uint32_t kRecordValueAt = 4;
constexpr std::uint32_t kRecordComplementAt = 8;
constexpr std::uint32_t kRecordCrcAt = 12;
constexpr std::uint32_t kRecordBytes = 16;
constexpr std::uint32_t kMarkMagic =
    0x4b52414d;                         // of Mark::kCommitted; other marks add their number
constexpr std::uint32_t kMinMarks = 8;  // room in a block

// Returns the slot to try first.
std::uint32_t newer_slot(const SlotReport& a, const SlotReport& b) {
  if (a.release != b.release) return a.release > b.release ? 0 : 1;
  return a.sequence >= b.sequence ? 0 : 1;
}

}  // namespace

SlotPlan whole_flash(const Flash& flash) {
  ESPALIER_ASSERT(flash.block_bytes() > 0);
  const std::uint32_t block = flash.block_bytes();
  const std::uint32_t blocks = flash.bytes() / block;
  const std::uint32_t each = blocks < 2 ? 0 : (blocks - 2) / 2 * block;
  return {{2 * block, 2 * block + each}, each, 0};
}

bool Slots::plan_fits() const {
  const std::uint32_t block = flash_.block_bytes(), unit = flash_.unit_bytes();
  if (unit == 0 || unit > kMaxFlashUnit || block == 0 || block % unit != 0) return false;
  if (block / record_bytes() < kMinMarks) return false;
  const std::uint32_t size = plan_.slot_bytes;
  if (size % block != 0 || size < 2 * block || size > flash_.bytes()) return false;
  const std::uint32_t begin[3] = {plan_.slots[0], plan_.slots[1], plan_.counters};
  const std::uint32_t bytes[3] = {size, size, 2 * block};
  for (unsigned i = 0; i < 3; ++i) {
    if (begin[i] % block != 0 || begin[i] > flash_.bytes() - bytes[i]) return false;
    for (unsigned j = 0; j < i; ++j) {
      if (begin[i] < begin[j] + bytes[j] && begin[j] < begin[i] + bytes[i]) return false;
    }
  }
  return true;
}

std::uint32_t Slots::record_bytes() const {
  const std::uint32_t unit = flash_.unit_bytes();
  return (kRecordBytes + unit - 1) / unit * unit;
}

bool Slots::blank(std::uint32_t offset, std::uint32_t size) const {
  ESPALIER_ASSERT(offset <= flash_.bytes() && size <= flash_.bytes() - offset);
  const std::uint8_t* bytes = bytes_at(offset);
  std::uint8_t all = 0xff;
  for (std::uint32_t k = 0; k < size; ++k) all = static_cast<std::uint8_t>(all & bytes[k]);
  return all == 0xff;
}

bool Slots::read_record(std::uint32_t offset, Mark kind, std::uint32_t& value) const {
  ESPALIER_ASSERT(offset % flash_.unit_bytes() == 0);
  ESPALIER_ASSERT(flash_.bytes() - offset >= kRecordBytes);
  const std::uint8_t* record = bytes_at(offset);
  value = load_u32(record + kRecordValueAt);
  return load_u32(record) == kMarkMagic + static_cast<std::uint32_t>(kind) &&
         load_u32(record + kRecordComplementAt) == ~value &&
         load_u32(record + kRecordCrcAt) == crc32(0, record, kRecordCrcAt);
}

Status Slots::write_record(std::uint32_t offset, Mark kind, std::uint32_t value) {
  ESPALIER_ASSERT(offset % flash_.unit_bytes() == 0 && record_bytes() <= flash_.bytes() - offset);
  std::uint8_t record[kMaxFlashUnit + kRecordBytes];
  std::memset(record, 0xff, sizeof record);
  store_le(record, kMarkMagic + static_cast<std::uint32_t>(kind), 4);
  store_le(record + kRecordValueAt, value, 4);
  store_le(record + kRecordComplementAt, ~value, 4);
  store_le(record + kRecordCrcAt, crc32(0, record, kRecordCrcAt), 4);
  ESPALIER_ASSERT(record_bytes() <= sizeof record && record_bytes() >= kRecordBytes);
  return flash_.write(offset, record, record_bytes());
}

// Returns the offset of the end of a block's log: after the last record that is not blank.
std::uint32_t Slots::log_end(std::uint32_t block) const {
  ESPALIER_ASSERT(block % flash_.block_bytes() == 0);
  const std::uint32_t record = record_bytes();
  std::uint32_t end = flash_.block_bytes() / record * record;
  while (end > 0 && blank(block + end - record, record)) end -= record;
  ESPALIER_ASSERT(end <= flash_.block_bytes() && end % record == 0);
  return end;
}

Slots::Marks Slots::read_marks(std::uint32_t slot) const {
  ESPALIER_ASSERT(slot < 2);
  Marks marks;
  const std::uint32_t block = marks_at(slot);
  marks.end = log_end(block);
  marks.any = marks.end > 0;
  std::uint32_t value = 0;
  if (!read_record(block, Mark::kCommitted, marks.sequence)) {
    marks.sequence = 0;
#if ESPALIER_UPDATES
    read_prepared(block, marks);
    ESPALIER_ASSERT(marks.prepared == 0 || marks.sequence == 0);
#endif
    return marks;
  }
  for (std::uint32_t k = record_bytes(); k < marks.end; k += record_bytes()) {
    marks.tried = true;
    if (read_record(block + k, Mark::kConfirmed, value) && value == marks.sequence) {
      marks.confirmed = true;
    }
  }
  ESPALIER_ASSERT(marks.any && (!marks.confirmed || marks.tried));
  return marks;
}

#if ESPALIER_UPDATES
// Reads the marks of an image that an update of the cluster brought.
void Slots::read_prepared(std::uint32_t block, Marks& marks) const {
  std::uint32_t number = 0, value = 0;
  if (!read_record(block, Mark::kPrepared, number)) return;
  marks.prepared = number;
  for (std::uint32_t k = record_bytes(); k < marks.end; k += record_bytes()) {
    if (!read_record(block + k, Mark::kSwitched, value) || value != number) continue;
    marks.sequence = number;
    marks.prepared = 0;
    marks.tried = marks.confirmed = true;
  }
}
#endif

Status Slots::add_mark(std::uint32_t slot, Mark kind) {
  const Marks marks = read_marks(slot);
  ESPALIER_ASSERT(marks.sequence != 0 && (kind == Mark::kTried || kind == Mark::kConfirmed));
  if (marks.end + record_bytes() > flash_.block_bytes()) return Status::kTooLarge;
  ESPALIER_ASSERT(blank(marks_at(slot) + marks.end, record_bytes()));
  return write_record(marks_at(slot) + marks.end, kind, marks.sequence);
}

// Returns the largest counter of a block's log; 0 and any = false if it has none.
std::uint32_t Slots::highest(std::uint32_t block, bool& any) const {
  std::uint32_t maximum = 0, value = 0;
  any = false;
  const std::uint32_t end = log_end(block);
  for (std::uint32_t k = 0; k < end; k += record_bytes()) {
    if (!read_record(block + k, Mark::kCounter, value)) continue;
    any = true;
    if (value > maximum) maximum = value;
  }
  return maximum;
}

std::uint32_t Slots::flash_counter() const {
  bool any = false;
  const std::uint32_t first = highest(plan_.counters, any);
  const std::uint32_t second = highest(plan_.counters + flash_.block_bytes(), any);
  return first > second ? first : second;
}

Status Slots::read_counter(std::uint32_t& value) const {
  if (own_counter_ != nullptr) return own_counter_->read(value);
  value = flash_counter();
  return Status::kOk;
}

std::uint32_t Slots::counter() const {
  std::uint32_t value = 0;
  return read_counter(value) == Status::kOk ? value : 0;
}

Status Slots::raise_counter(std::uint32_t value) {
  ESPALIER_ASSERT(plan_fits());
  std::uint32_t stored = 0;
  const Status status = read_counter(stored);
  if (status != Status::kOk || value <= stored) return status;
  return own_counter_ != nullptr ? own_counter_->raise(value) : raise_flash_counter(value);
}

// Appends to the block that has the largest counter. Erases the other block only when this one is
// full, so the largest counter is never lost.
Status Slots::raise_flash_counter(std::uint32_t value) {
  ESPALIER_ASSERT(own_counter_ == nullptr && value > flash_counter());
  const std::uint32_t size = flash_.block_bytes();
  bool any_first = false, any_second = false;
  const std::uint32_t first = highest(plan_.counters, any_first);
  const std::uint32_t second = highest(plan_.counters + size, any_second);
  const bool in_second = any_second && (!any_first || second > first);
  std::uint32_t block = plan_.counters + (in_second ? size : 0);
  std::uint32_t end = log_end(block);
  if (end + record_bytes() > size) {
    block = plan_.counters + (in_second ? 0 : size);
    end = 0;
    if (!blank(block, size)) {
      const Status status = flash_.erase(block);
      if (status != Status::kOk) return status;
    }
  }
  ESPALIER_ASSERT(end + record_bytes() <= size);
  return write_record(block + end, Mark::kCounter, value);
}

// Checks a slot's image, without regard to its marks.
Status Slots::examine(std::uint32_t slot, const Expectation& expectation,
                      const Acceptance& acceptance, Image& image) const {
  ESPALIER_ASSERT(slot < 2);
  Expectation expected = expectation;
  std::uint32_t stored = 0;
  Status status = read_counter(stored);
  if (status != Status::kOk) return status;
  if (stored > expected.counter) expected.counter = stored;
  status = check_image(bytes_at(plan_.slots[slot]), image_bytes(), expected, image);
  // An image whose counter cannot be stored would be confirmed and leave older ones bootable.
  if (status == Status::kOk && own_counter_ != nullptr && image.counter > own_counter_->max()) {
    return Status::kTooLarge;
  }
  if (status != Status::kOk || acceptance.accepts == nullptr) return status;
  return acceptance.accepts(acceptance.context, image);
}

// Reads a slot's marks and, unchecked, its image's release.
void Slots::look(std::uint32_t slot, SlotReport& entry) const {
  ESPALIER_ASSERT(slot < 2);
  const Marks marks = read_marks(slot);
  entry.sequence = marks.sequence;
  entry.tried = marks.tried;
  entry.confirmed = marks.confirmed;
#if ESPALIER_UPDATES
  entry.prepared = marks.prepared != 0;
#endif
  const std::uint8_t* header = bytes_at(plan_.slots[slot]);
  if (marks.sequence == 0) {
    entry.looked_at = true;
    const bool empty = !marks.any && blank(plan_.slots[slot], kImageHeaderBytes);
    entry.status = empty ? Status::kNoImage : Status::kUnfinished;
#if ESPALIER_UPDATES
    if (entry.prepared) entry.release = load_u32(header + kImageReleaseAt);
#endif
  } else if (std::memcmp(header, kImageMagic, sizeof kImageMagic) == 0) {
    entry.release = load_u32(header + kImageReleaseAt);
    entry.counter = load_u32(header + kImageCounterAt);
  } else {
    entry.looked_at = true;
    entry.status = Status::kNoImage;
  }
}

Status Slots::take(std::uint32_t slot, const Image& image, bool write, BootReport& report) {
  ESPALIER_ASSERT(slot < 2 && running_ == kNone);
  const SlotReport& chosen = report.slots[slot];
  ESPALIER_ASSERT(chosen.looked_at && chosen.sequence != 0);
  if (write && !chosen.tried) {
    const Status status = add_mark(slot, Mark::kTried);
    if (status != Status::kOk) return status;
  }
  report.slot = slot;
  report.trial = !chosen.confirmed;
  running_ = slot;
  running_release_ = image.release;
  running_counter_ = image.counter;
  // Power may have failed between confirm()'s mark and its counter. If the counter cannot be raised
  // now, the next boot tries again.
  if (write && chosen.confirmed) (void)raise_counter(image.counter);
  report.counter_status = read_counter(report.counter);
  return Status::kOk;
}

Status Slots::choose(const Expectation& expectation, const Acceptance& acceptance, bool write,
                     Image& image, BootReport& report) {
  report = BootReport();
  image = Image();
  running_ = kNone;
  size_ = 0;
  if (!plan_fits()) return Status::kBadArgument;
  report.counter_status = read_counter(report.counter);
  for (std::uint32_t slot = 0; slot < 2; ++slot) look(slot, report.slots[slot]);
  std::uint32_t last_resort = kNone;
  ESPALIER_ASSERT(size_ == 0 && running_ == kNone);
  const std::uint32_t first = newer_slot(report.slots[0], report.slots[1]);
  for (std::uint32_t turn = 0; turn < 2; ++turn) {
    const std::uint32_t slot = turn == 0 ? first : 1 - first;
    SlotReport& entry = report.slots[slot];
    if (entry.looked_at) continue;
    entry.looked_at = true;
    entry.status = examine(slot, expectation, acceptance, image);
    if (entry.status != Status::kOk) continue;
    if (entry.tried && !entry.confirmed) {
      entry.status = Status::kUnconfirmed;
      if (last_resort == kNone) last_resort = slot;
      continue;
    }
    entry.status = take(slot, image, write, report);
    if (entry.status == Status::kOk) return Status::kOk;
  }
  if (last_resort != kNone && examine(last_resort, expectation, acceptance, image) == Status::kOk) {
    report.last_resort = true;
    return take(last_resort, image, write, report);
  }
  ESPALIER_ASSERT(running_ == kNone);
  image = Image();
  return Status::kNothingToBoot;
}

Status Slots::boot(const Expectation& expectation, const Acceptance& acceptance, Image& image,
                   BootReport& report) {
  return choose(expectation, acceptance, true, image, report);
}

Status Slots::inspect(const Expectation& expectation, const Acceptance& acceptance, Image& image,
                      BootReport& report) {
  return choose(expectation, acceptance, false, image, report);
}

Status Slots::confirm() {
  if (running_ == kNone) return Status::kBadArgument;
  if (!read_marks(running_).confirmed) {
    const Status status = add_mark(running_, Mark::kConfirmed);
    if (status != Status::kOk) return status;
  }
  // Raise the counter last: if power failed between the two writes in the other order, an image
  // with a lower counter could no longer boot as the fall-back. boot() makes up for the raise.
  ESPALIER_ASSERT(running_ < 2);
  return raise_counter(running_counter_);
}

inline Status Slots::check_size(std::uint32_t size) const {
  if (!plan_fits()) return Status::kBadArgument;
  if (size < kImageHeaderBytes) return Status::kTruncated;
  if (size > image_bytes()) return Status::kTooLarge;
  if (running_ != kNone && !read_marks(running_).confirmed) return Status::kUnconfirmed;
  return Status::kOk;
}

Status Slots::begin(std::uint32_t size) {
  size_ = 0;
  Status status = check_size(size);
  if (status != Status::kOk) return status;
  const std::uint32_t slot = other_slot();
  ESPALIER_ASSERT(slot < 2 && slot != running_);
  // Erase the marks last, so that an interrupted erase leaves marks only beside a broken image.
  for (std::uint32_t k = 0; k < plan_.slot_bytes; k += flash_.block_bytes()) {
    const std::uint32_t block = plan_.slots[slot] + k;
    if (blank(block, flash_.block_bytes())) continue;
    status = flash_.erase(block);
    if (status != Status::kOk) return status;
  }
  size_ = size;
  received_ = 0;
  return Status::kOk;
}

Status Slots::append(const std::uint8_t* bytes, std::uint32_t size) {
  if (size_ == 0 || (bytes == nullptr && size > 0)) return Status::kBadArgument;
  if (size > size_ - received_) return Status::kTooLarge;
  const std::uint32_t unit = flash_.unit_bytes();
  const std::uint32_t slot = plan_.slots[other_slot()];
  ESPALIER_ASSERT(received_ <= size_ && size_ <= image_bytes() && other_slot() != running_);
  while (size > 0) {
    const std::uint32_t filled = received_ % unit;
    const std::uint32_t part = size < unit - filled ? size : unit - filled;
    if (filled == 0) std::memset(unit_, 0xff, sizeof unit_);
    std::memcpy(unit_ + filled, bytes, part);
    received_ += part;
    bytes += part;
    size -= part;
    if (received_ % unit != 0 && received_ != size_) continue;
    const std::uint32_t full = (received_ - 1) / unit * unit;
    ESPALIER_ASSERT(received_ <= size_ && full + unit <= image_bytes());
    const Status status = flash_.write(slot + full, unit_, unit);
    if (status != Status::kOk) {
      size_ = 0;
      return status;
    }
  }
  return Status::kOk;
}

// Checks the image in its slot and marks it. Inline: without updates it has one caller.
inline Status Slots::complete(const Expectation& expectation, const Acceptance& acceptance,
                              Mark mark) {
  if (size_ == 0) return Status::kBadArgument;
  if (received_ != size_) return Status::kTruncated;
  const std::uint32_t slot = other_slot();
  ESPALIER_ASSERT(slot != running_ && size_ <= image_bytes());
  const std::uint32_t size = size_;
  size_ = 0;
  Image image;
  const Status status = examine(slot, expectation, acceptance, image);
  if (status != Status::kOk) return status;
  if (image.size != size) return Status::kMalformed;
  if (running_ != kNone && image.release < running_release_) return Status::kOlderRelease;
  const std::uint32_t other = read_marks(1 - slot).sequence;
  ESPALIER_ASSERT(running_ == kNone || other != 0);
  return write_record(marks_at(slot), mark, other + 1);
}

Status Slots::finish(const Expectation& expectation, const Acceptance& acceptance) {
  return complete(expectation, acceptance, Mark::kCommitted);
}

#if ESPALIER_UPDATES

Status Slots::begin_erasing(std::uint32_t size) {
  size_ = 0;
  if (running_ == kNone) return Status::kBadArgument;
  const Status status = check_size(size);
  if (status != Status::kOk) return status;
  size_ = size;
  received_ = erased_ = 0;
  return Status::kOk;
}

// In the order of begin(): the marks last.
Status Slots::erase_next() {
  if (size_ == 0 || received_ != 0) return Status::kBadArgument;
  ESPALIER_ASSERT(running_ != kNone && erased_ <= plan_.slot_bytes);
  const std::uint32_t size = flash_.block_bytes();
  while (erased_ < plan_.slot_bytes) {
    const std::uint32_t block = plan_.slots[other_slot()] + erased_;
    erased_ += size;
    if (blank(block, size)) continue;
    const Status status = flash_.erase(block);
    if (status == Status::kOk) return Status::kBusy;
    size_ = 0;
    return status;
  }
  return Status::kOk;
}

Status Slots::prepare(const Expectation& expectation, const Acceptance& acceptance) {
  return complete(expectation, acceptance, Mark::kPrepared);
}

Status Slots::find_prepared(const Expectation& expectation, const Acceptance& acceptance,
                            Image& image) const {
  image = Image();
  if (running_ == kNone || read_marks(other_slot()).prepared == 0) return Status::kNoImage;
  return examine(other_slot(), expectation, acceptance, image);
}

Status Slots::switch_over() {
  if (running_ == kNone) return Status::kNoImage;
  const std::uint32_t slot = other_slot();
  const Marks marks = read_marks(slot);
  if (marks.prepared == 0) return Status::kNoImage;
  if (marks.end + record_bytes() > flash_.block_bytes()) return Status::kTooLarge;
  return write_record(marks_at(slot) + marks.end, Mark::kSwitched, marks.prepared);
}

Status Slots::withdraw() {
  if (running_ == kNone || read_marks(other_slot()).prepared == 0) return Status::kOk;
  return flash_.erase(marks_at(other_slot()));
}

#endif

}  // namespace espalier
