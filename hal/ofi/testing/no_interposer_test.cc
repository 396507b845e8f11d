// A program that links the endpoint library without the spin-lock interposer.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "hal/ofi/testing/local_endpoints.h"
#include "hal/ofi/testing/own_symbol.h"

namespace espalier::ofi {
namespace {

TEST(WithoutInterposer, TheProgramHasTheSpinLocksOfTheCLibrary) {
  for (const char* name : {"pthread_spin_lock", "pthread_spin_trylock", "pthread_spin_unlock"}) {
    EXPECT_NE(dlsym(RTLD_DEFAULT, name), nullptr) << name;
    EXPECT_FALSE(in_this_program(name)) << name;
  }
}

// ofi_endpoint_test.cc, in the same program, tests that they carry messages.
TEST(WithoutInterposer, OnlyLocksInSharedMemoryAreUnbounded) {
  for (const char* provider : {"tcp", "shm"}) {
    Config config;
    config.provider = provider;
    LocalEndpoints endpoints(config, {{1}, {0}});
    ASSERT_EQ(endpoints.error, "");
    for (const auto& node : endpoints.nodes) {
      EXPECT_EQ(node->spin_locks_bounded(), provider == std::string("tcp"));
    }
  }
}

}  // namespace
}  // namespace espalier::ofi
