#pragma once
// The image that a node boots: a header of fixed layout, the link table, the index of programs, and
// their descriptors. Freestanding; see also docs/images.md.
//
//    0   8  magic "ESPIMAGE"              40   4  security counter
//    8   4  format version (1, 2 or 3)    44   4  links: rows of the link table
//   12   4  bytes of the header (192)     48   4  programs: rows of the index
//   16   4  bytes of the whole image      52   4  selections: rows of their table; format 1: 0
//   20   4  signature: 0 none, 1 Ed25519  56   4  spares: rows of their table; formats 1, 2: 0
//                                         60   4  zeros
//   24   8  topology digest               64  32  board's name, padded with zeros, at least one
//   32   4  node                          96  32  SHA-256 of bytes 0 .. 95 and 192 .. end
//   36   4  release: 8 bits major, 8     128  64  signature of bytes 0 .. 127; zeros if none
//           minor, 16 patch, from the highest
//
// From byte 192 onward, with the sizes of columns in bytes:
//  * The link table, one row per physical link: 4 peer (node), 2 device, 2 port of the device.
//  * The index, one row per program: 4 offset, 4 length, 4 collective (schedule.proto), 4 root,
//    24 algorithm's name, padded with zeros, at least one.
//  * Format 2: the table of selections, one row per selection: 4 offset, 4 length, 4 first program.
//    The selection's schedules are the first program and those after it, in order.
//  * Format 3: the table of spares (docs/spares.md), one row per loss: 4 kind (1 link, 2 node), 4
//    the link's lower end or the node, 4 the link's higher end or 0, 8 digest of the topology that
//    is left. Then an index as above with 1 + programs rows per spare, in the same order: the
//    agreement, and what replaces each program. An empty one (length 0): its root is lost. The
//    first may be for no loss (kind 0, zeros, the image's topology): an agreement of all nodes, and
//    the rows of the programs themselves.
//  * The descriptors in the index's order, then the selections (message Selection), then the
//    descriptors of the spares, each padded with zeros to a multiple of 4, without gaps.
//
// An image without selections and spares has format 1. Nodes that are built without selections
// (ESPALIER_MAX_SELECTIONS) do not accept format 2, those without spares (ESPALIER_SPARES) not
// format 3. An image of format 3 has no selections.
//
// All numbers are little-endian. The signature covers the digest and therefore every byte of the
// image.

#include <cstddef>
#include <cstdint>

#include "base/loss.h"
#include "collectives/schedule/node_programs.h"

namespace espalier {

inline constexpr char kImageMagic[8] = {'E', 'S', 'P', 'I', 'M', 'A', 'G', 'E'};
inline constexpr std::uint32_t kImageFormat = 1;
inline constexpr std::uint32_t kImageFormatWithSelections = 2;
inline constexpr std::uint32_t kImageFormatWithSpares = 3;
inline constexpr std::uint32_t kImageHeaderBytes = 192;
// Offsets of the header's fields.
inline constexpr std::uint32_t kImageFormatAt = 8;
inline constexpr std::uint32_t kImageHeaderSizeAt = 12;
inline constexpr std::uint32_t kImageSizeAt = 16;
inline constexpr std::uint32_t kImageSignatureKindAt = 20;
inline constexpr std::uint32_t kImageTopologyAt = 24;
inline constexpr std::uint32_t kImageNodeAt = 32;
inline constexpr std::uint32_t kImageReleaseAt = 36;
inline constexpr std::uint32_t kImageCounterAt = 40;
inline constexpr std::uint32_t kImageLinksAt = 44;
inline constexpr std::uint32_t kImageProgramsAt = 48;
inline constexpr std::uint32_t kImageSelectionsAt = 52;
inline constexpr std::uint32_t kImageSparesAt = 56;
inline constexpr std::uint32_t kImageBoardAt = 64;
inline constexpr std::uint32_t kImageDigestAt = 96;
inline constexpr std::uint32_t kImageSignatureAt = 128;
inline constexpr std::uint32_t kImageSignedBytes = 128;
inline constexpr std::uint32_t kLinkRowBytes = 8;
inline constexpr std::uint32_t kProgramRowBytes = 40;
inline constexpr std::uint32_t kSelectionRowBytes = 12;
inline constexpr std::uint32_t kSpareRowBytes = 20;
inline constexpr std::uint32_t kMaxSpares = 4096;  // of an image
inline constexpr std::uint32_t kBoardNameBytes = 32;
inline constexpr std::uint32_t kAlgorithmNameBytes = 24;
inline constexpr std::uint32_t kDigestBytes = 32;
inline constexpr std::uint32_t kSignatureBytes = 64;
inline constexpr std::uint32_t kPublicKeyBytes = 32;
inline constexpr std::uint32_t kEd25519 = 1;  // a signature's kind; 0: none

// The signer whose images a node accepts.
struct Authority {
  // Whether `signature` (64 bytes) is a signature of the `size` bytes by the owner of the public
  // key `key` (32 bytes). Null: the board accepts unsigned images, so anyone who can write its
  // flash controls the node.
  bool (*verify)(const std::uint8_t* signature, const std::uint8_t* bytes, std::size_t size,
                 const std::uint8_t* key) = nullptr;
  const std::uint8_t* public_key = nullptr;
};
inline constexpr Authority kTakesUnsigned{};
// Returns an authority that verifies Ed25519 signatures with libsodium (ed25519.cc). The key must
// outlive it.
[[nodiscard]] Authority ed25519_authority(const std::uint8_t* public_key);

// The values that an image must have to be accepted.
struct Expectation {
  const char* board = nullptr;  // terminated, below kBoardNameBytes
  std::uint64_t topology_digest = kAnyTopology;
  std::uint32_t node = kAnyNode;
  std::uint32_t counter = 0;  // the stored counter: images with a lower one are refused
  // Must not be null: a board without signatures uses kTakesUnsigned.
  const Authority* authority = nullptr;
};

struct LinkRow {
  std::uint32_t peer = 0;  // node at the other end
  std::uint16_t device = 0;
  std::uint16_t port = 0;  // port or lane of the device
};

struct ProgramRow {
  Collective collective = Collective::kBroadcast;
  std::uint32_t root = 0;
  const char* algorithm = "";           // terminated
  const std::uint8_t* bytes = nullptr;  // its descriptor
  std::uint32_t size = 0;
};

#if ESPALIER_SPARES
// A row of the table of spares.
struct SpareRow {
  Loss loss;
  std::uint64_t topology_digest = 0;  // of what is left
};
#endif

// A checked image. It points into its bytes, which must outlive it and the programs that it loads,
// unchanged.
struct Image {
  const std::uint8_t* bytes = nullptr;
  std::uint32_t size = 0;
  const char* board = "";  // terminated
  std::uint64_t topology_digest = 0;
  std::uint32_t node = 0;
  std::uint32_t release = 0;
  std::uint32_t counter = 0;
  std::uint32_t links = 0;
  std::uint32_t programs = 0;
#if ESPALIER_MAX_SELECTIONS > 0
  std::uint32_t selections = 0;
#endif
#if ESPALIER_SPARES
  std::uint32_t spares = 0;
#endif
  bool is_signed = false;
  bool signature_checked = false;  // against a key; false where the board takes unsigned images

