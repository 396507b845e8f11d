#include "espalier/hal/serial/carrier.h"
#include "espalier/internal/base/assert.h"

namespace espalier {
namespace {

constexpr std::uint32_t kMaxRunLength = 254;  // its length byte says that no zero follows

}  // namespace

Status ByteCarrier::send(const std::uint8_t* frame, std::uint32_t size) {
  ESPALIER_ASSERT(size <= mtu_);
  while (!ending_) {
    ESPALIER_ASSERT(sent_ + run_ <= size && run_ <= kMaxRunLength);
    if (!begun_) {
      std::uint32_t run = 0;
      while (run < kMaxRunLength && sent_ + run < size && frame[sent_ + run] != 0) ++run;
      if (!stream_->put(static_cast<std::uint8_t>(run + 1))) return Status::kTryAgain;
      begun_ = true;
      run_ = static_cast<std::uint8_t>(run);
      zero_after_ = run < kMaxRunLength && sent_ + run < size;
    }
    for (; run_ > 0; --run_, ++sent_) {
      if (!stream_->put(frame[sent_])) return Status::kTryAgain;
    }
    begun_ = false;
    // A zero at the end of the frame needs another (empty) run after it.
    ESPALIER_ASSERT(!zero_after_ || (sent_ < size && frame[sent_] == 0));
    if (zero_after_) {
      ++sent_;
    } else {
      ending_ = sent_ == size;
    }
  }
  if (!stream_->put(0)) return Status::kTryAgain;
  ending_ = false;
  sent_ = 0;
  return Status::kOk;
}

std::uint32_t ByteCarrier::receive(std::uint8_t* frame) {
  std::uint8_t byte = 0;
  ESPALIER_ASSERT(size_ <= mtu_);
  for (std::uint32_t taken = 0; taken < 2 * mtu_ && stream_->get(byte); ++taken) {
    if (byte == 0) {
      const std::uint32_t size = end_of_frame();
      if (size != 0) return size;
      continue;
    }
    const bool code = left_ == 0;
    if (!code || zero_) {
      bad_ = bad_ || size_ == mtu_;
      if (!bad_) frame[size_++] = code ? 0 : byte;
    }
    if (code) {
      left_ = static_cast<std::uint8_t>(byte - 1);
      zero_ = byte <= kMaxRunLength;
    } else {
      --left_;
    }
  }
  return 0;
}

// Returns the frame's size in bytes; 0 if it is damaged.
std::uint32_t ByteCarrier::end_of_frame() {
  ESPALIER_ASSERT(size_ <= mtu_);
  const std::uint32_t size = bad_ || left_ != 0 ? 0 : size_;
  size_ = 0;
  left_ = 0;
  zero_ = false;
  bad_ = false;
  return size;
}

}  // namespace espalier
