#pragma once
// The protocol of one framed link, as its two users need it. SerialEndpoint is an Endpoint over
// such links. Code that connects links to another fabric must also know the peer's posts.
// Freestanding; docs/firmware_in_c.md.
//
// A link connects two ends; each sends messages to the other. Send k of one end matches receive k
// of the other. The peer announces a posted receive by a grant (clear to send); the bytes of a
// message travel only after its grant arrived. A send completes when the receiver's final status
// (accepted or mismatch) arrives. Everything that the carrier loses, duplicates or damages is sent
// again until the peer has it. The link itself never gives up.
//
// If the peer restarts (it uses a new session) the link begins at message 0 again. All posts are
// then discarded, broken() is called, and new posts belong to the new session.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "espalier/hal/endpoint.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/limits.h"
#include "espalier/internal/hal/serial/frame.h"

namespace espalier {

struct SerialLinkTest;
inline namespace ESPALIER_SERIAL_BUILD {
class SerialPort;
}  // namespace ESPALIER_SERIAL_BUILD
namespace serial {
class Writer;
}  // namespace serial

// Maximum number of posts per link and direction.
inline constexpr std::uint32_t kSerialWindow = std::min<std::uint32_t>(kMaxWindow, 16);

inline namespace ESPALIER_SERIAL_BUILD {
// The state of one link, in the caller's memory. It must be all zero before its SerialLinks is
// constructed, so that a static one takes no room in flash. Callers must not access it.
class SerialLink {
 private:
  friend class SerialLinks;
  friend class SerialPort;
  friend SerialLinkTest;

  static constexpr std::uint32_t kRing = std::bit_ceil(kSerialWindow);
  static constexpr std::uint8_t kMask = kRing - 1;

  // Message numbers are counted modulo 256; the sign of a difference shows which is ahead. A
  // mismatched message has the size kSizeRefused once its final status is known.
  struct Send {
    const std::uint8_t* bytes;
    std::uint32_t size;
    std::uint64_t tag;
    std::uint32_t check;
    std::uint32_t context;

    [[nodiscard]] std::uint32_t to_go() const { return size == serial::kSizeRefused ? 0 : size; }
  };
  struct Receive {
    std::uint8_t* bytes;
    std::uint32_t size;
    std::uint64_t tag;
    std::uint32_t check;  // from the sender's opening, once that agreed
    std::uint32_t context;
  };
  // The most used fields come first, which gives shorter instructions.
  struct Outgoing {
    // first <= settled <= arrived <= next <= posted <= announced
    std::uint8_t first;    // oldest message whose completion the owner has not taken
    std::uint8_t settled;  // the receiver has settled all messages before this one
    std::uint8_t arrived;  // the receiver has received all messages before this one
    std::uint8_t next;     // message whose bytes are sent next
    std::uint8_t posted;
    std::uint8_t announced;
    std::uint8_t granted;  // the receiver has granted all messages before this one
    std::uint8_t told;     // openings before this one were sent
    std::uint8_t opened;   // openings before this one were taken or are not needed
    std::uint8_t flying;   // upper bound of the data frames sent that the receiver has not seen
    bool due;              // a frame should be sent
    bool ask : 1;          // the frame must ask for a reply
    std::uint8_t back_off : 7;  // the peer stays silent: it is asked after resend_ns * 2^back_off
    std::uint16_t data_at;      // sequence number of the newest frame with data, modulo 65536
    std::uint16_t back_at;      // newest sequence number when data was last repeated, modulo 65536
    std::uint32_t acked;        // bytes of message `arrived` that the receiver has
    std::uint32_t offset;       // bytes of message `next` already sent
    Send posts[kRing];
    // Asserts the order of the counters, which wrap, by their distances from `first`.
    void check_invariants([[maybe_unused]] std::uint8_t window) const {
      ESPALIER_ASSERT(minus(settled, first) <= minus(arrived, first));
      ESPALIER_ASSERT(minus(arrived, first) <= minus(next, first));
      ESPALIER_ASSERT(minus(next, first) <= minus(posted, first));
      ESPALIER_ASSERT(minus(posted, first) <= minus(announced, first));
      ESPALIER_ASSERT(minus(announced, first) <= window);
      ESPALIER_ASSERT(acked <= (arrived == posted ? 0 : posts[arrived & kMask].to_go()));
      ESPALIER_ASSERT(offset <= (next == posted ? 0 : posts[next & kMask].to_go()));
      ESPALIER_ASSERT(next != arrived || acked <= offset);
      ESPALIER_ASSERT(!ahead(opened, told));
    }
  };
  struct Incoming {
    // first, settled <= arrived <= posted <= opened
    std::uint8_t first;  // oldest message whose completion the owner has not taken
    std::uint8_t settled;
    std::uint8_t arrived;
    std::uint8_t posted;
    std::uint8_t opened;     // openings before this one were taken or are not needed
    std::uint8_t told;       // grants before this one were sent
    std::uint8_t taken;      // grants before this one were taken
    bool agreed : 1;         // the opening of message `arrived` agrees with its post
    bool gap : 1;            // bytes after the next expected ones arrived
    std::uint16_t refused;   // one bit per ring entry: the message arrived and mismatched
    std::uint16_t rejected;  // bit i: message settled - 1 - i mismatched
    std::uint32_t offset;    // bytes of message `arrived` received
    Receive posts[kRing];
    // Asserts the order of the counters, which wrap, by their distances.
    void check_invariants([[maybe_unused]] std::uint8_t window) const {
      ESPALIER_ASSERT(minus(arrived, first) <= minus(posted, first));
      ESPALIER_ASSERT(minus(posted, first) <= window);
      ESPALIER_ASSERT(minus(arrived, settled) <= minus(posted, settled));
      ESPALIER_ASSERT(minus(posted, settled) <= window);
      ESPALIER_ASSERT(!ahead(posted, opened));
      ESPALIER_ASSERT(minus(told, taken) <= minus(posted, taken));
      ESPALIER_ASSERT(!agreed || (arrived != posted && offset < posts[arrived & kMask].size));
      ESPALIER_ASSERT(agreed || offset == 0);
    }
  };
  struct Controls {
    std::uint32_t number[2];  // of the probe, of the reply
    std::uint32_t detector, peer;
    // Bit k of each field is for kind k. kWanted: the peer has not taken the control. kGone: it was
    // sent. kTold: it was sent since everything was last repeated.
    static constexpr std::uint32_t kWanted = 1;
    static constexpr std::uint32_t kGone = kWanted << kControlKinds;
    static constexpr std::uint32_t kTold = kGone << kControlKinds;
    std::uint16_t state : 3 * kControlKinds;
    std::uint16_t status : 6;  // a Status
    std::uint8_t version[kControlKinds];
    std::uint8_t heard[kControlKinds];  // newest control taken from the peer

    // Whether any wanted control was (`told`) or was not (not `told`) sent since the last
    // repetition.
    [[nodiscard]] bool wanted(bool told) const {
      const std::uint32_t its = state;
      return (its & (told ? its : ~its) / kTold & (kGone - 1)) != 0;
    }
  };

  // ahead: whether a is after b. minus: by how much.
  [[nodiscard]] static bool ahead(std::uint8_t a, std::uint8_t b) {
    return static_cast<std::int8_t>(a - b) > 0;
  }
  [[nodiscard]] static std::uint8_t minus(std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(a - b);
  }

  std::uint32_t peer_;    // session of the peer; 0: unknown
  std::uint32_t former_;  // the previous session, whose frames may still arrive
  // Session that claims to be the peer's, and must prove that its frame is not late; 0: none.
  std::uint32_t stranger_;
#if ESPALIER_SERIAL_MAC
  std::uint64_t sequence_;       // of the newest frame sent; without a key modulo 2^32
  std::uint64_t heard_;          // of the newest frame heard, as above
  std::uint32_t admissions_;     // sessions of the peer that were admitted
  std::uint32_t echo_;           // the peer's newest challenge
  std::uint32_t stranger_echo_;  // the stranger's
#else
  std::uint32_t sequence_;  // of the newest frame sent
  std::uint32_t heard_;     // of the newest frame heard
#endif
  std::uint32_t sent_at_;  // the port's ticks when a frame was sent that needs a reply
  Controls controls_;
  Outgoing out_;
  Incoming in_;
};
}  // namespace ESPALIER_SERIAL_BUILD

// The peer's announcement of a message (request to send), before its bytes arrive.
struct SerialOpening {
  std::uint64_t tag = 0;
  // Bytes. serial::kSizeUnknown: only announced. serial::kSizeRefused: agrees with no receive.
  std::uint32_t size = 0;
  std::uint32_t check = 0;  // meaningless if the size is unknown
  std::uint8_t number = 0;  // of the message, modulo 256
};

inline namespace ESPALIER_SERIAL_BUILD {
// The parameters of SerialLinks.
struct SerialConfig {
  // Must be nonzero and differ from the session of the node's previous start: a counter in flash,
  // or a clock. The peer detects by it that this node has restarted.
  std::uint32_t session = 1;
  std::uint8_t first_channel = 0;  // link l is channel first_channel + l of the port, at both ends
  std::uint32_t window = kSerialWindow;  // posts per link and direction, 1 .. kSerialWindow
  // True: the receiver must settle each received message, see settle(). False: the link settles it
  // at once.
  bool settles = false;
#if ESPALIER_SERIAL_MAC
  // The key of the links, 16 bytes, which both ends must have and no one else; it must outlive the
  // links. Frames that do not prove that their sender knows the key are dropped
  // (docs/firmware_in_c.md). Null: frames have only a CRC.
  const std::uint8_t* key = nullptr;
  // With a key: session and nonce together must differ from those of all earlier starts with this
  // key. Random, or counted in flash.
  std::uint32_t nonce = 0;
#endif
};
}  // namespace ESPALIER_SERIAL_BUILD

#if ESPALIER_SERIAL_MAC
// The names of a link's ends, which its codes cover. Both ends must have the same.
struct SerialLinkEnds {
  std::uint32_t own = 0;  // node
  std::uint32_t peer = 0;
  std::uint8_t number = 0;  // of the link among those between the two nodes
};

// Frames that were dropped for want of a key or of the right code.
struct SerialRejections {
  // Why the first frame was dropped.
  enum class Reason : std::uint8_t {
    kWrongCode,   // another key, noise, or someone else
    kNoKeyHere,   // the peer has a key, this end has none
    kNoKeyThere,  // this end has a key, the peer has none
  };
  std::uint32_t frames = 0;
  std::uint32_t link = 0;  // of the first frame
  Reason reason = Reason::kWrongCode;
};
#endif

inline namespace ESPALIER_SERIAL_BUILD {
// The links of one owner, on adjacent channels of one port. The owner derives from this class.
// SerialPort::receive() reports the peers' actions by calling the virtual functions, which must not
// post.
class SerialLinks {
 public:
  SerialLinks(const SerialLinks&) = delete;
  SerialLinks& operator=(const SerialLinks&) = delete;

  // Returns the number of links. On hosts 0, and every post is kBadArgument: the port's status() is
  // not kOk, or there is a key and the carrier's mtu() is less than serial::kMinCodedMtu.
  [[nodiscard]] std::uint32_t links() const { return count_; }
  // Returns the maximum number of outstanding posts per link and direction.
  [[nodiscard]] std::uint32_t window() const { return window_; }

  // post_send() and post_receive() post as in espalier/hal/endpoint.h, but from and into any
  // memory. Nothing is sent until the port is polled. kTooLarge: window() posts are outstanding, or
  // more than serial::kMaxSize bytes; kBadArgument: no such link, or released.
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post);
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post);
  // Posts a control. It replaces one of the same kind that the peer has not taken. kBadArgument: no
  // such link.
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control);
  // Announces to the peer the next send that is neither posted nor announced, before that send can
  // be posted. The peer gets opened(). The later post must have the same tag. Statuses as
  // post_send().
  [[nodiscard]] Status announce(std::uint32_t link, std::uint64_t tag);
  // Posts a send that agrees with no receive: this send and the peer's receive complete with
  // kMismatch. Statuses as post_send().
  [[nodiscard]] Status post_refusal(std::uint32_t link, std::uint64_t tag, std::uint32_t context);

  // Takes the link's next completion of a post: kSent or kReceived, each in order. False: there is
  // none. A send's status is kOk or kMismatch, as the receiver settled it. With config.settles, a
  // receive's status is kOk (all bytes are in place) or kMismatch (tag or size differ, no byte was
  // placed).
  [[nodiscard]] bool take(std::uint32_t link, Completion& completion);
  // Only with config.settles: sets the final status of the oldest received message without one, kOk
  // or kMismatch. A message that disagreed gets kMismatch in any case. The peer's send completes
  // with this status. kBadArgument: there is no such message.
  [[nodiscard]] Status settle(std::uint32_t link, Status status);

