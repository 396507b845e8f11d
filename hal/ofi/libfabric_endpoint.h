#pragma once
// The endpoint over libfabric, inside. Behaviour: include/espalier/hal/endpoint.h; what goes over
// the fabric: wire.h.
//
// A message of at most eager_bytes is written with its tag and size into the peer's slot for its
// number; the peer gives the slot back by telling how many messages it has consumed. A longer one
// waits for the grant that the peer writes when it posts the receive, and is then written straight
// to its final place. Nothing is queued: what cannot go now stays a bit in the lane's state and is
// tried again by poll().

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "espalier/base/link_set.h"
#include "espalier/hal/ofi/ofi_endpoint.h"
#include "hal/ofi/fabric.h"
#include "hal/ofi/link.h"
#include "hal/ofi/wire.h"

namespace espalier::ofi {

class LibfabricEndpoint final : public OfiEndpoint, public Endpoint {
 public:
  LibfabricEndpoint() = default;
  ~LibfabricEndpoint() override;
  [[nodiscard]] bool open(const Config& config, std::string& error);

  [[nodiscard]] std::vector<std::uint32_t> lane_peers() const override;
  [[nodiscard]] std::vector<std::string> addresses() const override;
  [[nodiscard]] Status connect(const std::vector<std::string>& addresses,
                               std::string& error) override;
  [[nodiscard]] Status start_connecting(const std::vector<std::string>& addresses,
                                        std::string& error) override;
  [[nodiscard]] Status go_on_connecting(std::string& error) override;
  [[nodiscard]] Endpoint& endpoint() override { return *this; }

  [[nodiscard]] std::uint32_t node() const override { return config_.node; }
  [[nodiscard]] std::uint32_t links() const override {
    return static_cast<std::uint32_t>(config_.peers.size());
  }
  [[nodiscard]] std::uint32_t peer(std::uint32_t link) const override {
    return config_.peers[link];
  }
  [[nodiscard]] std::uint32_t window() const override { return config_.window; }
  [[nodiscard]] std::uint64_t eager_bytes() const override { return config_.eager_bytes; }

  [[nodiscard]] Status prepare(const Region* regions, std::uint32_t count) override;
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post) override;
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post) override;
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control) override;
  [[nodiscard]] bool poll(Completion& completion) override;
  void release() override;
  [[nodiscard]] std::uint64_t now() override;
  void wait(std::uint64_t until) override;

 private:
  // The context of a write: which message's completion it is. libfabric writes into the first part.
  struct Context {
    fi_context2 libfabric;
    std::uint32_t lane;
    std::uint32_t position;
  };
  struct Prepared {
    Region region;
    Exposed exposed;
  };

  // open.cc: opening, addresses, connecting.
  [[nodiscard]] bool check(const Config& config, std::string& error) const;
  void make_lanes();
  [[nodiscard]] bool decode_address(std::uint32_t lane, const std::string& text,
                                    std::string& error);
  void greet();

  // send.cc: everything that writes to the peer. Each returns false when libfabric has no room.
  void push(std::uint32_t index);
  [[nodiscard]] bool push_controls(Lane& lane);
  [[nodiscard]] bool push_answers(Lane& lane);
  [[nodiscard]] bool push_grants(Lane& lane);
  [[nodiscard]] bool push_messages(Lane& lane, std::uint32_t index);
  [[nodiscard]] bool send_eager(Lane& lane, std::uint32_t index, std::uint64_t number);
  [[nodiscard]] bool send_large(Lane& lane, std::uint32_t index, std::uint64_t number);
  [[nodiscard]] bool withdraw(Lane& lane, std::uint32_t index, std::uint64_t number);
  // Writes message `number` to its place at the peer; false: not (all of it) yet.
  [[nodiscard]] bool write(Lane& lane, std::uint32_t index, const Immediate& immediate,
                           const void* bytes, std::uint64_t size, std::uint64_t address,
                           std::uint64_t key);
  // Writes an entry (at most 64 bytes) and its immediate.
  [[nodiscard]] bool tell(Lane& lane, Word word, std::uint64_t number, std::uint32_t value,
                          std::uint64_t offset, const void* bytes, std::size_t size);
  // ... or the immediate alone.
  [[nodiscard]] bool tell(Lane& lane, Word word, std::uint64_t number, std::uint32_t value);
  [[nodiscard]] bool accepted(Lane& lane, Fabric::Result result);
  void told(Lane& lane, std::uint32_t count);
  void fail(Lane& lane, std::uint32_t index);

  // receive.cc: everything that comes from the peer.
  void written(std::uint64_t data);  // an immediate
  void message_event(Lane& lane, std::uint32_t index, const Immediate& immediate);
  void control_event(Lane& lane, std::uint32_t index, const Immediate& immediate);
  void finished(std::uint32_t index, std::uint32_t position);  // one of our writes
  void granted(Lane& lane, std::uint32_t index, std::uint16_t low);
  void rejected(Lane& lane, std::uint32_t index, std::uint16_t low);
  void arrived(Lane& lane, std::uint32_t index, const Immediate& immediate);
  void credited(Lane& lane, std::uint32_t index, std::uint32_t count);
  void mismatched_late(Lane& lane, std::uint32_t index, std::uint64_t number);
  void consume(Lane& lane, std::uint32_t index);
  [[nodiscard]] bool consume_next(Lane& lane, std::uint32_t index);

  // poll.cc: progress and reports.
  bool progress();  // whether anything moved, in either direction
  bool drain(std::uint32_t queue);
  void retry();
  void shut();
  void listening();
  void deafen(std::uint32_t index, bool deafens);
  [[nodiscard]] bool take(Completion& completion);
  [[nodiscard]] bool take_from(std::uint32_t index, Completion& completion);
  [[nodiscard]] bool take_received(Lane& lane, Completion& completion) const;
  [[nodiscard]] bool take_early(Lane& lane, Completion& completion) const;
  [[nodiscard]] bool take_sent(Lane& lane, Completion& completion) const;
  [[nodiscard]] bool take_late(Lane& lane, Completion& completion) const;

  [[nodiscard]] std::uint64_t position(std::uint64_t number) const {
    return number & (layout_.ring() - 1);
  }
  // The greatest number below `limit` at `position`.
  [[nodiscard]] std::uint64_t last_before(std::uint64_t limit, std::uint64_t position) const {
    return limit - 1 - ((limit - 1 - position) & (layout_.ring() - 1));
  }

  Config config_;
  ArenaLayout layout_;
  Fabric fabric_;
  Exposed arena_exposed_;
  std::unique_ptr<std::byte[]> arena_;    // written by the peers
  std::unique_ptr<std::byte[]> staging_;  // eager messages on their way, laid out like the arena
  std::vector<Context> contexts_;         // lanes x ring
  std::vector<Link> links_;
  std::vector<Lane> lanes_;
  std::array<Prepared, kMaxRegions> prepared_;
  LinkSet ready_;                 // lanes that have something to report
  LinkSet pending_;               // lanes for which libfabric had no room
  std::uint64_t writes_ = 0;      // that libfabric took
  std::uint64_t spin_ns_ = 0;     // how long wait() spins before it blocks
  std::uint64_t shut_since_ = 0;  // ns: no look at what has come since then; 0: the last one was
  std::uint64_t look_at_ = 0;     // ns: when to look at the peers' processes
  std::uint32_t last_taken_ = 0;
  std::uint64_t greet_until_ = 0;
  bool connected_ = false;
  bool released_ = false;
};

}  // namespace espalier::ofi
