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

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/network/carrier.h"
#include "espalier/hal/ofi/ofi_endpoint.h"
#include "hal/fabric/ofi/lanes/completion_reporter.h"
#include "hal/fabric/ofi/lanes/endpoint_parts.h"

namespace espalier::ofi {

class LibfabricEndpoint final : public FixedLinks, public AddedLinks, public Endpoint {
 public:
  // All require check_config().
  [[nodiscard]] static Result<std::unique_ptr<LibfabricEndpoint>> open(const FixedConfig& config);
  // With links that are connected one by one, each in its own time: after begin().
  [[nodiscard]] static Result<std::unique_ptr<LibfabricEndpoint>> open_apart(
      const FixedConfig& config);
  [[nodiscard]] static Result<std::unique_ptr<LibfabricEndpoint>> open(const AddedConfig& config);
  ~LibfabricEndpoint() override;
  // Returns config.eager_bytes, or the default.
  [[nodiscard]] static std::uint32_t eager_bytes_of(const Config& config);

  [[nodiscard]] std::vector<std::uint32_t> lane_peers() const override;
  [[nodiscard]] std::vector<std::string> addresses() const override {
    const auto lock = locked();
    return connector_.addresses();
  }
  [[nodiscard]] Result<void> start_connecting(const std::vector<std::string>& addresses) override {
    const auto lock = locked();
    return connector_.start(addresses);
  }
  [[nodiscard]] Result<bool> go_on_connecting() override;
  // Takes what the other ends say from now on. Requires open_apart(). Errors: called twice,
  // authenticate_data without a secret.
  [[nodiscard]] Result<void> begin() {
    is_mute_ = false;
    return connector_.begin();
  }
  // Starts to connect a link: the addresses of its lanes' other ends. Messages may be posted then.
  // Error: a wrong address.
  [[nodiscard]] Result<void> start_link(std::uint32_t link,
                                        std::span<const std::string> addresses) {
    return connector_.start_link(link, addresses);
  }
  // Makes progress. Returns whether each of these links is connected. Errors: one broke, or did not
  // connect within Config.connect_deadline_ns of the first call for it.
  [[nodiscard]] Result<bool> check_links(std::span<const std::uint32_t> links);
  // Names the way that each lane takes, for errors.
  void set_lane_texts(std::vector<std::string> texts) { state_.lane_texts = std::move(texts); }
  [[nodiscard]] const Lane& lane(std::uint32_t index) const { return state_.lanes[index]; }

  [[nodiscard]] std::string address() const override {
    const auto lock = locked();
    return connector_.address();
  }
  [[nodiscard]] Result<void> set_addresses(std::vector<std::string> addresses) override {
    const auto lock = locked();
    return connector_.set_addresses(std::move(addresses));
  }
  [[nodiscard]] std::uint32_t nodes_per_host() const override { return 1; }
  void note_end_of(std::uint32_t node) override {
    if (state_.shared == nullptr) return;
    const LightLock lock(mutex_);
    state_.shared->note_end_of(connector_.port_name_of(node));
  }
  [[nodiscard]] Result<std::uint32_t> add_link(std::uint32_t node) override {
    const auto lock = locked();
    return connector_.add_link(node);
  }
  [[nodiscard]] Result<bool> connect_links(std::span<const std::uint32_t> links) override;
  [[nodiscard]] Result<void> set_secret(const Secret& secret) override;
  [[nodiscard]] Result<void> keep(std::span<const Region> regions) override;
  void forget(std::span<const Region> regions) override;
  [[nodiscard]] std::uint64_t rejected_words() const override { return state_.rejected; }
  [[nodiscard]] std::string lacked() const override { return state_.lacked; }
  void wake() override;
  [[nodiscard]] Endpoint& endpoint() override { return *this; }

  [[nodiscard]] std::uint32_t node() const override { return state_.config.node; }
  [[nodiscard]] std::uint32_t links() const override {
    return static_cast<std::uint32_t>(state_.links.size());
  }
  [[nodiscard]] std::uint32_t peer(std::uint32_t link) const override {
    ESPALIER_ASSERT(link < state_.links.size());
    return state_.lanes[state_.links[link].first_lane].peer;
  }
  [[nodiscard]] std::uint32_t window() const override { return state_.config.window; }
  [[nodiscard]] std::uint64_t eager_bytes() const override { return state_.config.eager_bytes; }

  [[nodiscard]] Status prepare(const Region* regions, std::uint32_t count) override;
  void release_regions() override;
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post) override {
    const auto lock = locked();
    return receiver_.post(link, post);
  }
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post) override {
    const auto lock = locked();
    return sender_.post(link, post);
  }
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control) override {
    const auto lock = locked();
    return sender_.post_control(link, control);
  }
  [[nodiscard]] bool poll(Completion& completion) override;
  void release() override;
  [[nodiscard]] std::uint64_t now() override { return monotonic_ns(); }
  void wait(std::uint64_t until) override;

 private:
  explicit LibfabricEndpoint(const Config& config);
  // Opens a domain of its own.
  [[nodiscard]] Result<void> open_domain(bool is_routed);
  [[nodiscard]] Result<void> make_arena();
  [[nodiscard]] std::size_t max_lanes() const {
    return std::max<std::size_t>(state_.lanes.size(), state_.max_links);
  }
  // Whether anything moved, in either direction.
  bool progress();
  [[nodiscard]] bool read_queue();
  // Watches the carriers of the lanes whose own addresses name an interface.
  void watch_carriers();
  // Reports the lanes as down whose interface has lost its carrier.
  void look_at_carriers(std::uint64_t time_ns);

  // Holds the lock of what the process shares; nothing, if the domain is this endpoint's own.
  [[nodiscard]] LightLock locked() const { return LightLock(mutex_); }
  // The same, if the prepared regions need the domain.
  [[nodiscard]] LightLock locked_for_regions() const {
    const bool needs = regions_.has_registrations() || state_.domain->registers_local_memory();
    return LightLock(needs ? mutex_ : nullptr);
  }
  [[nodiscard]] bool block(std::uint64_t ns);

  std::unique_ptr<EndpointParts> parts_ = std::make_unique<EndpointParts>();
  EndpointState& state_ = parts_->state;
  LightMutex* mutex_ = nullptr;  // of what the process shares
  PreparedRegions& regions_ = parts_->regions;
  LaneSender& sender_ = parts_->sender;
  LaneConnector& connector_ = parts_->connector;
  LaneReceiver& receiver_ = parts_->receiver;
  CompletionReporter reporter_{state_};
  bool has_just_looked_ = false;        // and found something
  std::atomic<bool> is_woken_ = false;  // by wake(), since the last wait()
  std::uint64_t spin_ns_ = 0;           // how long wait() spins before it blocks
  // Only if it was opened apart:
  bool is_mute_ = false;                             // begin() was not called
  int nudge_ = -1;                                   // wake() makes it readable
  std::unique_ptr<network::CarrierWatch> carriers_;  // null: no lane names its interface
  std::vector<std::uint32_t> watched_lanes_;         // by place in carriers_
};

}  // namespace espalier::ofi
