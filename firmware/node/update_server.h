#pragma once
// A Linux node of `espalier update`: serves its session of an update (firmware/update/session.h,
// docs/updates.md). Host only.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "espalier/collectives/machine/machine.h"
#include "firmware/node/boot_image.h"
#include "firmware/node/boot_options.h"
#include "firmware/node/control.h"
#include "firmware/node/new_release.h"
#include "firmware/update/session.h"

namespace espalier::node {

// Bytes of a piece of each image.
inline constexpr std::uint32_t kUpdatePieceBytes = 4096;

class UpdateServer final : public SessionOwner {
 public:
  // No message was posted on the endpoint. release: null except on the origin. All arguments must
  // outlive the server.
  UpdateServer(const BootOptions& options, Endpoint& endpoint, BootedImage& booted,
               Programs& programs, const NewRelease* release, int channel);
  // Sends Ready, then serves the launcher until it ends the node. Returns the exit status.
  [[nodiscard]] int serve();

  [[nodiscard]] const Program* program(std::uint32_t index) override;
  [[nodiscard]] const Program* load(const Image& image, std::uint32_t vote) override;
  [[nodiscard]] Status piece(std::uint32_t offset) override;

 private:
  [[nodiscard]] UpdateMemory make_memory();
  // False: the launcher ended the node.
  [[nodiscard]] bool take_packet();
  void step();
  void send_report();

  Endpoint& endpoint_;
  Programs& programs_;
  const NewRelease* release_;
  int channel_;
  bool runs_ = false;  // the launcher requested it
  Machine machine_;
  std::unique_ptr<DecodedProgram> program_;
  std::vector<std::uint8_t> input_, output_;
  struct alignas(16) Line {
    std::uint8_t bytes[16];
  };
  std::vector<Line> scratch_;
  std::optional<UpdateSession> session_;
  control::Report report_;
};

}  // namespace espalier::node
