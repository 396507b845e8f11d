// distribute FILE FOLDER: rank 0 reads FILE (firmware, say) and broadcasts it with its hash. Each
// rank compares the hash, writes FOLDER/RANK, and learns whether all ranks have the file.
#include <sodium.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "espalier/communicator.h"

namespace {

using Bytes = std::vector<std::uint8_t>;
using Hash = std::array<std::uint8_t, crypto_generichash_BYTES>;  // BLAKE2b

// What goes ahead of the file.
struct Header {
  std::uint64_t readable = 0;  // 0: rank 0 cannot read the file
  std::uint64_t bytes = 0;
  Hash hash = {};
};

Hash hash_of(const Bytes& bytes) {
  Hash hash;
  crypto_generichash(hash.data(), hash.size(), bytes.data(), bytes.size(), nullptr, 0);
  return hash;
}

Header read(const std::string& path, Bytes& bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {};
  bytes.assign(std::istreambuf_iterator<char>(file), {});
  return {1, bytes.size(), hash_of(bytes)};
}

// A reader of `path` finds the whole file or none.
bool write(const std::string& path, const Bytes& bytes) {
  std::ofstream file(path + ".part", std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(path + ".part", path, error);
  return file && !error;
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 3 || sodium_init() < 0) {
    return std::fprintf(stderr, "usage: distribute FILE FOLDER\n"), 2;
  }
  auto world = espalier::join();
  if (!world) return std::fprintf(stderr, "distribute: %s\n", world.error().message.c_str()), 2;
  const std::uint32_t rank = world->rank();

  Bytes bytes;
  std::vector<Header> header(1);
  if (rank == 0) header[0] = read(arguments[1], bytes);
  auto done = world->broadcast(std::as_writable_bytes(std::span(header)), 0);
  if (done && header[0].readable == 0) {
    if (rank == 0) std::fprintf(stderr, "distribute: cannot read '%s'\n", arguments[1]);
    return 2;
  }
  bytes.resize(header[0].bytes);
  if (done) done = world->broadcast(bytes, 0);

  const bool is_equal = hash_of(bytes) == header[0].hash;
  const std::string path = std::string(arguments[2]) + "/" + std::to_string(rank);
  std::vector<std::uint32_t> good = {is_equal && write(path, bytes) ? 1U : 0U};
  if (good[0] == 0)
    std::fprintf(stderr, "distribute: rank %u has no good '%s'\n", rank, path.c_str());
  if (done) done = world->allreduce(good, espalier::Op::kSum);
  if (!done) return std::fprintf(stderr, "distribute: %s\n", done.error().message.c_str()), 1;
  if (rank == 0) {
    std::printf("%zu bytes, hash %02x%02x%02x%02x..., on %u of %u ranks\n", bytes.size(),
                header[0].hash[0], header[0].hash[1], header[0].hash[2], header[0].hash[3], good[0],
                world->size());
  }
  return good[0] == world->size() ? 0 : 1;
}
