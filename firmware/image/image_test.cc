#include "firmware/image/image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "espalier/internal/base/limits.h"
#include "espalier/internal/base/little_endian.h"
#include "firmware/image/testing/sample_image.h"

namespace espalier {
namespace {

using Bytes = std::vector<std::uint8_t>;

class Images : public testing::Test {
 protected:
  Images() {
    expectation_.board = kSampleBoard;
    expectation_.topology_digest = kSampleTopology;
    expectation_.node = kSampleNode;
    expectation_.counter = 3;
    expectation_.authority = &authority_;
  }

  Status check(const Bytes& bytes) {
    const Status status = check_image(bytes.data(), bytes.size(), expectation_, image_);
    if (status != Status::kOk) {
      EXPECT_EQ(image_.bytes, nullptr) << "something of a refused image was kept";
      EXPECT_EQ(image_.programs, 0u);
    }
    return status;
  }
  // The status of `bytes` with another number at `offset`, signed anew.
  Status check_with(Bytes bytes, std::size_t offset, std::uint64_t value, unsigned size) {
    store_le(bytes.data() + offset, value, size);
    sign_image(bytes, key_.signer());
    return check(bytes);
  }
  // Every truncation and every flipped bit of `bytes` is refused, except bits for which `skips`.
  void expect_refused(Bytes bytes, const std::function<bool(std::size_t bit)>& skips) {
    ASSERT_EQ(check(bytes), Status::kOk);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      // A separate array, so that a sanitizer detects a read past its end.
      ASSERT_EQ(check(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size))),
                Status::kTruncated)
          << size;
    }
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      if (skips(bit)) continue;
      bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
      const Status status = check(bytes);
      bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
      ASSERT_NE(status, Status::kOk) << "byte " << bit / 8 << " bit " << bit % 8;
      ASSERT_TRUE(bit / 8 < kImageHeaderBytes || status == Status::kCorrupt);
    }
  }

  const SampleKey key_{1};
  const Authority authority_ = ed25519_authority(key_.public_key);
  const Bytes good_ = sample_image(sample_content(0x01020003, 3), &key_);
  Expectation expectation_;
  Image image_;
};

TEST_F(Images, KeepsWhatWasWritten) {
  ASSERT_EQ(check(good_), Status::kOk);
  EXPECT_STREQ(image_.board, kSampleBoard);
  EXPECT_EQ(image_.size, good_.size());
  EXPECT_EQ(image_.topology_digest, kSampleTopology);
  EXPECT_EQ(image_.node, kSampleNode);
  EXPECT_EQ(image_.release, 0x01020003u);
  EXPECT_EQ(image_.counter, 3u);
  EXPECT_TRUE(image_.is_signed);
  EXPECT_TRUE(image_.signature_checked);
  ASSERT_EQ(image_.links, 4u);
  EXPECT_EQ(image_.link(2).peer, 3u);
  EXPECT_EQ(image_.link(2).device, 7u);
  EXPECT_EQ(image_.link(2).port, 3u);
  ASSERT_EQ(image_.programs, 2u);
  EXPECT_EQ(image_.program(1).collective, Collective::kAllreduce);
  EXPECT_STREQ(image_.program(0).algorithm, "two-tree");
  const auto program = std::make_unique<DecodedProgram>();
  for (std::uint32_t i = 0; i < 2; ++i) {
    ASSERT_EQ(image_.load(i, *program), Status::kOk);
    EXPECT_EQ(program->node, kSampleNode);
    EXPECT_STREQ(program->algorithm, image_.program(i).algorithm);
  }
}

TEST_F(Images, BytesBehindTheEndDoNotMatter) {
  Bytes slot = good_;
  slot.resize(slot.size() + 100, 0xff);
  EXPECT_EQ(check(slot), Status::kOk);
  EXPECT_EQ(image_.size, good_.size());
}

