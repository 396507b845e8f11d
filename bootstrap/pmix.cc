// PMIx: mpirun of Open MPI, srun --mpi=pmix. Its library is loaded only under such a launcher, so
// that programs need no PMIx to run.

#include <cstdlib>

#include "base/process/variables.h"
#include "base/try.h"
#include "bootstrap/first_word.h"
#include "bootstrap/pmix_library.h"
#include "bootstrap/process_manager.h"

#if ESPALIER_WITH_PMIX
#include <dlfcn.h>
#include <pmix.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#endif

namespace espalier::bootstrap {

bool has_pmix() { return is_set(Variable::kPmixNamespace); }

#if ESPALIER_WITH_PMIX
namespace {

constexpr const char* kKey = "espalier.server";

class Pmix : public ProcessManager {
 public:
  ~Pmix() override {
    if (is_open_) (void)finalize_(nullptr, 0);
  }
  [[nodiscard]] Result<void> open();
  [[nodiscard]] std::uint32_t rank() const override { return self_.rank; }
  [[nodiscard]] std::uint32_t size() const override { return size_; }
  [[nodiscard]] bool is_one_host() const override { return local_size_ == size_; }
  [[nodiscard]] std::string job() const override { return self_.nspace; }
  [[nodiscard]] Result<std::string> from_rank_zero(const std::string& value,
                                                   std::chrono::milliseconds deadline) override;

 private:
  // The library's function of this name.
  template <typename Function>
  [[nodiscard]] bool find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    return function != nullptr;
  }
  [[nodiscard]] Error error(const char* call, pmix_status_t status) const {
    return {std::string("PMIx: ") + call + ": " + error_string_(status)};
  }
  [[nodiscard]] std::uint32_t number(const char* key) const;
  [[nodiscard]] Result<void> fence(std::chrono::milliseconds deadline);

