// Fuzz target: for any bytes in a node's flash, the image check refuses them or returns an image.
// Every byte of that image lies inside, its programs load or are refused, and the boot slots end
// with a status. The first byte tells the form of the rest: an image, an image whose lengths,
// offsets and digest are corrected first, or the whole flash.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "espalier/internal/base/little_endian.h"
#include "firmware/boot/slots.h"
#include "tests/fuzz/expect.h"

namespace espalier::fuzz {
namespace {

constexpr char kBoard[] = "sample-board";

Expectation any_node(bool is_signed) {
  static const std::uint8_t key[kPublicKeyBytes] = {1};
  static const Authority signed_only = ed25519_authority(key);
  return Expectation{.board = kBoard, .authority = is_signed ? &signed_only : &kTakesUnsigned};
}

bool inside(const Image& image, const void* bytes, std::size_t size) {
  const auto* begin = static_cast<const std::uint8_t*>(bytes);
  return begin >= image.bytes && begin + size <= image.bytes + image.size;
}

// Uses a checked image in every way that a node does.
void use(const Image& image) {
  expect(std::string(image.board) == kBoard, "an image is its board's");
  for (std::uint32_t i = 0; i < image.links; ++i) {
    expect(image.link(i).peer != image.node, "no node is its own neighbour");
  }
  static DecodedProgram all[kMaxPrograms];
  bool all_load = true;
  for (std::uint32_t i = 0; i < image.programs; ++i) {
    all_load = image.load(i, all[i]) == Status::kOk && all_load;
    const ProgramRow row = image.program(i);
    expect(row.size > 0 && inside(image, row.bytes, row.size), "a descriptor lies in its image");
    expect(inside(image, row.algorithm, std::strlen(row.algorithm) + 1), "a name ends");
    static DecodedProgram program;
    static const DecodedProgram cleared{};
    if (image.load(i, program) == Status::kOk) {
      expect(program.node == image.node, "a program is its node's");
      expect(check_program(program) == Status::kOk, "what is loaded keeps the rules");
    } else {
      // Padding too.  NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
      expect(std::memcmp(&program, &cleared, sizeof program) == 0, "nothing of a bad one is kept");
    }
  }
  for (std::uint32_t i = 0; i < image.selections && all_load; ++i) {
    NodeSelection selection;
    if (image.load_selection(i, all, selection) != Status::kOk) continue;
    const SelectionRow* row = find_row(selection.table, 1000, true);
    expect(row != nullptr && selection.first_program + row->program < image.programs,
           "a selection chooses a program of its image");
  }
}

void check(const std::vector<std::uint8_t>& bytes) {
  Image image;
  if (check_image(bytes.data(), bytes.size(), any_node(false), image) == Status::kOk) {
    use(image);
    const std::vector<std::uint8_t> exact(image.bytes, image.bytes + image.size);
    expect(check_image(exact.data(), exact.size(), any_node(false), image) == Status::kOk,
           "an image needs no byte behind its end");
  } else {
    expect(image.bytes == nullptr && image.programs == 0, "nothing of a bad one is kept");
  }
  expect(check_image(bytes.data(), bytes.size(), any_node(true), image) != Status::kOk,
         "nobody has signed this");
}

// Makes the image as image.h describes. Keeps the lengths of the tables as far as they fit, and the
// content of the tables.
void put_right(std::vector<std::uint8_t>& image) {
  image.resize(image.size() / 4 * 4);
  if (image.size() < kImageHeaderBytes + kProgramRowBytes + 4 + kSelectionRowBytes + 4) return;
  std::memcpy(image.data(), kImageMagic, sizeof kImageMagic);
  const bool selects = load_u32(&image[8]) == kImageFormatWithSelections;
  const std::size_t selections = selects ? 1 : 0;
  store_le(&image[8], selects ? kImageFormatWithSelections : kImageFormat, 4);
  store_le(&image[12], kImageHeaderBytes, 4);
  store_le(&image[16], image.size(), 4);
  std::memset(&image[52], 0, 12);
  store_le(&image[52], selections, 4);
  std::memcpy(&image[64], kBoard, sizeof kBoard);
  std::memset(&image[64 + sizeof kBoard], 0, kBoardNameBytes - sizeof kBoard);
  if (load_u32(&image[20]) != 1) std::memset(&image[128], 0, kSignatureBytes);
  const std::size_t least = selections * (kSelectionRowBytes + 4);
  std::size_t room =
      (image.size() - kImageHeaderBytes - kProgramRowBytes - 4 - least) / kLinkRowBytes;
  const std::size_t links = std::min<std::size_t>(load_u32(&image[44]) % 8, room);
  const std::size_t index = kImageHeaderBytes + links * kLinkRowBytes;
  room = (image.size() - index - least) / (kProgramRowBytes + 4);
  const std::size_t programs = std::clamp<std::size_t>(load_u32(&image[48]) % 8, 1, room);
  store_le(&image[44], links, 4);
  store_le(&image[48], programs, 4);
  const std::size_t table = index + programs * kProgramRowBytes;
  std::size_t next = table + selections * kSelectionRowBytes;
  const std::size_t pieces = programs + selections;
  for (std::size_t i = 0; i < pieces; ++i) {
    std::uint8_t* row = i < programs ? &image[index + i * kProgramRowBytes] : &image[table];
    const std::size_t left = image.size() - next - 4 * (pieces - i - 1);
    std::size_t length = std::clamp<std::size_t>(load_u32(row + 4) % 4096, 1, left);
    if (i + 1 == pieces) length = left - length % 4;
    store_le(row, next, 4);
    store_le(row + 4, length, 4);
    std::memset(image.data() + next + length, 0, (0 - length) % 4);
    next += (length + 3) / 4 * 4;
    if (i < programs) row[kProgramRowBytes - 1] = 0;
  }
  image_digest(image.data(), image.size(), &image[96]);
}

// Flash that holds the input.
class InputFlash final : public Flash {
 public:
  explicit InputFlash(const std::vector<std::uint8_t>& input) : bytes_(kBlocks * kBlock, 0xff) {
    std::copy_n(input.begin(), std::min(input.size(), bytes_.size()), bytes_.begin());
  }
  const std::uint8_t* memory() const override { return bytes_.data(); }
  std::uint32_t bytes() const override { return kBlocks * kBlock; }
  std::uint32_t block_bytes() const override { return kBlock; }
  std::uint32_t unit_bytes() const override { return 16; }
  Status erase(std::uint32_t offset) override {
    expect(offset % kBlock == 0 && offset < bytes(), "blocks are erased");
    std::fill_n(bytes_.begin() + offset, kBlock, 0xff);
    return Status::kOk;
  }
  Status write(std::uint32_t offset, const std::uint8_t* from, std::uint32_t size) override {
    expect(offset % 16 == 0 && size % 16 == 0 && size <= bytes() - offset, "units are written");
    for (std::uint32_t k = 0; k < size; ++k) {
      expect(bytes_[offset + k] == 0xff, "what is written was erased");
      bytes_[offset + k] = from[k];
    }
    return Status::kOk;
  }

