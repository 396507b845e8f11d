#include "bridge/arguments.h"

#include <algorithm>
#include <climits>

#include "bridge/library_below.h"

namespace espalier::bridge {
namespace {

// The class of a buffer that must not be MPI_IN_PLACE.
int in_place_error() { return is_open_mpi() ? MPI_ERR_ARG : MPI_ERR_BUFFER; }
bool checks_null_buffers() { return !is_open_mpi(); }

bool is_bad(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return true;
  if (is_named(type)) return false;
  // Refuses a type that is not committed.
  int position = 0;
  std::uint8_t none[16] = {};
  return PMPI_Pack(none, 0, type, none, sizeof(none), &position, own_comm()) != MPI_SUCCESS;
}

// A null pointer is MPI_BOTTOM, too, which only a type with addresses has a use for.
bool is_missing(const Data& data) {
  if (data.bytes != nullptr || data.count <= 0 || size_of(data.type) == 0) return false;
  if (is_dense(data.type)) return true;
  MPI_Aint lower = 0, extent = 0;
  PMPI_Type_get_true_extent(data.type, &lower, &extent);
  return lower == 0;
}

const void* part_of(const void* bytes, std::int64_t elements, MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return nullptr;
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(bytes) +
                                       static_cast<std::uintptr_t>(elements * extent_of(type)));
}

class Check {
 public:
  Check(Routine routine, const Attached& to, const Arguments& arguments)
      : routine_(routine), to_(to), a_(arguments) {}

  [[nodiscard]] int error() {
    const bool bad_root =
        has_root(routine_) && (a_.root < 0 || static_cast<std::uint32_t>(a_.root) >= to_.size);
    is_root_ = !has_root(routine_) || static_cast<std::uint32_t>(a_.root) == to_.rank;
    if (routine_ == Routine::kBarrier) return MPI_SUCCESS;
    if (bad_root) return PMPI_Bcast(nullptr, 0, MPI_BYTE, a_.root, own_comm());
    if (are_plausible()) return MPI_SUCCESS;
    if (const int early = unchecked_error(); early != MPI_SUCCESS) return early;
    if (const int error = is_root_ ? call_on_self() : check_alone(); error != MPI_SUCCESS) {
      return error;
    }
    return late_error();
  }

 private:
  [[nodiscard]] bool sends() const {
    return routine_ != Routine::kBcast && (is_root_ || !scatters());
  }
  [[nodiscard]] bool receives() const { return is_root_ || !gathers(); }
  [[nodiscard]] bool scatters() const {
    return routine_ == Routine::kScatter || routine_ == Routine::kScatterv;
  }
  [[nodiscard]] bool gathers() const {
    return routine_ == Routine::kGather || routine_ == Routine::kGatherv ||
           routine_ == Routine::kReduce;
  }
  [[nodiscard]] bool may_send_in_place() const { return is_root_ && !scatters(); }
  [[nodiscard]] bool may_receive_in_place() const { return is_root_ && scatters(); }

  [[nodiscard]] Data sent() const {
    return is_reduction(routine_)
               ? Data{a_.send, count_of(a_.receive_counts, a_.receive_count), a_.receive_type}
               : Data{a_.send, count_of(a_.send_counts, a_.send_count), a_.send_type};
  }
  [[nodiscard]] Data received() const {
    return {a_.receive, count_of(a_.receive_counts, a_.receive_count), a_.receive_type};
  }
  // A count that is as good as all of a vector: a negative one, or any that is not 0.
  [[nodiscard]] std::int64_t count_of(Numbers counts, std::int64_t count) const {
    if (!counts.is_given()) return count;
    std::int64_t largest = 0;
    for (std::size_t rank = 0; rank < to_.size; ++rank) {
      if (counts[rank] < 0) return counts[rank];
      largest = std::max(largest, counts[rank]);
    }
    return largest;
  }

  [[nodiscard]] static bool is_plausible(const Data& data) {
    return data.count >= 0 && !is_bad(data.type) && !is_missing(data);
  }

