#include "hal/fabric/testing/endpoint_processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/testing/results.h"
#include "espalier/hal/ofi/ofi_endpoint.h"
#include "hal/fabric/testing/local_endpoints.h"

namespace espalier::ofi {
namespace {

// False if the process at the other end has ended; join() reports how.
bool put(int channel, const void* bytes, std::size_t size) {
  return size == 0 || send(channel, bytes, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

bool put(int channel, const std::string& text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  return put(channel, &size, sizeof(size)) && put(channel, text.data(), size);
}

bool take(int channel, void* bytes, std::size_t size) {
  return size == 0 || recv(channel, bytes, size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

bool get(int channel, std::string& text) {
  std::uint32_t size = 0;
  if (!take(channel, &size, sizeof(size))) return false;
  text.resize(size);
  return take(channel, text.data(), size);
}

bool readable(int channel) {
  pollfd wanted = {channel, POLLIN, 0};
  return ::poll(&wanted, 1, 0) == 1;
}

}  // namespace

EndpointProcesses::EndpointProcesses(const FixedConfig& config,
                                     const std::vector<std::vector<std::uint32_t>>& peers,
                                     const Body& body) {
  for (std::uint32_t v = 0; v < peers.size(); ++v) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) std::abort();
    std::fflush(nullptr);
    const FixedConfig own = for_node(config, v, peers[v]);
    const pid_t pid = fork();
    if (pid == 0) {
      for (const Child& child : children_) close(child.channel);
      close(pair[0]);
      execute(own, pair[1], body);
    }
    close(pair[1]);
    children_.push_back({pid, pair[0], false});
  }
  std::vector<std::vector<std::uint32_t>> lanes(peers.size());
  std::vector<std::vector<std::string>> addresses(peers.size());
  for (std::uint32_t v = 0; v < peers.size(); ++v) {
    const FixedConfig::Lanes link =
        config.lanes.empty() ? FixedConfig::Lanes{} : config.lanes.front();
    const std::size_t each = std::max(link.out, link.in);
    for (const std::uint32_t peer : peers[v]) lanes[v].insert(lanes[v].end(), each, peer);
    addresses[v].resize(lanes[v].size());
    for (std::string& address : addresses[v]) {
      if (!get(children_[v].channel, address)) std::abort();
    }
  }
  for (std::uint32_t v = 0; v < peers.size(); ++v) {
    for (std::uint32_t lane = 0; lane < lanes[v].size(); ++lane) {
      if (!put(children_[v].channel, addresses[lanes[v][lane]][other_end(lanes, v, lane)])) {
        std::abort();
      }
    }
  }
  std::string connected;
  for (const Child& child : children_) {
    if (!get(child.channel, connected)) std::abort();
  }
  for (const Child& child : children_) {
    if (!put(child.channel, "go")) std::abort();
  }
}

void EndpointProcesses::execute(const FixedConfig& config, int channel, const Body& body) {
  int status = 99;
  {
    const auto opened = FixedLinks::open(config);
    std::string error = message_of(opened);
    FixedLinks* const endpoint = opened ? opened->get() : nullptr;
    std::vector<std::string> addresses;
    if (endpoint != nullptr) addresses = endpoint->addresses();
    const auto publish = [channel](const std::string& address) { return put(channel, address); };
    if (endpoint != nullptr && std::all_of(addresses.begin(), addresses.end(), publish)) {
      for (std::string& address : addresses) {
        if (!get(channel, address)) _exit(99);
      }
      std::string go;
      const auto connected = endpoint->connect(addresses);
      if (!connected) error = connected.error().message;
      if (connected && put(channel, "connected") && get(channel, go)) {
        status = body(endpoint->endpoint());
        (void)put(channel, "done");
        Completion completion;
        while (!readable(channel)) {
          if (endpoint->endpoint().poll(completion)) continue;
          endpoint->endpoint().wait(endpoint->endpoint().now() + 1'000'000);
        }
      }
    }
    if (!error.empty()) std::fprintf(stderr, "node %u: %s\n", config.node, error.c_str());
  }
  std::fflush(nullptr);
  _exit(status);
}

void EndpointProcesses::signal(std::uint32_t node, int number) {
  if (number == SIGKILL) children_[node].killed = true;
  kill(children_[node].pid, number);
}

int EndpointProcesses::join() {
  std::string done;
  for (const Child& child : children_) {
    if (!child.killed) (void)get(child.channel, done);
  }
  for (const Child& child : children_) {
    if (!child.killed) (void)put(child.channel, "end");
  }
  int worst = 0;
  for (const Child& child : children_) {
    int status = 0;
    waitpid(child.pid, &status, 0);
    if (child.killed) continue;
    worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  for (const Child& child : children_) close(child.channel);
  children_.clear();
  return worst;
}

}  // namespace espalier::ofi
