#include "bootstrap/subnet_probe.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/network/interfaces.h"
#include "base/network/lookup.h"

namespace espalier::bootstrap {
namespace {

constexpr std::chrono::milliseconds kProbeTime(500);
constexpr int kReachTime = 300;  // ms

}  // namespace

Socket start_probe(const ProbeOf& probe) {
  Socket opened(
      socket(probe.to.is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (opened.get() < 0 || probe.to.port == 0) return Socket();
  sockaddr_storage end;
  socklen_t size = probe.from.with_port(0).to_socket(end);
  if (bind(opened.get(), reinterpret_cast<sockaddr*>(&end), size) != 0) return Socket();
  size = probe.to.to_socket(end);
  if (connect(opened.get(), reinterpret_cast<sockaddr*>(&end), size) == 0) return opened;
  return errno == EINPROGRESS ? std::move(opened) : Socket();
}

int error_of(const Socket& socket) {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

std::vector<std::size_t> failed_probes(const std::vector<ProbeOf>& probes) {
  std::vector<std::size_t> failed;
  std::vector<Socket> sockets;
  std::vector<pollfd> files;
  for (const ProbeOf& probe : probes) {
    sockets.push_back(start_probe(probe));
    files.push_back({sockets.back().get(), POLLOUT, 0});
    if (sockets.back().get() < 0) failed.push_back(probe.number);
  }
  const auto until = Clock::now() + kProbeTime;
  const auto are_waiting = [&files] {
    return std::any_of(files.begin(), files.end(), [](const pollfd& each) { return each.fd >= 0; });
  };
  while (are_waiting()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) break;
    (void)poll(files.data(), files.size(), static_cast<int>(left));
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (files[i].fd < 0 || files[i].revents == 0) continue;
      if (error_of(sockets[i]) != 0) failed.push_back(probes[i].number);
      files[i] = {-1, 0, 0};
    }
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files[i].fd >= 0) failed.push_back(probes[i].number);
  }
  return failed;
}

std::string reach_text(const std::string& address) {
  const auto addresses = network::resolve(address);
  if (!addresses) return address;
  const network::Address& to = addresses->front();
  const Socket opened(
      socket(to.is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_storage there;
  const socklen_t size = to.to_socket(there);
  std::string words = "reached, but it does not answer";
  int error = 0;
  if (connect(opened.get(), reinterpret_cast<sockaddr*>(&there), size) != 0) error = errno;
  if (error == EINPROGRESS) {
    pollfd file{opened.get(), POLLOUT, 0};
    error = poll(&file, 1, kReachTime) > 0 ? error_of(opened) : ETIMEDOUT;
    if (error == ETIMEDOUT) words = "no answer";
  }
  if (error != 0 && error != ETIMEDOUT) words = network::error_words(error);
  const std::string interface = network::route_to(to, network::running_interfaces());
  return address + " (" + (interface.empty() ? "" : interface + ": ") + words + ")";
}

}  // namespace espalier::bootstrap
