#include "bridge/membership.h"

#include <sys/random.h>

#include <cstring>
#include <numeric>

namespace espalier::bridge {
namespace {

void append(std::string& all, const std::string& text) {
  const auto length = static_cast<std::uint32_t>(text.size());
  all.append(reinterpret_cast<const char*>(&length), sizeof(length));
  all += text;
}

std::string take(const std::string& all, std::size_t& position) {
  std::uint32_t length = 0;
  std::memcpy(&length, all.data() + position, sizeof(length));
  position += sizeof(length) + length;
  return all.substr(position - length, length);
}

}  // namespace

Membership::Membership(MPI_Comm comm, Use use) : comm_(comm) {
  PMPI_Comm_rank(comm, &rank_);
  PMPI_Comm_size(comm, &size_);
  values_.resize(static_cast<std::size_t>(size_));
  if (use == Use::kExchange) return;
  if (rank_ == 0 && getrandom(secret_.data(), secret_.size(), 0) < 0) secret_ = {};
  PMPI_Bcast(secret_.data(), static_cast<int>(secret_.size()), MPI_BYTE, 0, comm);
  MPI_Comm host = MPI_COMM_NULL;
  int on_host = 0;
  PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  PMPI_Comm_size(host, &on_host);
  PMPI_Comm_free(&host);
  int all_on_host = on_host == size_ ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &all_on_host, 1, MPI_INT, MPI_MIN, comm);
  // Between hosts the processes agree on addresses that reach each other, which this host's name,
  // often 127.0.1.1, need not.
  if (all_on_host == 1) local_address_ = "127.0.0.1";
}

Result<void> Membership::put(const std::string& key, const std::string& value) {
  append(unpublished_, key);
  append(unpublished_, value);
  return {};
}

Result<void> Membership::fence() {
  const std::size_t ranks = values_.size();
  std::vector<int> sizes(ranks), offsets(ranks);
  const int own = static_cast<int>(unpublished_.size());
  PMPI_Allgather(&own, 1, MPI_INT, sizes.data(), 1, MPI_INT, comm_);
  std::exclusive_scan(sizes.begin(), sizes.end(), offsets.begin(), 0);
  std::string all(static_cast<std::size_t>(offsets.back() + sizes.back()), '\0');
  PMPI_Allgatherv(unpublished_.data(), own, MPI_BYTE, all.data(), sizes.data(), offsets.data(),
                  MPI_BYTE, comm_);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    auto position = static_cast<std::size_t>(offsets[rank]);
    const std::size_t end = position + static_cast<std::size_t>(sizes[rank]);
    while (position < end) {
      const std::string key = take(all, position);
      values_[rank][key] = take(all, position);
    }
  }
  unpublished_.clear();
  return {};
}

Result<std::string> Membership::get(std::uint32_t rank, const std::string& key) {
  const auto found = values_.at(rank).find(key);
  if (found == values_[rank].end()) {
    return fail("rank " + std::to_string(rank) + " published no '" + key + "'");
  }
  return found->second;
}

Result<bootstrap::Survivors> Membership::rejoin() {
  return fail("an MPI library cannot count the survivors of a job");
}

}  // namespace espalier::bridge
