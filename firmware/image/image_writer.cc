#include "firmware/image/image_writer.h"

#include <algorithm>

#include "espalier/internal/base/limits.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier {
namespace {

void put(std::vector<std::uint8_t>& out, std::uint64_t value, unsigned size) {
  out.resize(out.size() + size);
  store_le(out.data() + out.size() - size, value, size);
}

// Appends a text, padded with zeros to `room` bytes.
void put_name(std::vector<std::uint8_t>& out, const std::string& name, std::size_t room) {
  out.insert(out.end(), name.begin(), name.end());
  out.resize(out.size() + room - name.size());
}

bool is_name(const std::string& name, std::size_t room) {
  return !name.empty() && name.size() < room && name.find('\0') == std::string::npos;
}

void put_header(const ImageContent& content, std::uint64_t total, std::vector<std::uint8_t>& out) {
  out.assign(kImageMagic, kImageMagic + sizeof kImageMagic);
  put(out,
      !content.spares.empty()       ? kImageFormatWithSpares
      : !content.selections.empty() ? kImageFormatWithSelections
                                    : kImageFormat,
      4);
  put(out, kImageHeaderBytes, 4);
  put(out, total, 4);
  put(out, 0, 4);  // the signature's kind: none
  put(out, content.topology_digest, 8);
  put(out, content.node, 4);
  put(out, content.release, 4);
  put(out, content.counter, 4);
  put(out, content.links.size(), 4);
  put(out, content.programs.size(), 4);
  put(out, content.selections.size(), 4);
  put(out, content.spares.size(), 4);
  out.resize(kImageBoardAt);
  put_name(out, content.board, kBoardNameBytes);
  out.resize(kImageHeaderBytes);
}

// The room of a descriptor or selection.
std::uint64_t padded(const std::vector<std::uint8_t>& bytes) { return (bytes.size() + 3) / 4 * 4; }

void put_piece(std::vector<std::uint8_t>& out, const std::vector<std::uint8_t>& bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
  out.resize((out.size() + 3) / 4 * 4);
}

// Writes a row of an index, and moves `offset` behind the descriptor.
void put_row(std::vector<std::uint8_t>& out, const ImageContent::Descriptor& program,
             std::uint64_t& offset) {
  put(out, offset, 4);
  put(out, program.bytes.size(), 4);
  put(out, program.collective, 4);
  put(out, program.root, 4);
  put_name(out, program.algorithm, kAlgorithmNameBytes);
  offset += padded(program.bytes);
}

bool is_without_loss(const ImageContent::SpareDescriptors& spare) {
  return spare.loss.kind == Loss::Kind::kNothing;
}

// How many descriptors of the spare are its own: without a loss the programs are the main ones.
std::size_t pieces(const ImageContent::SpareDescriptors& spare) {
  return is_without_loss(spare) ? 1 : spare.programs.size();
}

// Writes the table of spares and its index. `first` and `offset`: of the first descriptor, and of
// the first of the spares.
void put_spares(const ImageContent& content, std::uint64_t first, std::uint64_t offset,
                std::vector<std::uint8_t>& out) {
  for (const ImageContent::SpareDescriptors& spare : content.spares) {
    put(out, static_cast<std::uint32_t>(spare.loss.kind), 4);
    put(out, spare.loss.a, 4);
    put(out, spare.loss.b, 4);
    put(out, spare.topology_digest, 8);
  }
  for (const ImageContent::SpareDescriptors& spare : content.spares) {
    std::uint64_t main = first;
    for (std::size_t i = 0; i < spare.programs.size(); ++i) {
      const bool is_main = i != 0 && is_without_loss(spare);
      put_row(out, spare.programs[i], is_main ? main : offset);
    }
  }
}

void put_digest(std::vector<std::uint8_t>& image) {
  image_digest(image.data(), image.size(), image.data() + kImageDigestAt);
}

}  // namespace

Status write_image(const ImageContent& content, std::vector<std::uint8_t>& image) {
  if (content.links.size() > kMaxLinks || content.programs.size() > kMaxPrograms ||
      content.selections.size() > kMaxSelections || content.spares.size() > kMaxSpares) {
    return Status::kTooLarge;
  }
  if (!content.spares.empty() && !content.selections.empty()) return Status::kBadArgument;
  if (!is_name(content.board, kBoardNameBytes)) return Status::kBadArgument;
  std::uint64_t offset =
      kImageHeaderBytes + content.links.size() * kLinkRowBytes +
      content.programs.size() * kProgramRowBytes + content.selections.size() * kSelectionRowBytes +
      content.spares.size() * (kSpareRowBytes + (1 + content.programs.size()) * kProgramRowBytes);
  std::uint64_t total = offset;
  const std::uint64_t first = offset;
  for (const ImageContent::Descriptor& program : content.programs) {
    if (!is_name(program.algorithm, kAlgorithmNameBytes)) return Status::kBadArgument;
    total += padded(program.bytes);
  }
  for (const ImageContent::SelectionBytes& one : content.selections) total += padded(one.bytes);
  for (const ImageContent::SpareDescriptors& spare : content.spares) {
    if (spare.programs.size() != 1 + content.programs.size()) return Status::kBadArgument;
    for (const ImageContent::Descriptor& program : spare.programs) {
      if (!is_name(program.algorithm, kAlgorithmNameBytes)) return Status::kBadArgument;
    }
    for (std::size_t i = 0; i < pieces(spare); ++i) total += padded(spare.programs[i].bytes);
  }
  if (total > UINT32_MAX) return Status::kTooLarge;
  std::vector<std::uint8_t> out;
  put_header(content, total, out);
  for (const LinkRow& link : content.links) {
    put(out, link.peer, 4);
    put(out, link.device, 2);
    put(out, link.port, 2);
  }
  for (const ImageContent::Descriptor& program : content.programs) {
    put_row(out, program, offset);
  }
  for (const ImageContent::SelectionBytes& one : content.selections) {
    put(out, offset, 4);
    put(out, one.bytes.size(), 4);
    put(out, one.first_program, 4);
    offset += padded(one.bytes);
  }
  put_spares(content, first, offset, out);
  for (const ImageContent::Descriptor& program : content.programs) put_piece(out, program.bytes);
  for (const ImageContent::SelectionBytes& one : content.selections) put_piece(out, one.bytes);
  for (const ImageContent::SpareDescriptors& spare : content.spares) {
    for (std::size_t i = 0; i < pieces(spare); ++i) put_piece(out, spare.programs[i].bytes);
  }
  put_digest(out);
  // Do not write an image that a node would refuse.
  Expectation own{.board = content.board.c_str(), .authority = &kTakesUnsigned};
  Image checked;
  if (check_image(out.data(), out.size(), own, checked) != Status::kOk) {
    return Status::kBadArgument;
  }
  image = std::move(out);
  return Status::kOk;
}

void sign_image(std::vector<std::uint8_t>& image, const Signer& sign) {
  store_le(image.data() + kImageSignatureKindAt, kEd25519, 4);
  put_digest(image);
  const auto signature = sign({image.data(), kImageSignedBytes});
  std::copy(signature.begin(), signature.end(), image.begin() + kImageSignatureAt);
}

}  // namespace espalier
