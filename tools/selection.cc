#include "tools/selection.h"

#include "collectives/schedule/file_writer.h"
#include "tools/failure.h"
#include "tools/numbers.h"
#include "tools/output.h"

namespace espalier::tools {
namespace {

// "a, b or c"
std::string either(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t at = 0; at < names.size(); ++at) {
    if (at > 0) text += at + 1 == names.size() ? " or " : ", ";
    text += names[at];
  }
  return text;
}

std::vector<std::string> algorithm_names(Collective collective) {
  std::vector<std::string> names;
  std::uint32_t count = 0;
  const Algorithm* all = algorithms(count);
  for (std::uint32_t at = 0; at < count; ++at) {
    if (all[at].collective == collective) names.emplace_back(all[at].name);
  }
  return names;
}

const Algorithm* choose_algorithm(Collective collective, const std::string& name) {
  const Algorithm* found = find_algorithm(collective, name.c_str());
  if (found != nullptr) return found;
  const std::string wanted = collective_name(collective);
  const std::string expected = "; expected " + either(algorithm_names(collective));
  std::uint32_t count = 0;
  const Algorithm* all = algorithms(count);
  for (std::uint32_t at = 0; at < count; ++at) {
    if (all[at].name == name) {
      bad_input("algorithm '" + name + "' cannot do " + wanted + expected);
    }
  }
  bad_input("unknown algorithm '" + one_line(name) + "' for " + wanted + expected);
}

std::uint32_t choose_root(const std::string& text, const topology::Topology& topology) {
  const std::string what = "--root on " + topology.spec() + ":";
  return static_cast<std::uint32_t>(whole_number(what, text, 0, topology.ranks() - 1));
}

}  // namespace

void add_selection(CLI::App& command, Selection& selection, bool required) {
  command
      .add_option("--topology", selection.topology,
                  "complete:N, mesh:RxC or fattree:k=K,h=H,c=1|k|c1,..,cH")
      ->required(required);
  command.add_option("--collective", selection.collective, "broadcast, reduce or allreduce")
      ->required(required);
  command.add_option("--algorithm", selection.algorithm, "one that 'espalier list' names")
      ->required(required);
  command
      .add_option("--root", selection.root, "rank that has (broadcast) or gets (reduce) the data")
      ->capture_default_str();
}

std::unique_ptr<topology::Topology> parse_topology(const std::string& spec) {
  std::string error;
  auto topology = topology::parse(spec, error);
  if (topology == nullptr) bad_input(one_line(error));
  return topology;
}

Choice choose(const Selection& selection) {
  Choice choice;
  choice.topology = parse_topology(selection.topology);
  Collective collective = espalier_Collective_COLLECTIVE_NONE;
  if (!parse_collective(selection.collective.c_str(), collective)) {
    bad_input("unknown collective '" + one_line(selection.collective) +
              "'; expected broadcast, reduce or allreduce");
  }
  choice.algorithm = choose_algorithm(collective, selection.algorithm);
  choice.group.ranks = choice.topology->ranks();
  choice.group.root = choose_root(selection.root, *choice.topology);
  choice.group.topology_digest = choice.topology->digest();
  return choice;
}

namespace {

[[noreturn]] void cannot_do(const Choice& choice, Status status) {
  bad_input(std::string("algorithm '") + choice.algorithm->name + "' cannot do " +
            collective_name(choice.algorithm->collective) + " on " + choice.topology->spec() +
            " with root " + std::to_string(choice.group.root) + ": " + status_name(status) + " (" +
            choice.algorithm->summary + ")");
}

}  // namespace

void generate(const Choice& choice, std::uint32_t rank, Program& program) {
  program = Program{};
  const Status status = choice.algorithm->generate(choice.group, rank, program);
  if (status != Status::kOk) cannot_do(choice, status);
}

std::vector<std::uint8_t> compile(const Choice& choice) {
  const Group& group = choice.group;
  ScheduleFileWriter writer(choice.topology->spec(), group.topology_digest, group.ranks,
                            group.ranks);
  Progress progress("compiling");
  auto program = std::make_unique<Program>();
  for (std::uint32_t rank = 0; rank < group.ranks; ++rank) {
    generate(choice, rank, *program);
    const Status status = writer.add(*program);
    if (status != Status::kOk) cannot_do(choice, status);
    progress.at(static_cast<double>(rank) / group.ranks);
  }
  std::vector<std::uint8_t> file;
  const Status status = writer.finish(file);
  if (status != Status::kOk)
    bad_input(std::string("cannot write a schedule file: ") + status_name(status));
  return file;
}

}  // namespace espalier::tools
