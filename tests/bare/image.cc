// Runs on the board itself. An image that a host built long ago: intact, and damaged in each way
// that is refused; then in slots whose flash is memory. Its descriptors are decoded and encoded
// again.

#include <cstring>

#include "espalier/internal/base/little_endian.h"
#include "firmware/boot/slots.h"
#include "golden.h"
#include "tests/bare/check.h"
#include "tests/bare/memory_flash.h"

namespace espalier {
namespace {

constexpr char kBoard[] = "mps2-an385";
constexpr std::uint32_t kNode = 2, kRelease = 0x01020003, kCounter = 4, kPrograms = 11;
constexpr std::uint32_t kSize = sizeof golden::node_2;

std::uint8_t spoilt[kSize];
DecodedProgram program;

struct Check {
  Check() {
    expected.board = kBoard;
    expected.node = kNode;
    expected.counter = kCounter;
    expected.authority = &authority;
  }
  Status operator()(const std::uint8_t* bytes, std::uint32_t size) {
    const Status status = check_image(bytes, size, expected, image);
    CHECK((image.bytes == nullptr) == (status != Status::kOk));
    return status;
  }
  // Checks the golden image with one number changed, and with a new digest if `resealed`.
  Status changed(std::uint32_t at, std::uint64_t value, std::uint32_t bytes, bool resealed) {
    std::memcpy(spoilt, golden::node_2, kSize);
    store_le(spoilt + at, value, bytes);
    if (resealed) image_digest(spoilt, kSize, spoilt + kImageDigestAt);
    return (*this)(spoilt, kSize);
  }
  Authority authority = ed25519_authority(golden::key);
  Expectation expected;
  Image image;
};

void takes_the_golden_image() {
  Check check;
  if (!CHECK_EQ(check(golden::node_2, kSize), Status::kOk)) return;
  const Image& image = check.image;
  CHECK(image.is_signed && image.signature_checked);
  CHECK_EQ(image.release, kRelease);
  CHECK_EQ(image.counter, kCounter);
  CHECK_EQ(image.links, 3u);
  CHECK_EQ(image.link(2).peer, 3u);
  CHECK_EQ(image.programs, kPrograms);
  for (std::uint32_t i = 0; i < image.programs; ++i) {
    const ProgramRow row = image.program(i);
    if (!CHECK_EQ(image.load(i, program), Status::kOk)) continue;
    CHECK_EQ(program.node, kNode);
    CHECK_EQ(program.collective, static_cast<Collective>(i + 1));
    std::size_t written = 0;
    CHECK_EQ(encode_program(program, spoilt, sizeof spoilt, written), Status::kOk);
    CHECK(written == row.size && std::memcmp(spoilt, row.bytes, written) == 0);
  }
}

void refuses_each_in_its_own_way() {
  Check check;
  for (std::uint32_t size = 0; size < kSize; size += 61) {
    CHECK_EQ(check(golden::node_2, size), Status::kTruncated);
  }
  CHECK_EQ(check.changed(0, 'e', 1, false), Status::kNoImage);
  CHECK_EQ(check.changed(8, kImageFormatWithSpares + 1, 4, false), Status::kBadVersion);
  CHECK_EQ(check.changed(12, kImageHeaderBytes + 4, 4, false), Status::kMalformed);
  for (std::uint32_t i = kImageHeaderBytes; i < kSize; i += 97) {
    CHECK_EQ(check.changed(i, golden::node_2[i] ^ 4u, 1, false), Status::kCorrupt);
  }
  CHECK_EQ(check.changed(130, golden::node_2[130] ^ 1u, 1, false), Status::kBadSignature);
  CHECK_EQ(check.changed(40, kCounter + 1, 4, true), Status::kBadSignature);
  std::memcpy(spoilt, golden::node_2, kSize);
  store_le(spoilt + 20, 0, 4);
  std::memset(spoilt + kImageSignedBytes, 0, kSignatureBytes);
  image_digest(spoilt, kSize, spoilt + kImageDigestAt);
  CHECK_EQ(check(spoilt, kSize), Status::kUnsigned);
  check.expected.authority = &kTakesUnsigned;
  CHECK_EQ(check(spoilt, kSize), Status::kOk);
  CHECK_EQ(check.changed(44, kMaxLinks + 1, 4, true), Status::kTooLarge);
  CHECK_EQ(check.changed(48, kMaxPrograms + 1, 4, true), Status::kTooLarge);
  CHECK_EQ(check.changed(48, kPrograms - 1, 4, true), Status::kMalformed);
  CHECK_EQ(check.changed(40, kCounter - 1, 4, true), Status::kRolledBack);
  CHECK_EQ(check.changed(32, kNode + 1, 4, true), Status::kWrongNode);
  CHECK_EQ(check.changed(64, 'M', 1, true), Status::kWrongBoard);
  check.expected.topology_digest = 77;
  CHECK_EQ(check(golden::node_2, kSize), Status::kWrongTopology);
  check.expected.authority = nullptr;
  CHECK_EQ(check(golden::node_2, kSize), Status::kBadArgument);
}

Status loads(void*, const Image& image) {
  for (std::uint32_t i = 0; i < image.programs; ++i) {
    const Status status = image.load(i, program);
    if (status != Status::kOk) return status;
  }
  return Status::kOk;
}

Status install(Slots& slots, const Expectation& expected, const std::uint8_t* bytes) {
  Status status = slots.begin(kSize);
  for (std::uint32_t i = 0; i < kSize && status == Status::kOk; i += 1000) {
    status = slots.append(bytes + i, kSize - i < 1000 ? kSize - i : 1000);
  }
  return status == Status::kOk ? slots.finish(expected, {loads, nullptr}) : status;
}

// Boots a first image, confirmed; an update that is never confirmed, and falls back; and an update
// that is confirmed.
void boots_from_its_slots() {
  Check check;
  check.expected.counter = 0;
  static MemoryFlash flash;
  const SlotPlan plan = whole_flash(flash);
  BootReport report;
  const auto boot = [&](Slots& slots) {
    return slots.boot(check.expected, {loads, nullptr}, check.image, report);
  };
  {
    Slots slots(flash, plan);
    CHECK_EQ(boot(slots), Status::kNothingToBoot);
    CHECK_EQ(report.slots[0].status, Status::kNoImage);
    CHECK_EQ(install(slots, check.expected, golden::node_2), Status::kOk);
  }
  {
    Slots slots(flash, plan);
    CHECK(boot(slots) == Status::kOk && report.slot == 0 && report.trial);
    CHECK_EQ(slots.begin(kSize), Status::kUnconfirmed);
    CHECK_EQ(slots.confirm(), Status::kOk);
    CHECK_EQ(slots.counter(), kCounter);
    CHECK_EQ(check.changed(50, 1, 1, false), Status::kCorrupt);
    CHECK_EQ(install(slots, check.expected, spoilt), Status::kCorrupt);
    CHECK_EQ(install(slots, check.expected, golden::node_2), Status::kOk);
  }
  {
    Slots slots(flash, plan);
    CHECK(boot(slots) == Status::kOk && report.slot == 1 && report.trial);
  }
  {
    Slots slots(flash, plan);
    CHECK(boot(slots) == Status::kOk && report.slot == 0 && !report.trial);
    CHECK_EQ(report.slots[1].status, Status::kUnconfirmed);
    CHECK_EQ(install(slots, check.expected, golden::node_2), Status::kOk);
  }
  Slots slots(flash, plan);
  CHECK(boot(slots) == Status::kOk && report.slot == 1 && report.trial);
  CHECK_EQ(slots.confirm(), Status::kOk);
  CHECK(boot(slots) == Status::kOk && report.slot == 1 && !report.trial);
}

}  // namespace
}  // namespace espalier

int main() {
  espalier::takes_the_golden_image();
  espalier::refuses_each_in_its_own_way();
  espalier::boots_from_its_slots();
  return espalier::checks::finish();
}
