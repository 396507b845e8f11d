#pragma once
// Test helper: a fixture with one schedule, which the verifier accepts or refuses.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/verify/testing/program_builder.h"

namespace espalier::verify {

class ScheduleTest : public ::testing::Test {
 protected:
  void expect_valid() const {
    const Verdict verdict = verdict_of(*topology, programs);
    EXPECT_TRUE(verdict.valid) << verdict.counterexample.message;
    EXPECT_TRUE(verdict.for_all) << verdict.limited;
  }
  // Expects a refusal for this property, by one line that contains all `words`.
  void expect_refused(Property property, const std::vector<std::string>& words,
                      const VerifyOptions& options = {}) const {
    const Verdict verdict = verdict_of(*topology, programs, options);
    ASSERT_FALSE(verdict.valid);
    const std::string& line = verdict.counterexample.message;
    EXPECT_STREQ(property_name(verdict.counterexample.property), property_name(property)) << line;
    for (const std::string& word : words) {
      EXPECT_NE(line.find(word), std::string::npos) << "no '" << word << "' in: " << line;
    }
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  }
  // Expects a refusal after `change` alone, which changes `programs`.
  void expect_refused_by(Property property, const std::vector<std::string>& words,
                         const std::function<void()>& change) {
    const std::vector<OwnedProgram> valid = programs;
    change();
    expect_refused(property, words);
    programs = valid;
  }
  void on_all(const std::function<void(Program&)>& change) {
    for (Program& program : programs) change(program);
  }

  std::unique_ptr<topology::Topology> topology = or_throw(topology::parse("complete:4"));
  std::vector<OwnedProgram> programs;
};

}  // namespace espalier::verify
