// Measures ping-pong latency and streaming bandwidth over the endpoint and over a plain TCP socket,
// interleaved, and prints medians and ratios. Then measures a ring of many processes.
//
//   ofi-bench [tcp|mem] [repetitions]

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "hal/fabric/testing/endpoint_processes.h"

namespace espalier::ofi {
namespace {

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct BenchCase {
  bool stream = false;
  std::uint64_t size = 0;
  int count = 0;
};

constexpr BenchCase kCases[] = {{false, 8, 2000},     {false, 1024, 2000}, {false, 4096, 2000},
                                {false, 16384, 1000}, {false, 65536, 500}, {false, 1 << 20, 50},
                                {true, 8, 20000},     {true, 4096, 10000}, {true, 16384, 5000},
                                {true, 65536, 2000},  {true, 1 << 20, 100}};

// One end of a link, as the machine uses it: receives are posted ahead, and it waits when there is
// nothing to do.
class End {
 public:
  explicit End(Endpoint& endpoint) : endpoint_(endpoint) {}

  void await(std::uint64_t& counter, std::uint64_t until) {
    Completion completion;
    while (counter < until) {
      if (!endpoint_.poll(completion)) {
        endpoint_.wait(endpoint_.now() + 1'000'000'000);
        continue;
      }
      if (completion.status != Status::kOk) std::abort();
      received += completion.kind == Completion::Kind::kReceived ? 1 : 0;
      sent += completion.kind == Completion::Kind::kSent ? 1 : 0;
    }
  }
  void post_receive(std::uint32_t link, std::uint8_t* bytes, std::uint64_t size) {
    if (endpoint_.post_receive(link, {bytes, size, 1, 0}) != Status::kOk) std::abort();
    ++receives;
  }
  void post_send(std::uint32_t link, const std::uint8_t* bytes, std::uint64_t size) {
    if (endpoint_.post_send(link, {bytes, size, 1, 0, 0}) != Status::kOk) std::abort();
    ++sends;
  }
  std::uint64_t receives = 0, received = 0, sends = 0, sent = 0;

 private:
  Endpoint& endpoint_;
};

double run_endpoint(Endpoint& endpoint, const BenchCase& c, std::vector<std::uint8_t>& in,
                    std::vector<std::uint8_t>& out) {
  End end(endpoint);
  const bool first = endpoint.node() == 0;
  const double start = seconds();
  const auto window = endpoint.window();
  if (!c.stream) {
    for (int i = 0; i < c.count; ++i) {
      end.post_receive(0, in.data(), c.size);
      if (first) end.post_send(0, out.data(), c.size);
      end.await(end.received, end.receives);
      if (!first) end.post_send(0, out.data(), c.size);
      end.await(end.sent, end.sends);
    }
  } else if (first) {
    const auto count = static_cast<std::uint64_t>(c.count);
    end.post_receive(0, in.data(), 1);
    while (end.sends < count) {
      end.await(end.sent, end.sends >= window ? end.sends - window + 1 : 0);
      end.post_send(0, out.data(), c.size);
    }
    end.await(end.sent, end.sends);
    end.await(end.received, 1);
  } else {
    const auto count = static_cast<std::uint64_t>(c.count);
    while (end.receives < std::min<std::uint64_t>(window, count)) {
      end.post_receive(0, in.data(), c.size);
    }
    while (end.received < count) {
      end.await(end.received, end.received + 1);
      while (end.receives < count && end.receives - end.received < window) {
        end.post_receive(0, in.data(), c.size);
      }
    }
    end.post_send(0, out.data(), 1);
    end.await(end.sent, 1);
  }
  return seconds() - start;
}

bool transfer(int socket, std::uint8_t* bytes, std::uint64_t size, bool out) {
  while (size != 0) {
    const ssize_t n = out ? send(socket, bytes, size, 0) : recv(socket, bytes, size, 0);
    if (n <= 0) return false;
    bytes += n;
    size -= static_cast<std::uint64_t>(n);
  }
  return true;
}

double run_socket(int socket, bool first, const BenchCase& c, std::vector<std::uint8_t>& in,
                  std::vector<std::uint8_t>& out) {
  const double start = seconds();
  bool good = true;
  for (int i = 0; i < c.count; ++i) {
    if (first || !c.stream) {
      if (first) good = good && transfer(socket, out.data(), c.size, true);
      if (!c.stream) {
        good = good && transfer(socket, in.data(), c.size, false);
        if (!first) good = good && transfer(socket, out.data(), c.size, true);
      }
    } else {
      good = good && transfer(socket, in.data(), c.size, false);
    }
  }
  if (c.stream) {
    good = good &&
           (first ? transfer(socket, in.data(), 1, false) : transfer(socket, out.data(), 1, true));
  }
  if (!good) std::abort();
  return seconds() - start;
}

// Makes a connected pair of TCP sockets over the loopback.
void tcp_pair(int pair[2]) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(listener, 1) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    std::abort();
  }
  pair[0] = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(pair[0], reinterpret_cast<sockaddr*>(&address), length) != 0) std::abort();
  pair[1] = accept(listener, nullptr, nullptr);
  close(listener);
  const int on = 1;
  for (int i = 0; i < 2; ++i) setsockopt(pair[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int pair_body(Endpoint& endpoint, const int sockets[2], int repetitions) {
  const bool first = endpoint.node() == 0;
  std::vector<std::uint8_t> in(1 << 20), out(1 << 20, 7);
  const Region regions[] = {{in.data(), in.size()}, {out.data(), out.size()}};
  if (endpoint.prepare(regions, 2) != Status::kOk) return 1;
  if (first)
    std::printf("%-10s %9s %12s %12s %7s\n", "", "bytes", "endpoint", "tcp socket", "ratio");
  for (const BenchCase& c : kCases) {
    std::vector<double> ours, theirs;
    for (int r = 0; r < repetitions; ++r) {
      ours.push_back(run_endpoint(endpoint, c, in, out));
      theirs.push_back(run_socket(sockets[first ? 0 : 1], first, c, in, out));
    }
    if (!first) continue;
    const double a = median(ours), b = median(theirs);
    if (c.stream) {
      const double bytes = static_cast<double>(c.size) * c.count / 1e9;
      std::printf("%-10s %9llu %7.3f GB/s %7.3f GB/s %7.2f\n", "stream",
                  static_cast<unsigned long long>(c.size), bytes / a, bytes / b, b / a);
    } else {
      std::printf("%-10s %9llu %9.2f us %9.2f us %7.2f\n", "one way",
                  static_cast<unsigned long long>(c.size), a / c.count / 2 * 1e6,
                  b / c.count / 2 * 1e6, a / b);
    }
    std::fflush(stdout);
  }
  return 0;
}

// Each process sends messages around a ring, `window` at a time.
int ring_body(Endpoint& endpoint, std::uint64_t size, int count) {
  std::vector<std::uint8_t> in(size * endpoint.window()), out(size, 7);
  const Region region = {in.data(), in.size()};
  if (endpoint.prepare(&region, 1) != Status::kOk) return 1;
  End end(endpoint);
  const auto total = static_cast<std::uint64_t>(count);
  const double start = seconds();
  while (end.received < total || end.sent < total) {
    while (end.receives < total && end.receives - end.received < endpoint.window()) {
      end.post_receive(1, in.data() + end.receives % endpoint.window() * size, size);
    }
    while (end.sends < total && end.sends - end.sent < endpoint.window()) {
      end.post_send(0, out.data(), size);
    }
    std::uint64_t& waited = end.received < total ? end.received : end.sent;
    end.await(waited, waited + 1);
  }
  if (endpoint.node() == 0) {
    const double time = seconds() - start;
    std::printf("%8.2f us per message, %7.3f GB/s per process\n", time / count * 1e6,
                static_cast<double>(size) * count / time / 1e9);
  }
  return 0;
}

int bench(const std::string& provider, int repetitions) {
  FixedConfig config;
  config.provider = provider;
  int sockets[2];
  tcp_pair(sockets);
  EndpointProcesses pair(config, {{1}, {0}},
                         [&](Endpoint& e) { return pair_body(e, sockets, repetitions); });
  int worst = pair.join();
  for (const std::uint32_t n : {4u, 8u, 16u, 64u}) {
    std::vector<std::vector<std::uint32_t>> peers(n);
    for (std::uint32_t v = 0; v < n; ++v) peers[v] = {(v + 1) % n, (v + n - 1) % n};
    for (const auto& [size, count] : std::map<std::uint64_t, int>{{8, 20000}, {65536, 1000}}) {
      std::printf("ring of %2u, %6llu bytes: ", n, static_cast<unsigned long long>(size));
      std::fflush(stdout);
      EndpointProcesses ring(config, peers, [bytes = size, messages = count](Endpoint& e) {
        return ring_body(e, bytes, messages);
      });
      worst = std::max(worst, ring.join());
    }
  }
  return worst;
}

}  // namespace
}  // namespace espalier::ofi

int main(int argc, char** argv) {
  const std::string provider = argc > 1 ? argv[1] : "tcp";
  return espalier::ofi::bench(provider, argc > 2 ? std::atoi(argv[2]) : 5);
}
