// The collectives of Gloo, timed for peers.py: RANK RANKS ADDRESS FOLDER, then the arguments of
// peers_protocol.h. The ranks find each other through FOLDER. Gloo has no scan and no exscan, and
// its reduce-scatter has another interface.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "peers_protocol.h"

namespace {

std::shared_ptr<gloo::rendezvous::Context> g_context;

using Sum = void (*)(void*, const void*, const void*, std::size_t);

// Runs a collective that is set up by `set`.
template <typename Options, typename Set>
void run_with(void (*collective)(Options&), const Set& set) {
  Options options(g_context);
  set(options);
  collective(options);
}

void barrier() {
  run_with(gloo::barrier, [](gloo::BarrierOptions&) {});
}

void maximum(double* values, int count) {
  std::vector<double> result(static_cast<std::size_t>(count));
  run_with(gloo::reduce, [&](gloo::ReduceOptions& options) {
    options.setInput(values, result.size());
    options.setOutput(result.data(), result.size());
    options.setRoot(0);
    options.setReduceFunction(static_cast<Sum>(&gloo::max<double>));
  });
  if (g_context->rank == 0) std::copy(result.begin(), result.end(), values);
}

// Those in which every rank has a part.
void run_parts(const PeerRow& row, float* send, float* receive) {
  const auto n = static_cast<std::size_t>(row.n), ranks = static_cast<std::size_t>(g_context->size);
  const bool is_root = g_context->rank == 0;
  switch (row.collective) {
    case kScatter:
      return run_with(gloo::scatter, [&](gloo::ScatterOptions& options) {
        std::vector<float*> parts;
        for (std::size_t rank = 0; is_root && rank < ranks; ++rank)
          parts.push_back(send + rank * n);
        if (is_root) options.setInputs(parts, n);
        options.setOutput(receive, n);
        options.setRoot(0);
      });
    case kGather:
      return run_with(gloo::gather, [&](gloo::GatherOptions& options) {
        options.setInput(send, n);
        if (is_root) options.setOutput(receive, n * ranks);
        options.setRoot(0);
      });
    case kAllgather:
      return run_with(gloo::allgather, [&](gloo::AllgatherOptions& options) {
        options.setInput(send, n);
        options.setOutput(receive, n * ranks);
      });
    default:
      return run_with(gloo::alltoall, [&](gloo::AlltoallOptions& options) {
        options.setInput(send, n * ranks);
        options.setOutput(receive, n * ranks);
      });
  }
}

void run(const PeerRow* row, float* send, float* receive) {
  const auto n = static_cast<std::size_t>(row->n);
  switch (row->collective) {
    case kBroadcast:
      return run_with(gloo::broadcast, [&](gloo::BroadcastOptions& options) {
        options.setOutput(receive, n);
        options.setRoot(0);
      });
    case kReduce:
      return run_with(gloo::reduce, [&](gloo::ReduceOptions& options) {
        options.setInput(send, n);
        options.setOutput(receive, n);
        options.setRoot(0);
        options.setReduceFunction(static_cast<Sum>(&gloo::sum<float>));
      });
    case kAllreduce: {
      gloo::AllreduceOptions options(g_context);
      options.setInput(send, n);
      options.setOutput(receive, n);
      options.setReduceFunction(static_cast<Sum>(&gloo::sum<float>));
      return gloo::allreduce(options);
    }
    case kBarrier: return barrier();
    default: return run_parts(*row, send, receive);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return peer_bad_input("too few arguments after", argv[0]);
  g_context = std::make_shared<gloo::rendezvous::Context>(std::atoi(argv[1]), std::atoi(argv[2]));
  gloo::rendezvous::FileStore store(argv[4]);
  std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(argv[3]);
  g_context->connectFullMesh(store, device);
  const Peer peer = {g_context->rank, g_context->size, barrier, run, maximum};
  const int status = peer_main(&peer, argc - 4, argv + 4);
  barrier();
  return status;
}
