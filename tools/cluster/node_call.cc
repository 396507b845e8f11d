#include "tools/cluster/node_call.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "tools/common/failure.h"
#include "tools/common/find_program.h"
#include "tools/common/output.h"

namespace espalier::tools {
namespace {

namespace fs = std::filesystem;

struct NodeAnswer {
  int status = 0;    // waitpid's
  std::string text;  // what it wrote to the stream
};

// Runs espalier-node to its end and returns what it writes to `stream`. Its other stream is this
// process's.
NodeAnswer ask_node(const std::string& node_binary, const std::vector<std::string>& words,
                    int stream) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    negative(std::string("cannot open a pipe: ") + std::strerror(errno));
  }
  std::vector<char*> arguments = {const_cast<char*>(node_binary.c_str())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) negative(std::string("cannot start a process: ") + std::strerror(errno));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    dup2(ends[1], stream);
    execv(node_binary.c_str(), arguments.data());
    _exit(127);
  }
  close(ends[1]);
  NodeAnswer answer;
  char part[512];
  for (ssize_t size = 1; size != 0;) {
    size = read(ends[0], part, sizeof part);
    if (size < 0 && errno != EINTR) break;
    if (size > 0) answer.text.append(part, static_cast<std::size_t>(size));
  }
  close(ends[0]);
  while (waitpid(child, &answer.status, 0) < 0 && errno == EINTR) continue;
  return answer;
}

bool is_success(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }

}  // namespace

std::string find_node_binary(const std::string& given) {
  // Schedules, too, reach nodes through /proc: it must be there in any case.
  const std::string own = or_bad_input(own_program());
  if (!given.empty()) {
    if (access(given.c_str(), X_OK) == 0) return fs::absolute(given).string();
    bad_input("cannot run '" + one_line(given) + "': " + std::strerror(errno));
  }
  const fs::path here = fs::path(own).parent_path();
  for (const fs::path& path :
       {here / "espalier-node", here.parent_path() / "firmware" / "node" / "espalier-node"}) {
    if (access(path.c_str(), X_OK) == 0) return path.string();
  }
  bad_input("no espalier-node beside " + (here / "espalier").string() +
            "; expected --node-binary PATH");
}

std::string node_refusal(const std::string& node_binary, const std::string& provider) {
  NodeAnswer answer = ask_node(node_binary, {"--check", "--provider", provider}, STDERR_FILENO);
  if (is_success(answer.status)) return {};
  // Libraries behind libfabric print lines of their own; the node's is the last.
  std::string& text = answer.text;
  while (text.ends_with('\n')) text.pop_back();
  text.erase(0, text.rfind('\n') + 1);
  const std::string prefix = "espalier-node: ";
  if (!text.starts_with(prefix)) return "provider \"" + provider + "\": " + node_binary + " failed";
  return text.substr(prefix.size());
}

ofi::ProviderList node_providers(const std::string& node_binary) {
  const NodeAnswer answer = ask_node(node_binary, {"--providers"}, STDOUT_FILENO);
  if (!is_success(answer.status)) {
    negative(node_binary + " --providers failed: " +
             (WIFSIGNALED(answer.status)
                  ? std::string(strsignal(WTERMSIG(answer.status)))
                  : "exit status " + std::to_string(WEXITSTATUS(answer.status))));
  }
  return or_negative(ofi::parse_provider_list(answer.text));
}

}  // namespace espalier::tools
