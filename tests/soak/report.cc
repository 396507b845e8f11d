#include "tests/soak/report.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <span>
#include <utility>

#include "tools/report/line_plot.h"

namespace espalier::soak {
namespace {

// libfabric 1.17 loses about 600 bytes for each endpoint over tcp and for each connection that it
// accepts, which is some KiB for each communicator. Growth per job, of means:
constexpr double kMaxGrowthMib = 32.0 / 1024;  // of resident memory
constexpr double kMaxHeapGrowthKib = 16;
constexpr double kMaxMoreMappings = 0.1;

constexpr char kMethod[] =
    R"(Eight processes on one machine take part in one job after the other. In each job they join by one of
three methods, over tcp, mem, or mem+tcp with two to four of them on each of several emulated hosts,
with or without a job secret and a progress thread. Then they run batches of random collectives: all
eleven, ten element types, counts up to 40,000, counts for each rank, any root, in place or not. They
are blocking, or started up to ten at a time, or planned once and started several times, also on
parts of the ranks. Every result is compared with the reference, bit by bit. In most jobs the
controller kills members by SIGKILL, at random moments, one or several at once, and some while the
job ends. All survivors must get the same cause, which names a killed member; they rejoin and go on.
New processes take the places of the killed ones. One process is spared, so it lives through all
jobs. The controller has the rendezvous servers of most jobs. It samples all processes after each
job.
)";

using Value = std::function<double(const Sample&)>;

struct Summary {
  double least = 0, mean = 0, most = 0;
};

Summary summary_of(std::span<const Sample> samples, const Value& value) {
  Summary summary;
  if (samples.empty()) return summary;
  summary.least = summary.most = value(samples.front());
  for (const Sample& sample : samples) {
    const double one = value(sample);
    summary.least = std::min(summary.least, one);
    summary.most = std::max(summary.most, one);
    summary.mean += one / static_cast<double>(samples.size());
  }
  return summary;
}

// The samples of quarter 0 .. 3 of the run.
std::span<const Sample> quarter(const Record& record, std::size_t number) {
  const std::size_t size = record.samples.size();
  const std::size_t begin = size * number / 4, end = size * (number + 1) / 4;
  return std::span(record.samples).subspan(begin, end - begin);
}

double spared_mib(const Sample& sample) {
  return static_cast<double>(sample.spared.resident_kib) / 1024;
}
double controller_mib(const Sample& sample) {
  return static_cast<double>(sample.controller.resident_kib) / 1024;
}
double others_mib(const Sample& sample) { return sample.others_mib; }

struct Row {
  const char* name;
  Value value;
  const char* format;  // of a number
  double max_growth;   // per job, from the second quarter to the last; negative: not judged
  bool is_constant;    // all samples are equal
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"resident memory of the spared process, MiB", spared_mib, "%.1f", kMaxGrowthMib, false},
      {"its heap in use, KiB", [](const Sample& at) { return at.spared_heap_kib; }, "%.0f",
       kMaxHeapGrowthKib, false},
      {"its descriptors",
       [](const Sample& at) { return static_cast<double>(at.spared.descriptors); }, "%.0f", -1,
       true},
      {"its threads", [](const Sample& at) { return static_cast<double>(at.spared.threads); },
       "%.0f", -1, true},
      {"its mappings", [](const Sample& at) { return static_cast<double>(at.spared.mappings); },
       "%.0f", kMaxMoreMappings, false},
      {"resident memory of the controller, MiB", controller_mib, "%.1f", kMaxGrowthMib, false},
      {"its descriptors",
       [](const Sample& at) { return static_cast<double>(at.controller.descriptors); }, "%.0f", -1,
       true},
      {"its threads", [](const Sample& at) { return static_cast<double>(at.controller.threads); },
       "%.0f", -1, true},
      {"resident memory of the others, their mean, MiB", others_mib, "%.1f", kMaxGrowthMib, false},
      {"files in `TMPDIR`",
       [](const Sample& at) { return static_cast<double>(at.files.temporary); }, "%.0f", -1, true},
      {"files in the cache of schedules",
       [](const Sample& at) { return static_cast<double>(at.files.cache); }, "%.0f", 1, false},
  };
  return all;
}

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string line(const std::string& name, std::uint64_t value) {
  return "| " + name + " | " + std::to_string(value) + " |\n";
}

