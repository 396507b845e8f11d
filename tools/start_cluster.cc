#include "tools/start_cluster.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tools/failure.h"
#include "tools/output.h"

namespace espalier::tools {
namespace {

namespace fs = std::filesystem;

// A directory that lives as long as this.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::error_code ignored;
    path_ = (fs::temp_directory_path(ignored) / "espalier-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) {
      bad_input("cannot make a directory like " + path_ + ": " + std::strerror(errno));
    }
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

std::string find_node_binary(const std::string& given) {
  if (!given.empty()) {
    if (access(given.c_str(), X_OK) == 0) return fs::absolute(given).string();
    bad_input("cannot run '" + one_line(given) + "': " + std::strerror(errno));
  }
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& path :
       {here / "espalier-node", here.parent_path() / "firmware" / "node" / "espalier-node"}) {
    if (access(path.c_str(), X_OK) == 0) return path.string();
  }
  bad_input("no espalier-node beside " + (here / "espalier").string() +
            "; expected --node-binary PATH");
}

void start_cluster(launch::Options options, const std::vector<std::vector<std::uint8_t>>& schedules,
                   launch::Cluster& cluster) {
  const TemporaryDirectory directory;
  options.schedules.clear();
  for (const std::vector<std::uint8_t>& bytes : schedules) {
    options.schedules.push_back(directory.path() + "/" + std::to_string(options.schedules.size()) +
                                ".esp");
    write_file(options.schedules.back(), bytes);
  }
  std::string error;
  if (!cluster.start(options, error)) negative(error);
}

}  // namespace espalier::tools
