#include <cmath>
#include <numbers>

#include "base/read_file.h"
#include "topology/custom_content.h"
#include "topology/custom_routes.h"
#include "topology/families.h"
#include "topology/text_file.h"

namespace espalier::topology {
namespace {

constexpr std::string_view kPrefix = "custom:";
constexpr std::size_t kMaxQuoted = 40;  // characters of a specification in a message

class Custom final : public Topology {
 public:
  // The topology may be used only after this succeeded.
  [[nodiscard]] Result<void, ParseError> read(std::string_view text) {
    auto content = read_custom(text);
    if (!content) return fail(content.error());
    content_ = *std::move(content);
    if (auto routed = routes_.build(content_); !routed) return routed;
    spec_ = std::string(kPrefix) + canonical_text(content_);
    return {};
  }

  [[nodiscard]] std::string spec() const override { return spec_; }
  [[nodiscard]] std::string title() const override { return content_.name; }
  [[nodiscard]] std::uint32_t ranks() const override { return content_.ranks; }
  [[nodiscard]] std::uint32_t nodes() const override {
    return static_cast<std::uint32_t>(content_.nodes.size());
  }
  [[nodiscard]] std::vector<Link> links() const override { return content_.links; }
  [[nodiscard]] std::uint64_t link_count() const override { return content_.links.size(); }
  [[nodiscard]] std::uint32_t capacity(std::uint32_t from, std::uint32_t to) const override {
    return content_.capacity(from, to);
  }
  [[nodiscard]] std::vector<std::uint32_t> route(std::uint32_t from,
                                                 std::uint32_t to) const override {
    return routes_.route(from, to);
  }

  // Nodes without positions are on a circle, node 0 at the top, clockwise, neighbours one unit
  // apart.
  [[nodiscard]] Position position(std::uint32_t node) const override {
    if (content_.nodes[node].placed) return content_.nodes[node].position;
    if (nodes() == 1) return {0, 0};
    const double radius = 0.5 / std::sin(std::numbers::pi / nodes());
    const double angle = 2 * std::numbers::pi * node / nodes();
    return {radius * (1 + std::sin(angle)), radius * (1 - std::cos(angle))};
  }

  [[nodiscard]] std::string node_name(std::uint32_t node) const override {
    const std::string& name = content_.nodes[node].name;
    return content_.kind(node) + (name.empty() ? "" : " (" + name + ")");
  }

 private:
  CustomContent content_;
  CustomRoutes routes_;
  std::string spec_;
};

}  // namespace

Result<std::unique_ptr<Topology>> parse_custom(std::string_view text) {
  auto topology = std::make_unique<Custom>();
  const auto read = topology->read(text);
  if (read) return topology;
  const bool whole = text.size() <= kMaxQuoted;
  return fail(
      "topology '" + std::string(kPrefix) + std::string(text.substr(0, kMaxQuoted)) +
      (whole ? "" : "...") + "', at character " +
      std::to_string(kPrefix.size() + static_cast<std::size_t>(read.error().source.column) + 1) +
      ": " + read.error().what);
}

namespace {

// Reads a topology file with `read`, which takes its text. Errors: not readable; those of `read`.
template <class Value>
Result<Value> read_file_with(const std::string& path,
                             Result<Value, ParseError> (*read)(std::string_view)) {
  const Result<std::string> text = read_file(path, FileKind::kTopology);
  if (!text) {
    return fail(text.error().message +
                "; expected file:PATH of a topology file as docs/topologies.md describes it");
  }
  auto value = read(*text);
  if (value) return *std::move(value);
  return fail(path + ":" + std::to_string(value.error().source.line + 1) + ": " +
              value.error().what);
}

Result<std::unique_ptr<Topology>, ParseError> make_custom(std::string_view text) {
  auto topology = std::make_unique<Custom>();
  if (const auto read = topology->read(text); !read) return fail(read.error());
  return topology;
}

}  // namespace

Result<std::unique_ptr<Topology>> read_topology_file(const std::string& path) {
  return read_file_with(path, make_custom);
}

Result<CustomContent> read_custom_file(const std::string& path) {
  return read_file_with(path, read_custom);
}

}  // namespace espalier::topology
