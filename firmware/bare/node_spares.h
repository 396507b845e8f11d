#pragma once
// The spares of a bare-metal node: those of its image, over the channels of its carrier.
// Freestanding; docs/spares.md.

#include "espalier/hal/serial/serial_endpoint.h"
#include "firmware/bare/agent.h"
#include "firmware/bare/boot.h"
#include "firmware/spares/image_spares.h"

#if ESPALIER_SPARES

namespace espalier::bare {

class NodeSpares final : public ImageSpares {
 public:
  // links: the endpoint with the image's links, on the channels from 0. An image booted. Both must
  // outlive the object.
  NodeSpares(Booted& booted, SerialEndpoint& links)
      : ImageSpares(booted.image, booted, booted.programs[0]), links_(links) {}

  [[nodiscard]] std::uint32_t generations() const override { return Recovery::kAllGenerations; }
  [[nodiscard]] Endpoint* open(std::uint32_t generation) override {
    const std::uint32_t first = generation * links_.links();
    if (generation >= generations() || first + links_.links() > agent::kChannel) return nullptr;
    links_.reopen(static_cast<std::uint8_t>(first));
    return &links_;
  }

 private:
  SerialEndpoint& links_;
};

}  // namespace espalier::bare

#endif
