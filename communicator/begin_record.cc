#include "communicator/begin_record.h"

#include <unistd.h>

#include <cstdio>

#include "base/digest.h"
#include "base/process/variables.h"
#include "base/try.h"
#include "communicator/record/agreements.h"
#include "communicator/record/diagnosis.h"

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
std::string name_of(const std::string& place, std::uint64_t size) {
  std::uint64_t digest = digest_bytes(kDigestSeed, place.data(), place.size());
  digest = digest_u64(digest, size);
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
  return Writer::make({.joining = name_of(meeting.place, static_cast<std::uint64_t>(meeting.size)),
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

Result<void> JobObserver::started(const bootstrap::Start& start) {
  if (writer_ != nullptr || start.size < 2 || start.name.empty()) return {};
  origin_.joining = name_of(start.name, start.size);
  origin_.rank = start.rank;
  origin_.size = start.size;
  origin_.has_far_ranks = !start.is_one_host;
  ESPALIER_TRY_TO(writer_, Writer::make(origin_));
  return {};
}

std::string JobObserver::absent() {
  if (writer_ == nullptr || origin_.joining.empty()) return "";
  const JobView job = read_job(writer_->folder(), origin_.joining);
  std::vector<std::uint32_t> here, missing;
  for (std::uint32_t rank = 0; rank < origin_.size; ++rank) {
    (job.find(rank) == nullptr ? missing : here).push_back(rank);
  }
  if (missing.empty()) return "";  // they have just come
  if (!origin_.has_far_ranks) return ranks_text(missing) + " never started";
  return "on this host, " + ranks_text(here) + (here.size() == 1 ? " has" : " have") +
         " come, and the launcher does not say which of the others are missing";
}

std::string JobObserver::facts(const std::vector<std::uint32_t>& ranks) {
  if (writer_ == nullptr) return "";
  const JobView job = read_job(writer_->folder(), writer_->job());
  const RankView* const self = job.find(writer_->rank());
  return self == nullptr ? "" : absent_text(job, *self, ranks);
}

void Exchange::note(std::uint32_t rank) {
  if (writer_ != nullptr && !cards_.empty()) writer_->joined(cards_, rank);
}

}  // namespace espalier::record
