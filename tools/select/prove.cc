#include "tools/select/prove.h"

#include <utility>

#include "espalier/collectives/verify/verify.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"
#include "tools/report/verify_report.h"
#include "tools/select/verify_source.h"

namespace espalier::tools {

std::string prove_compiled(const std::string& name, std::vector<std::uint8_t>& bytes,
                           bool hop_by_hop) {
  Source source(name, std::move(bytes));
  const Program& first = source.program(0);
  Progress progress("verifying");
  verify::VerifyOptions options;
  options.links = hop_by_hop || program_nodes(first) > first.ranks;
  options.progress = [&progress](double done) { progress.show(done); };
  const verify::Verdict verdict = verify::verify(
      source.topology(),
      [&source](std::uint32_t node) -> const Program& { return source.program(node); }, options);
  const verify::Counterexample& wrong = verdict.counterexample;
  const std::string file = "'" + one_line(name) + "' is not written: ";
  if (wrong.too_large) {
    bad_input(file + "it is too large to verify: " + wrong.message +
              "; --no-verify writes it unverified");
  }
  if (!verdict.valid) negative(file + "it is not valid: " + wrong.message);
  std::string proven = proven_for(source.program(0), verdict);
  bytes = source.take_bytes();
  return proven;
}

}  // namespace espalier::tools
