#pragma once
// The record while this process joins its job. Host only.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/observer.h"
#include "communicator/record/writer.h"
#include "espalier/bootstrap/bootstrap.h"
#include "espalier/communicator.h"

namespace espalier::record {

// Begins the record before the other ranks are known, if the options or the environment say the
// rank and the size; so a reader sees who waits in join(). Null: it begins later, or never.
// Error: a wrong ESPALIER_RECORD.
[[nodiscard]] Result<std::shared_ptr<Writer>> begin_joining(const JoinOptions& options);
// Begins the record of this rank if it has not begun. Errors: as begin_joining().
[[nodiscard]] Result<void> begin_joined(const JoinOptions& options, std::uint32_t rank,
                                        std::uint32_t size, std::shared_ptr<Writer>& record);

// What this process keeps of its job, for the waits of its membership.
class JobObserver : public bootstrap::Observer {
 public:
  // `writer`: as begin_joining() made it.
  JobObserver(const JoinOptions& options, std::shared_ptr<Writer> writer)
      : origin_({.provider = options.provider, .deadline = options.deadline}),
        writer_(std::move(writer)) {}
  [[nodiscard]] const std::shared_ptr<Writer>& writer() const { return writer_; }
  void set_writer(std::shared_ptr<Writer> writer) { writer_ = std::move(writer); }

  // Begins the record, unless it has begun.
  [[nodiscard]] Result<void> started(const bootstrap::Start& start) override;
  [[nodiscard]] std::string absent() override;
  [[nodiscard]] std::string facts(const std::vector<std::uint32_t>& ranks) override;

 private:
  Origin origin_;
  std::shared_ptr<Writer> writer_;
};

// While it lives, the record says that the process is in accept() or rejoin().
class InAgreement {
 public:
  InAgreement(std::shared_ptr<Writer> writer, const Agreement& agreement)
      : writer_(std::move(writer)) {
    if (writer_ != nullptr) writer_->begin_agreement(agreement);
  }
  ~InAgreement() {
    if (writer_ != nullptr) writer_->end_agreement();
  }
  InAgreement(const InAgreement&) = delete;
  InAgreement& operator=(const InAgreement&) = delete;

 private:
  std::shared_ptr<Writer> writer_;
};

// The exchange of hosts and of the job's name, beside the ranks' addresses.
class Exchange {
 public:
  explicit Exchange(std::shared_ptr<Writer> writer) : writer_(std::move(writer)) {}
  // Returns what this rank publishes.
  [[nodiscard]] std::string publish(const std::string& address) const {
    return with_card(address, writer_ == nullptr ? Card() : writer_->card());
  }
  // Leaves the address of what the next rank published.
  void take(std::string& published) { cards_.push_back(take_card(published)); }
  // All are taken.
  void note(std::uint32_t rank);

 private:
  std::shared_ptr<Writer> writer_;
  std::vector<Card> cards_;
};

}  // namespace espalier::record
