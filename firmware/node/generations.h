#pragma once
// The sets of links of a Linux node or a gateway, one for each generation, and the new ones when a
// lost node comes back (docs/spares.md). Host only.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "espalier/base/result.h"
#include "espalier/hal/endpoint.h"
#include "firmware/node/wire_up.h"

namespace espalier::node {

// One generation's links. Those to a lost node lead to a process that has ended, and carry nothing
// any more. A new process asks over other links to be taken in: its controls come and go here.
class GenerationLinks final : public Endpoint {
 public:
  explicit GenerationLinks(Endpoint& endpoint) : endpoint_(&endpoint) {}
  // Leads to `endpoint` in place of the former one. Nothing was posted here.
  void replace(Endpoint& endpoint) { endpoint_ = &endpoint; }
  // From now on the controls of links to `lost` are those of `other`, which has the same links.
  void ask_over(Endpoint& other, std::uint32_t lost) {
    other_ = &other;
    lost_ = lost;
  }

  [[nodiscard]] std::uint32_t node() const override { return endpoint_->node(); }
  [[nodiscard]] std::uint32_t links() const override { return endpoint_->links(); }
  [[nodiscard]] std::uint32_t peer(std::uint32_t link) const override {
    return endpoint_->peer(link);
  }
  [[nodiscard]] std::uint32_t window() const override { return endpoint_->window(); }
  [[nodiscard]] std::uint64_t eager_bytes() const override { return endpoint_->eager_bytes(); }
  [[nodiscard]] Status prepare(const Region* regions, std::uint32_t count) override {
    return endpoint_->prepare(regions, count);
  }
  void release_regions() override { endpoint_->release_regions(); }
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post) override {
    return endpoint_->post_receive(link, post);
  }
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post) override {
    return endpoint_->post_send(link, post);
  }
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control) override;
  [[nodiscard]] bool poll(Completion& completion) override;
  void release() override { endpoint_->release(); }
  [[nodiscard]] std::uint64_t now() override { return endpoint_->now(); }
  void wait(std::uint64_t until) override;

 private:
  [[nodiscard]] bool is_lost(std::uint32_t link) const {
    return other_ != nullptr && link < links() && peer(link) == lost_;
  }

  Endpoint* endpoint_;
  Endpoint* other_ = nullptr;
  std::uint32_t lost_ = 0;
};

// Opens one endpoint with the node's links.
using OpenEndpoint = std::function<Result<std::shared_ptr<ofi::FixedLinks>>()>;

class Generations {
 public:
  // Opens `count` sets of links, at least one. Errors: the endpoints'.
  [[nodiscard]] Result<void> open(const OpenEndpoint& open_endpoint, std::uint32_t count);
  // The newest sets, for wire_up.h. They are in use once they are connected and taken.
  [[nodiscard]] const Endpoints& newest() const { return newest_; }
  // Uses the newest sets from the start.
  void take();
  // A lost node comes back, with a new process to which only the newest sets lead: it asks over the
  // newest links of generation `present`, and all later generations are the newest.
  void take(std::uint32_t present, std::uint32_t lost);

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(links_.size()); }
  // After take(): the endpoint of generation 0, in which no lost node can ask.
  [[nodiscard]] Endpoint& first() { return used_.front()->endpoint(); }
  // After take(): the links of this generation, which stay the same object.
  [[nodiscard]] GenerationLinks& links(std::uint32_t generation) { return links_[generation]; }
  // Closes all. Only before they are used, or after that.
  void clear();

 private:
  // By generation; asked_: over which a lost node asks. Former links may still be polled.
  Endpoints newest_, used_, asked_;
  std::deque<GenerationLinks> links_;
};

// Connects the newest sets of one node: publishes their addresses, collects those of the
// neighbours, and returns when all are connected. Errors: the launcher is gone; a neighbour does
// not connect.
[[nodiscard]] Result<void> connect(const Generations& generations, std::uint32_t node, int channel,
                                   ControlWireUp& wire_up);

}  // namespace espalier::node
