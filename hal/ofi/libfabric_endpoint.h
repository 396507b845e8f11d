#pragma once
// The endpoint over libfabric, inside: passes each call on to the part that does the work.
//
// The behaviour is described in include/espalier/hal/endpoint.h, the data that two endpoints
// exchange in wire.h.
//
// An eager message (at most eager_bytes) is written with its tag and size into the peer's slot for
// its number. The peer frees slots by announcing how many messages it has consumed. A larger
// message waits for the clear to send that the peer writes when it posts the receive, and is then
// written directly to its final place. Nothing is queued: a write that is not possible yet remains
// a bit in the lane's state, and poll() tries it again.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "espalier/hal/ofi/ofi_endpoint.h"
#include "hal/ofi/completion_reporter.h"
#include "hal/ofi/endpoint_state.h"
#include "hal/ofi/lane_announcer.h"
#include "hal/ofi/lane_connector.h"
#include "hal/ofi/lane_receiver.h"
#include "hal/ofi/lane_sender.h"
#include "hal/ofi/lane_writer.h"
#include "hal/ofi/prepared_regions.h"
#include "hal/ofi/reception_monitor.h"

namespace espalier::ofi {

class LibfabricEndpoint final : public OfiEndpoint, public Endpoint {
 public:
  LibfabricEndpoint() = default;
  ~LibfabricEndpoint() override;
  [[nodiscard]] Result<void> open(const Config& config);

  [[nodiscard]] std::vector<std::uint32_t> lane_peers() const override;
  [[nodiscard]] std::vector<std::string> addresses() const override {
    return connector_.addresses();
  }
  [[nodiscard]] Result<void> connect(const std::vector<std::string>& addresses) override;
  [[nodiscard]] Result<void> start_connecting(const std::vector<std::string>& addresses) override {
    return connector_.start(addresses);
  }
  [[nodiscard]] Result<bool> go_on_connecting() override;
  [[nodiscard]] std::string address() const override { return connector_.address(); }
  [[nodiscard]] Result<void> set_addresses(std::vector<std::string> addresses) override {
    return connector_.set_addresses(std::move(addresses));
  }
  [[nodiscard]] std::uint32_t nodes_per_host() const override { return 1; }
  [[nodiscard]] Result<std::uint32_t> add_link(std::uint32_t node) override {
    return connector_.add_link(node);
  }
  [[nodiscard]] Result<bool> connect_links(std::span<const std::uint32_t> links) override;
  [[nodiscard]] bool spin_locks_bounded() const override { return state_.domain.locks_bounded(); }
  [[nodiscard]] Result<void> set_secret(const Secret& secret) override;
  [[nodiscard]] Result<void> keep(std::span<const Region> regions) override;
  void forget(std::span<const Region> regions) override;
  [[nodiscard]] std::uint64_t rejected_words() const override { return state_.rejected; }
  [[nodiscard]] Endpoint& endpoint() override { return *this; }

  [[nodiscard]] std::uint32_t node() const override { return state_.config.node; }
  [[nodiscard]] std::uint32_t links() const override {
    return static_cast<std::uint32_t>(state_.links.size());
  }
  [[nodiscard]] std::uint32_t peer(std::uint32_t link) const override {
    return state_.lanes[state_.links[link].first_lane].peer;
  }
  [[nodiscard]] std::uint32_t window() const override { return state_.config.window; }
  [[nodiscard]] std::uint64_t eager_bytes() const override { return state_.config.eager_bytes; }

  [[nodiscard]] Status prepare(const Region* regions, std::uint32_t count) override;
  void release_regions() override { regions_.release(state_.domain); }
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post) override {
    return receiver_.post(link, post);
  }
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post) override {
    return sender_.post(link, post);
  }
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control) override {
    return sender_.post_control(link, control);
  }
  [[nodiscard]] bool poll(Completion& completion) override;
  void release() override;
  [[nodiscard]] std::uint64_t now() override { return monotonic_ns(); }
  void wait(std::uint64_t until) override;

 private:
  [[nodiscard]] std::uint32_t default_eager_bytes() const;
  void make_lanes();
  [[nodiscard]] Result<void> make_arena();
  // Whether anything moved, in either direction.
  bool progress();
  [[nodiscard]] bool read_queue(std::uint32_t queue);
  void retry();

  EndpointState state_;
  PreparedRegions regions_;
  Registration staging_registration_;  // only if the provider needs it (FI_MR_LOCAL)
  LaneWriter writer_{state_};
  LaneAnnouncer announcer_{state_, writer_};
  LaneSender sender_{state_, writer_, announcer_};
  LaneConnector connector_{state_};
  LaneReceiver receiver_{state_, regions_, connector_, sender_};
  CompletionReporter reporter_{state_};
  ReceptionMonitor monitor_{state_};
  bool has_just_looked_ = false;  // and found something
  std::uint64_t spin_ns_ = 0;     // how long wait() spins before it blocks
};

}  // namespace espalier::ofi
