#pragma once
// The protocol of one framed link, as its two users need it: SerialEndpoint (an Endpoint over such
// links) and whoever joins them to another fabric and so must know what the other end has posted.
// Freestanding; docs/serial.md.
//
// A link joins two ends, each of which sends the other messages: the k-th send of one is for the
// k-th receive of the other. The other end's receive is a grant: a message's bytes travel only once
// it has come. A send completes when the other end has the last word of it. Whatever the carrier
// loses, repeats or damages is sent again until the other end has it; nothing gives up.
//
// When the other end has started anew (its session is another) the link begins at message 0 again:
// broken() is told, posts are gone, and new ones are for the new session.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "espalier/base/limits.h"
#include "espalier/hal/endpoint.h"
#include "espalier/hal/serial/frame.h"

namespace espalier {

class SerialPort;
namespace serial {
class Writer;
}  // namespace serial

// Posts a link and direction at most.
inline constexpr std::uint32_t kSerialWindow = std::min<std::uint32_t>(kMaxWindow, 16);

// The state of one link, in the caller's memory: all zero before its SerialLinks is made, so that
// a static one takes no room in flash. Not to be touched.
class SerialLink {
 private:
  friend class SerialLinks;
  friend class SerialPort;
  friend struct SerialLinkTest;

  static constexpr std::uint32_t kRing = std::bit_ceil(kSerialWindow);
  static constexpr std::uint8_t kMask = kRing - 1;

  // Counters of messages are modulo 256: of two, the difference says which is ahead.
  // One that did not agree has the size kSizeRefused once it is settled.
  struct Send {
    const std::uint8_t* bytes;
    std::uint32_t size;
    std::uint64_t tag;
    std::uint32_t check;
    std::uint32_t cookie;

    [[nodiscard]] std::uint32_t to_go() const { return size == serial::kSizeRefused ? 0 : size; }
  };
  struct Receive {
    std::uint8_t* bytes;
    std::uint32_t size;
    std::uint64_t tag;
    std::uint32_t check;  // the sender's, once its opening agreed
    std::uint32_t cookie;
  };
  // What is used most stands first: shorter instructions.
  struct Outgoing {
    // first <= settled <= arrived <= next <= posted <= announced
    std::uint8_t first;    // not yet taken by the caller
    std::uint8_t settled;  // by the other end, and so on
    std::uint8_t arrived;
    std::uint8_t next;  // whose bytes are to go
    std::uint8_t posted;
    std::uint8_t announced;
    std::uint8_t granted;
    std::uint8_t told;          // openings before this one have gone,
    std::uint8_t opened;        // before this one were taken or are of no use
    std::uint8_t flying;        // at most so many frames with data were not heard
    bool due;                   // there is something to tell
    bool ask : 1;               // and an answer is wanted
    std::uint8_t back_off : 7;  // the other end stays silent: it is asked half as often, and so on
    std::uint16_t data_at;      // sequence number of the newest frame with data, modulo 65536,
    std::uint16_t back_at;      // and of the newest frame before data was last repeated
    std::uint32_t acked;        // bytes of message `arrived` that the other end has
    std::uint32_t offset;       // bytes of message `next` that have gone
    Send posts[kRing];
  };
  struct Incoming {
    // first, settled <= arrived <= posted <= opened
    std::uint8_t first;  // not yet taken by the caller
    std::uint8_t settled;
    std::uint8_t arrived;
    std::uint8_t posted;
    std::uint8_t opened;     // openings before this one were taken or are of no use
    std::uint8_t told;       // grants before this one have gone,
    std::uint8_t taken;      // before this one were taken
    bool agreed : 1;         // message `arrived` agrees with its post
    bool gap : 1;            // later bytes than the next have come
    std::uint16_t refused;   // one bit a place of the ring: arrived, and did not agree
    std::uint16_t rejected;  // bit i: settled - 1 - i did not agree
    std::uint32_t offset;    // bytes of message `arrived` that are here
    Receive posts[kRing];
  };
  struct Controls {
    std::uint32_t number[2];  // of the probe, of the answer
    std::uint32_t detector, peer;
    // Of kind k bit k of each: the other end has not taken it, though it has gone, since all was
    // last repeated.
    static constexpr std::uint32_t kWanted = 1;
    static constexpr std::uint32_t kGone = kWanted << kControlKinds;
    static constexpr std::uint32_t kTold = kGone << kControlKinds;
    std::uint16_t state : 3 * kControlKinds;
    std::uint16_t status : 6;  // a Status
    std::uint16_t deaf : 1;
    std::uint8_t version[kControlKinds];
    std::uint8_t heard[kControlKinds];  // of the other end's

    // Whether one is wanted that was told, or that was not.
    [[nodiscard]] bool wanted(bool told) const {
      const std::uint32_t its = state;
      return (its & (told ? its : ~its) / kTold & (kGone - 1)) != 0;
    }
  };

  // Whether a is further than b; how far.
  [[nodiscard]] static bool ahead(std::uint8_t a, std::uint8_t b) {
    return static_cast<std::int8_t>(a - b) > 0;
  }
  [[nodiscard]] static std::uint8_t minus(std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(a - b);
  }

