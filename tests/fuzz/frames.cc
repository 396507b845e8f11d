// Fuzz target: for any frames that arrive over a carrier, framed links write only the bytes of
// posted receives, complete each post at most once and in order, and send frames that fit. The
// input lists, step by step, the actions of an endpoint's owner and the arrivals: posts, frames of
// any bytes with a correct checksum, or (for the byte-stuffed carrier) any bytes. On links with a
// key the frames have a correct code, as those of a hostile peer that has the key, or a wrong one.

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "base/crc32.h"
#include "espalier/hal/serial/carrier.h"
#include "espalier/hal/serial/serial_endpoint.h"
#include "espalier/internal/base/little_endian.h"
#include "hal/serial/siphash.h"
#include "tests/fuzz/expect.h"

namespace espalier::fuzz {
namespace {

namespace header = serial::header;
constexpr std::uint32_t kMtu = 128, kLinks = 2, kSession = 7, kPeerSession = 9;
constexpr std::uint8_t kUntouched = 0x5a;
constexpr std::uint8_t kKey[16] = {1, 2, 3, 4};
constexpr std::uint32_t kNonce = 70, kPeerNonce = 90;

// The code of the first `covered` bytes of a frame of `link`, which `sender` sends.
std::uint64_t code(const std::uint8_t* frame, std::size_t covered, std::uint32_t sender,
                   std::uint32_t receiver) {
  std::vector<std::uint8_t> bytes(frame, frame + covered);
  bytes[header::kChannel.offset] = 0;  // the number among the links to that peer
  serial::SipHash hash(kKey);
  hash.add(std::uint64_t{sender} | std::uint64_t{receiver} << 32);
  return hash.finish(bytes.data(), static_cast<std::uint32_t>(covered));
}

class StepClock final : public Clock {
 public:
  std::uint64_t now() override { return time; }
  std::uint64_t time = 0;
};

// Delivers the frames that were put into it; accepts all frames that are sent.
class FuzzCarrier final : public Carrier {
 public:
  std::uint32_t mtu() const override { return kMtu; }
  Status send(const std::uint8_t* frame, std::uint32_t size) override {
    if (full) return Status::kTryAgain;
    expect(size >= serial::kHeaderBytes + serial::kCrcBytes && size <= kMtu, "a frame fits");
    const std::uint8_t link = serial::get<header::kChannel>(frame);
    expect(link < kLinks, "a frame is of a link");
    if (keyed) {
      expect(serial::get<header::kFormat>(frame) == serial::kCodedFormat, "a frame has a code");
      const std::uint32_t covered = size - serial::kCodeBytes;
      expect(code(frame, covered, 0, 1 + link) == load_u64(frame + covered), "it is right");
      challenge[link] =
          serial::get<serial::trailer::kChallenge>(frame + size - serial::kTrailerBytes);
    } else {
      const std::uint32_t covered = size - serial::kCrcBytes;
      expect(crc32(0, frame, covered) == load_u32(frame + covered), "a frame's checksum is right");
    }
    sequence[link] = serial::get<header::kSequence>(frame);
    here[link] = serial::get<header::kAcked>(frame);
    return Status::kOk;
  }
  std::uint32_t receive(std::uint8_t* frame) override {
    const auto size = static_cast<std::uint32_t>(in.size());
    std::copy(in.begin(), in.end(), frame);
    in.clear();
    return size;
  }
  std::vector<std::uint8_t> in;
  std::array<std::uint32_t, kLinks> sequence = {};   // of the newest sent frame
  std::array<std::uint32_t, kLinks> here = {};       // received bytes of the next message
  std::array<std::uint32_t, kLinks> challenge = {};  // of the newest sent frame
  bool full = false;
  bool keyed = false;
};

class FuzzStream final : public ByteStream {
 public:
  bool put(std::uint8_t) override { return true; }
  bool get(std::uint8_t& byte) override {
    if (next == in.size()) return false;
    byte = in[next++];
    return true;
  }
  std::vector<std::uint8_t> in;
  std::size_t next = 0;
};

// A post that is not complete. Its memory has exactly the post's size and is freed at completion,
// so the sanitizers see any access outside of it.
struct Posted {
  std::uint32_t context = 0;
  std::uint64_t tag = 0;
  std::vector<std::uint8_t> bytes;
};

class Ends {
 public:
  Ends(Input& input, bool keyed)
      : input_(input),
        keyed_(keyed),
        port_(carrier_, clock_, reinterpret_cast<std::uint8_t*>(frames_.data()), {}),
        endpoint_(port_, links_, kPeers, kLinks, 0, config(keyed)) {
    carrier_.keyed = keyed;
    carrier_.challenge.fill(kNonce);
  }

  void run() {
    while (input_.left() > 0) {
      step();
      clock_.time += std::uint64_t{1} << input_.below(40);
      Completion completion;
      while (endpoint_.poll(completion)) take(completion);
    }
  }