TEST_F(Images, EveryTruncationAndFlippedBitIsRefused) {
  // Ed25519 takes most of the time: after the header, flip only one bit per byte.
  expect_refused(good_,
                 [](std::size_t bit) { return bit / 8 >= kImageHeaderBytes && bit % 8 != 3; });
  expectation_.authority = &kTakesUnsigned;
  expect_refused(sample_image(sample_content(0x01020003, 3), nullptr),
                 [](std::size_t) { return false; });
}

TEST_F(Images, EachRefusalHasItsOwnStatus) {
  EXPECT_EQ(check(Bytes(good_.size(), 0xff)), Status::kNoImage) << "an erased slot";
  const auto field = [&](std::size_t offset, std::uint64_t value, unsigned size) {
    return check_with(good_, offset, value, size);
  };
  EXPECT_EQ(field(0, 'e', 1), Status::kNoImage);
  EXPECT_EQ(field(8, kImageFormatWithSpares + 1, 4), Status::kBadVersion);
  EXPECT_EQ(field(12, kImageHeaderBytes + 4, 4), Status::kMalformed);
  EXPECT_EQ(field(16, kImageHeaderBytes - 1, 4), Status::kMalformed);
  EXPECT_EQ(field(16, good_.size() + 1, 4), Status::kTruncated);
  EXPECT_EQ(field(24, kSampleTopology + 1, 8), Status::kWrongTopology);
  EXPECT_EQ(field(32, 0, 4), Status::kWrongNode);
  EXPECT_EQ(field(40, 2, 4), Status::kRolledBack);
  EXPECT_EQ(field(40, 4, 4), Status::kOk) << "a newer one is taken";
  EXPECT_EQ(field(44, kMaxLinks + 1, 4), Status::kTooLarge);
  EXPECT_EQ(field(48, kMaxPrograms + 1, 4), Status::kTooLarge);
  EXPECT_EQ(field(64, 'S', 1), Status::kWrongBoard);
  Bytes bytes = good_;
  std::fill_n(bytes.begin() + 64 + 3, 9, 0);
  EXPECT_EQ(check_with(bytes, 64 + 3, 0, 1), Status::kWrongBoard) << "the beginning of its name";
  bytes = good_;
  bytes.back() ^= 1;
  EXPECT_EQ(check(bytes), Status::kCorrupt);
  bytes = good_;
  bytes[kImageSignatureAt + 2] ^= 1;
  EXPECT_EQ(check(bytes), Status::kBadSignature);
  bytes = good_;
  sign_image(bytes, SampleKey{2}.signer());
  EXPECT_EQ(check(bytes), Status::kBadSignature) << "another's key";
  EXPECT_EQ(check(sample_image(sample_content(1, 3), nullptr)), Status::kUnsigned);
}

// The digest is checked before the fields that it covers, the signature before the identity.
TEST_F(Images, TheOrderOfChecksIsKept) {
  const Expectation right = expectation_;
  expectation_.board = "another";
  expectation_.node = 77;
  EXPECT_EQ(check(good_), Status::kWrongBoard);
  EXPECT_EQ(check(sample_image(sample_content(1, 3), nullptr)), Status::kUnsigned);
  Bytes bytes = good_;
  bytes[kImageBoardAt + 6] ^= 1;
  EXPECT_EQ(check(bytes), Status::kCorrupt);
  expectation_ = right;
  expectation_.authority = nullptr;
  EXPECT_EQ(check(good_), Status::kBadArgument) << "without an authority";
  expectation_ = right;
  expectation_.board = nullptr;
  EXPECT_EQ(check(good_), Status::kBadArgument);
}

// The programs of such an image would be accepted for any node or topology.
TEST_F(Images, IsForOneNodeOfOneTopology) {
  expectation_.node = kAnyNode;
  expectation_.topology_digest = kAnyTopology;
  EXPECT_EQ(check(good_), Status::kOk);
  EXPECT_EQ(check_with(good_, kImageNodeAt, kAnyNode, 4), Status::kMalformed);
  EXPECT_EQ(check_with(good_, kImageTopologyAt, kAnyTopology, 8), Status::kMalformed);
}

