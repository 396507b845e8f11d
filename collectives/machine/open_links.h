#pragma once
// An endpoint with some of its links closed, and without one node. Freestanding; docs/spares.md.

#include <cstdint>

#include "base/loss.h"
#include "espalier/hal/endpoint.h"

namespace espalier {

// What is left of an endpoint after a loss. Lost links stay, so that links keep their numbers, but
// they lead to no node: posts there are refused, and what arrives there is dropped. Nodes have the
// numbers of the programs for what is left. A lost node that comes back asks over its links, with
// controls. These get answers here if the loss is a node, and no machine takes them for signs of
// life.
class OpenLinks final : public Endpoint {
 public:
  // The peer of a closed link: no node.
  static constexpr std::uint32_t kNoPeer = 0xffffffffu;

  // The numbers of a lost node's requests and of their answers. It asks with a kProbe of kJoin. The
  // kAnswer is kJoin, too. Then it asks with kConfirmed: it is on these links now, not only was.
  // Once all have agreed to take it in, the kAnswer is kTakenIn. It is kRefused if that cannot be.
  static constexpr std::uint32_t kJoin = 0x6a6f696e, kConfirmed = kJoin + 1, kTakenIn = kJoin + 2,
                                 kRefused = kJoin + 3;

  // `endpoint` must outlive the object's use. Its node is not the lost one. refuses: the lost node
  // cannot be taken in again.
  void open(Endpoint& endpoint, const Loss& loss, bool refuses = false);
  // Whether the lost node has asked here since this time.
  [[nodiscard]] bool was_asked_since(std::uint64_t time_ns) const {
    return asked_ && asked_at_ >= time_ns;
  }
  // From now on the answer is that all have agreed.
  void take_in() { reply_ = kTakenIn; }

  [[nodiscard]] std::uint32_t node() const override { return loss_.dense(endpoint_->node()); }
  [[nodiscard]] std::uint32_t links() const override { return endpoint_->links(); }
  [[nodiscard]] std::uint32_t peer(std::uint32_t link) const override;
  [[nodiscard]] std::uint32_t window() const override { return endpoint_->window(); }
  [[nodiscard]] std::uint64_t eager_bytes() const override { return endpoint_->eager_bytes(); }
  [[nodiscard]] Status prepare(const Region* regions, std::uint32_t count) override {
    return endpoint_->prepare(regions, count);
  }
  void release_regions() override { endpoint_->release_regions(); }
  // Posts on a closed link: kBadArgument.
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post) override;
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post) override;
  // On a closed link without effect.
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control) override;
  [[nodiscard]] bool poll(Completion& completion) override;
  void release() override { endpoint_->release(); }
  [[nodiscard]] std::uint64_t now() override { return endpoint_->now(); }
  void wait(std::uint64_t until) override { endpoint_->wait(until); }

 private:
  [[nodiscard]] bool is_closed(std::uint32_t link) const {
    return loss_.closes(endpoint_->node(), endpoint_->peer(link));
  }

  void answer(const Completion& completion);

  Endpoint* endpoint_ = nullptr;
  Loss loss_;
  std::uint32_t reply_ = kJoin;
  bool asked_ = false;
  std::uint64_t asked_at_ = 0;
};

}  // namespace espalier
