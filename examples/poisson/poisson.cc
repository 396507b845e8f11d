// poisson [N]: solves -(u_xx + u_yy) = f on the unit square, u = 0 on its boundary, by the
// conjugate gradient method on a grid of N x N inner points. The processes form a grid of their
// own. Each has a block of points, and a rim of its neighbours' points around it.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "espalier/communicator.h"

namespace {

using espalier::Result;

template <typename Value>
Value value_of(Result<Value> result) {
  if (result) return *std::move(result);
  std::fprintf(stderr, "poisson: %s\n", result.error().message.c_str());
  std::exit(1);
}
void require(const Result<void>& done) {
  if (done) return;
  std::fprintf(stderr, "poisson: %s\n", done.error().message.c_str());
  std::exit(1);
}

// One rank's block of rows x columns points, with a rim of width 1.
struct Block {
  std::size_t rows, columns;
  std::vector<double> points = std::vector<double>((rows + 2) * (columns + 2));
  double& at(std::size_t i, std::size_t j) { return points[i * (columns + 2) + j]; }
};

// The exchange of rims with the neighbours. Planned once.
class Halo {
 public:
  Halo(espalier::Communicator& world, std::uint32_t grid_rows, std::uint32_t grid_columns,
       const Block& block)
      : me_(world.rank()), width_(grid_columns) {
    const std::uint32_t row = me_ / width_, column = me_ % width_;
    if (row > 0) add(me_ - width_, block.columns);
    if (column > 0) add(me_ - 1, block.rows);
    if (column + 1 < width_) add(me_ + 1, block.rows);
    if (row + 1 < grid_rows) add(me_ + width_, block.columns);
    counts_ = value_of(world.neighbor_counts(neighbours_));
    for (const espalier::Neighbor& neighbour : neighbours_) length_ += neighbour.send;
    send_.resize(length_);
    receive_.resize(length_);
    espalier::Call call = espalier::call::all_to_all(send_, receive_, 0);
    call.counts = counts_;
    plan_.push_back(value_of(world.plan(call)));
  }

  void exchange(Block& block) {
    std::size_t next = 0;
    for (const espalier::Neighbor& neighbour : neighbours_) {
      each_edge_point(block, neighbour.rank, false, [&](double& point) { send_[next++] = point; });
    }
    require(plan_[0].start());
    require(plan_[0].wait());
    next = 0;
    for (const espalier::Neighbor& neighbour : neighbours_) {
      each_edge_point(block, neighbour.rank, true,
                      [&](double& point) { point = receive_[next++]; });
    }
  }

 private:
  // Ascending, as the parts of an all-to-all.
  void add(std::uint32_t peer, std::uint64_t points) {
    neighbours_.push_back({.rank = peer, .send = points, .receive = points});
  }

  // The block's own points beside `peer`, or the rim's.
  template <typename Function>
  void each_edge_point(Block& block, std::uint32_t peer, bool rim, Function function) {
    const std::size_t out = rim ? 1 : 0;
    if (peer / width_ == me_ / width_) {
      const std::size_t column = peer < me_ ? 1 - out : block.columns + out;
      for (std::size_t i = 1; i <= block.rows; ++i) function(block.at(i, column));
    } else {
      const std::size_t row = peer < me_ ? 1 - out : block.rows + out;
      for (std::size_t j = 1; j <= block.columns; ++j) function(block.at(row, j));
    }
  }

  std::uint32_t me_, width_;
  std::vector<std::uint64_t> counts_;  // of the all-to-all: zero between ranks that do not touch
  std::vector<espalier::Neighbor> neighbours_;
  std::size_t length_ = 0;
  std::vector<double> send_, receive_;
  std::vector<espalier::Plan> plan_;
};

template <typename Function>
void each_point(Block& block, Function function) {
  for (std::size_t i = 1; i <= block.rows; ++i) {
    for (std::size_t j = 1; j <= block.columns; ++j) function(i, j);
  }
}

// The allreduce adds in an order that depends only on the number of ranks, so that the sum is
// bitwise the same in every run.
double dot(espalier::Communicator& world, Block& a, Block& b) {
  std::vector<double> sum = {0.0};
  each_point(a, [&](std::size_t i, std::size_t j) { sum[0] += a.at(i, j) * b.at(i, j); });
  require(world.allreduce(sum, espalier::Op::kSum));
  return sum[0];
}

}  // namespace