#if ESPALIER_SERIAL_MAC
  // Returns the frames that were dropped so far because they are not authentic. The owner reports
  // the first one.
  [[nodiscard]] const SerialRejections& rejections() const { return rejections_; }
#endif

  // Gives up every post, until reopen(): the caller's memory is neither read nor written
  // afterwards. Only controls travel from then on.
  void release();
#if ESPALIER_SPARES
  // Moves all links to other channels of the port, with nothing left of what was: link l is channel
  // first_channel + l. Late frames are of channels that no link has any more. Both ends must do so;
  // until the peer has, nothing passes. No owner at the port may ever have had these channels.
  void reopen(std::uint8_t first_channel);
#endif

 protected:
  // `links`: `count` of them, all zero. The links, the port and *this must never move. Joins the
  // port. Two owners at one port must not share a channel.
  SerialLinks(SerialPort& port, SerialLink* links, std::uint32_t count, const SerialConfig& config);
  ~SerialLinks() = default;

  [[nodiscard]] SerialPort& port() { return *port_; }
  // Whether a receive has been posted for message `number` since opened() reported it.
  [[nodiscard]] bool posted(std::uint32_t link, std::uint8_t number) const {
    return SerialLink::ahead(links_[link].in_.posted, number);
  }

 private:
  friend class SerialPort;

  // Report an action of the peer on `link`. Return true if the owner took it. False: no room now;
  // the link reports it again later.
  //
  // granted: the peer posted a receive. Called in order.
  [[nodiscard]] virtual bool granted(std::uint32_t link, std::uint64_t tag, std::uint32_t size) = 0;
  // The peer posted or announced a send for which no receive is posted here. Called in order, at
  // most once per message, and never for a message whose receive was posted in the meantime.
  [[nodiscard]] virtual bool opened(std::uint32_t link, const SerialOpening& opening) = 0;
  [[nodiscard]] virtual bool controlled(std::uint32_t link, const Control& control) = 0;
  // The peer restarted, or the carrier is down (then for every link). The posts are gone.
  virtual void broken(std::uint32_t link) = 0;