std::string table(const Record& record) {
  std::string text =
      "| after each job | first quarter | second | third | last | least | most |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const Row& row : rows()) {
    text += std::string("| ") + row.name;
    for (std::size_t i = 0; i < 4; ++i) {
      text += " | " + number(row.format, summary_of(quarter(record, i), row.value).mean);
    }
    const Summary all = summary_of(record.samples, row.value);
    text += " | " + number(row.format, all.least) + " | " + number(row.format, all.most) + " |\n";
  }
  return text;
}

}  // namespace

std::vector<std::string> findings(const Record& record) {
  std::vector<std::string> found;
  if (!record.error.empty()) found.push_back(record.error);
  const bool is_judged = record.samples.size() >= kJudgedJobs;
  for (const Row& row : rows()) {
    const Summary all = summary_of(record.samples, row.value);
    const std::string range = number(row.format, all.least) + " to " + number(row.format, all.most);
    if (row.is_constant && all.least != all.most) {
      found.push_back(std::string(row.name) + ": " + range + "; expected one number");
    }
    // The middles of these quarters are half of the jobs apart.
    const double growth = summary_of(quarter(record, 3), row.value).mean -
                          summary_of(quarter(record, 1), row.value).mean;
    const double max_growth = row.max_growth * static_cast<double>(record.samples.size()) / 2;
    if (is_judged && row.max_growth >= 0 && growth > max_growth) {
      found.push_back(std::string(row.name) + ": grew by " + number("%.2f", growth) +
                      " from the second quarter to the last; expected at most " +
                      number("%.2f", max_growth));
    }
  }
  return found;
}

std::string page(const Record& record, const std::string& command) {
  const double minutes = record.samples.empty() ? 0 : record.samples.back().time_s / 60;
  const auto growth = [&record](const Value& value) {
    return number("%.2f", summary_of(quarter(record, 3), value).mean -
                              summary_of(quarter(record, 1), value).mean);
  };
  std::string text = "# Soak\n\nWritten by `" + command + "`.\n" + kMethod;
  text += "\n| | |\n| --- | ---: |\n";
  text += "| minutes | " + number("%.1f", minutes) + " |\n";
  text += line("jobs", record.jobs) + line("over tcp", record.tcp);
  text += line("over mem", record.mem) + line("over mem+tcp", record.mixed);
  text += line("by a server of the controller", record.by_server);
  text += line("by a server of rank 0", record.by_first) + line("by a folder", record.by_folder);
  text += line("with a job secret", record.with_secret);
  text += line("with a progress thread", record.with_thread);
  text += line("with kills", record.jobs_with_kills) + line("members killed", record.kills);
  text += line("of them while the job ended", record.kills_at_end);
  text += line("most of them at once", record.max_kills_at_once);
  text += line("survivors that rejoined", record.rejoined);
  text += line("collectives with the right result, counted on each member", record.collectives);
  text += "\n| verdict | |\n| --- | ---: |\n";
  text += line("wrong results, other causes and hangs", record.error.empty() ? 0 : 1);
  text += "| growth of the spared process from the second quarter to the last, MiB | " +
          growth(spared_mib) + " |\n";
  text += "| growth of the controller, MiB | " + growth(controller_mib) + " |\n";
  text += line("findings", findings(record).size());
  text += "\nMeans over the jobs of each quarter, and the extremes of all samples:\n\n";
  text += table(record);
  text += "\nWith `--plot FILE` the command also draws memory and descriptors after each job.\n";
  return text;
}

std::string picture(const Record& record) {
  std::vector<tools::PlotLine> lines = {{"spared process, MiB", {}},
                                        {"others, MiB", {}},
                                        {"controller, MiB", {}},
                                        {"descriptors of the spared process", {}},
                                        {"descriptors of the controller", {}}};
  for (const Sample& sample : record.samples) {
    const double values[] = {spared_mib(sample), sample.others_mib, controller_mib(sample),
                             static_cast<double>(sample.spared.descriptors),
                             static_cast<double>(sample.controller.descriptors)};
    for (std::size_t i = 0; i < lines.size(); ++i) {
      lines[i].points.emplace_back(sample.time_s / 60, values[i]);
    }
  }
  return tools::plot_svg("Soak: after each job", {.name = "minutes"}, {.name = "MiB, or number"},
                         lines);
}

}  // namespace espalier::soak