TEST_F(Images, BoardsWithoutSignaturesSaySo) {
  expectation_.authority = &kTakesUnsigned;
  ASSERT_EQ(check(sample_image(sample_content(1, 3), nullptr)), Status::kOk);
  EXPECT_FALSE(image_.is_signed);
  EXPECT_FALSE(image_.signature_checked);
  ASSERT_EQ(check(good_), Status::kOk);
  EXPECT_TRUE(image_.is_signed);
  EXPECT_FALSE(image_.signature_checked) << "no key checked it";
}

TEST_F(Images, TablesThatTheLayoutDoesNotAllow) {
  const std::size_t links = kImageHeaderBytes;
  const std::size_t index = links + 4 * kLinkRowBytes;
  const std::size_t descriptors = index + 2 * kProgramRowBytes;
  const auto malformed = [&](std::size_t offset, std::uint64_t value, unsigned size) {
    EXPECT_EQ(check_with(good_, offset, value, size), Status::kMalformed) << "byte " << offset;
  };
  malformed(kImageLinksAt, 3, 4);
  malformed(kImageLinksAt, 5, 4);
  malformed(kImageLinksAt, kMaxLinks, 4);
  malformed(kImageProgramsAt, 0, 4);
  malformed(kImageProgramsAt, 1, 4);
  malformed(kImageProgramsAt, 3, 4);
  malformed(kImageBoardAt - 1, 1, 1);
  malformed(kImageDigestAt - 1, 1, 1);
  malformed(links, kSampleNode, 4);
  malformed(links, 1, 4);      // peer 1 twice
  malformed(links + 6, 3, 2);  // a port twice
  malformed(index, descriptors + 4, 4);
  malformed(index, descriptors - 4, 4);
  malformed(index + 4, 0, 4);
  malformed(index + 4, 0xffffffff, 4);
  malformed(index + 4, 0xfffffffd, 4);
  malformed(index + 8, 0, 4);
  malformed(index + 8, Collective::kBarrier + 1, 4);
  malformed(index + 16, 0, 1);
  malformed(index + 39, 'x', 1);
  malformed(index + kProgramRowBytes, 0, 4);
  malformed(index + kProgramRowBytes + 4, 1, 4);
  // A descriptor that ends too early, and bytes that belong to nothing.
  for (const std::size_t bytes : {good_.size() - 4, good_.size() + 4}) {
    Bytes changed = good_;
    changed.resize(bytes);
    EXPECT_EQ(check_with(changed, kImageSizeAt, bytes, 4), Status::kMalformed);
  }
}

// Padding is checked too, so that an image contains no unchecked bytes.
TEST_F(Images, PaddingIsZero) {
  ImageContent content = sample_content(1, 3);
  std::vector<std::uint8_t>& last = content.programs[1].bytes;
  last.resize(last.size() / 4 * 4 + 1);
  Bytes bytes = sample_image(content, &key_);
  ASSERT_EQ(check(bytes), Status::kOk);
  for (std::size_t back = 1; back <= 3; ++back) {
    bytes[bytes.size() - back] = 1;
    sign_image(bytes, key_.signer());
    EXPECT_EQ(check(bytes), Status::kMalformed);
    bytes[bytes.size() - back] = 0;
  }
}

