#pragma once
// A flash whose bytes are a file: the slots of a Linux node, or a flash image that a host prepares
// for a board. Host only.
//
// open() copies the file. So other processes cannot change what was checked, or end the reader by
// making the file shorter.

#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "firmware/boot/flash.h"

namespace espalier {

struct FlashShape {
  std::uint32_t bytes = 1u << 20;
  std::uint32_t block_bytes = 4096;
  std::uint32_t unit_bytes = 16;
};

// Whether Slots can use such a flash (firmware/boot/flash.h).
[[nodiscard]] bool is_flash_shape(const FlashShape& shape);

// Returns the size in bytes of the largest image that fits into a slot of such a flash (by
// whole_flash()'s plan).
[[nodiscard]] std::uint32_t image_room(std::uint32_t bytes, std::uint32_t block_bytes);

class FileFlash final : public Flash {
 public:
  FileFlash() = default;
  FileFlash(const FileFlash&) = delete;
  FileFlash& operator=(const FileFlash&) = delete;
  ~FileFlash();

  // Opens the file, which must have shape.bytes bytes. If `create` is set and there is no file or
  // an empty one, makes an erased one. One process at a time may open it.
  [[nodiscard]] Result<void> open(const std::string& path, const FlashShape& shape, bool create);

  [[nodiscard]] const std::uint8_t* memory() const override { return memory_.data(); }
  [[nodiscard]] std::uint32_t bytes() const override { return shape_.bytes; }
  [[nodiscard]] std::uint32_t block_bytes() const override { return shape_.block_bytes; }
  [[nodiscard]] std::uint32_t unit_bytes() const override { return shape_.unit_bytes; }
  // erase() and write() return when the data are on the disk. kBackEnd also if another process has
  // changed the file: it is then not written any more.
  [[nodiscard]] Status erase(std::uint32_t offset) override;
  [[nodiscard]] Status write(std::uint32_t offset, const std::uint8_t* bytes,
                             std::uint32_t size) override;

 private:
  [[nodiscard]] Status put(std::uint32_t offset, const std::uint8_t* bytes, std::uint32_t size);

  // Whether the file still has the bytes of memory_.
  [[nodiscard]] bool is_unchanged() const;

  FlashShape shape_;
  int file_ = -1;
  std::vector<std::uint8_t> memory_;
};

}  // namespace espalier
