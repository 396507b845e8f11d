#pragma once
// The image: what a node boots. A header of fixed layout, the link table, the index of programs and
// their descriptors. Freestanding; docs/images.md is the reader's guide.
//
//    0   8  magic "ESPIMAGE"              40   4  security counter
//    8   4  format version (1)            44   4  links: rows of the link table
//   12   4  bytes of the header (192)     48   4  programs: rows of the index
//   16   4  bytes of the whole image      52  12  zeros
//   20   4  signature: 0 none, 1 Ed25519  64  32  board's name, padded with zeros, at least one
//   24   8  topology digest               96  32  SHA-256 of bytes 0 .. 95 and 192 .. end
//   32   4  node                         128  64  signature of bytes 0 .. 127; zeros if none
//   36   4  release: 8 bits major, 8 minor, 16 patch, from the highest
//  192      the link table, a row a physical link: 4 peer (node), 2 device, 2 port of the device
//           the index, a row a program: 4 offset, 4 length, 4 collective (schedule.proto), 4 root,
//           24 algorithm's name, padded with zeros, at least one
//           the descriptors in the index's order, without gaps but zeros up to the next multiple of
//           4, which also end the image
// All numbers little-endian. The signature covers the digest, and so every byte of the image.

#include <cstddef>
#include <cstdint>

#include "espalier/base/limits.h"
#include "espalier/collectives/schedule/program.h"

namespace espalier {

inline constexpr char kImageMagic[8] = {'E', 'S', 'P', 'I', 'M', 'A', 'G', 'E'};
inline constexpr std::uint32_t kImageFormat = 1;
inline constexpr std::uint32_t kImageHeaderBytes = 192;
inline constexpr std::uint32_t kImageDigestAt = 96;
inline constexpr std::uint32_t kImageSignedBytes = 128;
inline constexpr std::uint32_t kLinkRowBytes = 8;
inline constexpr std::uint32_t kProgramRowBytes = 40;
inline constexpr std::uint32_t kBoardNameBytes = 32;
inline constexpr std::uint32_t kAlgorithmNameBytes = 24;
inline constexpr std::uint32_t kDigestBytes = 32;
inline constexpr std::uint32_t kSignatureBytes = 64;
inline constexpr std::uint32_t kPublicKeyBytes = 32;

// Whose images a node takes. `verify`: whether `signature` (64 bytes) is one of the `size` bytes by
// the owner of `key` (32 bytes); null: the board takes images unsigned, so whoever can write its
// flash owns the node.
struct Authority {
  bool (*verify)(const std::uint8_t* signature, const std::uint8_t* bytes, std::size_t size,
                 const std::uint8_t* key) = nullptr;
  const std::uint8_t* public_key = nullptr;
};
inline constexpr Authority kTakesUnsigned{};
// Ed25519 by libsodium (ed25519.cc). The key must outlive what is returned.
[[nodiscard]] Authority ed25519_authority(const std::uint8_t* public_key);

// What an image must say to be this node's.
struct Expectation {
  const char* board = nullptr;  // terminated, below kBoardNameBytes
  std::uint64_t topology_digest = kAnyTopology;
  std::uint32_t node = kAnyNode;
  std::uint32_t counter = 0;  // the stored one: images below it are refused
  // Never null: a board without signatures names kTakesUnsigned.
  const Authority* authority = nullptr;
};

struct LinkRow {
  std::uint32_t peer = 0;  // node at the other end
  std::uint16_t device = 0;
  std::uint16_t port = 0;  // or lane, of the device
};

struct ProgramRow {
  Collective collective = espalier_Collective_BROADCAST;
  std::uint32_t root = 0;
  const char* algorithm = "";           // terminated
  const std::uint8_t* bytes = nullptr;  // its descriptor
  std::uint32_t size = 0;
};

// A checked image. Points into its bytes, which must outlive it unchanged, as they must the
// programs that it loads.
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
  bool is_signed = false;
  bool signature_checked = false;  // against a key; false where the board takes unsigned images

  [[nodiscard]] LinkRow link(std::uint32_t at) const;        // at < links
  [[nodiscard]] ProgramRow program(std::uint32_t at) const;  // at < programs
  // Decodes program `at`: decode_program's errors; kMalformed where the index says something else
  // than the descriptor; kNoSuchPeer where it has a peer that the link table has not. The image's
  // bytes must outlive it.
  [[nodiscard]] Status load(std::uint32_t at, DecodedProgram& out) const;
};

// Checks the image that the first of `size` bytes begin, by nothing but the bytes themselves: no
// parser has run when it returns. Bytes after the image's end are not looked at. In this order, the
// first that fails is returned and `image` is empty:
//   kBadArgument   the expectation has no board's name or no authority
//   kTruncated     there is no whole header
//   kNoImage       the magic
//   kBadVersion    the format version
//   kMalformed     the header's length, or an image shorter than its header
//   kTruncated     the image is longer than the bytes
//   kCorrupt       the SHA-256
//   kBadVersion    a signature of an unknown kind (kMalformed: none, but bytes in its field)
//   kUnsigned      no signature, but a key to check one with
//   kBadSignature  the signature is not by the key's owner
//   kWrongBoard, kWrongTopology, kWrongNode, kRolledBack
//   kTooLarge      more links than kMaxLinks or programs than kMaxPrograms
//   kMalformed     anything the layout above does not allow: a table or descriptor elsewhere than
//                  it must be, an unknown collective, a peer or (device, port) twice, the node
//                  its own peer, kAnyNode or kAnyTopology as what it is for, no program, a byte
//                  that must be 0
// Costs one pass over the bytes and one signature; no memory but the stack.
[[nodiscard]] Status check_image(const std::uint8_t* bytes, std::size_t size,
                                 const Expectation& expectation, Image& image);

// The SHA-256 of an image, of bytes 0 .. 95 and kImageHeaderBytes .. size, as its header has it.
void image_digest(const std::uint8_t* bytes, std::size_t size, std::uint8_t digest[kDigestBytes]);

}  // namespace espalier
