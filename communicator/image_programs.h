#pragma once
// The programs of the image that this node boots, for a communicator of the whole job. Host only.

#include <cstdint>
#include <memory>
#include <vector>

#include "communicator/schedules.h"
#include "espalier/base/result.h"
#include "espalier/communicator.h"
#include "firmware/node/boot_image.h"

namespace espalier::communicator {

class ImagePrograms {
 public:
  // Checks and loads the image of node `rank`. Errors: options that contradict each other; the
  // image is refused, with the file, the status and what to do; it is not for `ranks` ranks alone.
  [[nodiscard]] static Result<std::unique_ptr<ImagePrograms>> load(const NodeImage& from,
                                                                   std::uint32_t rank,
                                                                   std::uint32_t ranks);
  // Finds the program for a call as every node does (find_program()), with its errors; then `found`
  // is null.
  [[nodiscard]] Status find(const ScheduleRequest& request, const PlannedProgram*& found) const;

 private:
  node::BootedImage booted_;
  node::Programs loaded_;
  std::vector<PlannedProgram> programs_;  // those of the image, in its order
};

}  // namespace espalier::communicator