 private:
  static constexpr std::uint32_t kBlock = 256, kBlocks = 16;
  std::vector<std::uint8_t> bytes_;
};

void boot(const std::vector<std::uint8_t>& bytes) {
  InputFlash flash(bytes);
  Slots slots(flash, whole_flash(flash));
  const std::uint32_t counter = slots.counter();
  Image image;
  BootReport report;
  const Status status = slots.boot(any_node(false), {}, image, report);
  expect(slots.counter() >= counter, "the counter never falls");
  if (status == Status::kOk) {
    use(image);
    expect(image.counter >= counter, "what boots is not rolled back");
    const Status confirmed = slots.confirm();
    expect(confirmed == Status::kOk || confirmed == Status::kTooLarge, "what runs is confirmed");
    return;
  }
  expect(status == Status::kNothingToBoot, "that, or it boots");
  for (const SlotReport& slot : report.slots) {
    expect(slot.status != Status::kOk, "a slot that is refused says why");
  }
}

}  // namespace

void run(Input& input) {
  const unsigned kind = input.below(3);
  std::vector<std::uint8_t> rest = input.copied_rest();
  if (kind == 2) {
    boot(rest);
    return;
  }
  if (kind == 1) put_right(rest);
  check(rest);
}

}  // namespace espalier::fuzz
