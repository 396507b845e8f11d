#pragma once
// A base of endpoints that change a part of another endpoint's behaviour.

#include <cstdint>

#include "espalier/hal/endpoint.h"

namespace espalier {

// Every call is that of `inner`, which must outlive this object.
class ForwardingEndpoint : public Endpoint {
 public:
  explicit ForwardingEndpoint(Endpoint& inner) : inner_(&inner) {}
  [[nodiscard]] std::uint32_t node() const override { return inner_->node(); }
  [[nodiscard]] std::uint32_t links() const override { return inner_->links(); }
  [[nodiscard]] std::uint32_t peer(std::uint32_t link) const override { return inner_->peer(link); }
  [[nodiscard]] std::uint32_t window() const override { return inner_->window(); }
  [[nodiscard]] std::uint64_t eager_bytes() const override { return inner_->eager_bytes(); }
  [[nodiscard]] Status prepare(const Region* regions, std::uint32_t count) override {
    return inner_->prepare(regions, count);
  }
  void release_regions() override { inner_->release_regions(); }
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post) override {
    return inner_->post_receive(link, post);
  }
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post) override {
    return inner_->post_send(link, post);
  }
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control) override {
    return inner_->post_control(link, control);
  }
  [[nodiscard]] bool poll(Completion& completion) override { return inner_->poll(completion); }
  void release() override { inner_->release(); }
  [[nodiscard]] std::uint64_t now() override { return inner_->now(); }
  void wait(std::uint64_t until) override { inner_->wait(until); }

 protected:
  ~ForwardingEndpoint() = default;
  Endpoint* inner_;
};

}  // namespace espalier
