#include "communicator/begin_record.h"

#include <unistd.h>

#include <cstdio>

#include "base/digest.h"
#include "base/process/variables.h"
#include "base/try.h"

namespace espalier::record {
namespace {

// Where the ranks of a job meet, and this rank; what is wrong there is an error of join() itself.
struct Meeting {
  std::string place = {};
  std::int64_t rank = -1, size = -1;
};

std::int64_t number_of(Variable own, Variable usual) {
  for (const Variable variable : {own, usual}) {
    const auto value = read_number(variable, 0, UINT32_MAX);
    if (value && *value) return **value;
  }
  return -1;
}

std::string value_of(Variable variable) {
  const auto value = read_text(variable);
  return value ? value->value_or("") : "";
}

Meeting meeting_of(const bootstrap::Options& options) {
  using bootstrap::Method;
  const auto count = static_cast<std::int64_t>(options.table.size());
  if (!options.table.empty()) {
    return {options.table.front(), options.rank, options.size < 0 ? count : options.size};
  }
  if (!options.folder.empty()) {
    return {options.folder + "/" + options.job, options.rank, options.size};
  }
  if (options.method != Method::kAutomatic && options.method != Method::kEnvironment) return {};
  const bool is_managed = is_set(Variable::kPmixNamespace) || is_set(Variable::kPmiFd);
  if (is_managed && !is_set(Variable::kEspalierRank)) return {};
  std::string place = value_of(Variable::kEspalierAddress);
  if (place.empty()) {
    const std::string host = value_of(Variable::kMasterAddr);
    const auto port = read_number(Variable::kMasterPort, 1, UINT16_MAX);
    if (host.empty() || !port || !*port) return {};
    place = host + ":" + std::to_string(**port);
  }
  return {place, number_of(Variable::kEspalierRank, Variable::kRank),
          number_of(Variable::kEspalierSize, Variable::kWorldSize)};
}

// A name that the ranks of one start have in common before they know each other.
std::string name_of(const Meeting& meeting) {
  std::uint64_t digest = digest_bytes(kDigestSeed, meeting.place.data(), meeting.place.size());
  digest = digest_u64(digest, static_cast<std::uint64_t>(meeting.size));
  char text[17];
  std::snprintf(text, sizeof text, "%012llx",
                static_cast<unsigned long long>(digest & 0xffffffffffff));
  return text;
}

}  // namespace

Result<std::shared_ptr<Writer>> begin_joining(const JoinOptions& options) {
  ESPALIER_TRY(read_text(Variable::kRecord));  // used or not
  const std::shared_ptr<Writer> none;
  if (options.membership != nullptr) return none;
  const Meeting meeting = meeting_of(options.bootstrap);
  if (meeting.size < 2 || meeting.size > INT32_MAX || meeting.rank < 0 ||
      meeting.rank >= meeting.size) {
    return none;
  }
  return Writer::make({.joining = name_of(meeting),
                       .rank = static_cast<std::uint32_t>(meeting.rank),
                       .size = static_cast<std::uint32_t>(meeting.size),
                       .provider = options.provider,
                       .deadline = options.deadline});
}

Result<void> begin_joined(const JoinOptions& options, std::uint32_t rank, std::uint32_t size,
                          std::shared_ptr<Writer>& record) {
  if (record != nullptr) return {};
  ESPALIER_TRY_TO(record, Writer::make({.rank = rank,
                                        .size = size,
                                        .provider = options.provider,
                                        .deadline = options.deadline}));
  return {};
}

void Exchange::note(std::uint32_t rank) {
  if (writer_ != nullptr && !cards_.empty()) writer_->joined(cards_, rank);
}

}  // namespace espalier::record
