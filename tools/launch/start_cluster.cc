#include "tools/launch/start_cluster.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tools/common/failure.h"
#include "tools/common/output.h"

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

// Whether `espalier-node --check` takes this provider. Only it is linked with libfabric, which is
// slow to start.
bool node_takes(const std::string& node_binary, const std::string& provider) {
  const pid_t child = fork();
  if (child < 0) negative(std::string("cannot start a process: ") + std::strerror(errno));
  if (child == 0) {
    const int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDERR_FILENO);
    execl(node_binary.c_str(), node_binary.c_str(), "--check", "--provider", provider.c_str(),
          static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

void find_node(launch::Options& options) {
  options.node_binary = find_node_binary(options.node_binary);
  const std::string& provider = options.provider;
  if (provider == "shm" && !options.address.empty()) {
    bad_input("--address is an IP to bind, and shm binds none; expected --provider tcp");
  }
  if (provider == "tcp" || provider == "shm" || node_takes(options.node_binary, provider)) return;
  bad_input("unknown provider '" + one_line(provider) + "'; expected tcp or shm");
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
