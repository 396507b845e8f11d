#pragma once
// An Endpoint (include/espalier/hal/endpoint.h) over framed links. Freestanding; uses only the
// caller's memory.
//
// No message travels before its receive is posted (eager_bytes() is nominal), so the endpoint keeps
// no landing slots. It reports kLinkDown if the peer restarted or the carrier is down.

#include "espalier/hal/endpoint.h"
#include "espalier/internal/base/link_set.h"
#include "espalier/internal/hal/serial/serial_link.h"
#include "espalier/internal/hal/serial/serial_port.h"

namespace espalier {

inline namespace ESPALIER_SERIAL_BUILD {
// The endpoint of a node whose links all belong to one port.
class SerialEndpoint final : public Endpoint, private SerialLinks {
 public:
  // peers: `count` <= kMaxLinks node numbers. The array, the port and the links must outlive the
  // endpoint. Link l of the table is links[l], on channel config.first_channel + l. config.settles
  // is ignored.
  SerialEndpoint(SerialPort& port, SerialLink* links, const std::uint32_t* peers,
                 std::uint32_t count, std::uint32_t node, const SerialConfig& config);

  [[nodiscard]] std::uint32_t node() const override { return node_; }
  [[nodiscard]] std::uint32_t links() const override { return SerialLinks::links(); }
  [[nodiscard]] std::uint32_t peer(std::uint32_t link) const override { return peers_[link]; }
  [[nodiscard]] std::uint32_t window() const override { return SerialLinks::window(); }
  // Any value is correct: no message is sent early, and receives may use any memory.
  [[nodiscard]] std::uint64_t eager_bytes() const override { return 1024; }
  // Keeps no reference to the regions: any memory may be used.
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
  // Takes frames until one yields a completion or none is available, at most kFramesPerPoll. It
  // sends in the first call after one that found nothing, so that the caller's posts in between
  // share a frame with the reply to the frames received.
  [[nodiscard]] bool poll(Completion& completion) override;
#if ESPALIER_SERIAL_MAC
  using SerialLinks::rejections;
#endif
  void release() override { SerialLinks::release(); }
#if ESPALIER_SPARES
  // As SerialLinks::reopen().
  void reopen(std::uint8_t first_channel) {
    SerialLinks::reopen(first_channel);
    control_link_ = early_link_ = LinkSet::kNone;
    broken_ = LinkSet();
    idle_ = true;
  }
#endif
  [[nodiscard]] std::uint64_t now() override { return port().now(); }
  void wait(std::uint64_t until) override { port().wait(until); }

 private:
  [[nodiscard]] bool granted(std::uint32_t link, std::uint64_t tag, std::uint32_t size) override;
  [[nodiscard]] bool opened(std::uint32_t link, const SerialOpening& opening) override;
  [[nodiscard]] bool controlled(std::uint32_t link, const Control& control) override;
  void broken(std::uint32_t link) override { broken_.insert(link); }
#if ESPALIER_SERIAL_MAC
  [[nodiscard]] SerialLinkEnds ends(std::uint32_t link) const override;
#endif
  [[nodiscard]] bool next(Completion& completion);
  [[nodiscard]] static SerialConfig at_once(SerialConfig config);

  const std::uint32_t* peers_;
  std::uint32_t node_;
  // Received but not yet polled: one control and one unexpected message for all links together. The
  // links deliver further ones again later.
  Control control_;
  std::uint64_t early_tag_ = 0;
  std::uint32_t control_link_ = LinkSet::kNone;
  std::uint32_t early_link_ = LinkSet::kNone;
  std::uint8_t early_number_ = 0;
  LinkSet broken_;
  bool idle_ = true;  // the last poll found nothing
};
}  // namespace ESPALIER_SERIAL_BUILD

}  // namespace espalier
