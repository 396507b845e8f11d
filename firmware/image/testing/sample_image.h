#pragma once
// For tests: images of one node of a small cluster, and a key that signs them.

#include <sodium/crypto_sign_ed25519.h>

#include <vector>

#include "collectives/schedule/selection_writer.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "firmware/image/image_writer.h"

namespace espalier {

inline constexpr char kSampleBoard[] = "sample-board";
inline constexpr std::uint64_t kSampleTopology = 0x0123456789abcdef;
inline constexpr std::uint32_t kSampleNode = 2;

// A key pair whose seed repeats one byte.
struct SampleKey {
  explicit SampleKey(std::uint8_t seed) {
    std::uint8_t seeds[crypto_sign_ed25519_SEEDBYTES];
    for (std::uint8_t& byte : seeds) byte = seed;
    (void)crypto_sign_ed25519_seed_keypair(public_key, secret_key, seeds);
  }
  [[nodiscard]] Signer signer() const {
    return [this](std::span<const std::uint8_t> bytes) {
      std::array<std::uint8_t, kSignatureBytes> signature;
      (void)crypto_sign_ed25519_detached(signature.data(), nullptr, bytes.data(), bytes.size(),
                                         secret_key);
      return signature;
    };
  }
  std::uint8_t public_key[kPublicKeyBytes];
  std::uint8_t secret_key[crypto_sign_ed25519_SECRETKEYBYTES];
};

// Returns kSampleNode's descriptor of one algorithm in a cluster of 5 ranks, or other ones.
inline ImageContent::Descriptor sample_descriptor(Collective collective, const char* algorithm,
                                                  std::uint32_t ranks = 5,
                                                  std::uint64_t topology = kSampleTopology) {
  Program program{};
  ImageContent::Descriptor descriptor{.collective = collective, .algorithm = algorithm};
  const Algorithm* chosen = find_algorithm(collective, algorithm);
  std::size_t written = 0;
  descriptor.bytes.resize(kMaxDescriptorBytes);
  if (chosen == nullptr ||
      chosen->generate({.ranks = ranks, .topology_digest = topology}, kSampleNode, program) !=
          Status::kOk ||
      encode_program(program, descriptor.bytes.data(), descriptor.bytes.size(), written) !=
          Status::kOk) {
    written = 0;
  }
  descriptor.bytes.resize(written);
  return descriptor;
}

// Returns the content of an image with two programs and four links.
inline ImageContent sample_content(std::uint32_t release, std::uint32_t counter) {
  ImageContent content{.board = kSampleBoard,
                       .topology_digest = kSampleTopology,
                       .node = kSampleNode,
                       .release = release,
                       .counter = counter};
  for (const std::uint32_t peer : {0u, 1u, 3u, 4u}) {
    content.links.push_back({peer, 7, static_cast<std::uint16_t>(peer)});
  }
  content.programs.push_back(sample_descriptor(Collective::kBroadcast, "two-tree"));
  content.programs.push_back(sample_descriptor(Collective::kAllreduce, "chain"));
  return content;
}

// Adds a selection of two broadcasts, in front of the programs: two-tree, and chain from
// `from_bytes` bytes on.
inline void add_selection(ImageContent& content, std::uint64_t from_bytes) {
  constexpr const char* kAlgorithms[] = {"two-tree", "chain"};
  Selected selected = {};
  selected.table.format_version = kSelectionVersion;
  selected.table.topology_digest = content.topology_digest;
  selected.table.collective = Collective::kBroadcast;
  selected.table.rows_count = 2;
  selected.table.rows[1] = {from_bytes, false, 1};
  std::vector<ImageContent::Descriptor> members;
  Program programs[2];
  for (std::uint32_t i = 0; i < 2; ++i) {
    members.push_back(sample_descriptor(Collective::kBroadcast, kAlgorithms[i]));
    programs[i].clear();
    (void)find_algorithm(Collective::kBroadcast, kAlgorithms[i])
        ->generate({.ranks = 5, .topology_digest = content.topology_digest}, content.node,
                   programs[i]);
    selected.table.schedules[selected.table.schedules_count++] = programs[i].schedule_digest;
  }
  const std::vector<std::uint8_t> bytes = selection_bytes(selected.table);
  for (std::uint32_t i = 0; i < 2; ++i) {
    programs[i].schedule_digest = digest_in_selection(selection_digest(bytes.data(), bytes.size()),
                                                      selected.table.schedules[i]);
    members[i].bytes.resize(kMaxDescriptorBytes);
    std::size_t written = 0;
    (void)encode_program(programs[i], members[i].bytes.data(), members[i].bytes.size(), written);
    members[i].bytes.resize(written);
  }
  for (ImageContent::SelectionBytes& one : content.selections) one.first_program += 2;
  content.programs.insert(content.programs.begin(), members.begin(), members.end());
  content.selections.insert(content.selections.begin(), {0, bytes});
}

inline std::vector<std::uint8_t> sample_image(const ImageContent& content, const SampleKey* key) {
  std::vector<std::uint8_t> image;
  if (write_image(content, image) == Status::kOk && key != nullptr) {
    sign_image(image, key->signer());
  }
  return image;
}

}  // namespace espalier
