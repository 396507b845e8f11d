#pragma once
// An update of all nodes over the cluster's own fabric: a state machine that every node runs at the
// same point in the order of its collectives. Freestanding, without allocation, polled; bounded
// work per poll, except for the checks of the new image. docs/updates.md.
//
//   broadcast   the order
//   vote        does every node accept it? Nothing is written before
//   scatter     for each piece: every node gets that piece of its image, and writes it into the
//               slot that did not boot
//   vote        has every node prepared its image? If not, all withdraw theirs
//   vote        with the new image's programs: the trial. A node that completes it switches
//   vote        with the new image's programs: every node has switched
//
// Broadcast, scatter and votes (allreduces) are programs of the images. A node that fails after the
// first vote restarts and has a roll call again (roll_call.h): resolve() then decides (release.h).

#include <cstdint>

#include "espalier/collectives/machine/machine.h"
#include "espalier/internal/base/little_endian.h"
#include "firmware/boot/slots.h"
#include "firmware/update/release.h"

namespace espalier {

// What an update is about; the same on all nodes. On the wire: little-endian words.
struct UpdateOrder {
  static constexpr std::uint32_t kMagic = 0x55707345;
  static constexpr std::uint32_t kVersion = 1;
  static constexpr std::uint32_t kWords = 10;
  // A piece has a multiple of this many bytes, and at least a header.
  static constexpr std::uint32_t kPieceUnit = 64;

  Little<std::uint32_t> magic = kMagic;
  Little<std::uint32_t> version = kVersion;
  Little<std::uint32_t> nodes = 0;
  Little<std::uint32_t> release = 0;
  Little<std::uint32_t> counter = 0;      // the security counter of the images
  Little<std::uint32_t> image_bytes = 0;  // of the largest image
  Little<std::uint32_t> piece_bytes = 0;
  Little<std::uint32_t> zero = 0;
  Little<std::uint64_t> digest = 0;  // release_digest() of the images

  [[nodiscard]] std::uint32_t pieces() const {
    return (image_bytes + piece_bytes - 1) / piece_bytes;
  }
};
static_assert(sizeof(UpdateOrder) == 4 * UpdateOrder::kWords);

// A node's memory for an update. All of it is used until poll() has not returned kBusy.
struct UpdateMemory {
  std::uint8_t* input = nullptr;  // on the root: nodes * piece_bytes
  std::uint32_t input_bytes = 0;
  std::uint8_t* output = nullptr;  // piece_bytes
  std::uint32_t output_bytes = 0;
  std::uint8_t* scratch = nullptr;  // aligned to 16 bytes
  std::uint32_t scratch_bytes = 0;
  DecodedProgram* program = nullptr;  // for the check of the new image's programs
};

// The owner of a node, as the update sees it.
class UpdateOwner {
 public:
  // Makes the programs of the image those of the node, in place of the ones it runs, and returns
  // program `vote`. Null: it does not accept the image as it does at boot.
  [[nodiscard]] virtual const Program* load(const Image& image, std::uint32_t vote) = 0;
  // On the root: writes bytes `offset` to `offset` + piece_bytes - 1 of all nodes' images to
  // memory.input, node by node, and zeros after an image's end. kBusy: called again later.
  [[nodiscard]] virtual Status piece(std::uint32_t offset) = 0;

 protected:
  ~UpdateOwner() = default;
};

// The node's programs for an update, decoded: those of find_update_programs().
struct DecodedUpdatePrograms {
  const Program* broadcast = nullptr;
  const Program* scatter = nullptr;
  const Program* vote = nullptr;
};

class Update {
 public:
  // machine: idle. image: the one that booted from `slots`. All arguments, and what they point to,
  // must outlive the update. `order` is read on the root of the broadcast only.
  Update(Machine& machine, Slots& slots, const Image& image, const Expectation& expectation,
         const DecodedUpdatePrograms& programs, const UpdateMemory& memory, UpdateOwner& owner,
         const UpdateOrder& order = {});
  Update(const Update&) = delete;
  Update& operator=(const Update&) = delete;

