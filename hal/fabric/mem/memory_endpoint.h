#pragma once
// The provider "mem": links between processes of one host through shared memory (hal/mem), without
// libfabric.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "espalier/hal/ofi/ofi_endpoint.h"
#include "hal/fabric/address.h"
#include "hal/mem/host/host_endpoint.h"

namespace espalier::ofi {

// Blocks of a segment whose links are added later: one for each node of the job that has an address
// of this kind.
inline constexpr std::uint32_t kMostMemoryNodes = kMaxLinks;

class MemoryEndpoint final : public FixedLinks, public AddedLinks {
 public:
  // Requires check_config().
  template <class AnyConfig>  // FixedConfig or AddedConfig
  [[nodiscard]] static Result<std::unique_ptr<MemoryEndpoint>> open(const AnyConfig& config);

  [[nodiscard]] std::vector<std::uint32_t> lane_peers() const override;
  [[nodiscard]] std::vector<std::string> addresses() const override;
  [[nodiscard]] Result<void> start_connecting(const std::vector<std::string>& addresses) override;
  [[nodiscard]] Result<bool> go_on_connecting() override;
  [[nodiscard]] std::string address() const override;
  [[nodiscard]] Result<void> set_addresses(std::vector<std::string> addresses) override;
  [[nodiscard]] std::uint32_t nodes_per_host() const override {
    return static_cast<std::uint32_t>(addresses_.size());
  }
  [[nodiscard]] Result<std::uint32_t> add_link(std::uint32_t node) override;
  [[nodiscard]] Result<bool> connect_links(std::span<const std::uint32_t> links) override;
  // No lock is ever held.
  [[nodiscard]] Result<void> set_secret(const Secret& secret) override;
  [[nodiscard]] std::uint64_t rejected_words() const override { return 0; }
  [[nodiscard]] Result<void> keep(std::span<const Region> regions) override;
  void forget(std::span<const Region> /*regions*/) override {}
  void wake() override { endpoint_.wake(); }
  [[nodiscard]] Endpoint& endpoint() override { return endpoint_; }
  // Moves what can be moved, without waiting. Returns whether there may be something to poll.
  [[nodiscard]] bool look() { return endpoint_.look(); }

 private:
  explicit MemoryEndpoint(const FixedConfig& config);
  explicit MemoryEndpoint(const AddedConfig& config);
  [[nodiscard]] mem::HostConfig host_config(const AddedConfig& config);
  [[nodiscard]] std::string address_for(std::uint32_t peer, std::uint32_t block,
                                        const std::string& lane) const;
  // The block that `node` writes in each segment: nodes with an address are counted.
  [[nodiscard]] std::uint32_t block_of(std::uint32_t node) const;
  // Adds the link to `peer`, which writes block `own`. Errors: the address is not the peer's; the
  // peer has ended, except if links are added: it then has a link, and is_connected() the error.
  [[nodiscard]] Result<void> connect_to(std::uint32_t peer, std::uint32_t own,
                                        const std::string& address);
  // Adds the links of nodes that have added theirs to this one.
  void adopt();
  // Whether the peer has added the link, too. Errors: it has ended, or did not by the deadline.
  [[nodiscard]] Result<bool> is_connected(std::uint32_t link) const;

  Config config_;
  std::uint32_t max_links_ = 0;            // 0: the links are fixed
  std::vector<std::uint32_t> peers_;       // of fixed links
  std::vector<std::uint32_t> lane_links_;  // by lane
  mem::HostEndpoint endpoint_;
  std::vector<std::string> addresses_;   // with added links: of each node
  std::vector<std::uint32_t> blocks_;    // by link: the one that its peer writes
  std::vector<std::uint64_t> until_ns_;  // by link: when it has to be connected
  std::vector<std::string> errors_;      // by link: why it cannot be connected; empty: it can
};

}  // namespace espalier::ofi