  [[nodiscard]] bool lacks_vectors() const {
    switch (routine_) {
      case Routine::kScatterv:
        return is_root_ && !(a_.send_counts.is_given() && a_.send_offsets.is_given());
      case Routine::kGatherv:
        return is_root_ && !(a_.receive_counts.is_given() && a_.receive_offsets.is_given());
      case Routine::kAllgatherv:
        return !(a_.receive_counts.is_given() && a_.receive_offsets.is_given());
      case Routine::kReduceScatter: return !a_.receive_counts.is_given();
      case Routine::kAlltoallv:
        return !(a_.receive_counts.is_given() && a_.receive_offsets.is_given()) ||
               (!is_in_place(a_.send) &&
                !(a_.send_counts.is_given() && a_.send_offsets.is_given()));
      default: return false;
    }
  }

  // Whether nothing looks wrong. Cheap, for predefined types.
  [[nodiscard]] bool are_plausible() const {
    if (lacks_vectors()) return false;
    const bool sends_in_place = sends() && is_in_place(a_.send);
    const bool receives_in_place = receives() && is_in_place(a_.receive);
    if ((sends_in_place && !may_send_in_place()) ||
        (receives_in_place && !may_receive_in_place())) {
      return false;
    }
    if (sends() && !sends_in_place && !is_plausible(sent())) return false;
    if (receives() && !receives_in_place && !is_plausible(received())) return false;
    return sends_in_place || receives_in_place || !sends() || !receives() || !is_alias();
  }

  [[nodiscard]] std::size_t root() const { return static_cast<std::size_t>(a_.root); }
  [[nodiscard]] const void* own_sent() const {
    if (routine_ == Routine::kScatterv)
      return part_of(a_.send, a_.send_offsets[root()], a_.send_type);
    if (routine_ != Routine::kScatter) return a_.send;
    return part_of(a_.send, a_.root * a_.send_count, a_.send_type);
  }
  [[nodiscard]] void* own_received() const {
    if (is_in_place(a_.receive)) return a_.receive;
    std::int64_t elements = 0;
    if (routine_ == Routine::kGather) elements = a_.root * a_.receive_count;
    if (routine_ == Routine::kAllgather) elements = to_.rank * a_.receive_count;
    if (routine_ == Routine::kGatherv) elements = a_.receive_offsets[root()];
    if (routine_ == Routine::kAllgatherv) elements = a_.receive_offsets[to_.rank];
    if (elements == 0) return a_.receive;
    return const_cast<void*>(part_of(a_.receive, elements, a_.receive_type));
  }
  [[nodiscard]] bool is_alias() const {
    return received().count > 0 && own_sent() == own_received() && a_.receive != nullptr;
  }

  // The errors that the MPI library would not survive, or cannot find alone. MPICH 4.0 copies a
  // negative number of bytes in a reduction.
  [[nodiscard]] int unchecked_error() const {
    if (lacks_vectors()) return MPI_ERR_ARG;
    const bool sends_in_place = sends() && is_in_place(a_.send);
    if ((sends() && !sends_in_place && sent().count < 0) ||
        (receives() && !is_in_place(a_.receive) && received().count < 0)) {
      return MPI_ERR_COUNT;
    }
    if (sends_in_place && !may_send_in_place()) return in_place_error();
    if (!is_root_ && receives() && is_in_place(a_.receive)) return in_place_error();
    if (checks_null_buffers()) return MPI_SUCCESS;
    return null_error();
  }
  [[nodiscard]] int null_error() const {
    const auto is_null = [](const Data& data) {
      return data.count > 0 && !is_bad(data.type) && !is_in_place(data.bytes) && is_missing(data);
    };
    if ((sends() && is_null(sent())) || (receives() && is_null(received()))) return MPI_ERR_BUFFER;
    return MPI_SUCCESS;
  }
  // The errors that the MPI library accepted, and Espalier cannot.
  [[nodiscard]] int late_error() const {
    if (receives() && is_in_place(a_.receive) && !may_receive_in_place()) return in_place_error();
    return null_error();
  }