  void* library_ = nullptr;
  bool is_open_ = false;
  pmix_proc_t self_ = {};
  std::uint32_t size_ = 0, local_size_ = 0;
  decltype(&PMIx_Init) init_ = nullptr;
  decltype(&PMIx_Finalize) finalize_ = nullptr;
  decltype(&PMIx_Put) put_ = nullptr;
  decltype(&PMIx_Commit) commit_ = nullptr;
  decltype(&PMIx_Fence_nb) fence_ = nullptr;
  decltype(&PMIx_Get) get_ = nullptr;
  decltype(&PMIx_Error_string) error_string_ = nullptr;
};

Result<void> Pmix::open() {
  ESPALIER_TRY(read_text(Variable::kPmixNamespace));
  for (const char* name : kPmixLibraries) {
    if (library_ == nullptr) library_ = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  }
  if (library_ == nullptr) {
    return fail(std::string("PMIx: the launcher offers it, and libpmix.so.2 cannot be loaded: ") +
                dlerror() + "; expected Debian's package libpmix2");
  }
  if (!find("PMIx_Init", init_) || !find("PMIx_Finalize", finalize_) || !find("PMIx_Put", put_) ||
      !find("PMIx_Commit", commit_) || !find("PMIx_Fence_nb", fence_) || !find("PMIx_Get", get_) ||
      !find("PMIx_Error_string", error_string_)) {
    return fail("PMIx: libpmix.so.2 lacks a function of version 2");
  }
  const pmix_status_t status = init_(&self_, nullptr, 0);
  if (status != PMIX_SUCCESS) return fail(error("PMIx_Init", status));
  is_open_ = true;
  size_ = number(PMIX_JOB_SIZE);
  local_size_ = number(PMIX_LOCAL_SIZE);
  if (size_ == 0) return fail("PMIx: the launcher does not say how many processes the job has");
  return {};
}

std::uint32_t Pmix::number(const char* key) const {
  pmix_proc_t job = self_;
  job.rank = PMIX_RANK_WILDCARD;
  pmix_value_t* value = nullptr;
  if (get_(&job, key, nullptr, 0, &value) != PMIX_SUCCESS || value == nullptr) return 0;
  const std::uint32_t found = value->type == PMIX_UINT32 ? value->data.uint32 : 0;
  std::free(value);
  return found;
}

// A fence: its arguments, and what the library's thread says about its end, possibly after the
// deadline.
struct Fence {
  pmix_proc_t job = {};
  pmix_info_t collect = {};
  std::mutex mutex;
  std::condition_variable changed;
  bool has_ended = false;
  pmix_status_t status = PMIX_SUCCESS;
};

// `data` is the library's share of the fence.
void take_fence_end(pmix_status_t status, void* data) {
  const std::unique_ptr<std::shared_ptr<Fence>> share(static_cast<std::shared_ptr<Fence>*>(data));
  Fence& fence = **share;
  const std::lock_guard lock(fence.mutex);
  fence.has_ended = true;
  fence.status = status;
  fence.changed.notify_all();
}

// PMIx_Fence() itself waits for ever, and launchers need not know PMIX_TIMEOUT.
Result<void> Pmix::fence(std::chrono::milliseconds deadline) {
  const auto fence = std::make_shared<Fence>();
  fence->job = self_;
  fence->job.rank = PMIX_RANK_WILDCARD;
  std::strncpy(fence->collect.key, PMIX_COLLECT_DATA, PMIX_MAX_KEYLEN);
  fence->collect.value.type = PMIX_BOOL;
  fence->collect.value.data.flag = true;
  auto share = std::make_unique<std::shared_ptr<Fence>>(fence);
  const pmix_status_t started =
      fence_(&fence->job, 1, &fence->collect, 1, take_fence_end, share.get());
  if (started != PMIX_SUCCESS) return fail(error("PMIx_Fence", started));
  (void)share.release();  // take_fence_end() deletes it
  std::unique_lock lock(fence->mutex);
  const Clock::time_point until = Clock::now() + deadline;
  const auto has_ended = [&fence] { return fence->has_ended; };
  FirstWord word;
  Speaker speaker;
  while (Clock::now() < until && !fence->has_ended) {
    const auto next = std::min(until, word.next().value_or(until));
    if (!fence->changed.wait_until(lock, next, has_ended) && word.is_due()) {
      say_waiting({.launcher = "PMIx",
                   .job = self_.nspace,
                   .rank = self_.rank,
                   .size = size_,
                   .absent = absent(),
                   .so_far = word.so_far()},
                  speaker);
    }
  }
  if (!fence->has_ended) {
    is_open_ = false;  // PMIx_Finalize() would wait for the fence
    return fail(missing("PMIx", deadline));
  }
  if (fence->status != PMIX_SUCCESS) return fail(error("PMIx_Fence", fence->status));
  return {};
}

Result<std::string> Pmix::from_rank_zero(const std::string& value,
                                         std::chrono::milliseconds deadline) {
  pmix_status_t status = PMIX_SUCCESS;
  if (self_.rank == 0) {
    pmix_value_t published{};
    published.type = PMIX_STRING;
    std::string text = value;
    published.data.string = text.data();
    status = put_(PMIX_GLOBAL, kKey, &published);
    if (status != PMIX_SUCCESS) return fail(error("PMIx_Put", status));
    status = commit_();
    if (status != PMIX_SUCCESS) return fail(error("PMIx_Commit", status));
  }
  ESPALIER_TRY(fence(deadline));
  if (self_.rank == 0) return value;
  pmix_proc_t zero = self_;
  zero.rank = 0;
  pmix_value_t* found = nullptr;
  status = get_(&zero, kKey, nullptr, 0, &found);
  if (status != PMIX_SUCCESS) return fail(error("PMIx_Get", status));
  if (found->type != PMIX_STRING) return fail("PMIx: rank 0 published something else");
  std::string text = found->data.string;
  std::free(found->data.string);
  std::free(found);
  return text;
}

}  // namespace

Result<std::unique_ptr<ProcessManager>> open_pmix() {
  auto pmix = std::make_unique<Pmix>();
  ESPALIER_TRY(pmix->open());
  return pmix;
}
#else
Result<std::unique_ptr<ProcessManager>> open_pmix() {
  return fail("PMIx: the launcher offers it, and this library was built without libpmix-dev");
}
#endif

}  // namespace espalier::bootstrap