TEST_F(Images, TheIndexMustSayWhatTheDescriptorSays) {
  const auto program = std::make_unique<DecodedProgram>();
  const auto load = [&](const std::function<void(ImageContent&)>& change) {
    ImageContent content = sample_content(1, 3);
    change(content);
    const Bytes bytes = sample_image(content, &key_);
    Image image;
    Expectation any = expectation_;
    any.topology_digest = kAnyTopology;
    EXPECT_EQ(check_image(bytes.data(), bytes.size(), any, image), Status::kOk);
    const Status status = image.load(0, *program);
    EXPECT_EQ(status == Status::kOk, program->ranks != 0);
    return status;
  };
  EXPECT_EQ(load([](ImageContent&) {}), Status::kOk);
  EXPECT_EQ(load([](ImageContent& c) { c.programs[0].collective = Collective::kReduce; }),
            Status::kMalformed);
  EXPECT_EQ(load([](ImageContent& c) { c.programs[0].root = 1; }), Status::kMalformed);
  EXPECT_EQ(load([](ImageContent& c) { c.programs[0].algorithm = "two-tree-mirror"; }),
            Status::kMalformed);
  EXPECT_EQ(load([](ImageContent& c) { c.programs[0].algorithm = "two-tre"; }), Status::kMalformed);
  EXPECT_EQ(load([](ImageContent& c) { c.links.resize(1); }), Status::kNoSuchPeer);
  EXPECT_EQ(load([](ImageContent& c) { c.programs[0].bytes.pop_back(); }), Status::kTruncated);
  EXPECT_EQ(load([](ImageContent& c) { c.topology_digest ^= 1; }), Status::kWrongTopology);
  EXPECT_EQ(load([](ImageContent& c) { c.programs[0].bytes = c.programs[1].bytes; }),
            Status::kMalformed);
}

class ImagesWithSelections : public Images {
 protected:
  ImagesWithSelections() { add_selection(content_, 4096); }

  // Loads the selections of an image of this content; the status of the first that does not load.
  Status load(const ImageContent& content) {
    bytes_ = sample_image(content, &key_);
    EXPECT_EQ(check(bytes_), Status::kOk);
    programs_ = std::vector<DecodedProgram>(image_.programs);
    for (std::uint32_t i = 0; i < image_.programs; ++i) {
      EXPECT_EQ(image_.load(i, programs_[i]), Status::kOk) << i;
    }
    Status status = Status::kOk;
    selections_.assign(image_.selections, {});
    for (std::uint32_t i = 0; i < image_.selections && status == Status::kOk; ++i) {
      status = image_.load_selection(i, programs_.data(), selections_[i]);
    }
    return status;
  }

  ImageContent content_ = sample_content(1, 3);
  Bytes bytes_;
  std::vector<DecodedProgram> programs_;
  std::vector<NodeSelection> selections_;
};

TEST_F(ImagesWithSelections, KeepWhatWasWritten) {
  ASSERT_EQ(load(content_), Status::kOk);
  EXPECT_EQ(load_u32(bytes_.data() + kImageFormatAt), kImageFormatWithSelections);
  ASSERT_EQ(image_.selections, 1u);
  const NodeSelection& selection = selections_.front();
  EXPECT_EQ(selection.first_program, 0u);
  const auto algorithm = [&](std::uint64_t bytes) {
    return programs_[selection.first_program + find_row(selection.table, bytes, true)->program]
        .algorithm;
  };
  EXPECT_STREQ(algorithm(4095), "two-tree");
  EXPECT_STREQ(algorithm(4096), "chain");
  EXPECT_EQ(load_u32(good_.data() + kImageFormatAt), kImageFormat) << "an image without any";
}

TEST_F(ImagesWithSelections, EveryTruncationAndFlippedBitIsRefused) {
  ASSERT_EQ(load(content_), Status::kOk);
  expectation_.authority = &kTakesUnsigned;
  // Except those of the signature, which nothing checks here.
  expect_refused(bytes_, [](std::size_t bit) {
    return bit / 8 >= kImageSignatureAt && bit / 8 < kImageHeaderBytes;
  });
}

