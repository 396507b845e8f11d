#pragma once
// The processes of an MPI communicator as a job: the MPI library's collectives carry addresses.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bridge/mpi_below.h"
#include "espalier/bootstrap/bootstrap.h"

namespace espalier::bridge {

class Membership : public bootstrap::Bootstrap {
 public:
  enum class Use : std::uint8_t { kJob, kExchange };
  // All processes of `comm`, which must outlive this object, must make one at the same time.
  // kExchange: for put(), fence() and get() alone, without a secret and an address of this host.
  // Between hosts local_address() is empty: the processes agree on addresses.
  explicit Membership(MPI_Comm comm, Use use = Use::kJob);

  [[nodiscard]] std::uint32_t rank() const override { return static_cast<std::uint32_t>(rank_); }
  [[nodiscard]] std::uint32_t size() const override { return static_cast<std::uint32_t>(size_); }
  [[nodiscard]] bootstrap::Method method() const override { return bootstrap::Method::kTable; }
  [[nodiscard]] bool is_secret() const override { return true; }
  [[nodiscard]] const bootstrap::JobSecret& secret() const override { return secret_; }
  [[nodiscard]] const std::string& local_address() const override { return local_address_; }
  [[nodiscard]] Result<void> put(const std::string& key, const std::string& value) override;
  [[nodiscard]] Result<void> fence() override;
  [[nodiscard]] Result<std::string> get(std::uint32_t rank, const std::string& key) override;
  [[nodiscard]] Result<bootstrap::Survivors> rejoin() override;

 private:
  MPI_Comm comm_;
  int rank_ = 0, size_ = 0;
  bootstrap::JobSecret secret_ = {};
  std::string local_address_;
  std::string unpublished_;  // keys and values since the last fence, each after its length
  std::vector<std::map<std::string, std::string>> values_;  // of each rank
};

}  // namespace espalier::bridge
