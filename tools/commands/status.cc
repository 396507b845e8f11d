// espalier status: what each rank of a running job does, and which one holds the others up.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "communicator/record/diagnosis.h"
#include "tools/commands/commands.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"
#include "tools/launch/hosts.h"
#include "tools/status/gather.h"
#include "tools/status/report.h"

namespace espalier::tools {
namespace {

constexpr const char* kStatusShell = "ssh -o BatchMode=yes";

constexpr const char* kStatusFooter =
    "Reads the records that the ranks of this user's jobs keep on this host, and the nodes and\n"
    "gateways of 'espalier run'; no rank does anything for it, and no rank waits. Ranks on other\n"
    "hosts are asked for through the remote shell: the hosts of the jobs found here, or those of\n"
    "--host. The suspect comes first: a rank that never started, is stopped, called another\n"
    "collective or computes, or a link that passes nothing.\n"
    "--records reads what is left of a job that ran with ESPALIER_RECORD=FOLDER and failed.\n"
    "Examples:\n"
    "  espalier status\n"
    "  espalier status --host a,b --rsh 'ssh -p 2222'\n"
    "  espalier status --watch\n"
    "  espalier status --records folder\n"
    "Exit status: 0 a job was found; 1 none; 2 bad input.";

struct StatusWords {
  std::string job, records, remote_shell;
  std::vector<std::string> hosts;
  std::uint32_t deadline_s = 10;
  bool is_local = false, watches = false, is_json = false, is_prometheus = false;
};

std::vector<launch::Host> hosts_of(const std::vector<std::string>& words) {
  std::vector<launch::Host> hosts = or_bad_input(launch::read_hosts(words, "--host"));
  for (const launch::Host& host : hosts) {
    if (host.slots != 0) {
      bad_input("--host '" + one_line(host.name) + "' has a number of slots; expected its name");
    }
  }
  return hosts;
}

std::vector<status::Report> reports_of(std::vector<record::JobView> jobs,
                                       const StatusWords& words) {
  std::vector<status::Report> reports;
  for (record::JobView& job : jobs) {
    if (!job.name.starts_with(words.job)) continue;
    record::Diagnosis diagnosis = record::diagnose(job);
    reports.push_back({std::move(job), std::move(diagnosis)});
  }
  return reports;
}

// Reads this host, and the others. Hosts that do not answer are named on stderr, and the rest is
// shown without them.
std::vector<status::Report> find_reports(const StatusWords& words,
                                         const std::vector<launch::Host>& given) {
  if (!words.records.empty()) {
    std::vector<record::JobView> jobs =
        record::jobs_of(or_bad_input(status::read_folder(words.records)));
    for (record::JobView& job : jobs) job.has_ended = true;
    return reports_of(std::move(jobs), words);
  }
  std::vector<record::RankView> ranks = status::read_here();
  std::vector<launch::Host> hosts = given;
  if (hosts.empty() && !words.is_local) {
    for (const std::string& name : status::other_hosts(record::jobs_of(ranks))) {
      hosts.push_back({.name = name});
    }
  }
  if (!hosts.empty()) {
    const std::string shell = words.remote_shell.empty() ? kStatusShell : words.remote_shell;
    status::Answers answers =
        status::ask(hosts, {.remote_shell = shell, .deadline_ms = words.deadline_s * 1000});
    for (const std::string& refusal : answers.refusals) {
      std::fprintf(stderr, "espalier: %s\n", one_line(refusal).c_str());
    }
    for (record::RankView& rank : answers.ranks) ranks.push_back(std::move(rank));
  }
  return reports_of(record::jobs_of(std::move(ranks)), words);
}

void print(const std::vector<status::Report>& reports, const StatusWords& words) {
  if (words.is_json) {
    print_json(status::json_of(reports));
  } else if (words.is_prometheus) {
    std::fputs(status::prometheus_of(reports).c_str(), stdout);
  } else {
    for (const status::Report& report : reports) {
      const std::string text =
          report.job.has_ended ? status::ended_text(report) : status::text_of(report);
      std::fputs(text.c_str(), stdout);
    }
  }
}

void run_status(const StatusWords& words) {
  if (!words.records.empty() && words.is_prometheus) {
    bad_input("--prometheus shows jobs that run; expected --records alone, or with --json");
  }
  const std::vector<launch::Host> hosts = hosts_of(words.hosts);
  const std::string of_job = words.job.empty() ? "" : " " + one_line(words.job);
  std::vector<status::Report> reports = find_reports(words, hosts);
  if (reports.empty()) {
    negative(words.records.empty()
                 ? "no job" + of_job + " of this user runs here; other hosts: --host"
                 : "the records are of no job" + of_job);
  }
  print(reports, words);
  while (words.watches && !reports.empty()) {
    if (std::fflush(stdout) != 0) bad_input("cannot write to stdout");
    sleep(1);
    reports = find_reports(words, hosts);
    if (isatty(STDOUT_FILENO) == 1) std::fputs("\033[H\033[J", stdout);
    if (!reports.empty()) print(reports, words);
  }
}

}  // namespace

void add_status(Command app) {
  Command command = app.add_command(
      "status", "Shows what each rank of a running job does, and which one holds the others up");
  auto& words = command.bind<StatusWords>(run_status);
  command.text("--job", words.job, "Only this job; the beginning of its name is enough");
  Option hosts = command.list("--host", words.hosts, "Hosts to ask, e.g. a,b; this one is always");
  Option shell = command.text("--rsh", words.remote_shell,
                              "Remote shell, words for sh; the host's name and one command follow");
  shell.show_default(kStatusShell);
  Option local = command.flag("--local", words.is_local, "Ask no other host");
  local.excludes(hosts).excludes(shell);
  Option deadline = command.number("--deadline", words.deadline_s, 1, 3600,
                                   "How long other hosts may take to answer, s");
  deadline.excludes(local);
  Option watches =
      command.flag("--watch", words.watches, "Show it again each second, until no job runs");
  command.text("--records", words.records, "Read the records of ended jobs in this folder")
      .excludes(hosts)
      .excludes(shell)
      .excludes(local)
      .excludes(deadline)
      .excludes(watches);
  Option json = command.flag("--json", words.is_json, "Print JSON, by docs/status.schema.json");
  command.flag("--prometheus", words.is_prometheus, "Print metrics in Prometheus's text format")
      .excludes(json);
  command.set_footer(kStatusFooter);
}

}  // namespace espalier::tools
