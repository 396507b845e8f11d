#pragma once
// A process's membership in a job that is joined over its cables. Host only.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/process/forks.h"
#include "bootstrap/cables/agreement.h"
#include "bootstrap/cables/job_graph.h"
#include "bootstrap/cables/participant.h"
#include "bootstrap/first_word.h"
#include "bootstrap/over_cables.h"

namespace espalier::cables {

class CablesMembership final : public bootstrap::Bootstrap, public OverCables {
 public:
  CablesMembership(const bootstrap::CablesPlace& place, std::chrono::milliseconds deadline,
                   std::unique_ptr<Participant> participant);
  ~CablesMembership() override;
  [[nodiscard]] Result<void> join();
  [[nodiscard]] std::shared_ptr<const JobGraph> job_graph() const override { return graph_; }

  [[nodiscard]] std::uint32_t rank() const override { return rank_; }
  [[nodiscard]] std::uint32_t size() const override { return size_; }
  [[nodiscard]] bootstrap::Method method() const override { return bootstrap::Method::kCables; }
  [[nodiscard]] bool is_secret() const override { return true; }
  [[nodiscard]] const bootstrap::JobSecret& secret() const override { return secret_; }
  [[nodiscard]] const std::string& local_address() const override { return local_address_; }
  [[nodiscard]] Result<void> put(const std::string& key, const std::string& value) override;
  [[nodiscard]] Result<void> fence() override;
  [[nodiscard]] Result<std::string> get(std::uint32_t rank, const std::string& key) override;
  [[nodiscard]] Result<bootstrap::Survivors> rejoin() override;
  [[nodiscard]] Result<bootstrap::Accepted> accept(std::uint32_t least,
                                                   std::chrono::milliseconds time) override;

 private:
  // How another process of the job is doing.
  enum class State : std::uint8_t {
    kRuns,
    kEnded,  // it left, or its host says that it ended
    kCut,    // no cable leads to its host, or its host ended
  };
  struct Missing {
    std::string who = {};    // "ranks 3, 4 of 9"; empty: all have come
    std::string facts = {};  // what is known of them
    [[nodiscard]] std::string described() const { return facts.empty() ? "" : ": " + facts; }
  };
  // A wait for other processes; all under the mutex.
  struct Wait {
    Time until{0};
    std::function<Result<bool>()> step;  // whether it is over
    std::function<Missing()> missing;
    std::function<std::uint32_t()> first_waiting;  // the rank that tells the user
  };
  [[nodiscard]] Result<void> await(std::unique_lock<std::mutex>& lock, const Wait& wait);
  void say(const Wait& wait) const;
  // Under the mutex: takes note of what the participant has learned.
  void look();
  void find_near();
  [[nodiscard]] const Log* log_of(LogId id) const;
  [[nodiscard]] State state_of(const Seat& seat, Time at);
  void add(const Entry& entry) { participant_->add(entry); }
  [[nodiscard]] Result<void> check_process() const;

  // Joining. Why no process of the job can join; empty: nothing is known against it.
  std::string refusal_;
  // The processes that have begun and do not belong to an earlier start.
  [[nodiscard]] std::vector<Seat> candidates() const;
  [[nodiscard]] std::string conflict(const std::vector<Seat>& seats) const;
  [[nodiscard]] Result<bool> join_step();
  [[nodiscard]] Result<void> propose_first(const std::vector<Seat>& seats);
  [[nodiscard]] Missing missing_from_join() const;
  [[nodiscard]] Result<void> refuse(std::unique_lock<std::mutex>& lock);

  // Whether the graph has been quiet for long enough to rely on it.
  [[nodiscard]] bool is_settled(Time since) const;
  void propose(std::vector<Seat> seats, std::shared_ptr<const JobGraph> graph, bool is_first);
  void accept_newest(bool is_first);
  void adopt(const Proposal& proposal);

  [[nodiscard]] Result<bool> fence_step();
  [[nodiscard]] Missing missing_from_fence(Time at);
  [[nodiscard]] Result<bool> rejoin_step(Time called_at);
  void lead(Time called_at);
  [[nodiscard]] Missing missing_from_rejoin();
  // "ranks 0, 1 are cut from ranks 2, 3"
  [[nodiscard]] std::string cut_text(Time at);

  std::uint32_t rank_, size_;
  bootstrap::JobSecret secret_;
  std::chrono::milliseconds deadline_;
  std::uint32_t generation_of_process_ = process_generation();
  std::unique_ptr<Participant> participant_;
  Shared& shared_;
  std::string local_address_ = "127.0.0.1";
  std::shared_ptr<const JobGraph> graph_;

  std::uint64_t looked_ = 0;                 // Shared::records_count
  std::vector<HostRecord> hosts_;            // with processes of the job
  std::map<LogId, std::size_t> running_;     // with the place in hosts_
  std::map<LogId, std::uint64_t> networks_;  // where each process was seen last
  std::set<LogId> near_;                     // of seats_: cables lead to them
  std::map<std::uint32_t, LogId> all_;       // of all ranks that joined
  std::vector<Seat> seats_;                  // of the current agreement
  std::optional<Proposal> own_proposal_;     // the last one
  ProposalName current_ = {0, 0};
  std::uint32_t first_number_ = 0;  // of the proposal that made the job
  std::uint32_t generation_ = 0;
  std::uint64_t fences_ = 0;  // since then
  Time complete_at_{0};       // when all ranks were there for the first time
  std::map<std::uint32_t, Time> cut_since_;
};

}  // namespace espalier::cables