TEST_F(ImagesWithSelections, TablesThatTheLayoutDoesNotAllow) {
  const Bytes whole = sample_image(content_, &key_);
  const std::size_t row =
      kImageHeaderBytes + 4 * kLinkRowBytes + content_.programs.size() * kProgramRowBytes;
  const auto status = [&](std::size_t offset, std::uint64_t value, unsigned size) {
    return check_with(whole, offset, value, size);
  };
  EXPECT_EQ(status(kImageSelectionsAt, 1, 4), Status::kOk);
  EXPECT_EQ(status(kImageSelectionsAt, 0, 4), Status::kMalformed) << "format 2 has some";
  EXPECT_EQ(status(kImageSelectionsAt, 2, 4), Status::kMalformed);
  EXPECT_EQ(status(kImageSelectionsAt, kMaxSelections + 1, 4), Status::kTooLarge);
  EXPECT_EQ(status(kImageFormatAt, kImageFormat, 4), Status::kMalformed) << "format 1 has none";
  EXPECT_EQ(status(kImageSelectionsAt + 4, 1, 1), Status::kMalformed);
  const std::uint32_t offset = load_u32(whole.data() + row);
  EXPECT_EQ(status(row, offset + 4, 4), Status::kMalformed);
  EXPECT_EQ(status(row + 4, 0, 4), Status::kMalformed);
  EXPECT_EQ(status(row + 4, 0xfffffffd, 4), Status::kMalformed);
}

// Such images have the right digest and signature: their makers made a mistake.
TEST_F(ImagesWithSelections, ATableMustBeThatOfItsPrograms) {
  ImageContent other = sample_content(1, 3);
  add_selection(other, 4097);
  EXPECT_EQ(load(other), Status::kOk);
  other.selections = content_.selections;
  EXPECT_EQ(load(other), Status::kMalformed) << "another table's programs";
  other = content_;
  other.selections[0].first_program = 1;
  EXPECT_EQ(load(other), Status::kMalformed);
  other.selections[0].first_program = 3;
  EXPECT_EQ(load(other), Status::kMalformed) << "more schedules than programs follow";
  other.selections[0].first_program = 0xffffffff;
  EXPECT_EQ(load(other), Status::kMalformed);
  other = content_;
  other.selections[0].bytes.pop_back();
  EXPECT_NE(load(other), Status::kOk);
  std::swap(content_.programs[0], content_.programs[1]);
  EXPECT_EQ(load(content_), Status::kMalformed);
}

// Two programs, and spares for the losses of link 0 - 1, of link 1 - 3 and of node 4.
class ImagesWithSpares : public Images {
 protected:
  static constexpr std::uint64_t kLeft = 0xfedcba9876543210;
  ImagesWithSpares() {
    add(Loss::link(0, 1), 5);
    add(Loss::link(1, 3), 5);
    add(Loss::node(4), 4);
    content_.spares[2].programs[1].bytes.clear();  // the broadcast's root is lost
  }

  // Programs among the `ranks` nodes that are left.
  void add(const Loss& loss, std::uint32_t ranks) {
    ImageContent::SpareDescriptors spare{loss, kLeft, {}};
    for (const Collective collective :
         {Collective::kAllreduce, Collective::kBroadcast, Collective::kAllreduce}) {
      const char* const algorithm = collective == Collective::kBroadcast ? "chain" : "two-tree";
      spare.programs.push_back(sample_descriptor(collective, algorithm, ranks, kLeft));
    }
    content_.spares.push_back(std::move(spare));
  }
  Status load(std::uint32_t index, std::uint32_t which) {
    bytes_ = sample_image(content_, &key_);
    EXPECT_EQ(check(bytes_), Status::kOk);
    return image_.load_spare(index, which, *program_);
  }

  ImageContent content_ = sample_content(1, 3);
  Bytes bytes_ = {};
  std::unique_ptr<DecodedProgram> program_ = std::make_unique<DecodedProgram>();
};

TEST_F(ImagesWithSpares, KeepWhatWasWritten) {
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(load(i, 0), Status::kOk) << i;
    EXPECT_EQ(program_->collective, Collective::kAllreduce);
    EXPECT_EQ(program_->ranks, i == 2 ? 4u : 5u);
    EXPECT_EQ(load(i, 1), i == 2 ? Status::kUnsupported : Status::kOk) << i;
    EXPECT_EQ(load(i, 2), Status::kOk) << i;
  }
  ASSERT_EQ(image_.spares, 3u);
  EXPECT_EQ(load_u32(bytes_.data() + kImageFormatAt), kImageFormatWithSpares);
  EXPECT_EQ(image_.find_spare(Loss::link(3, 1)), 1u);
  EXPECT_EQ(image_.find_spare(Loss::node(4)), 2u);
  EXPECT_EQ(image_.find_spare(Loss::node(1)), 3u);
  EXPECT_EQ(image_.spare(2).topology_digest, kLeft);
  for (std::uint32_t i = 0; i < 2; ++i) EXPECT_EQ(image_.load(i, *program_), Status::kOk);
}

