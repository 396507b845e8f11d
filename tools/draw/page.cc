#include "tools/draw/page.h"

#include <set>

#include "espalier/collectives/algorithms/algorithms.h"
#include "planner/make/blocks.h"
#include "planner/make/plan.h"
#include "tools/common/failure.h"
#include "tools/common/json.h"
#include "tools/common/output.h"
#include "tools/draw/drawing.h"
#include "tools/page_text.h"
#include "tools/report/bound.h"
#include "tools/report/show_text.h"

namespace espalier::tools {
namespace {

constexpr std::size_t kMaxPageBytes = 100'000'000;  // browsers open it within seconds

Json operand_json(bool present, const Operand& place) {
  if (!present) return nullptr;
  return {place.buffer, place.segment_ref, place.block_ref, place.slot_ref, place.segment_count};
}

// The tables of a program, rows as arrays: schedule.js reads them.
Json program_json(const Program& program) {
  Json json;
  json["peers"] = Json::array();
  for (std::uint32_t link = 0; link < links_count(program); ++link) {
    json["peers"].push_back(peer_of(program, link));
  }
  Json& counts = json["counts"] = Json::array();
  for (std::uint32_t i = 0; i < program.counts_count; ++i) {
    const Count& count = program.counts[i];
    counts.push_back({count.a, count.b, count.c, count.d, count.e});
  }
  Json& terms = json["terms"] = Json::array();
  for (std::uint32_t i = 0; i < program.terms_count; ++i) {
    const Term& term = program.terms[i];
    terms.push_back(
        {term.coef, term.mul, term.add, term.div, term.mod, term.base, term.digits, term.table});
  }
  Json& indices = json["indices"] = Json::array();
  for (std::uint32_t i = 0; i < program.indices_count; ++i) {
    const Index& index = program.indices[i];
    indices.push_back(
        {index.base, index.coef, index.off, index.div, index.mod, index.first_term, index.terms});
  }
  Json& phases = json["phases"] = Json::array();
  for (std::uint32_t i = 0; i < program.phases_count; ++i) {
    const Phase& phase = program.phases[i];
    phases.push_back({phase.period, phase.steps_ref, phase.actions});
  }
  Json& actions = json["actions"] = Json::array();
  for (std::uint32_t i = 0; i < program.actions_count; ++i) {
    const Action& action = program.actions[i];
    actions.push_back({action.kind, action.t0_ref, action.instances_ref, action.link_ref,
                       action.clamp, action.pace_ref, operand_json(action.has_into, action.into),
                       operand_json(action.has_a, action.a), operand_json(action.has_b, action.b)});
  }
  Json& table = json["table"] = Json::array();
  for (std::size_t i = 0; i + 1 < program.table.size; i += 2) {
    table.push_back(table_entry(program.table.bytes, static_cast<std::int64_t>(i / 2)));
  }
  return json;
}

std::string pair_key(std::uint32_t from, std::uint32_t to) {
  return std::to_string(from) + "-" + std::to_string(to);
}

// Adds the nodes, the links, and every pair that programs may send between.
void add_map(Json& json, const planner::LoadedSchedule& loaded) {
  const topology::Topology& topology = *loaded.topology;
  const Drawing drawing(topology);
  json["width"] = drawing.width();
  json["height"] = drawing.height();
  json["radius"] = Drawing::kRadius;
  json["nodes"] = Json::array();
  for (std::uint32_t node = 0; node < topology.nodes(); ++node) {
    const topology::Topology::Position position = drawing.place(node);
    json["nodes"].push_back(
        {{"name", topology.node_name(node)}, {"x", position.x}, {"y", position.y}});
  }
  std::set<std::pair<std::uint32_t, std::uint32_t>> used;  // (from, to) of programs
  Json routes = Json::object(), arrows = Json::object();
  for (const Program& program : loaded.programs) {
    for (std::uint32_t link = 0; link < links_count(program); ++link) {
      const std::uint32_t peer = peer_of(program, link);
      const std::vector<std::uint32_t> route = topology.route(program.node, peer);
      if (route.size() < 2) continue;
      if (route.size() > 2) routes.add(pair_key(program.node, peer), route);
      const Drawing::Arrow arrow = drawing.arrow(route);
      arrows.add(pair_key(program.node, peer),
                 {{"line", arrow.line}, {"head", arrow.head}, {"x", arrow.x}, {"y", arrow.y}});
      used.insert({program.node, peer});
    }
  }
  json["routes"] = std::move(routes);
  json["arrows"] = std::move(arrows);
  // A complete graph's links hide the few that a schedule uses.
  const std::uint64_t nodes = topology.nodes();
  const bool complete = topology.link_count() == nodes * (nodes - 1);
  std::uint64_t undrawn = 0;
  Json& links = json["links"] = Json::array();
  for (const topology::Link& link : topology.links()) {
    if (complete && !used.contains({link.from, link.to})) {
      ++undrawn;
      continue;
    }
    links.push_back({link.from, link.to, link.capacity, drawing.link(link.from, link.to)});
  }
  json["undrawn"] = undrawn;
}

std::string facts(const planner::LoadedSchedule& loaded) {
  const Program& program = loaded.programs.front();
  const topology::Topology& topology = *loaded.topology;
  std::string text = counted(program.ranks, "rank");
  if (topology.nodes() > program.ranks) {
    text += ", " + counted(topology.nodes() - program.ranks, "router");
  }
  text += ", " + counted(count_text(program.counts[program.steps_ref]), "step") + ", at least " +
          bound_text(bounds_of(loaded), program) + ", " + counted(program.segments, "segment");
  return text + ", window " + std::to_string(program.window) + ", " +
         port_model_name(program.port_model) + ", contention guarantee " +
         contention_name(program.contention);
}

Json parse_trace(const std::string& text) {
  std::optional<Json> trace = Json::parse(text);
  const Json* events = trace ? trace->find("traceEvents") : nullptr;
  if (events == nullptr || events->items() == nullptr) {
    bad_input(
        "the --trace file is not a trace; expected what --trace of 'espalier simulate' or "
        "'espalier run' wrote");
  }
  return *std::move(trace);
}

// Returns `text` with `mark` replaced; the page has each mark once.
std::string filled(std::string text, const std::string& mark, const std::string& with) {
  return text.replace(text.find(mark), mark.size(), with);
}

// Returns the JSON for a script element: no text in it can end the script.
std::string in_script(const Json& json) {
  std::string out;
  for (const char c : json.dump(-1, true)) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string make_page(const planner::LoadedSchedule& loaded, std::int64_t blocks, std::int64_t step,
                      const std::optional<std::string>& trace) {
  const Program& program = loaded.programs.front();
  const std::string title = std::string(collective_name(program.collective)) + " by " +
                            program.algorithm + " on " + loaded.topology->title();
  Json json = {{"title", one_line(title)},
               {"collective", collective_name(program.collective)},
               {"algorithm", program.algorithm},
               {"topology", loaded.topology->title()},
               {"facts", facts(loaded)},
               {"digest", hex(program.schedule_digest)},
               {"ranks", program.ranks},
               {"root", program.root},
               {"rooted", has_root(program.collective)},
               {"segments", program.segments},
               {"phases", program.phases_count},
               {"empty", program.collective == Collective::kBarrier},
               {"residue", {{"mod", program.residue_mod}, {"residue", program.residue}}},
               {"one_block", !planner::cuts_messages(program)},
               {"blocks", blocks},
               {"step", step}};
  json["trace"] = trace ? parse_trace(*trace) : Json();
  add_map(json, loaded);
  json["programs"] = Json::array();
  Progress progress("drawing");
  for (const Program& program : loaded.programs) {
    json["programs"].push_back(program_json(program));
    progress.show(static_cast<double>(program.node) / static_cast<double>(loaded.programs.size()));
  }
  std::string name;
  for (const char c : one_line(title)) name += c == '<' || c == '&' ? '?' : c;
  std::string page = filled(filled(kPage, "@TITLE@", name), "@DATA@", in_script(json));
  if (page.size() > kMaxPageBytes) {
    bad_input("the page would have " + std::to_string(page.size() / 1'000'000) +
              " MB; expected at most " + std::to_string(kMaxPageBytes / 1'000'000) +
              ": a smaller topology or trace, or --svg instead");
  }
  return page;
}

}  // namespace espalier::tools