  // Call until it does not return kBusy.
  //   kOk        all nodes have switched. Restart: the node boots the new image
  //   otherwise  refused() names the node and its reason if all nodes know that the update was
  //              refused: all run what they ran, and may go on. Otherwise restart
  // Reasons to refuse besides those of Slots::prepare(), in the order of the checks:
  //   kBadVersion    the order is of another version of this protocol
  //   kWrongTopology it is for another number of nodes, or a node of the cluster is a router
  //   kTooLarge      a piece exceeds this node's memory, or an image the slot
  //   kOlderRelease  the release is below that of the running image
  //   kRolledBack    the security counter is below the stored one
  //   kUnconfirmed   the running image could not be confirmed
  //   kUnsupported   the new image has another link table, or could not be updated itself: it
  //                  lacks an allreduce, or a broadcast and a scatter from the same root
  //   kMismatch      the image is not of the order's release
  [[nodiscard]] Status poll();

  struct Refusal {
    bool any = false;
    std::uint32_t node = 0;  // the lowest one
    Status status = Status::kOk;
  };
  [[nodiscard]] const Refusal& refused() const { return refusal_; }
  [[nodiscard]] const UpdateOrder& order() const { return order_; }
  // Bytes of this node's image that are written to flash.
  [[nodiscard]] std::uint32_t written() const { return written_; }
  // The endpoint's time at which poll() has work even if nothing arrives; 0: at once.
  [[nodiscard]] std::uint64_t next_deadline() const;

 private:
  enum class State : std::uint8_t {
    kBegins,
    kOrder,
    kAccepts,  // the first vote
    kAsks,     // the root: for the next piece
    kScatters,
    kErases,
    kWrites,
    kChecks,
    kPrepares,  // the second vote
    kTries,     // the third
    kSwitches,  // the fourth
    kEnded
  };

  [[nodiscard]] Status advance();
  [[nodiscard]] Status end(Status status);
  [[nodiscard]] Status start(const Program& program, const void* input, void* output, Type type,
                             std::uint32_t count, State next);
  [[nodiscard]] Status start_vote(const Program& program, State next);
  [[nodiscard]] bool passed();
  [[nodiscard]] Status check_order() const;
  [[nodiscard]] Status next_piece();
  [[nodiscard]] Status take_piece();
  void erase();
  void write();
  [[nodiscard]] Status check_image_of(const Image& image);
  [[nodiscard]] static Status accepts(void* update, const Image& image);
  [[nodiscard]] Status prepare();
  [[nodiscard]] Status try_new();
  [[nodiscard]] Status switch_over();
  [[nodiscard]] bool is_root() const { return image_.node == programs_.broadcast->root; }
  void refuse(Status status) {
    if (own_ == Status::kOk) own_ = status;
  }

  static constexpr std::uint32_t kVoteWords = 5;
  // Bytes that a poll writes at most, so that the machine answers its peers meanwhile.
  static constexpr std::uint32_t kWriteBytes = 256;

  Machine& machine_;
  Slots& slots_;
  const Image& image_;
  const Expectation& expectation_;
  DecodedUpdatePrograms programs_;
  UpdateMemory memory_;
  UpdateOwner& owner_;
  UpdateOrder order_;
  State state_ = State::kBegins;
  bool runs_ = false;            // a collective
  Status status_ = Status::kOk;  // how it ended
  Status own_ = Status::kOk;     // why this node refuses
  Refusal refusal_;
  const Program* new_vote_ = nullptr;
  std::uint32_t offset_ = 0;   // of the piece, in the image
  std::uint32_t size_ = 0;     // of this node's image
  std::uint32_t written_ = 0;  // bytes of the image
  Little<std::uint32_t> ballot_[kVoteWords] = {};
  Little<std::uint32_t> result_[kVoteWords] = {};
};

}  // namespace espalier