 private:
  static SerialConfig config(bool keyed) {
    SerialConfig config{.session = kSession, .nonce = kNonce};
    if (keyed) config.key = kKey;
    return config;
  }

  void step() {
    const std::uint32_t link = input_.below(kLinks);
    switch (input_.below(8)) {
      case 0: post(link, true); break;
      case 1: post(link, false); break;
      case 2: {
        Control control;
        control.kind = static_cast<ControlKind>(input_.below(kControlKinds));
        control.number = input_.word();
        expect(endpoint_.post_control(link, control) == Status::kOk, "a control is taken");
        break;
      }
      case 3: carrier_.full = !carrier_.full; break;
      case 4:
        if (input_.below(64) == 0) release();
        break;
      default: frame(link); break;
    }
  }

  void post(std::uint32_t link, bool receives) {
    const std::uint64_t tag = input_.below(4), size = input_.below(2 * kMtu);
    Posted made{posted_, tag, std::vector<std::uint8_t>(size, kUntouched)};
    const Status status =
        receives ? endpoint_.post_receive(link, {made.bytes.data(), size, tag, posted_})
                 : endpoint_.post_send(link, {made.bytes.data(), size, tag, 0, posted_});
    expect(released_ ? status == Status::kBadArgument
                     : status == Status::kOk || status == Status::kTooLarge,
           "a post is taken, or there is no room");
    if (status != Status::kOk) return;
    posts_[link][receives].push_back(std::move(made));
    ++posted_;
  }

  // A frame from the other end. Most parts match this end's state, because no fuzzer finds sessions
  // and counters; `wrong` has a bit for each part that does not. The checksum is always correct.
  void frame(std::uint32_t link) {
    std::vector<std::uint8_t>& in = carrier_.in;
    const std::uint32_t wrong = input_.byte();
    in.assign(serial::kHeaderBytes, 0);
    if ((wrong & 1) != 0) {
      for (std::uint8_t& byte : in) byte = static_cast<std::uint8_t>(input_.byte());
    }
    std::uint8_t* const frame = in.data();
    serial::set<header::kFormat>(frame, serial::kFormat);
    serial::set<header::kChannel>(frame, link);
    if ((wrong & 2) == 0) serial::set<header::kSession>(frame, kPeerSession);
    if ((wrong & 4) == 0) serial::set<header::kPeerSession>(frame, kSession);
    if ((wrong & 8) == 0) serial::set<header::kSequence>(frame, ++sequence_);
    if ((wrong & 16) == 0) serial::set<header::kHeard>(frame, carrier_.sequence[link]);
    if ((wrong & 32) == 0) {
      serial::set<header::kFlags>(frame, input_.below(4));
      serial::set<header::kGranted>(frame, over_[link][1]);
      const std::uint32_t settled = over_[link][0] + input_.below(3);
      const std::uint32_t arrived = settled + input_.below(2);
      serial::set<header::kSettled>(frame, settled);
      serial::set<header::kArrived>(frame, arrived);
      serial::set<header::kOpened>(frame, arrived + input_.below(3));
    }
    for (std::uint32_t records = input_.below(4); records > 0; --records) record(link);
    if (keyed_) return put_code(link, wrong);
    in.resize(in.size() + serial::kCrcBytes);
    const std::size_t covered = in.size() - serial::kCrcBytes;
    store_le(&in[covered], crc32(0, in.data(), covered), 4);
  }

  // Adds a trailer with a code. The code is correct unless two bits of `wrong` say otherwise.
  void put_code(std::uint32_t link, std::uint32_t wrong) {
    std::vector<std::uint8_t>& in = carrier_.in;
    const std::size_t trailer = in.size();
    in.resize(trailer + serial::kTrailerBytes);
    serial::set<header::kFormat>(in.data(), serial::kCodedFormat);
    serial::set<serial::trailer::kChallenge>(&in[trailer], kPeerNonce);
    const bool repeats = (wrong & 64) == 0 || input_.below(2) == 0;
    serial::set<serial::trailer::kEcho>(&in[trailer],
                                        repeats ? carrier_.challenge[link] : input_.word());
    if ((wrong & 64) != 0) {
      serial::set<serial::trailer::kSequenceHigh>(&in[trailer], input_.below(3));
    }
    const std::size_t covered = in.size() - serial::kCodeBytes;
    std::uint64_t right = code(in.data(), covered, 1 + link, 0);
    if ((wrong & 192) == 192) right ^= std::uint64_t{1} << input_.below(64);
    store_le(&in[covered], right, 8);
  }

