#include "communicator/image_programs.h"

#include <string>

#include "base/counted.h"
#include "espalier/collectives/schedule/selection.h"

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
  const auto options = boot_options(from);
  if (!options) return fail(options.error());
  auto made = std::make_unique<ImagePrograms>();
  const auto booted = node::boot_image(*options, rank, made->booted_, made->loaded_);
  if (!booted) return fail(booted.error());
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

const PlannedProgram* ImagePrograms::find(const ScheduleRequest& request) const {
  const auto serves = [&request](const PlannedProgram& planned) {
    const Program& program = planned.program;
    return program.collective == request.collective &&
           (!has_root(request.collective) || program.root == request.root);
  };
  std::vector<bool> is_selected(programs_.size());
  for (std::uint32_t i = 0; i < loaded_.selections_count; ++i) {
    const NodeSelection& selection = loaded_.selections[i];
    const std::uint32_t first = selection.first_program;
    for (std::uint32_t k = 0; k < selection.table.schedules_count; ++k)
      is_selected[first + k] = true;
    if (!serves(programs_[first])) continue;
    const SelectionRow* const row = find_row(selection.table, request.bytes, request.commutes);
    return row == nullptr ? nullptr : &programs_[first + row->program];
  }
  for (std::size_t k = 0; k < programs_.size(); ++k) {
    if (!is_selected[k] && serves(programs_[k])) return &programs_[k];
  }
  return nullptr;
}

}  // namespace espalier::communicator
