#pragma once
// Nodes as processes, for tests: with a folder of their own, where their schedules are. Host only.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/digest.h"
#include "collectives/algorithms/testing/generate_all.h"
#include "tools/cluster/launcher.h"

namespace espalier::cluster {

// A test's nodes. Its destructor removes the folder.
class ScheduledNodes {
 protected:
  ~ScheduledNodes() { std::filesystem::remove_all(directory_); }
  // Sets the options for nodes on a complete graph. The environment must name espalier-node.
  void prepare(std::uint32_t ranks, const char* provider) {
    const char* node = std::getenv("ESPALIER_NODE");
    ASSERT_NE(node, nullptr) << "set ESPALIER_NODE to the path of espalier-node";
    std::string path = (std::filesystem::temp_directory_path() / "espalier-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    directory_ = path;
    options_.node_binary = node;
    options_.nodes = ranks;
    options_.topology = "complete:" + std::to_string(ranks);
    options_.provider = provider;
    options_.deadline_ms = 20'000;
  }
  // Writes a schedule for the nodes of options_ and adds its file.
  void add_schedule(Collective collective, const char* algorithm, std::uint32_t root) {
    const std::string& spec = options_.topology;
    const std::uint64_t digest = digest_bytes(kDigestSeed, spec.data(), spec.size());
    ScheduleFileWriter writer(spec, digest, options_.nodes, options_.nodes);
    for (const Program& program :
         must_generate(collective, algorithm,
                       {.ranks = options_.nodes, .root = root, .topology_digest = digest})) {
      ASSERT_EQ(writer.add(program), Status::kOk);
    }
    std::vector<std::uint8_t> file;
    ASSERT_EQ(writer.finish(file), Status::kOk);
    options_.schedules.push_back(directory_ / std::to_string(options_.schedules.size()));
    std::ofstream(options_.schedules.back(), std::ios::binary)
        .write(reinterpret_cast<const char*>(file.data()),
               static_cast<std::streamsize>(file.size()));
  }

  std::filesystem::path directory_;
  LaunchOptions options_;
  NodeProcesses cluster_;
};

}  // namespace espalier::cluster