  std::uint32_t peer_;      // session of the other end; 0: unknown
  std::uint32_t former_;    // the one before, of which a frame may still be on its way
  std::uint32_t stranger_;  // who claims to be the other end, and must prove that it is not late
  std::uint32_t sequence_;  // of the newest frame sent
  std::uint32_t heard_;     // of the newest frame heard
  std::uint32_t sent_at_;   // the port's ticks when something went that must be answered
  Controls controls_;
  Outgoing out_;
  Incoming in_;
};

// What the other end says of a message before its bytes come.
struct SerialOpening {
  std::uint64_t tag = 0;
  std::uint32_t size = 0;   // bytes; serial::kSizeUnknown: announced only; serial::kSizeRefused:
                            // will agree with no receive
  std::uint32_t check = 0;  // nothing where the size is unknown
  std::uint8_t number = 0;  // of the message, modulo 256
};

struct SerialConfig {
  // A number other than 0, and other than at the node's last start: a counter in flash, a clock.
  // The other end knows by it that this one has started anew.
  std::uint32_t session = 1;
  std::uint8_t first_channel = 0;  // link l is channel first_channel + l of the port, at both ends
  std::uint32_t window = kSerialWindow;  // posts a link and direction, 1 .. kSerialWindow
  // A message that has come must be settled by its receiver: see settle(). Else it is at once.
  bool settles = false;
};

// The links of one owner, of adjacent channels of one port. Its owner derives from it and is told
// what the other ends do, by calls out of SerialPort::receive(); those calls may not post.
class SerialLinks {
 public:
  SerialLinks(const SerialLinks&) = delete;
  SerialLinks& operator=(const SerialLinks&) = delete;

  [[nodiscard]] std::uint32_t links() const { return count_; }
  [[nodiscard]] std::uint32_t window() const { return window_; }

  // Posts, as in include/espalier/hal/endpoint.h, but from and into any memory. kTooLarge: window()
  // are outstanding, or more than serial::kMaxSize bytes; kBadArgument: no such link, or released.
  // Nothing travels before the port is polled.
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post);
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post);
  // Replaces one of the same kind that the other end has not taken. kBadArgument: no such link.
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control);
  // Tells the other end of the next send that is neither posted nor announced before it can be
  // posted: opened() there. Its tag must be that of the post. Same statuses as post_send().
  [[nodiscard]] Status announce(std::uint32_t link, std::uint64_t tag);
  // Posts a send that will agree with no receive: it and the other end's receive end with
  // kMismatch. Same statuses as post_send().
  [[nodiscard]] Status post_refusal(std::uint32_t link, std::uint64_t tag, std::uint32_t cookie);

  // The next completion of a post on the link, kSent or kReceived, each in order. False: none.
  // A send's status is kOk or kMismatch, what the other end settled. A receive's, where
  // config.settles: kOk, all bytes are in place; kMismatch: tag or size differ, no byte was placed.
  [[nodiscard]] bool take(std::uint32_t link, Completion& completion);
  // config.settles only: the last word of the oldest received message that has none yet: kOk, or
  // kMismatch, which a message that disagreed has in any case. The other end's send completes with
  // it. kBadArgument: there is none.
  [[nodiscard]] Status settle(std::uint32_t link, Status status);

  // Gives up every post, for good: no byte of the caller's memory is read or written any more.
  // Only controls travel from then on.
  void release();

 protected:
  // `links`: `count` of them, all zero. They, the port and *this stay where they are for life.
  // Joins the port; of two owners at one port, no channel may be in both.
  SerialLinks(SerialPort& port, SerialLink* links, std::uint32_t count, const SerialConfig& config);
  ~SerialLinks() = default;

  [[nodiscard]] SerialPort& port() { return *port_; }
  // Whether a receive was posted for message `number` since it was told by opened().
  [[nodiscard]] bool posted(std::uint32_t link, std::uint8_t number) const {
    return SerialLink::ahead(links_[link].in_.posted, number);
  }

 private:
  friend class SerialPort;

  // What the other end of `link` did. True: taken. False: no room now; it is told again later.
  // A receive was posted there, each in order.
  [[nodiscard]] virtual bool granted(std::uint32_t link, std::uint64_t tag, std::uint32_t size) = 0;
  // A send was posted or announced there, and no receive is posted here. Each in order, but those
  // for which a receive was posted meanwhile; at most once.
  [[nodiscard]] virtual bool opened(std::uint32_t link, const SerialOpening& opening) = 0;
  [[nodiscard]] virtual bool controlled(std::uint32_t link, const Control& control) = 0;
  // The other end started anew, or (every link) the carrier is down; posts are gone.
  virtual void broken(std::uint32_t link) = 0;

  // serial_link.cc
  [[nodiscard]] Status put_send(std::uint32_t link, const SerialLink::Send& send);
  static void settle_next(SerialLink& link, bool rejected);

  // receive.cc
  void receive(std::uint32_t link, const std::uint8_t* frame, std::uint32_t size,
               std::uint32_t now);
  [[nodiscard]] bool admit(std::uint32_t link, const std::uint8_t* frame);
  [[nodiscard]] bool take_state(SerialLink& link, const std::uint8_t* frame);
  void take_heard(SerialLink& link, std::uint32_t heard, bool gap) const;
  static void go_back(SerialLink& link);
  [[nodiscard]] bool take_record(std::uint32_t link, const std::uint8_t* record,
                                 std::uint32_t size);
  void take_grant(std::uint32_t link, std::uint8_t number, const std::uint8_t* grant);
  void take_opening(std::uint32_t link, std::uint8_t number, const std::uint8_t* opening);
  void take_data(SerialLink& link, std::uint8_t number, const std::uint8_t* data,
                 std::uint32_t size) const;
  void take_control(std::uint32_t link, std::uint8_t number, const std::uint8_t* control);
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

  SerialPort* port_;
  SerialLink* links_;
  SerialLinks* next_ = nullptr;  // owner at the same port
  std::uint32_t count_;
  std::uint32_t session_;
  std::uint8_t window_;
  std::uint8_t first_channel_;
  bool settles_;
  bool released_ = false;
};

}  // namespace espalier