TEST_F(ImagesWithSpares, EveryTruncationAndFlippedBitIsRefused) {
  expectation_.authority = &kTakesUnsigned;
  expect_refused(sample_image(content_, nullptr), [](std::size_t) { return false; });
}

TEST_F(ImagesWithSpares, TablesThatTheLayoutDoesNotAllow) {
  const Bytes good = sample_image(content_, &key_);
  const std::size_t spares = kImageHeaderBytes + 4 * kLinkRowBytes + 2 * kProgramRowBytes;
  const std::size_t index = spares + 3 * kSpareRowBytes;
  const auto refused = [&](std::size_t offset, std::uint64_t value, unsigned size,
                           Status expected = Status::kMalformed) {
    EXPECT_EQ(check_with(good, offset, value, size), expected) << "byte " << offset;
  };
  refused(kImageFormatAt, kImageFormat, 4);
  refused(kImageFormatAt, kImageFormatWithSelections, 4);
  refused(kImageSelectionsAt, 1, 4);
  refused(kImageSparesAt, 0, 4);
  refused(kImageSparesAt, 2, 4);
  refused(kImageSparesAt, 4, 4);
  refused(kImageSparesAt, kMaxSpares, 4);
  refused(kImageSparesAt, kMaxSpares + 1, 4, Status::kTooLarge);
  refused(kImageSparesAt + 4, 1, 4);
  refused(spares, 0, 4);                                            // no kind
  refused(spares, 3, 4);                                            // another kind
  refused(spares, 2, 4);                                            // a node with a second end
  refused(spares + 4, 1, 4);                                        // from node 1 to itself
  refused(spares + 4, 2, 4);                                        // the higher end first
  refused(spares + 8, kAnyNode, 4);                                 // no node
  refused(spares + 12, kAnyTopology, 8);                            // any topology
  refused(spares + 4, 3u | std::uint64_t{4} << 32, 8);              // after the next one
  refused(spares + kSpareRowBytes + 4, std::uint64_t{1} << 32, 8);  // the first again
  refused(spares + 2 * kSpareRowBytes + 4, kSampleNode, 4);         // the node itself
  refused(spares + 2 * kSpareRowBytes + 8, 1, 4);
  refused(index + 4, 0, 4);  // no agreement
  refused(index + 8, 0, 4);
  refused(index + 16, 0, 1);
  refused(index + kProgramRowBytes, 0, 4);
}

TEST_F(ImagesWithSpares, ProgramsMustBeThoseOfTheLoss) {
  const ImageContent good = content_;
  const auto changed = [&](const std::function<void(ImageContent&)>& change, std::uint32_t index,
                           std::uint32_t which) {
    content_ = good;
    change(content_);
    return load(index, which);
  };
  // Links 0 - 1 and 1 - 3 are not node 2's. One of its own is.
  EXPECT_EQ(changed(
                [](ImageContent& c) {
                  c.spares[0].loss = Loss::link(1, 2);
                  c.spares.erase(c.spares.begin() + 1);
                },
                0, 1),
            Status::kNoSuchPeer);
  EXPECT_EQ(changed(
                [](ImageContent& c) {
                  c.links.pop_back();
                  c.links.erase(c.links.begin());
                },
                1, 0),
            Status::kNoSuchPeer);
  EXPECT_EQ(changed([](ImageContent& c) { c.spares[1].topology_digest ^= 1; }, 1, 0),
            Status::kWrongTopology);
  EXPECT_EQ(
      changed([](ImageContent& c) { std::swap(c.spares[1].programs[0], c.spares[1].programs[1]); },
              1, 0),
      Status::kMalformed);
  EXPECT_EQ(
      changed([](ImageContent& c) { std::swap(c.spares[1].programs[1], c.spares[1].programs[2]); },
              1, 1),
      Status::kMalformed);
  EXPECT_EQ(changed([](ImageContent& c) { c.spares[1].programs[1].root = 1; }, 1, 1),
            Status::kMalformed);
  EXPECT_EQ(changed([](ImageContent& c) { c.spares[2].loss = Loss::node(1); }, 2, 0),
            Status::kWrongNode)
      << "node 2 is then the second of what is left";
}

