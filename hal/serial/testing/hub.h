#pragma once
// Serial endpoints of many nodes in one process, in virtual time. Each node has one carrier to a
// hub, which delivers every frame to the node at the other end of its channel. Carriers lose,
// duplicate, delay and damage frames, or bytes, from a seed. Host only, for tests.

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "espalier/hal/serial/carrier.h"
#include "espalier/hal/serial/serial_endpoint.h"

namespace espalier::serial {

struct CarrierFaults {
  // Probabilities per frame or, over bytes, per byte.
  double lose = 0, repeat = 0, damage = 0;
  double delay = 0;  // probability of a delay of up to 50 us, so that later frames overtake it
  unsigned seed = 1;
  bool bytes = false;  // frames travel over a stream of bytes
  std::uint32_t mtu = 1498;
};

// Bytes in flight, at most kRoom.
class Pipe final : public ByteStream {
 public:
  static constexpr std::uint32_t kRoom = 700;
  Pipe(const CarrierFaults& faults, std::mt19937& random) : faults_(faults), random_(random) {}
  [[nodiscard]] bool put(std::uint8_t byte) override;
  [[nodiscard]] bool get(std::uint8_t& byte) override;
  [[nodiscard]] bool empty() const { return first_ == end_; }

 private:
  void push(std::uint8_t byte) { bytes_[end_++ % kRing] = byte; }

  static constexpr std::uint32_t kRing = 1024;  // kRoom, and one that is repeated
  static_assert(kRing > kRoom);
  const CarrierFaults& faults_;
  std::mt19937& random_;
  std::array<std::uint8_t, kRing> bytes_;
  std::uint32_t first_ = 0, end_ = 0;  // the ring's positions, modulo kRing
  std::int64_t until_fault_ = 0;       // bytes
  bool started_ = false;               // the number above was drawn
};

class Hub {
 public:
  using Frame = std::vector<std::uint8_t>;

  // peers[v]: the nodes at the other ends of node v's channels 0, 1, ...
  Hub(std::vector<std::vector<std::uint32_t>> peers, const CarrierFaults& faults);
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  [[nodiscard]] std::uint32_t nodes() const { return static_cast<std::uint32_t>(peers_.size()); }
  [[nodiscard]] Carrier& carrier(std::uint32_t node);
  [[nodiscard]] Clock& clock(std::uint32_t node) { return clocks_[node]; }
  // The hub calls the port's wait() to find its next event. The port must outlive the use of the
  // hub.
  void add(std::uint32_t node, SerialPort& port) { ports_[node] = &port; }
  // Removes the node: its carrier carries nothing from now on, and its port is not called.
  void cut(std::uint32_t node);
  // Ends cut(): the node starts again, with a new carrier. Its port must be gone.
  void restore(std::uint32_t node);
  // Loses each frame for which `loses` returns true when it is sent.
  void lose(std::function<bool(std::uint32_t from, std::uint32_t to)> loses) {
    loses_ = std::move(loses);
  }

  [[nodiscard]] std::uint64_t now() const { return now_; }
  // Lets time pass until a node has something to do, or until `until`. False: no event will follow.
  bool advance(std::uint64_t until);
  // The next three are for owners that decide themselves when a node is polled, so that time goes
  // on while frames wait for a node.
  // Whether frames or bytes have arrived at the node.
  [[nodiscard]] bool ready(std::uint32_t node) const;
  // Sends what the node's port has to send. Returns the time at which it must be called again.
  [[nodiscard]] std::uint64_t due(std::uint32_t node);
  // Lets time pass until something arrives anywhere, or until `until`. False: time is now `until`,
  // or unchanged if `until` is UINT64_MAX, and nothing will arrive.
  bool pass(std::uint64_t until);
  [[nodiscard]] std::uint64_t frames() const { return frames_; }  // sent by all nodes
  // Calls `watcher` for every frame that a node sends.
  void watch(std::function<void(std::uint32_t from, const Frame& frame)> watcher) {
    watcher_ = std::move(watcher);
  }
  // Delivers an unmodified frame to node `to` at once.
  void inject(std::uint32_t to, Frame frame) { deliver(to, std::move(frame)); }

 private:
  // The hub holds frames in flight; a node's end holds the frames that have arrived.
  struct End final : public Carrier {
    Hub* hub = nullptr;
    std::uint32_t node = 0;
    std::deque<Frame> inbox;
    [[nodiscard]] std::uint32_t mtu() const override { return hub->faults_.mtu; }
    [[nodiscard]] Status send(const std::uint8_t* frame, std::uint32_t size) override;
    [[nodiscard]] std::uint32_t receive(std::uint8_t* frame) override;
  };
  // A node's byte streams, and both ends' carriers over them.
  struct Wire final : public ByteStream {
    Wire(const CarrierFaults& faults, std::mt19937& random)
        : up(faults, random), down(faults, random) {}
    Pipe up, down;
    struct Side final : public ByteStream {
      Pipe* out = nullptr;
      Pipe* in = nullptr;
      [[nodiscard]] bool put(std::uint8_t byte) override { return out->put(byte); }
      [[nodiscard]] bool get(std::uint8_t& byte) override { return in->get(byte); }
    };
    [[nodiscard]] bool put(std::uint8_t byte) override { return up.put(byte); }
    [[nodiscard]] bool get(std::uint8_t& byte) override { return down.get(byte); }
    Side hub_side;
    std::unique_ptr<ByteCarrier> node_end, hub_end;
    Frame buffer;
    std::deque<Frame> outbox;
  };
  struct NodeClock final : public Clock {
    Hub* hub = nullptr;
    std::uint32_t node = 0;
    [[nodiscard]] std::uint64_t now() override { return hub->now_; }
    void wait(std::uint64_t until) override;
  };

  void route(std::uint32_t node, Frame frame);
  void fly(std::uint32_t to, const Frame& frame);
  void deliver(std::uint32_t to, Frame frame);
  bool move_bytes();
  bool deliver_due();
  [[nodiscard]] bool busy() const;
  [[nodiscard]] std::uint64_t next_due();
  [[nodiscard]] bool happens(double chance) { return dice_(random_) < chance; }

  std::vector<std::vector<std::uint32_t>> peers_;
  CarrierFaults faults_;
  std::mt19937 random_;
  std::uniform_real_distribution<double> dice_{0, 1};
  std::deque<End> ends_;
  std::deque<Wire> wires_;
  std::deque<NodeClock> clocks_;
  std::vector<SerialPort*> ports_;
  std::vector<bool> cut_;
  std::multimap<std::uint64_t, std::pair<std::uint32_t, Frame>> flying_;
  std::function<void(std::uint32_t, const Frame&)> watcher_;
  std::function<bool(std::uint32_t, std::uint32_t)> loses_;
  std::uint64_t now_ = 1'000'000;
  std::uint64_t frames_ = 0;
  bool asking_ = false;
  std::uint64_t answer_ = 0;
};

// A node's port, links and endpoint.
class SerialNode {
 public:
  SerialNode(Hub& hub, std::uint32_t node, const std::vector<std::uint32_t>& peers,
             const SerialConfig& config, const SerialPortConfig& port_config = {});
  [[nodiscard]] SerialEndpoint& endpoint() { return endpoint_; }
  [[nodiscard]] SerialPort& port() { return port_; }

 private:
  std::vector<std::uint32_t> peers_;
  std::vector<std::uint32_t> buffer_;
  std::vector<SerialLink> links_;
  SerialPort port_;
  SerialEndpoint endpoint_;
};

}  // namespace espalier::serial
