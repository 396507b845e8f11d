#pragma once
// Joins a board's serial links to an endpoint of the fabric, message by message, so that the
// board's neighbours see it and it sees them. Host only. Allocates when it is made, then never.
//
// The board's k-th receive on a link (a grant) becomes the fabric's k-th, with exactly its tag and
// size; when that completes its bytes, or its disagreement, become the k-th send to the board. The
// board's k-th send (an opening) is received from it, becomes the fabric's k-th send, and is the
// board's to change only once the fabric has completed it. So whoever disagrees is told, wherever
// it is. Controls pass both ways as they are: a probe that reaches the gateway is answered by the
// board or by nobody. What the fabric says of a link that is down is not passed on, for the board
// finds it out by its probes.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "espalier/hal/endpoint.h"
#include "espalier/hal/serial/serial_link.h"

namespace espalier::gateway {

class Bridge final : public SerialLinks {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffu;
  struct Shape {
    // Of each of the board's links, the fabric's; kNone: no program of this run uses it. Links that
    // only the fabric has carry nothing.
    std::vector<std::uint32_t> fabric_links;
    // Of each, whether early words can be told: messages of a link with several lanes come in any
    // order, and an early word does not say which it is of.
    std::vector<bool> tells_early;
    std::uint64_t block_bytes = 0;  // of the longest message
  };

  // config.window: the board's. Everything named outlives the bridge.
  Bridge(SerialPort& port, SerialLink* links, Endpoint& fabric, const Shape& shape,
         const SerialConfig& config);

  // Makes the buffers reachable; call once, first. prepare()'s errors.
  [[nodiscard]] Status prepare();
  // Moves what can move between the two, without waiting; true if anything did.
  bool step();
  // What ended the bridge, one line; empty: it works.
  [[nodiscard]] const std::string& fault() const { return fault_; }

 private:
  struct Message {
    std::uint8_t* bytes = nullptr;
    std::uint64_t size = 0;
    std::uint64_t tag = 0;
    std::uint32_t check = 0;
    Status status = Status::kOk;
  };
  // Numbers of messages, each at most the one before it.
  struct ToBoard {
    std::vector<Message> ring;
    std::uint64_t posted = 0;     // by the board, and to the fabric
    std::uint64_t came = 0;       // from the fabric
    std::uint64_t passed = 0;     // to the board's link
    std::uint64_t done = 0;       // the board has it
    std::uint64_t announced = 0;  // to the board: at least `passed`
  };
  struct FromBoard {
    std::vector<Message> ring;
    std::uint64_t opened = 0;   // by the board
    std::uint64_t granted = 0;  // to the board
    std::uint64_t here = 0;     // whole
    std::uint64_t sent = 0;     // to the fabric
    std::uint64_t done = 0;     // by the fabric
    std::uint64_t settled = 0;  // told to the board
  };
  // Messages that the fabric has told early and the board was not told of.
  struct Early {
    std::uint64_t first = 0;          // number of the first one
    std::vector<std::uint64_t> tags;  // of it and those after it; never grows beyond its room
  };
  struct Link {
    std::uint32_t fabric = kNone;
    bool tells_early = false;
    ToBoard to;
    FromBoard from;
    Early early;
  };

  // SerialLinks: what the board did.
  [[nodiscard]] bool granted(std::uint32_t link, std::uint64_t tag, std::uint32_t size) override;
  [[nodiscard]] bool opened(std::uint32_t link, const SerialOpening& opening) override;
  [[nodiscard]] bool controlled(std::uint32_t link, const Control& control) override;
  void broken(std::uint32_t link) override;

  void take(const Completion& completion);  // the fabric's
  bool pass_to_board(std::uint32_t link);
  bool take_from_board(std::uint32_t link);
  bool pass_to_fabric(std::uint32_t link);
  void tell_early(std::uint32_t link);
  void fail(const std::string& what) {
    if (fault_.empty()) fault_ = what;
  }
  [[nodiscard]] Message& at(std::vector<Message>& ring, std::uint64_t number) {
    return ring[number % window()];
  }

  Endpoint& fabric_;
  std::uint64_t block_bytes_;
  std::unique_ptr<std::uint8_t[]> arena_;
  std::uint64_t arena_bytes_ = 0;
  std::vector<Link> links_;
  std::vector<std::uint32_t> board_link_;  // of each of the fabric's
  std::string fault_;
};

}  // namespace espalier::gateway
