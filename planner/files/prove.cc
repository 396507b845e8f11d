#include "planner/files/prove.h"

#include <utility>

#include "base/one_line.h"
#include "base/try.h"
#include "espalier/internal/base/assert.h"
#include "planner/files/loaded_schedule.h"
#include "planner/make/blocks.h"

namespace espalier::planner {
namespace {

constexpr std::uint32_t kMaxKeptPrograms = 4096;  // of 9 KB each

// The programs of a schedule file; kept if there are few.
class FilePrograms {
 public:
  explicit FilePrograms(LoadedSchedule loaded) : loaded_(std::move(loaded)) {}

  // Decodes every descriptor once, so that program() can. Error: one is corrupt.
  [[nodiscard]] Result<void> read() {
    const std::uint32_t nodes = loaded_.file.nodes();
    const bool keep = nodes <= kMaxKeptPrograms;
    if (keep) loaded_.programs.resize(nodes);
    for (buffered_ = 0; buffered_ < nodes; ++buffered_) {
      ESPALIER_TRY(decode(loaded_, buffered_, keep ? loaded_.programs[buffered_] : buffer_));
    }
    return {};
  }
  [[nodiscard]] const topology::Topology& topology() const { return *loaded_.topology; }
  // The program of `node`; valid until the next call.
  [[nodiscard]] const Program& program(std::uint32_t node) {
    if (!loaded_.programs.empty()) return loaded_.programs.at(node);
    if (buffered_ == node) return buffer_;
    const auto done = decode(loaded_, node, buffer_);
    ESPALIER_ASSERT(done.has_value());
    buffered_ = node;
    return buffer_;
  }
  // Moves the bytes of the file out: must be the last call.
  [[nodiscard]] std::vector<std::uint8_t> take_bytes() { return std::move(loaded_.bytes); }

 private:
  LoadedSchedule loaded_;
  OwnedProgram buffer_;
  std::uint32_t buffered_ = 0;  // node of the program in the buffer
};

}  // namespace

Result<FileVerdict> prove_compiled(const std::string& name, std::vector<std::uint8_t>& bytes,
                                   bool hop_by_hop, const ShowProgress& progress) {
  ESPALIER_TRY_TO(auto opened, open_schedule(name, std::move(bytes), ""));
  const auto file = std::make_unique<FilePrograms>(std::move(opened));
  ESPALIER_TRY(file->read());
  const Program& first = file->program(0);
  verify::VerifyOptions options{.links = hop_by_hop || program_nodes(first) > first.ranks,
                                .progress = progress};
  const verify::Verdict verdict = verify::verify(
      file->topology(),
      [&file](std::uint32_t node) -> const Program& { return file->program(node); }, options);
  const verify::Counterexample& wrong = verdict.counterexample;
  const std::string refused = "'" + one_line(name) + "' is not written: ";
  if (wrong.too_large) {
    return fail(refused + "it is too large to verify: " + wrong.message +
                "; --no-verify writes it unverified");
  }
  if (!verdict.valid) return FileVerdict{refused + "it is not valid: " + wrong.message, ""};
  FileVerdict valid{"", proven_for(file->program(0), verdict)};
  bytes = file->take_bytes();
  return valid;
}

std::string proven_for(const Program& program, const verify::Verdict& verdict) {
  if (!cuts_messages(program)) {
    return "N = " + std::to_string(verdict.proven_blocks) + ", the only one its block table gives";
  }
  std::string text = "every N";
  if (program.residue_mod > 1) {
    text += " = " + std::to_string(program.residue) + " mod " + std::to_string(program.residue_mod);
  }
  if (!verdict.for_all) text += " up to " + std::to_string(verdict.proven_blocks);
  return text;
}

}  // namespace espalier::planner