  // Adds a record to the frame if there is room: one that is valid next, or any bytes.
  void record(std::uint32_t link) {
    using serial::Record;
    const unsigned choice = input_.below(8);
    const bool right = choice < 7;
    const auto type = static_cast<std::uint8_t>(right ? 1 + choice % 4 : input_.byte());
    std::uint8_t number = static_cast<std::uint8_t>(over_[link][1] + input_.below(2));
    std::vector<std::uint8_t> body(right ? 0 : input_.below(kMtu));
    for (std::uint8_t& byte : body) byte = static_cast<std::uint8_t>(input_.byte());
    if (right && type == static_cast<std::uint8_t>(Record::kData)) {
      body.assign(serial::kDataBytes + input_.below(64), 0x33);
      serial::set<serial::data::kOffset>(body.data(), carrier_.here[link] + input_.below(2));
    } else if (right && type == static_cast<std::uint8_t>(Record::kControl)) {
      number = static_cast<std::uint8_t>(input_.byte());
      body.resize(serial::kControlBytes);
      for (std::uint8_t& byte : body) byte = static_cast<std::uint8_t>(input_.byte());
      body[serial::control::kKind.offset] %= kControlKinds + 1;
    } else if (right) {
      const bool grants = type == static_cast<std::uint8_t>(Record::kGrant);
      if (grants) number = granted_[link]++;
      const std::deque<Posted>& awaited = posts_[link][1];
      const bool agrees = !awaited.empty() && input_.below(4) != 0;
      body.assign(grants ? serial::kGrantBytes : serial::kOpeningBytes, 0);
      serial::set<serial::post::kTag>(body.data(), agrees ? awaited.front().tag : input_.below(4));
      serial::set<serial::post::kSize>(body.data(),
                                       agrees ? awaited.front().bytes.size() : input_.word());
    }
    std::vector<std::uint8_t>& in = carrier_.in;
    if (in.size() + serial::kRecordBytes + body.size() + trailer_bytes() > kMtu) return;
    std::uint8_t head[serial::kRecordBytes];
    serial::set<serial::record::kType>(head, type);
    serial::set<serial::record::kNumber>(head, number);
    serial::set<serial::record::kBytes>(head, body.size());
    in.insert(in.end(), std::begin(head), std::end(head));
    in.insert(in.end(), body.begin(), body.end());
  }

  [[nodiscard]] std::uint32_t trailer_bytes() const {
    return keyed_ ? serial::kTrailerBytes : serial::kCrcBytes;
  }

  void release() {
    endpoint_.release();
    released_ = true;
    for (auto& link : posts_) link[0].clear(), link[1].clear();
  }

  void take(const Completion& completion) {
    expect(completion.link < kLinks, "a completion is of a link");
    auto& posts = posts_[completion.link];
    if (completion.kind == Completion::Kind::kLinkDown) {
      posts[0].clear(), posts[1].clear();
      over_[completion.link][0] = over_[completion.link][1] = granted_[completion.link] = 0;
    }
    const bool receives = completion.kind == Completion::Kind::kReceived;
    if (!receives && completion.kind != Completion::Kind::kSent) return;
    expect(!posts[receives].empty(), "what completes was posted");
    const Posted& post = posts[receives].front();
    expect(completion.context == post.context, "posts complete in order");
    expect(completion.status == Status::kOk || completion.status == Status::kMismatch,
           "a post agrees or does not");
    const bool untouched = std::all_of(post.bytes.begin(), post.bytes.end(),
                                       [](std::uint8_t byte) { return byte == kUntouched; });
    expect(completion.status == Status::kOk || untouched, "of what does not agree nothing is kept");
    posts[receives].pop_front();
    ++over_[completion.link][receives];
  }

  static constexpr std::uint32_t kPeers[kLinks] = {1, 2};
  Input& input_;
  bool keyed_;
  FuzzCarrier carrier_;
  StepClock clock_;
  std::array<std::uint32_t, 2 * kMtu / 4> frames_ = {};
  SerialLink links_[kLinks] = {};
  SerialPort port_;
  SerialEndpoint endpoint_;
  std::deque<Posted> posts_[kLinks][2];  // sends, receives
  std::uint32_t posted_ = 0;
  std::uint8_t over_[kLinks][2] = {};
  std::uint8_t granted_[kLinks] = {};
  std::uint32_t sequence_ = 0;  // of the other end's frames
  bool released_ = false;
};

// From any bytes, the carrier makes only frames that fit.
void unstuff(const std::uint8_t* bytes, std::size_t size) {
  FuzzStream stream;
  stream.in.assign(bytes, bytes + size);
  ByteCarrier carrier(stream, kMtu);
  std::vector<std::uint8_t> frame(kMtu);
  while (stream.next < stream.in.size()) {
    expect(carrier.receive(frame.data()) <= kMtu, "a frame fits");
  }
}

}  // namespace

void run(Input& input) {
  const std::uint32_t kind = input.below(8);
  if (kind == 0) {
    unstuff(input.rest(), input.left());
  } else {
    Ends(input, kind >= 5).run();
  }
}

}  // namespace espalier::fuzz
