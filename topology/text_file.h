#pragma once
// Files in protobuf's text format: topologies and embeddings. Host only.

#include <google/protobuf/io/tokenizer.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "topology/custom_content.h"

namespace espalier::topology {

// Keeps the parser's first error, and appends `guide` to it.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  explicit FirstError(std::string guide) : guide_(std::move(guide)) {}
  // line and column count from 0.
  void AddError(int line, int column, const std::string& message) override {
    if (!error) error = ParseError{{std::max(line, 0), std::max(column, 0)}, message + guide_};
  }
  std::optional<ParseError> error;

 private:
  std::string guide_;
};

}  // namespace espalier::topology
