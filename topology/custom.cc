#include "topology/custom.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numbers>

#include "topology/custom_content.h"
#include "topology/custom_routes.h"
#include "topology/text_file.h"

namespace espalier::topology {
namespace {

constexpr std::string_view kPrefix = "custom:";
constexpr std::size_t kMaxQuoted = 40;  // characters of a specification in a message

class Custom final : public Topology {
 public:
  // The topology may be used only after this returned no error.
  [[nodiscard]] ParseError read(std::string_view text) {
    ParseError parse_error = read_custom(text, content_);
    if (parse_error.what.empty()) parse_error = routes_.build(content_);
    if (parse_error.what.empty()) spec_ = std::string(kPrefix) + canonical_text(content_);
    return parse_error;
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
    if (content_.nodes[node].placed) return content_.nodes[node].at;
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

std::unique_ptr<Topology> parse_custom(std::string_view text, std::string& error) {
  auto topology = std::make_unique<Custom>();
  const ParseError parse_error = topology->read(text);
  if (parse_error.what.empty()) return topology;
  const bool whole = text.size() <= kMaxQuoted;
  error = "topology '" + std::string(kPrefix) + std::string(text.substr(0, kMaxQuoted)) +
          (whole ? "" : "...") + "', at character " +
          std::to_string(kPrefix.size() + static_cast<std::size_t>(parse_error.source.column) + 1) +
          ": " + parse_error.what;
  return nullptr;
}

std::unique_ptr<Topology> read_topology_file(const std::string& path, std::string& error) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  std::string text(kMaxTextBytes + 1, '\0');
  const std::size_t size =
      file == nullptr ? 0 : std::fread(text.data(), 1, text.size(), file.get());
  if (file == nullptr || std::ferror(file.get()) != 0) {
    error = "cannot read '" + path + "': " + std::strerror(errno) +
            "; expected file:PATH of a topology file as docs/topologies.md describes it";
    return nullptr;
  }
  text.resize(size);
  auto topology = std::make_unique<Custom>();
  const ParseError parse_error = size > kMaxTextBytes
                                     ? ParseError{{},
                                                  "the file is too large; expected at most " +
                                                      std::to_string(kMaxTextBytes) + " bytes"}
                                     : topology->read(text);
  if (parse_error.what.empty()) return topology;
  error = path + ":" + std::to_string(parse_error.source.line + 1) + ": " + parse_error.what;
  return nullptr;
}

}  // namespace espalier::topology