int main(int argument_count, char** arguments) {
  auto joined = espalier::join();
  if (!joined) return std::fprintf(stderr, "poisson: %s\n", joined.error().message.c_str()), 2;
  espalier::Communicator& world = *joined;
  const auto n = static_cast<std::size_t>(argument_count > 1 ? std::atoi(arguments[1]) : 64);
  std::uint32_t grid_rows = 1;  // the largest divisor of the number of ranks up to its root
  for (std::uint32_t rows = 1; rows * rows <= world.size(); ++rows) {
    if (world.size() % rows == 0) grid_rows = rows;
  }
  const std::uint32_t grid_columns = world.size() / grid_rows;
  if (n == 0 || n % grid_rows != 0 || n % grid_columns != 0) {
    if (world.rank() == 0) {
      std::fprintf(stderr,
                   "poisson: N is %zu; expected a multiple of %u and %u, for a grid of %u x "
                   "%u processes\n",
                   n, grid_rows, grid_columns, grid_rows, grid_columns);
    }
    return 2;
  }
  Block x{n / grid_rows, n / grid_columns};
  Block r = x, p = x, q = x;
  Halo halo(world, grid_rows, grid_columns, x);

  // u = s (1 - s) t (1 - t) has f = 2 (s (1 - s) + t (1 - t)), and is a solution on the grid, too.
  const double h = 1.0 / static_cast<double>(n + 1);
  const std::size_t first_row = world.rank() / grid_columns * x.rows;
  const std::size_t first_column = world.rank() % grid_columns * x.columns;
  const auto bump = [&](std::size_t k) {
    return h * static_cast<double>(k) * (1.0 - h * static_cast<double>(k));
  };
  each_point(r, [&](std::size_t i, std::size_t j) {
    r.at(i, j) = p.at(i, j) = 2.0 * (bump(first_row + i) + bump(first_column + j)) * h * h;
  });

  double rr = dot(world, r, r);
  const double first = rr;
  int iteration = 0;
  for (; iteration < 1000 && rr > 1e-20 * first; ++iteration) {
    halo.exchange(p);
    each_point(q, [&](std::size_t i, std::size_t j) {
      q.at(i, j) =
          4.0 * p.at(i, j) - p.at(i - 1, j) - p.at(i + 1, j) - p.at(i, j - 1) - p.at(i, j + 1);
    });
    const double alpha = rr / dot(world, p, q);
    each_point(x, [&](std::size_t i, std::size_t j) {
      x.at(i, j) += alpha * p.at(i, j);
      r.at(i, j) -= alpha * q.at(i, j);
    });
    const double next = dot(world, r, r);
    each_point(
        p, [&](std::size_t i, std::size_t j) { p.at(i, j) = r.at(i, j) + next / rr * p.at(i, j); });
    rr = next;
    if (world.rank() == 0) std::printf("%3d %a\n", iteration, std::sqrt(rr));
  }

  std::vector<double> error = {0.0};
  each_point(x, [&](std::size_t i, std::size_t j) {
    const double exact = bump(first_row + i) * bump(first_column + j);
    error[0] = std::fmax(error[0], std::fabs(x.at(i, j) - exact));
  });
  require(world.allreduce(error, espalier::Op::kMax));
  if (world.rank() == 0) {
    std::printf("%d iterations on %u x %u processes, largest error %.1e\n", iteration, grid_rows,
                grid_columns, error[0]);
  }
  return error[0] < 1e-9 ? 0 : 1;
}
