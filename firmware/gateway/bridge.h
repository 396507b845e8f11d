#pragma once
// Connects a board's serial links to an endpoint of the fabric, message by message. Host only.
// Allocates only in the constructor.
//
//  * Receives: when the board grants its k-th receive on a link (clear to send), the bridge posts
//    the k-th receive of the fabric with the same tag and size. When that completes, its bytes
//    become the k-th send to the board; a mismatch becomes a refusal.
//  * Sends: when the board opens its k-th send (request to send), the bridge receives the message
//    from the board and posts it as the k-th send of the fabric. The board's send completes, so
//    that the board may reuse its memory, only when the fabric's send has completed.
//  * A mismatch is therefore reported to both nodes, whichever of them detects it.
//  * Controls pass unchanged in both directions. Only the board answers keepalive probes, never the
//    gateway.
//  * kLinkDown of the fabric is not passed on: the board detects a dead link by its own probes. In
//    an update it becomes a cause, because a roll call waits without probes (docs/updates.md).

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "espalier/hal/endpoint.h"
#include "espalier/internal/hal/serial/serial_link.h"

namespace espalier::gateway {

class Bridge final : public SerialLinks {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffu;
  struct Shape {
    // The fabric's link for each link of the board; kNone: no program of this run uses it. Other
    // links of the fabric carry nothing.
    std::vector<std::uint32_t> fabric_links;
    // For each link of the board, whether unexpected messages are reported to it. Impossible with
    // several lanes: their messages arrive in any order, and kUnexpected does not identify one.
    std::vector<bool> reports_unexpected;
    std::uint64_t block_bytes = 0;  // size of the longest message
    // Whether the board gets a broken link of the fabric as a cause.
    bool reports_link_down = false;
    // With a link key, or with causes: the board's node, and the nodes to which its links lead.
    std::uint32_t board = 0;
    std::vector<std::uint32_t> peers;
  };

  // Returns the bytes of the buffers of a bridge with these numbers: two buffers per link and place
  // in the window, each of block_bytes, rounded up.
  [[nodiscard]] static std::uint64_t buffer_bytes(std::uint64_t links, std::uint32_t window,
                                                  std::uint64_t block_bytes);

  // config.window: the board's window. All arguments except `shape` must outlive the bridge.
  Bridge(SerialPort& port, SerialLink* links, Endpoint& fabric, const Shape& shape,
         const SerialConfig& config);

  // Whether there was memory for the buffers. Otherwise the bridge must not be used.
  [[nodiscard]] bool has_memory() const { return arena_ != nullptr || arena_bytes_ == 0; }
  // Registers the buffers with the fabric, which has all its links now; call once, first.
  // Endpoint::prepare()'s errors.
  [[nodiscard]] Status prepare();
  // Passes on all messages that can proceed, without waiting. Returns whether any did.
  bool step();
  // Bytes that a link of the board has carried, and messages that the board has taken or given on
  // all of them.
  struct LinkBytes {
    std::uint64_t sent = 0, received = 0;  // by the board
  };
  [[nodiscard]] LinkBytes bytes(std::uint32_t link) const { return links_[link].bytes; }
  [[nodiscard]] std::uint64_t board_messages() const { return board_messages_; }
  // The reason why the bridge stopped, one line; empty while it works.
  [[nodiscard]] const std::string& fault() const { return fault_; }

 private:
  struct Message {
    std::uint8_t* bytes = nullptr;
    std::uint64_t size = 0;
    std::uint64_t tag = 0;
    std::uint32_t check = 0;
    Status status = Status::kOk;
  };
  // The stages of messages to the board, as numbers of messages that have passed each stage. From
  // `posted` to `done` none is larger than the one above it.
  struct ToBoard {
    std::vector<Message> ring;
    std::uint64_t posted = 0;     // the board's receive is posted on the fabric
    std::uint64_t received = 0;   // the fabric's receive completed
    std::uint64_t passed = 0;     // posted on the board's link
    std::uint64_t done = 0;       // the board has received it
    std::uint64_t announced = 0;  // reported to the board as unexpected, or passed; >= passed
  };
  // The stages of messages from the board; none is larger than the one above it.
  struct FromBoard {
    std::vector<Message> ring;
    std::uint64_t opened = 0;        // the board requested to send
    std::uint64_t granted = 0;       // the board is clear to send
    std::uint64_t received = 0;      // completely received from the board
    std::uint64_t sent = 0;          // posted on the fabric
    std::uint64_t done = 0;          // the fabric's send completed
    std::uint64_t acknowledged = 0;  // the final status is sent to the board
  };
  // Unexpected messages that the fabric reported and the board does not know of yet.
  struct Unexpected {
    std::uint64_t first = 0;          // number of the first one
    std::vector<std::uint64_t> tags;  // of the first one and its successors; at most its capacity
  };
  struct Link {
    std::uint32_t fabric = kNone;
    bool reports_unexpected = false;
    ToBoard to;
    FromBoard from;
    Unexpected unexpected;
    LinkBytes bytes;
  };

  // SerialLinks: events of the board.
  [[nodiscard]] bool granted(std::uint32_t link, std::uint64_t tag, std::uint32_t size) override;
  [[nodiscard]] bool opened(std::uint32_t link, const SerialOpening& opening) override;
  [[nodiscard]] bool controlled(std::uint32_t link, const Control& control) override;
  void broken(std::uint32_t link) override;
  // The bridge stands for the nodes at the far ends of the board's links.
  [[nodiscard]] SerialLinkEnds ends(std::uint32_t link) const override {
    return {peers_[link], board_, 0};
  }

  void take(const Completion& completion);  // of the fabric
  void tell_board(std::uint32_t link, const Control& control);
  bool pass_to_board(std::uint32_t link);
  bool take_from_board(std::uint32_t link);
  bool pass_to_fabric(std::uint32_t link);
  void report_unexpected(std::uint32_t link);
  void fail(const std::string& what) {
    if (fault_.empty()) fault_ = what;
  }
  [[nodiscard]] Message& slot(std::vector<Message>& ring, std::uint64_t number) {
    return ring[number % window()];
  }

  Endpoint& fabric_;
  std::uint32_t board_;
  std::vector<std::uint32_t> peers_;
  std::uint64_t block_bytes_;
  bool reports_link_down_;
  // From calloc(): a board decides how large it is, and pages that it never uses cost nothing.
  std::unique_ptr<std::uint8_t[], decltype(&std::free)> arena_{nullptr, std::free};
  std::uint64_t arena_bytes_ = 0;
  std::vector<Link> links_;
  std::vector<std::uint32_t> board_link_;  // the board's link for each link of the fabric
  std::uint64_t board_messages_ = 0;
  std::string fault_;
};

}  // namespace espalier::gateway