  // A rank that is not the root: its one buffer, count and type.
  [[nodiscard]] int check_alone() const {
    const Data data = sends() ? sent() : received();
    return PMPI_Bcast(const_cast<void*>(data.bytes), narrow(data.count), data.type, 0, own_comm());
  }

  [[nodiscard]] static int narrow(std::int64_t count) {
    return static_cast<int>(std::clamp<std::int64_t>(count, INT_MIN, INT_MAX));
  }
  [[nodiscard]] static int own_count(Numbers counts, std::size_t rank) {
    return narrow(counts[rank]);
  }

  [[nodiscard]] int call_on_self() const {
    const MPI_Comm self = own_comm();
    const int count = narrow(received().count), sent_count = narrow(sent().count), zero = 0;
    const std::size_t rank = to_.rank;
    const void* const from = own_sent();
    void* const into = own_received();
    switch (routine_) {
      case Routine::kBcast: return PMPI_Bcast(a_.receive, count, a_.receive_type, 0, self);
      case Routine::kReduce:
        return PMPI_Reduce(a_.send, a_.receive, count, a_.receive_type, a_.op, 0, self);
      case Routine::kAllreduce:
        return PMPI_Allreduce(a_.send, a_.receive, count, a_.receive_type, a_.op, self);
      case Routine::kScan:
        return PMPI_Scan(a_.send, a_.receive, count, a_.receive_type, a_.op, self);
      case Routine::kExscan:
        return PMPI_Exscan(a_.send, a_.receive, count, a_.receive_type, a_.op, self);
      case Routine::kReduceScatterBlock:
        return PMPI_Reduce_scatter_block(a_.send, a_.receive, count, a_.receive_type, a_.op, self);
      case Routine::kReduceScatter: {
        const int own = own_count(a_.receive_counts, rank);
        return PMPI_Reduce_scatter(a_.send, a_.receive, &own, a_.receive_type, a_.op, self);
      }
      case Routine::kScatter:
        return PMPI_Scatter(from, sent_count, a_.send_type, a_.receive, count, a_.receive_type, 0,
                            self);
      case Routine::kGather:
        return PMPI_Gather(a_.send, sent_count, a_.send_type, into, count, a_.receive_type, 0,
                           self);
      case Routine::kAllgather:
        return PMPI_Allgather(a_.send, sent_count, a_.send_type, into, count, a_.receive_type,
                              self);
      case Routine::kAlltoall:
        return PMPI_Alltoall(a_.send, sent_count, a_.send_type, a_.receive, count, a_.receive_type,
                             self);
      case Routine::kScatterv: {
        const int own = own_count(a_.send_counts, rank);
        return PMPI_Scatterv(from, &own, &zero, a_.send_type, a_.receive, count, a_.receive_type, 0,
                             self);
      }
      case Routine::kGatherv: {
        const int own = own_count(a_.receive_counts, rank);
        return PMPI_Gatherv(a_.send, sent_count, a_.send_type, into, &own, &zero, a_.receive_type,
                            0, self);
      }
      case Routine::kAllgatherv: {
        const int own = own_count(a_.receive_counts, rank);
        return PMPI_Allgatherv(a_.send, sent_count, a_.send_type, into, &own, &zero,
                               a_.receive_type, self);
      }
      case Routine::kAlltoallv: {
        const int in = own_count(a_.receive_counts, rank);
        if (is_in_place(a_.send)) {
          return PMPI_Alltoallv(a_.send, nullptr, nullptr, a_.receive_type, a_.receive, &in, &zero,
                                a_.receive_type, self);
        }
        const int out = own_count(a_.send_counts, rank);
        return PMPI_Alltoallv(a_.send, &out, &zero, a_.send_type, a_.receive, &in, &zero,
                              a_.receive_type, self);
      }
      default: return MPI_SUCCESS;
    }
  }

  Routine routine_;
  const Attached& to_;
  const Arguments& a_;
  bool is_root_ = false;
};

}  // namespace

int check_arguments(Routine routine, const Attached& to, const Arguments& arguments) {
  return Check(routine, to, arguments).error();
}

}  // namespace espalier::bridge
