#pragma once
// The spares of a bare-metal node: the programs of its image, and the channels of its carrier.
// Freestanding; docs/spares.md.

#include "espalier/collectives/machine/recovery.h"
#include "espalier/hal/serial/serial_endpoint.h"
#include "firmware/bare/boot.h"

#if ESPALIER_SPARES

namespace espalier::bare {

class NodeSpares final : public Spares {
 public:
  // links: the endpoint with the image's links, on the channels from 0. An image booted. Both must
  // outlive the object.
  NodeSpares(Booted& booted, SerialEndpoint& links);

  // Whether the image has any.
  [[nodiscard]] bool any() const { return booted_.image.spares != 0; }
  // Returns the digest by which runs name program `index` of the image. It stays the same when a
  // spare's program is in its place.
  [[nodiscard]] std::uint64_t schedule(std::uint32_t index) const { return schedules_[index]; }

  [[nodiscard]] SpareKinds kinds() const override;
  // Decodes the agreement in place of the node's first program.
  [[nodiscard]] const Program* load(const Loss& loss) override;
  [[nodiscard]] std::uint32_t generations() const override { return Recovery::kAllGenerations; }
  [[nodiscard]] Endpoint* open(std::uint32_t generation) override;
  // After load(), once the agreement is complete: decodes the spare's programs in place of the
  // node's. A program whose root is lost has no ranks then.
  void load_programs();

 private:
  Booted& booted_;
  SerialEndpoint& links_;
  std::uint32_t spare_ = 0;  // that load() chose
  std::uint64_t schedules_[kMaxPrograms];
};

}  // namespace espalier::bare

#endif