// Without a loss: an agreement of all nodes, and the rows of the programs themselves.
TEST_F(ImagesWithSpares, SpareWithoutALossHasTheProgramsThemselves) {
  const std::size_t before = sample_image(content_, &key_).size();
  ImageContent::SpareDescriptors spare{Loss(), content_.topology_digest, {}};
  // As an agreement, a program of the image that is an allreduce.
  const auto is_allreduce = [](const ImageContent::Descriptor& program) {
    return program.collective == Collective::kAllreduce;
  };
  const auto agreement =
      std::find_if(content_.programs.begin(), content_.programs.end(), is_allreduce);
  ASSERT_NE(agreement, content_.programs.end());
  const std::size_t padded = (agreement->bytes.size() + 3) / 4 * 4;
  spare.programs = content_.programs;
  spare.programs.insert(spare.programs.begin(), *agreement);
  content_.spares.insert(content_.spares.begin(), spare);
  EXPECT_EQ(load(0, 0), Status::kOk);
  EXPECT_EQ(bytes_.size(), before + kSpareRowBytes + 3 * kProgramRowBytes + padded);
  EXPECT_EQ(image_.find_spare(Loss()), 0u);
  for (std::uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(image_.load_spare(0, 1 + i, *program_), Status::kOk);
    EXPECT_EQ(image_.spare_program(0, 1 + i).bytes, image_.program(i).bytes);
  }
  EXPECT_EQ(load(1, 1), Status::kOk);

  const std::size_t spares =
      kImageHeaderBytes + content_.links.size() * kLinkRowBytes + 2 * kProgramRowBytes;
  const std::size_t index = spares + 4 * kSpareRowBytes + kProgramRowBytes;
  for (const std::size_t at : {spares + 4, spares + 8, spares + 12, index, index + 4, index + 8}) {
    Bytes bytes = bytes_;
    bytes[at] ^= 4;
    image_digest(bytes.data(), bytes.size(), bytes.data() + kImageDigestAt);
    expectation_.authority = &kTakesUnsigned;
    EXPECT_EQ(check(bytes), Status::kMalformed) << at;
  }
}

TEST_F(Images, WhatANodeWouldRefuseIsNotWritten) {
  const auto write = [](const std::function<void(ImageContent&)>& change) {
    ImageContent content = sample_content(1, 3);
    change(content);
    Bytes bytes{1, 2, 3};
    const Status status = write_image(content, bytes);
    EXPECT_EQ(status == Status::kOk, bytes.size() != 3);
    return status;
  };
  EXPECT_EQ(write([](ImageContent& c) { c.board.clear(); }), Status::kBadArgument);
  EXPECT_EQ(write([](ImageContent& c) { c.board.assign(32, 'b'); }), Status::kBadArgument);
  EXPECT_EQ(write([](ImageContent& c) { c.board.assign(31, 'b'); }), Status::kOk);
  EXPECT_EQ(write([](ImageContent& c) { c.programs.clear(); }), Status::kBadArgument);
  EXPECT_EQ(write([](ImageContent& c) { c.links[0].peer = 1; }), Status::kBadArgument);
  EXPECT_EQ(write([](ImageContent& c) { c.links.resize(kMaxLinks + 1); }), Status::kTooLarge);
  EXPECT_EQ(write([](ImageContent& c) { c.programs[1].bytes.clear(); }), Status::kBadArgument);
}

}  // namespace
}  // namespace espalier
