#include "firmware/image/image.h"

#include <cstring>

#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/limits.h"
#include "espalier/internal/base/little_endian.h"
#include "firmware/image/sha256.h"

namespace espalier {
namespace {

// Offsets of the columns of a row of the link table; the peer comes first.
constexpr std::uint32_t kDeviceAt = 4;
constexpr std::uint32_t kPortAt = 6;
// Offsets of the columns of a row of the index; the descriptor's offset comes first.
constexpr std::uint32_t kLengthAt = 4;
constexpr std::uint32_t kCollectiveAt = 8;
constexpr std::uint32_t kRootAt = 12;
constexpr std::uint32_t kAlgorithmAt = 16;
#if ESPALIER_MAX_SELECTIONS > 0
// The place in a row of the table of selections, after the offset and the length.
constexpr std::uint32_t kFirstProgramAt = 8;
#endif
static_assert(sizeof(Program::algorithm) == kAlgorithmNameBytes);
static_assert(kDigestBytes == kSha256Bytes);

bool all_zero(const std::uint8_t* bytes, std::size_t size) {
  std::uint8_t any = 0;
  for (std::size_t i = 0; i < size; ++i) any = static_cast<std::uint8_t>(any | bytes[i]);
  return any == 0;
}

// Whether the field has a text of 1 .. room - 1 characters, then zeros.
bool is_name(const std::uint8_t* field, std::uint32_t room) {
  std::uint32_t length = 0;
  while (length < room && field[length] != 0) ++length;
  return length > 0 && length < room && all_zero(field + length, room - length);
}

bool names(const std::uint8_t* field, const char* name, std::uint32_t room) {
  for (std::uint32_t i = 0; i < room; ++i) {
    if (static_cast<char>(field[i]) != name[i]) return false;
    if (name[i] == '\0') return true;
  }
  return false;
}

Status check_header(const std::uint8_t* bytes, std::size_t size) {
  if (bytes == nullptr || size < kImageHeaderBytes) return Status::kTruncated;
  if (std::memcmp(bytes, kImageMagic, sizeof kImageMagic) != 0) return Status::kNoImage;
  const std::uint32_t format = load_u32(bytes + kImageFormatAt);
  const bool known = format == kImageFormat ||
                     (kMaxSelections > 0 && format == kImageFormatWithSelections) ||
                     (ESPALIER_SPARES != 0 && format == kImageFormatWithSpares);
  if (!known) return Status::kBadVersion;
  const std::uint32_t total = load_u32(bytes + kImageSizeAt);
  if (load_u32(bytes + kImageHeaderSizeAt) != kImageHeaderBytes || total < kImageHeaderBytes) {
    return Status::kMalformed;
  }
  return total > size ? Status::kTruncated : Status::kOk;
}

Status check_digest(const Image& image) {
  std::uint8_t digest[kDigestBytes];
  image_digest(image.bytes, image.size, digest);
  const bool same = std::memcmp(digest, image.bytes + kImageDigestAt, sizeof digest) == 0;
  return same ? Status::kOk : Status::kCorrupt;
}

Status check_signature(const Authority& authority, Image& image) {
  const std::uint32_t kind = load_u32(image.bytes + kImageSignatureKindAt);
  const std::uint8_t* signature = image.bytes + kImageSignatureAt;
  if (kind > kEd25519) return Status::kBadVersion;
  // The digest does not cover these bytes, so no other check would see them.
  if (kind == 0 && !all_zero(signature, kSignatureBytes)) return Status::kMalformed;
  image.is_signed = kind == kEd25519;
  if (authority.verify == nullptr) return Status::kOk;
  if (!image.is_signed) return Status::kUnsigned;
  if (!authority.verify(signature, image.bytes, kImageSignedBytes, authority.public_key)) {
    return Status::kBadSignature;
  }
  image.signature_checked = true;
  return Status::kOk;
}

Status check_identity(const Expectation& expectation, const Image& image) {
  if (!names(image.bytes + kImageBoardAt, expectation.board, kBoardNameBytes)) {
    return Status::kWrongBoard;
  }
  if (expectation.topology_digest != kAnyTopology &&
      expectation.topology_digest != image.topology_digest) {
    return Status::kWrongTopology;
  }
  if (expectation.node != kAnyNode && expectation.node != image.node) return Status::kWrongNode;
  return image.counter < expectation.counter ? Status::kRolledBack : Status::kOk;
}

bool links_fit(const Image& image) {
  for (std::uint32_t i = 0; i < image.links; ++i) {
    const LinkRow row = image.link(i);
    if (row.peer == image.node) return false;
    for (std::uint32_t other = 0; other < i; ++other) {
      const LinkRow before = image.link(other);
      if (before.peer == row.peer) return false;
      if (before.device == row.device && before.port == row.port) return false;
    }
  }
  return true;
}

#if ESPALIER_MAX_SELECTIONS > 0
std::uint32_t selections_of(const Image& image) { return image.selections; }
#else
std::uint32_t selections_of(const Image&) { return 0; }
#endif

#if ESPALIER_SPARES
std::uint32_t spares_of(const Image& image) { return image.spares; }

// The first row of the table of spares.
const std::uint8_t* spare_rows(const Image& image) {
  return image.bytes + kImageHeaderBytes + image.links * kLinkRowBytes +
         image.programs * kProgramRowBytes + selections_of(image) * kSelectionRowBytes;
}

// Whether the spares are for other losses than this node's, each once, in order.
bool spares_fit(const Image& image) {
  Loss before;
  for (std::uint32_t i = 0; i < image.spares; ++i) {
    const SpareRow row = image.spare(i);
    const Loss& loss = row.loss;
    const bool link = loss.kind == Loss::Kind::kLink;
    if (i == 0 && load_u32(spare_rows(image)) == 0) {  // without a loss
      if (!all_zero(spare_rows(image) + 4, 8) || row.topology_digest != image.topology_digest) {
        return false;
      }
      continue;
    }
    if (!link && loss.kind != Loss::Kind::kNode) return false;
    if (link ? loss.a >= loss.b || loss.b == kAnyNode : loss.b != 0 || loss.a == image.node) {
      return false;
    }
    const bool later = loss.kind != before.kind ? loss.kind > before.kind
                       : loss.a != before.a     ? loss.a > before.a
                                                : loss.b > before.b;
    if (!later || loss.a == kAnyNode || row.topology_digest == kAnyTopology) return false;
    before = loss;
  }
  return true;
}
#else
std::uint32_t spares_of(const Image&) { return 0; }
bool spares_fit(const Image&) { return true; }
#endif

// Whether the bytes that a row names begin at `next`; then `next` is moved to their end, padded.
bool piece_fits(const Image& image, const std::uint8_t* row, std::uint32_t& next,
                bool may_be_empty = false) {
  const std::uint32_t length = load_u32(row + kLengthAt);
  if (load_u32(row) != next || length > image.size - next) return false;
  if (length == 0) return may_be_empty;
  const std::uint32_t padding = (0 - length) % 4;
  if (padding > image.size - next - length) return false;
  if (!all_zero(image.bytes + next + length, padding)) return false;
  next += length + padding;
  return true;
}

// Whether a row of an index has a collective and a name.
bool row_fits(const std::uint8_t* row) {
  const std::uint32_t collective = load_u32(row + kCollectiveAt);
  return collective != 0 && collective <= Collective::kBarrier &&
         is_name(row + kAlgorithmAt, kAlgorithmNameBytes);
}

// Whether the row is that of a program.
bool same_row(const Image& image, const std::uint8_t* row, std::uint32_t program) {
  const std::uint8_t* const main =
      image.bytes + kImageHeaderBytes + image.links * kLinkRowBytes + program * kProgramRowBytes;
  return std::memcmp(row, main, kProgramRowBytes) == 0;
}

// Whether each descriptor and selection begins where the one before ended, and the last ends the
// image.
bool programs_fit(const Image& image) {
  const std::uint8_t* row = image.bytes + kImageHeaderBytes + image.links * kLinkRowBytes;
  const std::uint32_t of_spares =
      spares_of(image) * (kSpareRowBytes + (1 + image.programs) * kProgramRowBytes);
  std::uint32_t next = kImageHeaderBytes + image.links * kLinkRowBytes +
                       image.programs * kProgramRowBytes +
                       selections_of(image) * kSelectionRowBytes + of_spares;
  if (next > image.size) return false;
  for (std::uint32_t i = 0; i < image.programs; ++i, row += kProgramRowBytes) {
    if (!row_fits(row) || !piece_fits(image, row, next)) return false;
  }
  for (std::uint32_t i = 0; i < selections_of(image); ++i, row += kSelectionRowBytes) {
    if (!piece_fits(image, row, next)) return false;
  }
  const std::uint8_t* const spare = row;
  row += spares_of(image) * kSpareRowBytes;
  for (std::uint32_t i = 0; i < spares_of(image) * (1 + image.programs); ++i) {
    const bool agreement = i % (1 + image.programs) == 0;
    // Without a loss the programs are the main ones.
    const bool is_main = !agreement && i < 1 + image.programs && load_u32(spare) == 0;
    const bool fits = is_main ? same_row(image, row, i - 1)
                              : row_fits(row) && piece_fits(image, row, next, !agreement);
    if (!fits) return false;
    row += kProgramRowBytes;
  }
  return next == image.size;
}

// Whether the numbers of selections and spares are right for the format, and the bytes after them
// are zeros.
bool counts_fit(const Image& image) {
  const std::uint32_t format = load_u32(image.bytes + kImageFormatAt);
  if constexpr (ESPALIER_SPARES == 0) {
    constexpr std::uint32_t kZerosAt = kImageSelectionsAt + (kMaxSelections > 0 ? 4 : 0);
    return (format == kImageFormatWithSelections) == (selections_of(image) != 0) &&
           all_zero(image.bytes + kZerosAt, kImageBoardAt - kZerosAt);
  }
  const auto has = [format](std::uint32_t own, std::uint32_t at, std::uint32_t count,
                            const std::uint8_t* bytes) {
    return format == own ? count != 0 : all_zero(bytes + at, 4);
  };
  return has(kImageFormatWithSelections, kImageSelectionsAt, selections_of(image), image.bytes) &&
         has(kImageFormatWithSpares, kImageSparesAt, spares_of(image), image.bytes) &&
         all_zero(image.bytes + kImageSparesAt + 4, kImageBoardAt - kImageSparesAt - 4);
}

Status check_tables(const Image& image) {
  if (image.links > kMaxLinks || image.programs > kMaxPrograms ||
      selections_of(image) > kMaxSelections || spares_of(image) > kMaxSpares) {
    return Status::kTooLarge;
  }
  // For load() these values would mean programs of any node, and of any topology.
  const bool is_for_one = image.node != kAnyNode && image.topology_digest != kAnyTopology;
  const bool fits = is_for_one && image.programs > 0 && counts_fit(image) &&
                    is_name(image.bytes + kImageBoardAt, kBoardNameBytes) && programs_fit(image) &&
                    links_fit(image) && spares_fit(image);
  return fits ? Status::kOk : Status::kMalformed;
}

Status check_into(const std::uint8_t* bytes, std::size_t size, const Expectation& expectation,
                  Image& image) {
  if (expectation.board == nullptr || expectation.authority == nullptr) {
    return Status::kBadArgument;
  }
  Status status = check_header(bytes, size);
  if (status != Status::kOk) return status;
  image.bytes = bytes;
  image.size = load_u32(bytes + kImageSizeAt);
  image.board = reinterpret_cast<const char*>(bytes + kImageBoardAt);
  image.topology_digest = load_u64(bytes + kImageTopologyAt);
  image.node = load_u32(bytes + kImageNodeAt);
  image.release = load_u32(bytes + kImageReleaseAt);
  image.counter = load_u32(bytes + kImageCounterAt);
  image.links = load_u32(bytes + kImageLinksAt);
  image.programs = load_u32(bytes + kImageProgramsAt);
#if ESPALIER_MAX_SELECTIONS > 0
  image.selections = load_u32(bytes + kImageSelectionsAt);
#endif
#if ESPALIER_SPARES
  image.spares = load_u32(bytes + kImageSparesAt);
#endif
  status = check_digest(image);
  if (status == Status::kOk) status = check_signature(*expectation.authority, image);
  if (status == Status::kOk) status = check_identity(expectation, image);
  if (status == Status::kOk) status = check_tables(image);
  return status;
}

ProgramRow row_at(const std::uint8_t* bytes, const std::uint8_t* row) {
  return {static_cast<Collective>(load_u32(row + kCollectiveAt)), load_u32(row + kRootAt),
          reinterpret_cast<const char*>(row + kAlgorithmAt), bytes + load_u32(row),
          load_u32(row + kLengthAt)};
}

// Whether the program is the one that its row names.
bool agrees(const ProgramRow& row, const Program& program) {
  const auto* algorithm = reinterpret_cast<const std::uint8_t*>(row.algorithm);
  return program.collective == row.collective && program.root == row.root &&
         names(algorithm, program.algorithm, kAlgorithmNameBytes);
}

bool has_peer(const Image& image, std::uint32_t peer) {
  for (std::uint32_t i = 0; i < image.links; ++i) {
    if (image.link(i).peer == peer) return true;
  }
  return false;
}

}  // namespace

void image_digest(const std::uint8_t* bytes, std::size_t size, std::uint8_t digest[kDigestBytes]) {
  sha256(bytes, kImageDigestAt, bytes + kImageHeaderBytes, size - kImageHeaderBytes, digest);
}

Status check_image(const std::uint8_t* bytes, std::size_t size, const Expectation& expectation,
                   Image& image) {
  image = Image();
  const Status status = check_into(bytes, size, expectation, image);
  if (status != Status::kOk) image = Image();
  return status;
}

LinkRow Image::link(std::uint32_t index) const {
  ESPALIER_ASSERT(index < links);
  const std::uint8_t* row = bytes + kImageHeaderBytes + index * kLinkRowBytes;
  return {load_u32(row), load_u16(row + kDeviceAt), load_u16(row + kPortAt)};
}

ProgramRow Image::program(std::uint32_t index) const {
  ESPALIER_ASSERT(index < programs);
  return row_at(bytes,
                bytes + kImageHeaderBytes + links * kLinkRowBytes + index * kProgramRowBytes);
}

Status Image::load(std::uint32_t index, DecodedProgram& out) const {
  const ProgramRow row = program(index);
  Status status = decode_program(row.bytes, row.size, topology_digest, node, out);
  if (status != Status::kOk) return status;
  if (!agrees(row, out)) status = Status::kMalformed;
  for (std::uint32_t link = 0; status == Status::kOk && link < links_count(out); ++link) {
    if (!has_peer(*this, peer_of(out, link))) status = Status::kNoSuchPeer;
  }
  if (status != Status::kOk) out.clear();
  return status;
}

#if ESPALIER_SPARES
SpareRow Image::spare(std::uint32_t index) const {
  ESPALIER_ASSERT(index < spares);
  const std::uint8_t* row = spare_rows(*this) + index * kSpareRowBytes;
  const std::uint32_t kind = load_u32(row);
  SpareRow spare{{}, load_u64(row + 12)};
  if (kind <= static_cast<std::uint32_t>(Loss::Kind::kNode)) {
    spare.loss = {static_cast<Loss::Kind>(kind), load_u32(row + 4), load_u32(row + 8)};
  }
  return spare;
}

std::uint32_t Image::find_spare(const Loss& loss) const {
  std::uint32_t index = 0;
  while (index < spares && !(spare(index).loss == loss)) ++index;
  return index;
}

ProgramRow Image::spare_program(std::uint32_t index, std::uint32_t which) const {
  ESPALIER_ASSERT(index < spares && which <= programs);
  return row_at(bytes, spare_rows(*this) + spares * kSpareRowBytes +
                           (index * (1 + programs) + which) * kProgramRowBytes);
}

Status Image::load_spare(std::uint32_t index, std::uint32_t which, DecodedProgram& out) const {
  const SpareRow spare_row = spare(index);
  const Loss& loss = spare_row.loss;
  const ProgramRow row = spare_program(index, which);
  const Collective collective =
      which == 0 ? Collective(Collective::kAllreduce) : program(which - 1).collective;
  out.clear();
  if (row.collective != collective) return Status::kMalformed;
  if (row.size == 0) return Status::kUnsupported;
  Status status =
      decode_program(row.bytes, row.size, spare_row.topology_digest, loss.dense(node), out);
  if (status != Status::kOk) return status;
  if (!agrees(row, out)) status = Status::kMalformed;
  for (std::uint32_t link = 0; status == Status::kOk && link < links_count(out); ++link) {
    const std::uint32_t peer = loss.real(peer_of(out, link));
    if (loss.closes(node, peer) || !has_peer(*this, peer)) status = Status::kNoSuchPeer;
  }
  if (status != Status::kOk) out.clear();
  return status;
}
#endif

#if ESPALIER_MAX_SELECTIONS > 0
Status Image::read_selection(std::uint32_t index, NodeSelection& out) const {
  ESPALIER_ASSERT(index < selections);
  const std::uint8_t* row = bytes + kImageHeaderBytes + links * kLinkRowBytes +
                            programs * kProgramRowBytes + index * kSelectionRowBytes;
  Status status =
      decode_selection(bytes + load_u32(row), load_u32(row + kLengthAt), topology_digest, out);
  out.first_program = load_u32(row + kFirstProgramAt);
  if (status == Status::kOk &&
      (out.first_program > programs || out.table.schedules_count > programs - out.first_program)) {
    status = Status::kMalformed;
  }
  return status;
}
#endif

}  // namespace espalier
