#pragma once
// AddedLinks over cables: one libfabric endpoint per lane, which leaves by the interface of its
// cable. The links are there from the beginning, one per node that a cable leads to. From
// set_addresses() on each connects in any call that makes progress, because it will be used.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "espalier/hal/ofi/ofi_endpoint.h"
#include "hal/fabric/ofi/lanes/libfabric_endpoint.h"

namespace espalier::ofi {

class CabledLinks final : public AddedLinks {
 public:
  // Requires check_config(), and cables. Ignores config.host.
  [[nodiscard]] static Result<std::unique_ptr<CabledLinks>> open(const AddedConfig& config);

  [[nodiscard]] std::string address() const override;
  // Ignores nodes to which no cable leads.
  [[nodiscard]] Result<void> set_addresses(std::vector<std::string> addresses) override;
  [[nodiscard]] std::uint32_t nodes_per_host() const override { return 1; }
  [[nodiscard]] Result<std::uint32_t> add_link(std::uint32_t node) override;
  [[nodiscard]] Result<bool> connect_links(std::span<const std::uint32_t> links) override;
  [[nodiscard]] bool has_cables() const override { return true; }
  [[nodiscard]] std::string way_of_link(std::uint32_t link) const override;
  [[nodiscard]] std::size_t cable_traffic(std::span<CableTraffic> to) const override;
  [[nodiscard]] Result<void> set_secret(const Secret& secret) override {
    return inner_->set_secret(secret);
  }
  [[nodiscard]] std::uint64_t rejected_words() const override { return inner_->rejected_words(); }
  [[nodiscard]] std::string lacked() const override { return inner_->lacked(); }
  [[nodiscard]] Result<void> keep(std::span<const Region> regions) override {
    return inner_->keep(regions);
  }
  void forget(std::span<const Region> regions) override { inner_->forget(regions); }
  void wake() override { inner_->wake(); }
  [[nodiscard]] Endpoint& endpoint() override { return *inner_; }

 private:
  // A lane of this end: the number-th lane of a cable.
  struct CableLane {
    std::uint32_t cable = 0;  // place in config_.cables
    std::uint32_t number = 0;
  };

  // What an address says of a lane.
  struct Entry {
    std::uint32_t cable = 0;  // its number
    std::uint32_t lane = 0;   // of the cable
    std::uint32_t node = 0;   // to which it leads
    std::string address = {};
  };

  explicit CabledLinks(const AddedConfig& config);
  // Returns the entries of an address, in order. Error: malformed.
  [[nodiscard]] static Result<std::vector<Entry>> read(const std::string& address);
  // Takes the address of the node at the other end of the link, and starts to connect. Errors: the
  // ends have different cables, a wrong address.
  [[nodiscard]] Result<void> start(std::uint32_t link, const std::string& address);
  [[nodiscard]] std::string way_of(std::uint32_t lane, const std::string& there) const;

  AddedConfig config_;
  std::vector<std::uint32_t> nodes_;     // by link: the node at its other end
  std::vector<CableLane> lanes_;         // by lane of inner_; those of a link are successive
  std::vector<std::size_t> first_lane_;  // by link, and the number of lanes
  std::vector<std::string> ways_;        // by lane
  std::unique_ptr<LibfabricEndpoint> inner_;
  std::uint32_t known_nodes_ = 0;    // that set_addresses() named
  std::vector<std::string> errors_;  // by link: why it cannot be used; empty: it can
};

}  // namespace espalier::ofi
