#include "communicator/image_programs.h"

#include "base/counted.h"
#include "base/try.h"

namespace espalier::communicator {
namespace {

Result<node::BootOptions> boot_options(const NodeImage& from) {
  if (!from.file.empty() && !from.flash.empty()) {
    return fail("image: a file and a flash; expected one of them");
  }
  if (from.public_key.empty() != from.takes_unsigned) {
    return fail("image: expected public_key, or takes_unsigned, and not both");
  }
  node::BootOptions options;
  options.image = from.file;
  options.flash = from.flash;
  options.public_key = from.public_key;
  options.takes_unsigned = from.takes_unsigned;
  options.check_only = true;  // a flash gets no marks: the node's own boot has them
  return options;
}

}  // namespace

Result<std::unique_ptr<ImagePrograms>> ImagePrograms::load(const NodeImage& from,
                                                           std::uint32_t rank,
                                                           std::uint32_t ranks) {
  ESPALIER_TRY_TO(const auto options, boot_options(from));
  auto made = std::make_unique<ImagePrograms>();
  ESPALIER_TRY(node::boot_image(options, rank, made->booted_, made->loaded_));
  for (std::uint32_t k = 0; k < made->loaded_.count; ++k) {
    const Program& program = made->loaded_.programs[k];
    if (program.ranks != ranks || program_nodes(program) != ranks) {
      return fail(made->loaded_.sources[k] + " is for " + counted(program.ranks, "rank") + " and " +
                  counted(program_nodes(program), "node") + "; expected one for the " +
                  counted(ranks, "rank") + " of this job, without programs for routers");
    }
    // Whether input and output may be the same memory is not in an image.
    made->programs_.push_back({OwnedProgram(program), program.algorithm, false});
  }
  return made;
}

Status ImagePrograms::find(const ScheduleRequest& request, const PlannedProgram*& found) const {
  CallByRoot call;
  call.collective = static_cast<std::uint32_t>(request.collective);
  call.root = request.root;
  call.counts = request.bytes;
  call.element_bytes = 1;
  call.commutes = request.commutes;
  const DecodedProgram* program = nullptr;
  const Status status = find_program(loaded_, call, program);
  found = status == Status::kOk ? &programs_[program - loaded_.programs] : nullptr;
  return status;
}

}  // namespace espalier::communicator