#if ESPALIER_SERIAL_MAC
  // Returns the names of the link's ends. Only called if there is a key.
  [[nodiscard]] virtual SerialLinkEnds ends(std::uint32_t link) const = 0;

  // codes.cc
  [[nodiscard]] std::uint64_t code(std::uint32_t link, bool received, const std::uint8_t* frame,
                                   std::uint32_t size) const;
  [[nodiscard]] bool is_authentic(std::uint32_t link, const std::uint8_t* frame,
                                  std::uint32_t size);
  [[nodiscard]] std::uint32_t trailer_bytes() const {
    return key_ != nullptr ? serial::kTrailerBytes : serial::kCrcBytes;
  }
#else
  [[nodiscard]] static constexpr std::uint32_t trailer_bytes() { return serial::kCrcBytes; }
#endif

  // serial_link.cc
  [[nodiscard]] Status put_send(std::uint32_t link, const SerialLink::Send& send);
  static void settle_next(SerialLink& link, bool rejected);

  // receive.cc
  void receive(std::uint32_t link, const std::uint8_t* frame, std::uint32_t size,
               std::uint32_t now);
  [[nodiscard]] bool admit(std::uint32_t link, const std::uint8_t* frame,
                           const std::uint8_t* trailer);
  [[nodiscard]] bool take_state(SerialLink& link, const std::uint8_t* frame);
  void take_heard(SerialLink& link, std::uint32_t heard, bool gap) const;
  static void go_back(SerialLink& link);
  [[nodiscard]] bool take_record(std::uint32_t link, const std::uint8_t* begin, std::uint32_t size);
  void take_grant(std::uint32_t link, std::uint8_t number, const std::uint8_t* grant);
  void take_opening(std::uint32_t link, std::uint8_t number, const std::uint8_t* opening);
  void take_data(SerialLink& link, std::uint8_t number, const std::uint8_t* body,
                 std::uint32_t size) const;
  void take_control(std::uint32_t link, std::uint8_t number, const std::uint8_t* body);
  void end_message(SerialLink& link, bool refused) const;

  // send.cc
  [[nodiscard]] bool told_records(const SerialLink& link) const;
  [[nodiscard]] bool awaits(const SerialLink& link) const;
  [[nodiscard]] bool may_send(const SerialLink::Outgoing& out) const;
  [[nodiscard]] bool has_more(const SerialLink& link) const;
  [[nodiscard]] bool wants(SerialLink& link, std::uint32_t now, std::uint32_t interval) const;
  [[nodiscard]] std::uint32_t build(std::uint32_t link, std::uint8_t* frame, std::uint32_t now);
  void put_state(const SerialLink& link, std::uint8_t* frame) const;
  void put_controls(SerialLink& link, serial::Writer& frame) const;
  void put_grants(SerialLink& link, serial::Writer& frame) const;
  void put_openings(SerialLink& link, serial::Writer& frame) const;
  void put_data(SerialLink& link, serial::Writer& frame) const;

  // Asserts what holds between two calls.
  void check_invariants([[maybe_unused]] std::uint32_t link) const {
    ESPALIER_ASSERT(link < count_ && 1 <= window_ && window_ <= kSerialWindow);
    links_[link].out_.check_invariants(window_);
    links_[link].in_.check_invariants(window_);
  }

  SerialPort* port_;
  SerialLink* links_;
  SerialLinks* next_ = nullptr;  // the next owner at the same port
  std::uint32_t count_;
  std::uint32_t session_;
  std::uint8_t window_;
  std::uint8_t first_channel_;
  bool settles_;
  bool released_ = false;
#if ESPALIER_SERIAL_MAC
  const std::uint8_t* key_;
  std::uint32_t nonce_;
  SerialRejections rejections_;
#endif
};
}  // namespace ESPALIER_SERIAL_BUILD

}  // namespace espalier