  [[nodiscard]] LinkRow link(std::uint32_t index) const;        // index < links
  [[nodiscard]] ProgramRow program(std::uint32_t index) const;  // index < programs
  // Decodes program `index`. The image's bytes must outlive the program. Errors: those of
  // decode_program(); kMalformed if the index and the descriptor differ; kNoSuchPeer if a peer of
  // the program is not in the link table.
  [[nodiscard]] Status load(std::uint32_t index, DecodedProgram& out) const;
#if ESPALIER_SPARES
  [[nodiscard]] SpareRow spare(std::uint32_t index) const;  // index < spares
  // The spare for this loss; `spares` if there is none.
  [[nodiscard]] std::uint32_t find_spare(const Loss& loss) const;
  // The agreement of spare `index` (which = 0), or what replaces program which - 1 <= programs - 1.
  [[nodiscard]] ProgramRow spare_program(std::uint32_t index, std::uint32_t which) const;
  // Decodes it. Its nodes have the numbers of Loss::dense(). Errors: those of load(), kNoSuchPeer
  // also for a peer to which the loss left no link; kUnsupported: the program's root is lost.
  [[nodiscard]] Status load_spare(std::uint32_t index, std::uint32_t which,
                                  DecodedProgram& out) const;
#endif
#if ESPALIER_MAX_SELECTIONS > 0
  // Decodes selection `index` < selections, and checks it with its programs, which are elements of
  // `all`: the node's programs, all loaded. Errors: those of decode_selection() and
  // check_selected(); kMalformed if the image has fewer programs than the selection.
  template <typename P>
  [[nodiscard]] Status load_selection(std::uint32_t index, const P* all, NodeSelection& out) const {
    Status status = read_selection(index, out);
    for (std::uint32_t i = 0; status == Status::kOk && i < out.table.schedules_count; ++i) {
      status = check_selected(out, i, all[out.first_program + i]);
    }
    return status;
  }

 private:
  [[nodiscard]] Status read_selection(std::uint32_t index, NodeSelection& out) const;
#endif
};

// Checks the image that begins with the first of the `size` bytes, without running a parser.
// Ignores bytes after the image's end. Makes the following checks in this order. Returns the status
// of the first that fails, and `image` is then empty:
//   kBadArgument   the expectation has no board's name or no authority
//   kTruncated     there is no whole header
//   kNoImage       the magic
//   kBadVersion    the format version
//   kMalformed     the header's length, or an image that is shorter than its header
//   kTruncated     the image is longer than the bytes
//   kCorrupt       the SHA-256
//   kBadVersion    a signature of an unknown kind (kMalformed: none, but bytes in its field)
//   kUnsigned      no signature, although the authority has a key
//   kBadSignature  the signature is not by the key's owner
//   kWrongBoard, kWrongTopology, kWrongNode, kRolledBack   the expectation differs
//   kTooLarge      more links than kMaxLinks, programs than kMaxPrograms, selections than
//                  kMaxSelections or spares than kMaxSpares
//   kMalformed     any other violation of the layout above; among others:
//                   * a table or descriptor at a wrong position, or no program
//                   * an unknown collective
//                   * a peer or (device, port) that occurs twice, or the node as its own peer
//                   * spares out of order, twice, or for the loss of this node
//                   * kAnyNode or kAnyTopology as the image's own value
//                   * a byte that must be 0 and is not
// Takes one pass over the bytes and one signature check. Uses no memory except the stack.
[[nodiscard]] Status check_image(const std::uint8_t* bytes, std::size_t size,
                                 const Expectation& expectation, Image& image);

// Computes the digest that an image's header contains: SHA-256 of bytes 0 .. 95 and of bytes
// kImageHeaderBytes .. size - 1.
void image_digest(const std::uint8_t* bytes, std::size_t size, std::uint8_t digest[kDigestBytes]);

}  // namespace espalier
