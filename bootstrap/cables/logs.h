#pragma once
// What each process of a job has said, in order: a log per process, which only grows. Every host
// has the logs of all. Host only.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/cables/job_graph.h"

namespace espalier::cables {

// A log's number: random for each membership.
using LogId = std::uint64_t;

inline constexpr std::size_t kMaxLogs = 2048;
inline constexpr std::size_t kMaxLogBytes = std::size_t{64} << 20;

// A process in an agreement.
struct Seat {
  std::uint32_t rank = 0;
  LogId log = 0;
  bool operator==(const Seat&) const = default;
};

// The processes that are to be the job from now on, and their cables. It holds once each of them
// has accepted it. A process accepts only growing numbers.
struct Proposal {
  std::uint32_t number = 0;
  std::uint32_t generation = 0;  // as Survivors::generation; 0: the first, of all ranks
  LogId proposer = 0;
  std::vector<Seat> seats = {};  // by rank
  std::shared_ptr<const JobGraph> graph = nullptr;
};

struct Entry {
  enum class Kind : std::uint8_t {
    kBegin,     // first: number is the rank, other the size
    kRefused,   // the process cannot join: value says why
    kPut,       // key, value
    kFence,     //
    kRejoin,    // it has called rejoin()
    kProposal,  // number, other: the generation; value: seats and graph
    kAccept,    // number and id: of the proposal, and the log it is in
    kDecided,   // the same: the proposal is what the process goes by
    kLeft,      // last
  };
  Kind kind = Kind::kFence;
  std::uint32_t number = 0, other = 0;
  LogId id = 0;
  std::string key = {}, value = {};
};
inline constexpr std::uint8_t kEntryKinds = 9;

[[nodiscard]] std::string encode(const Entry& entry);
[[nodiscard]] Entry entry_of(const Proposal& proposal);

// Which proposal: its number and its proposer's log.
using ProposalName = std::pair<std::uint32_t, LogId>;

class Log {
 public:
  explicit Log(LogId id) : id_(id) {}
  // Takes bytes that begin at `offset`. Returns how many of them were new: none if bytes before
  // them are missing, or if they are malformed.
  std::size_t take(std::uint64_t offset, const std::string& bytes);
  void add(const Entry& entry) { (void)take(bytes_.size(), encode(entry)); }

  [[nodiscard]] LogId id() const { return id_; }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  // What the entries say.
  [[nodiscard]] bool has_begun() const { return has_begun_; }
  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  [[nodiscard]] bool has_left() const { return has_left_; }
  [[nodiscard]] bool is_rejoining() const { return is_rejoining_; }
  [[nodiscard]] std::uint64_t fences() const { return fences_; }  // since the last kDecided
  [[nodiscard]] const std::vector<Proposal>& proposals() const { return proposals_; }
  [[nodiscard]] const std::vector<ProposalName>& accepted() const { return accepted_; }
  [[nodiscard]] const std::optional<ProposalName>& decided() const { return decided_; }
  // Null: it published no such value before its last fence.
  [[nodiscard]] const std::string* published(const std::string& key) const;
  // Whether the key was used, by this process.
  [[nodiscard]] bool has_put(const std::string& key) const;

 private:
  void parse();
  void apply(Entry entry);

  LogId id_;
  std::string bytes_;
  std::size_t parsed_ = 0;
  bool is_malformed_ = false;
  bool has_begun_ = false, has_left_ = false, is_rejoining_ = false;
  std::uint32_t rank_ = 0, size_ = 0;
  std::string refusal_;
  std::uint64_t fences_ = 0;
  std::map<std::string, std::string> pending_, published_;
  std::vector<Proposal> proposals_;
  std::vector<ProposalName> accepted_;
  std::optional<ProposalName> decided_;
};

using Logs = std::map<LogId, Log>;

}  // namespace espalier::cables
