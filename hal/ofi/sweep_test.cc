// The files of shm endpoints whose processes were killed, and files that must stay. Other processes
// of this user may remove the former at any time.

#include "hal/ofi/sweep.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/results.h"
#include "espalier/hal/ofi/ofi_endpoint.h"

namespace espalier::ofi {
namespace {

Config config_of(std::uint32_t node) {
  Config config;
  config.provider = "shm";
  config.node = node;
  config.max_links = 2;
  return config;
}

std::unique_ptr<OfiEndpoint> open_shm(std::uint32_t node = 0) {
  return or_throw(OfiEndpoint::open(config_of(node)));
}

// Returns the names of the files of this process.
std::vector<std::string> files_of(std::int64_t process) {
  std::vector<std::string> files;
  for (const auto& file : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = file.path().filename().string();
    if (name.starts_with(std::to_string(process) + ":")) files.push_back(name);
  }
  return files;
}

bool has_file(const std::string& name) { return std::filesystem::exists("/dev/shm/" + name); }

// A process with an open shm endpoint of node 1, until it is killed.
class OtherProcess {
 public:
  using Step = std::function<void(int)>;
  // `then` runs there with the endpoint open; a process that it forks closes the descriptor.
  // `first` runs before.
  explicit OtherProcess(
      const Step& then = [](int) {}, const Step& first = [](int) {}) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    process_ = fork();
    if (process_ == 0) {
      close(ends[0]);
      first(ends[1]);
      const auto endpoint = open_shm(1);
      then(ends[1]);
      const std::string address = endpoint->address();
      (void)!write(ends[1], address.data(), address.size());
      close(ends[1]);
      while (true) pause();
    }
    close(ends[1]);
    char bytes[512];
    ssize_t size = 0;
    while ((size = read(ends[0], bytes, sizeof bytes)) > 0) {
      address_.append(bytes, static_cast<std::size_t>(size));
    }
    close(ends[0]);
  }
  ~OtherProcess() { end(); }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  void end() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    (void)waitpid(process_, nullptr, 0);
    process_ = 0;
  }
  [[nodiscard]] pid_t process() const { return process_; }
  [[nodiscard]] const std::string& address() const { return address_; }
  // Returns the name of its file: the end of its address.
  [[nodiscard]] std::string file() const {
    const std::string name = address_.c_str() + address_.rfind("//") + 2;
    return name.substr(0, name.find('\0'));
  }

 private:
  pid_t process_ = 0;
  std::string address_;
};

TEST(Sweep, OpeningRemovesTheFilesOfKilledProcesses) {
  std::vector<std::unique_ptr<OtherProcess>> all;
  std::vector<std::string> files;
  for (int i = 0; i < 8; ++i) {
    all.push_back(std::make_unique<OtherProcess>());
    files.push_back(all.back()->file());
  }
  for (const std::string& file : files) EXPECT_TRUE(has_file(file)) << file;
  for (const auto& one : all) one->end();
  (void)open_shm();
  for (const std::string& file : files) EXPECT_FALSE(has_file(file)) << file;
}

TEST(Sweep, ClosingRemovesTheFileOfAKilledPeer) {
  auto endpoint = open_shm();
  OtherProcess peer;
  const std::string file = peer.file();
  or_throw(endpoint->set_addresses({endpoint->address(), peer.address()}));
  (void)or_throw(endpoint->add_link(1));
  EXPECT_TRUE(has_file(file));
  peer.end();
  endpoint.reset();
  EXPECT_FALSE(has_file(file));
}

TEST(Sweep, FilesOfLiveProcessesStay) {
  const OtherProcess other;
  const auto own = open_shm();
  const std::vector<std::string> own_files = files_of(getpid());
  EXPECT_EQ(own_files.size(), 2u);  // with its claim
  (void)open_shm();
  sweep_own_number();
  EXPECT_TRUE(has_file(other.file()));
  EXPECT_EQ(files_of(getpid()), own_files);
}

// A child that was forked after the endpoint was opened may use it.
TEST(Sweep, TheFileOfAProcessStaysWhileAForkedChildLives) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  OtherProcess other([&ends](int descriptor) {
    if (fork() != 0) return;
    close(descriptor);
    close(ends[1]);
    char byte = 0;
    (void)!read(ends[0], &byte, 1);  // until the test closes the other end
    _exit(0);
  });
  close(ends[0]);
  const std::string file = other.file();
  other.end();
  (void)open_shm();
  EXPECT_TRUE(has_file(file));
  close(ends[1]);
  while (has_file(file)) (void)open_shm();
}

class ForeignFile {
 public:
  explicit ForeignFile(std::string name) : name_(std::move(name)) {
    close(open(path().c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  }
  ~ForeignFile() { (void)unlink(path().c_str()); }
  ForeignFile(const ForeignFile&) = delete;
  ForeignFile& operator=(const ForeignFile&) = delete;
  [[nodiscard]] std::string path() const { return "/dev/shm/" + name_; }
  [[nodiscard]] bool is_there() const { return has_file(name_); }

 private:
  std::string name_;
};

// Files of another program that uses libfabric, and of a program whose claim is no file.
TEST(Sweep, FilesOfOtherProgramsStay) {
  const ForeignFile unclaimed("4194305:0:0");  // above every process number
  const ForeignFile claimed("4194306:0:0");
  const std::string link = claimed.path() + ":claim";
  ASSERT_EQ(symlink(unclaimed.path().c_str(), link.c_str()), 0);
  (void)open_shm();
  EXPECT_TRUE(unclaimed.is_there());
  EXPECT_TRUE(claimed.is_there());
  (void)unlink(link.c_str());
}

// A process that is killed before libfabric has made the file, or after it has removed it.
TEST(Sweep, AClaimWithoutAFileIsRemoved) {
  const ForeignFile claim("4194305:0:0:claim");
  (void)open_shm();
  EXPECT_FALSE(claim.is_there());
}

TEST(Sweep, ClosingLeavesNothing) {
  auto endpoint = open_shm();
  EXPECT_EQ(files_of(getpid()).size(), 2u);
  endpoint.reset();
  EXPECT_EQ(files_of(getpid()).size(), 0u);
}

// The claim of a live process cannot be taken.
TEST(Sweep, AFileHasOneClaim) {
  const SharedMemoryClaim first("4194305:0:0");
  EXPECT_TRUE(first.is_held());
  const SharedMemoryClaim second("4194305:0:0");
  EXPECT_FALSE(second.is_held());
}

TEST(Sweep, AFileWithTheNumberOfThisProcessIsRemovedBeforeItsFirstEndpoint) {
  const ForeignFile left(std::to_string(getpid()) + ":77:0");
  sweep_own_number();
  EXPECT_FALSE(left.is_there());
}

// The process goes on as process 1 of a new pid namespace, which ends with it.
void enter_namespace(int descriptor) {
  if (unshare(CLONE_NEWPID) != 0) _exit(1);
  if (fork() == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    return;
  }
  close(descriptor);
  while (true) pause();
}

// A program in another pid namespace that shares /dev/shm: its process number means nothing here.
TEST(Sweep, FilesOfAnotherPidNamespaceStay) {
  OtherProcess other([](int) {}, enter_namespace);
  if (other.address().empty()) GTEST_SKIP() << "no new pid namespace: not root";
  const std::string file = other.file();
  EXPECT_TRUE(file.starts_with("1:")) << file;
  (void)open_shm();
  EXPECT_TRUE(has_file(file));
  other.end();
  while (has_file(file)) (void)open_shm();  // until that process has ended, too
}

}  // namespace
}  // namespace espalier::ofi
