#pragma once
// An Endpoint (include/espalier/hal/endpoint.h) over framed links. Freestanding, no memory but the
// caller's.
//
// Every message waits for its receive to be posted (eager_bytes() is nominal), so the endpoint
// keeps no landing slots. kLinkDown: the other end has started anew, or the carrier is down.

#include "espalier/base/link_set.h"
#include "espalier/hal/endpoint.h"
#include "espalier/hal/serial/serial_link.h"
#include "espalier/hal/serial/serial_port.h"

namespace espalier {

class SerialEndpoint final : public Endpoint, private SerialLinks {
 public:
  // peers: `count` <= kMaxLinks node numbers, which outlive the endpoint, as do port and links;
  // link l of the table is links[l], channel config.first_channel + l. config.settles is ignored.
  SerialEndpoint(SerialPort& port, SerialLink* links, const std::uint32_t* peers,
                 std::uint32_t count, std::uint32_t node, const SerialConfig& config);

  [[nodiscard]] std::uint32_t node() const override { return node_; }
  [[nodiscard]] std::uint32_t links() const override { return SerialLinks::links(); }
  [[nodiscard]] std::uint32_t peer(std::uint32_t link) const override { return peers_[link]; }
  [[nodiscard]] std::uint32_t window() const override { return SerialLinks::window(); }
  // Nothing is sent early, and receives may be anywhere: any number is as good.
  [[nodiscard]] std::uint64_t eager_bytes() const override { return 1024; }
  // Keeps nothing of it: any memory will do.
  [[nodiscard]] Status prepare(const Region* regions, std::uint32_t count) override;
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post) override {
    return SerialLinks::post_receive(link, post);
  }
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post) override {
    return SerialLinks::post_send(link, post);
  }
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control) override {
    return SerialLinks::post_control(link, control);
  }
  // Takes frames until one brings a completion or none is there, at most kFramesPerPoll. Sends at
  // the first call after one that found nothing, so that what the caller posts meanwhile goes in
  // the same frame as the answer to what came.
  [[nodiscard]] bool poll(Completion& completion) override;
  void release() override { SerialLinks::release(); }
  [[nodiscard]] std::uint64_t now() override { return port().now(); }
  void wait(std::uint64_t until) override { port().wait(until); }

 private:
  [[nodiscard]] bool granted(std::uint32_t link, std::uint64_t tag, std::uint32_t size) override;
  [[nodiscard]] bool opened(std::uint32_t link, const SerialOpening& opening) override;
  [[nodiscard]] bool controlled(std::uint32_t link, const Control& control) override;
  void broken(std::uint32_t link) override { broken_.insert(link); }
  [[nodiscard]] bool next(Completion& completion);
  [[nodiscard]] static SerialConfig at_once(SerialConfig config);

  const std::uint32_t* peers_;
  std::uint32_t node_;
  // What came and was not polled yet: one control and one early word of all links (others are told
  // again).
  Control control_;
  std::uint64_t early_tag_ = 0;
  std::uint32_t control_link_ = LinkSet::kNone;
  std::uint32_t early_link_ = LinkSet::kNone;
  std::uint8_t early_number_ = 0;
  LinkSet broken_;
  bool idle_ = true;  // the last poll found nothing
};

}  // namespace espalier
