// espalier doctor: what this host has for a job, and what to do about each problem.

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/process/variables.h"
#include "hal/fabric/provider_list.h"
#include "tools/cluster/node_call.h"
#include "tools/commands/commands.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"
#include "tools/doctor/host.h"
#include "tools/doctor/interfaces.h"
#include "tools/doctor/versions.h"

namespace espalier::tools {
namespace {

using doctor::HostFact;
using ofi::ProviderList;
using ofi::ProviderSummary;

struct DoctorArguments {
  std::string provider, node_binary;
  Format format = Format::kText;
};

struct HostReport {
  ProviderList list;
  std::string filter;  // FI_PROVIDER; empty: not set
  doctor::Network network;
  std::vector<HostFact> facts;
};

bool serves(const ProviderSummary& provider) { return !provider.served_by.empty(); }

// Not mem, which always serves and reaches no other host.
bool is_of_libfabric(const ProviderSummary& provider) { return provider.name != ofi::kMemProvider; }

// Whether the provider drives a device, which locks the memory that it registers.
bool locks_memory(const ProviderSummary& provider) {
  constexpr std::string_view kOfSystemCalls[] = {"tcp", "net", "udp", ofi::kMemProvider};
  const std::string by = ofi::fabric_provider(provider.served_by);
  const std::string core = by.substr(0, by.find(';'));
  return serves(provider) && std::find(std::begin(kOfSystemCalls), std::end(kOfSystemCalls),
                                       core) == std::end(kOfSystemCalls);
}

// Keeps the one provider that the user named, as far as FI_PROVIDER and libfabric have it. Throws
// Failure (bad input) otherwise.
void restrict_to(const std::string& name, const std::string& node_binary, ProviderList& list) {
  const std::string fabric = ofi::fabric_provider(name);
  const auto part = std::find_if(list.providers.begin(), list.providers.end(),
                                 [&](const ProviderSummary& each) { return each.name == fabric; });
  ProviderSummary whole{name, list.libfabric, name, "", "", ""};
  if (part != list.providers.end()) {
    whole.version = part->version;
    whole.offers = part->offers;
  }
  std::erase_if(list.providers,
                [&name](const ProviderSummary& provider) { return provider.name != name; });
  if (!list.providers.empty()) return;
  // Not listed: libfabric does not have it, or it makes layers that it lists only when asked.
  const std::string refusal = node_refusal(node_binary, name);
  if (!refusal.empty()) bad_input(one_line(refusal));
  list.providers.push_back(std::move(whole));
}

HostReport examine(const DoctorArguments& arguments) {
  HostReport report;
  const auto given = or_bad_input(read_text(Variable::kFiProvider));
  const char* const filter = given ? given->c_str() : nullptr;
  report.filter = given.value_or("");
  if (!arguments.provider.empty() && ofi::find_refusal(arguments.provider) == nullptr) {
    (void)or_bad_input(ofi::choose_provider(arguments.provider, filter));
  }
  const std::string node_binary = find_node_binary(arguments.node_binary);
  report.list = node_providers(node_binary);
  if (!arguments.provider.empty()) restrict_to(arguments.provider, node_binary, report.list);
  const std::vector<ProviderSummary>& providers = report.list.providers;
  report.network = or_bad_input(doctor::judge_network());
  report.facts = doctor::network_facts(report.network);
  for (HostFact& fact :
       doctor::host_facts(std::any_of(providers.begin(), providers.end(), locks_memory))) {
    report.facts.push_back(std::move(fact));
  }
  for (HostFact& fact : doctor::program_facts()) report.facts.push_back(std::move(fact));
  std::vector<doctor::LibraryVersion> libraries = doctor::library_versions();
  libraries.insert(libraries.begin(), {"libfabric", report.list.libfabric});
  report.facts.push_back(doctor::versions_fact(libraries, doctor::newest_tested()));
  return report;
}

void print_problem(const std::string& problem, const std::string& remedy) {
  if (!problem.empty()) std::printf("    problem: %s\n", problem.c_str());
  if (!remedy.empty()) std::printf("    what to do: %s\n", remedy.c_str());
}

void print_text(const HostReport& report) {
  std::printf("libfabric %s\n", report.list.libfabric.c_str());
  if (!report.filter.empty()) {
    std::printf("FI_PROVIDER=%s restricts what libfabric shows\n", one_line(report.filter).c_str());
    const auto taken = ofi::choose_provider("", report.filter.c_str());
    print_problem(taken ? "" : taken.error().message, "unset FI_PROVIDER to see all providers");
  }
  for (const ProviderSummary& each : report.list.providers) {
    const std::string as = each.served_by == each.name ? "" : ", as " + each.served_by;
    std::printf("  %-12s %-8s %s%s\n", each.name.c_str(), each.version.c_str(),
                serves(each) ? "serves" : "cannot serve", serves(each) ? as.c_str() : "");
    if (!each.offers.empty()) std::printf("    offers: %s\n", each.offers.c_str());
    print_problem(each.refusal, each.remedy);
  }
  std::printf("host\n");
  for (const HostFact& fact : report.facts) {
    std::printf("  %s: %s\n", fact.name.c_str(), fact.value.c_str());
    print_problem(fact.problem, fact.remedy);
  }
}

void print_as_json(const HostReport& report) {
  auto providers = Json::array();
  for (const ProviderSummary& each : report.list.providers) {
    providers.push_back({{"provider", each.name},
                         {"version", each.version},
                         {"serves", serves(each)},
                         {"served_by", each.served_by},
                         {"offers", each.offers},
                         {"problem", each.refusal},
                         {"what_to_do", each.remedy}});
  }
  auto facts = Json::array();
  for (const HostFact& fact : report.facts) {
    facts.push_back({{"name", fact.name},
                     {"value", fact.value},
                     {"problem", fact.problem},
                     {"what_to_do", fact.remedy}});
  }
  auto interfaces = Json::array();
  for (const doctor::JudgedInterface& each : report.network.interfaces) {
    auto addresses = Json::array();
    for (const doctor::JudgedAddress& address : each.addresses) {
      addresses.push_back(
          {{"address", address.text}, {"bits", address.bits}, {"place", address.place}});
    }
    interfaces.push_back({{"interface", each.name},
                          {"state", each.state},
                          {"kind", each.kind},
                          {"rate_mbits", each.rate_mbits},
                          {"addresses", addresses},
                          {"verdict", each.verdict},
                          {"problem", each.problem},
                          {"what_to_do", each.remedy}});
  }
  print_json({{"libfabric", report.list.libfabric},
              {"FI_PROVIDER", report.filter},
              {"providers", providers},
              {"interfaces", interfaces},
              {"published", report.network.published},
              {"host", facts}});
}

void run_doctor(const DoctorArguments& arguments) {
  const HostReport report = examine(arguments);
  if (arguments.format == Format::kJson) {
    print_as_json(report);
  } else {
    print_text(report);
  }
  const std::vector<ProviderSummary>& providers = report.list.providers;
  if (std::any_of(providers.begin(), providers.end(), [&](const ProviderSummary& provider) {
        return serves(provider) && (!arguments.provider.empty() || is_of_libfabric(provider));
      })) {
    return;
  }
  if (arguments.provider.empty()) negative("no provider of libfabric can serve on this host");
  negative("provider \"" + arguments.provider + "\" cannot serve: " + providers.front().refusal);
}

}  // namespace

void add_doctor(Command app) {
  Command command = app.add_command(
      "doctor", "Says which providers serve here, and what else this host has for a job");
  auto& arguments = command.bind<DoctorArguments>(run_doctor);
  command.text("--provider", arguments.provider, "Only this provider; default: all");
  command.text("--node-binary", arguments.node_binary, "espalier-node; default: beside espalier");
  add_format(command, arguments.format);
  command.set_footer(
      "Prints each provider of libfabric's with its version, and mem, which is Espalier's own:\n"
      "whether Espalier can use it, what it offers, and otherwise what it lacks. Then the host's "
      "interfaces, limits, hugepages,\n"
      "clock, cores, TCP congestion control, launchers and versions of libraries. A\n"
      "line 'what to do' follows each problem.\n"
      "Examples:\n"
      "  espalier doctor\n"
      "  espalier doctor --provider verbs\n"
      "Exit status: 0 a provider of libfabric, or the one named, can serve; 1 none can, or not "
      "the\n"
      "one named; 2 bad input.");
}

}  // namespace espalier::tools
