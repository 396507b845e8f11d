#include "hal/fabric/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "espalier/hal/ofi/ofi_endpoint.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier::ofi {

std::uint32_t other_end(const std::vector<std::vector<std::uint32_t>>& peers, std::uint32_t node,
                        std::uint32_t lane) {
  const std::vector<std::uint32_t>& here = peers[node];
  const std::vector<std::uint32_t>& there = peers[here[lane]];
  auto before = std::count(here.begin(), here.begin() + lane, here[lane]);
  std::uint32_t index = 0;
  while (index < there.size() && (there[index] != node || before-- > 0)) ++index;
  return index;
}

std::string fabric_part(const std::string& address) {
  MixedHead head;
  std::size_t begin = 0;
  if (address.size() >= sizeof(head)) std::memcpy(&head, address.data(), sizeof(head));
  if (address.size() >= sizeof(head) && head.magic == MixedHead().magic) {
    begin = std::min(sizeof(head) + std::size_t{head.memory_bytes}, address.size());
  }
  std::string part = address.substr(begin);
  CabledHead cabled{.magic = 0};
  if (part.size() >= sizeof(cabled)) std::memcpy(&cabled, part.data(), sizeof(cabled));
  return cabled.magic == CabledHead().magic ? "" : part;
}

std::string address_text(const std::string& address) {
  if (address.size() <= sizeof(AddressHead)) return "";
  const std::string name = address.substr(sizeof(AddressHead));
  char text[INET6_ADDRSTRLEN] = "";
  sockaddr_storage socket = {};
  std::memcpy(&socket, name.data(), std::min(name.size(), sizeof socket));
  const std::uint16_t family = little(socket.ss_family);
  if (family == AF_INET) {
    sockaddr_in ip = {};
    std::memcpy(&ip, &socket, sizeof ip);
    inet_ntop(AF_INET, &ip.sin_addr, text, sizeof text);
    return std::string(text) + ":" + std::to_string(ntohs(ip.sin_port));
  }
  if (family == AF_INET6) {
    sockaddr_in6 ip = {};
    std::memcpy(&ip, &socket, sizeof ip);
    inet_ntop(AF_INET6, &ip.sin6_addr, text, sizeof text);
    return "[" + std::string(text) + "]:" + std::to_string(ntohs(ip.sin6_port));
  }
  return name.c_str();  // text, up to its terminating zero
}

}  // namespace espalier::ofi
