#pragma once
// A Linux node of `espalier update`: after the roll call of all nodes it settles on one release
// with them and, if there is an origin, takes part in an update (docs/updates.md). Host only.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "espalier/collectives/machine/machine.h"
#include "firmware/node/boot_image.h"
#include "firmware/node/boot_options.h"
#include "firmware/node/control.h"
#include "firmware/update/roll_call.h"
#include "firmware/update/update.h"

namespace espalier::node {

// The new images of all nodes, on the origin.
struct NewRelease {
  std::vector<std::string> images;
  UpdateOrder order;
};
// Reads them, and checks the origin's own. Error: a file that cannot be read, or an image that the
// origin refuses.
[[nodiscard]] Result<NewRelease> read_new_release(const BootOptions& options,
                                                  const BootedImage& booted, std::uint32_t nodes);

class UpdateServer final : public UpdateOwner {
 public:
  // No message was posted on the endpoint. release: null except on the origin. All arguments must
  // outlive the server.
  UpdateServer(const BootOptions& options, Endpoint& endpoint, BootedImage& booted,
               Programs& programs, const NewRelease* release, int channel);
  // Sends Ready, then serves the launcher until it ends the node. Returns the exit status.
  [[nodiscard]] int serve();

  [[nodiscard]] const Program* load(const Image& image, std::uint32_t vote) override;
  [[nodiscard]] Status piece(std::uint32_t offset) override;

 private:
  enum class State : std::uint8_t { kAwaitsRun, kJoins, kUpdates, kReported };

  // False: the launcher ended the node.
  [[nodiscard]] bool take_packet();
  void step();
  void resolve_releases();
  void begin_update();
  void end_update(Status status);
  void report(control::UpdateEnd end, Status status, const Cause& cause);
  void send_report() const;

  const BootOptions& options_;
  Endpoint& endpoint_;
  BootedImage& booted_;
  Programs& programs_;
  const NewRelease* release_;
  int channel_;
  State state_ = State::kAwaitsRun;
  bool has_machine_ = false;
  Machine machine_;
  RollCall roll_call_;
  std::optional<Update> update_;
  std::unique_ptr<DecodedProgram> program_;
  std::vector<std::uint8_t> input_, output_;
  struct alignas(16) Line {
    std::uint8_t bytes[16];
  };
  std::vector<Line> scratch_;
  control::Report report_;
};

}  // namespace espalier::node
