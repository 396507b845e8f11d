#pragma once
// The provider "mem+NAME": shared memory (hal/mem) between processes of one host, libfabric's
// provider NAME between hosts, over cables if there are any; two endpoints behind one.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "espalier/hal/ofi/ofi_endpoint.h"
#include "hal/fabric/config_check.h"
#include "hal/fabric/mem/memory_endpoint.h"

namespace espalier::ofi {

// Which processes can share memory: those with equal names.
using HostName = std::array<std::uint8_t, 16>;

// Returns the name of AddedConfig.host, or if that is empty a digest of this boot of the kernel,
// the process, user and network namespaces, and the user with its group and capabilities. So a
// container is a host of its own.
[[nodiscard]] HostName host_name(const std::string& host);

class MixedEndpoint final : public AddedLinks, private Endpoint {
 public:
  // Requires check_config().
  [[nodiscard]] static Result<std::unique_ptr<MixedEndpoint>> open(const AddedConfig& config);

  [[nodiscard]] std::string address() const override { return address_; }
  [[nodiscard]] Result<void> set_addresses(std::vector<std::string> addresses) override;
  [[nodiscard]] std::uint32_t nodes_per_host() const override { return nodes_per_host_; }
  void note_end_of(std::uint32_t node) override {
    AddedLinks* const its = node < parts_.size() ? owner(parts_[node]) : nullptr;
    if (its != nullptr) its->note_end_of(node);
  }
  [[nodiscard]] Result<std::uint32_t> add_link(std::uint32_t node) override;
  [[nodiscard]] Result<bool> connect_links(std::span<const std::uint32_t> links) override;
  [[nodiscard]] bool has_cables() const override { return has_cables_; }
  [[nodiscard]] std::string way_of_link(std::uint32_t link) const override;
  [[nodiscard]] std::size_t cable_traffic(std::span<CableTraffic> to) const override {
    return fabric_ == nullptr ? 0 : fabric_->cable_traffic(to);
  }
  [[nodiscard]] std::string lacked() const override {
    return fabric_ == nullptr ? "" : fabric_->lacked();
  }
  [[nodiscard]] Result<void> set_secret(const Secret& secret) override;
  [[nodiscard]] std::uint64_t rejected_words() const override;
  [[nodiscard]] Result<void> keep(std::span<const Region> regions) override;
  void forget(std::span<const Region> regions) override;
  void wake() override;
  // Once the addresses are given and all lead to one kind of peer, the endpoint of that kind.
  [[nodiscard]] Endpoint& endpoint() override;

 private:
  enum Part : std::uint8_t { kMemory, kFabric };
  static constexpr std::array<Part, 2> kParts = {kMemory, kFabric};
  // A link of this endpoint, and its number at the part.
  struct Link {
    Part part;
    std::uint32_t number;
  };

  explicit MixedEndpoint(const AddedConfig& config)
      : config_(config), has_cables_(ofi::has_cables(config)) {}
  [[nodiscard]] Result<void> open_fabric(AddedConfig part);
  [[nodiscard]] Result<void> open_memory(AddedConfig part);
  // Whether the fabric leads to this node: as it routes, or by a cable.
  [[nodiscard]] bool is_reached(std::uint32_t node) const;
  [[nodiscard]] std::string make_address() const;
  [[nodiscard]] AddedLinks* owner(Part part) const;
  [[nodiscard]] Endpoint& of(Part part) const { return *endpoints_[part]; }
  // Takes links into the list that the parts have added. Links over cables are there from the
  // beginning: number_of() takes each when it is first used.
  void adopt();
  // Returns our number of a part's link.
  std::uint32_t number_of(Part part, std::uint32_t link);
  [[nodiscard]] Endpoint& part_of(std::uint32_t link) const {
    ESPALIER_ASSERT(link < links_.size());
    return of(links_[link].part);
  }

  [[nodiscard]] std::uint32_t node() const override { return config_.node; }
  [[nodiscard]] std::uint32_t links() const override {
    return static_cast<std::uint32_t>(links_.size());
  }
  [[nodiscard]] std::uint32_t peer(std::uint32_t link) const override {
    return part_of(link).peer(links_[link].number);
  }
  [[nodiscard]] std::uint32_t window() const override { return config_.window; }
  [[nodiscard]] std::uint64_t eager_bytes() const override { return of(kFabric).eager_bytes(); }
  [[nodiscard]] Status prepare(const Region* regions, std::uint32_t count) override;
  void release_regions() override;
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post) override;
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post) override;
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control) override;
  [[nodiscard]] bool poll(Completion& completion) override;
  void release() override;
  [[nodiscard]] std::uint64_t now() override { return of(kFabric).now(); }
  // Let T be the time since either part delivered something. Blocks in the fabric for at most T/16,
  // then polls the memory. A memory message therefore waits at most T/16 longer.
  void wait(std::uint64_t until) override;

  static constexpr std::uint32_t kNoNumber = 0xffffffff;

  AddedConfig config_;
  bool has_cables_;
  HostName host_ = {};
  std::string address_;                     // of both parts, also once one of them is closed
  std::unique_ptr<MemoryEndpoint> memory_;  // null: no peer is on this host
  // Null: all peers are on this host, or this node has no cable.
  std::unique_ptr<AddedLinks> fabric_;
  std::array<Endpoint*, 2> endpoints_ = {};  // by part
  std::vector<Part> parts_;                  // by node
  std::uint32_t nodes_per_host_ = 1;
  std::vector<Link> links_;
  std::array<std::vector<std::uint32_t>, 2> numbers_;  // by part and its number of a link: ours
  Part turn_ = kMemory;                                // the part that poll() looks at first
  std::uint64_t silent_since_ = 0;                     // 0: poll() has found something since
};

}  // namespace espalier::ofi
