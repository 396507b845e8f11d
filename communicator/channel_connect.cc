// A channel's endpoint: how it is opened and connected, and how links are added.

#include <algorithm>
#include <cstdio>
#include <thread>

#include "base/digest.h"
#include "base/network/filter.h"
#include "base/try.h"
#include "bootstrap/first_word.h"
#include "bootstrap/subnet_probe.h"
#include "communicator/backbone.h"
#include "communicator/cables/rank_graph.h"
#include "communicator/channel.h"
#include "communicator/channel_use.h"
#include "communicator/image_programs.h"
#include "communicator/measure_network.h"
#include "espalier/collectives/schedule/program.h"
#include "hal/fabric/address.h"
#include "hal/fabric/provider_list.h"

namespace espalier::communicator {
namespace {

// How long a thread that connects may block.
constexpr std::uint64_t kConnectPauseNs = 50'000'000;
// The same in accept(), which a cancel of the earlier communicator ends.
constexpr std::uint64_t kAskPauseNs = 10'000'000;

// Whether there may be a network between the ranks. On one host processors are the limit, which
// the costs of a network would not say.
bool are_hosts(const std::string& provider, const std::vector<std::string>& addresses) {
  return ofi::binds_address(provider) &&
         !std::all_of(addresses.begin(), addresses.end(), [](const std::string& address) {
           const std::string text = ofi::address_text(address);
           return text.starts_with("127.") || text.starts_with("[::1]");
         });
}

}  // namespace

Channel::Channel(std::shared_ptr<Job> job, std::uint32_t rank, std::uint32_t size)
    : job_(std::move(job)), rank_(rank), size_(size) {
  Program program;
  program.clear();
  program.ranks = size_;
  program.node = rank_;
  for (const Collective collective : kAllCollectives) {
    program.collective = collective;
    for (const std::uint32_t is_root : {0, 1}) {
      program.root = is_root == 1 ? rank_ : (rank_ + 1) % size_;
      extents_[collective].input[is_root] = buffer_extent(program, Buffer::kInput);
      extents_[collective].output[is_root] = buffer_extent(program, Buffer::kOutput);
    }
  }
}

Result<void> Channel::open(std::chrono::nanoseconds connect_deadline, bool is_part,
                           std::shared_ptr<const RankGraph> graph) {
  if (size_ == 1) return {};
  ofi::AddedConfig config;
  const JoinOptions& options = job_->options();
  config.provider = options.provider;
  Job::Opening opening = job_->opening();
  config.local_address = std::move(opening.address);
  if (ofi::binds_address(options.provider)) {
    ESPALIER_TRY_TO(const auto ports, network::port_range(options.bootstrap.ports));
    config.first_port = ports.first;
    config.last_port = ports.last;
  }
  config.host = options.host;
  config.node = rank_;
  config.has_secret = job_->members().is_secret();
  config.secret = job_->members().secret();
  config.authenticate_data = options.authenticate_data;
  if (graph != nullptr) {
    ESPALIER_TRY(graph->configure(rank_, config));
    if (!graph->is_one_host()) graph_ = std::move(graph);
  }
  config.max_links = std::min(size_ - 1, kMaxLinks);
  config.is_small = is_part;
  config.fabric = std::move(opening.fabric);
  config.connect_deadline_ns = static_cast<std::uint64_t>(connect_deadline.count());
  ESPALIER_TRY_TO(fabric_, ofi::AddedLinks::open(config));
  return {};
}

std::string Channel::address() const { return fabric_ == nullptr ? "" : fabric_->address(); }

Result<void> Channel::connect(Members members, const bootstrap::EndOfAccept& end) {
  members_ = std::move(members);
  const JoinOptions& options = job_->options();
  if (size_ > 1) {
    ESPALIER_TRY(fabric_->set_addresses(members_.addresses));
  }
  // Files and images are for the ranks of the whole job.
  bool is_whole = size_ == job_->members().size();
  for (std::uint32_t rank = 0; rank < size_; ++rank) is_whole &= members_.jobs[rank] == rank;
  std::shared_ptr<const ImagePrograms> image;
  if (is_whole && !(options.image.file.empty() && options.image.flash.empty())) {
    if (graph_ != nullptr) {
      return fail(
          "image: its programs are not for cables; expected options.schedules, of files "
          "that were compiled hop by hop");
    }
    ESPALIER_TRY_TO(image, ImagePrograms::load(options.image, rank_, size_));
  }
  Costs costs = {.model = options.model, .network = job_->network(), .graph = graph_};
  costs.ranks_per_host = ranks_per_host();
  if (costs.ranks_per_host == size_) {
    costs.memory_cores = std::max(1U, std::thread::hardware_concurrency());
  }
  is_measuring_ = !members_.is_part && size_ > 1 && size_ <= kMaxMeasuredRanks &&
                  costs.model.empty() && costs.memory_cores == 0 && !costs.network &&
                  (graph_ != nullptr || are_hosts(options.provider, members_.addresses));
  costs.is_measuring = is_measuring_;
  ESPALIER_TRY_TO(schedules_,
                  job_->find_schedules({rank_, size_, is_whole}, costs, std::move(image)));
  if (size_ > 1) {
    linked_.resize(size_);
    if (!members_.is_part) {
      ESPALIER_TRY(connect_backbone(end));
    }
    MachineConfig config;
    config.deadline_ns = static_cast<std::uint64_t>(options.deadline.count());
    config.before_release = [](void* channel) { static_cast<Channel*>(channel)->exchange_notes(); };
    config.quiet_ns = [](void* channel) {
      return static_cast<Channel*>(channel)->job_->quiet_ns();
    };
    config.failed = [](void* channel) { static_cast<Channel*>(channel)->note_failure(); };
    config.is_linked = [](void* channel) { return static_cast<Channel*>(channel)->is_linked(); };
    config.nodes = size_;
    config.is_graph = fabric_->has_cables() && size_ <= FailureDetector::kMaxNamed;
    config.context = this;
    const Status status = machine_.init(fabric_->endpoint(), config);
    if (status != Status::kOk) return fail(std::string("cannot start: ") + status_name(status));
  }
  recorder_.open(job_->record(), rank_, members_.jobs, members_.generation);
  job_->add(*this);
  is_listed_ = true;
  return {};
}

void Channel::note_survivors(const std::vector<std::uint32_t>& jobs) {
  const Use use(*this, Use::Crowd::kWaits);
  if (fabric_ == nullptr) return;
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    if (std::binary_search(jobs.begin(), jobs.end(), members_.jobs[rank])) continue;
    fabric_->note_end_of(rank);
  }
}

std::uint32_t Channel::ranks_per_host() const {
  return fabric_ == nullptr || graph_ != nullptr ? 1 : fabric_->nodes_per_host();
}

void Channel::measured(const NetworkCost& cost) {
  schedules_->measured(cost);
  recent_operations_ = {};
  is_measuring_ = false;
}

Result<void> Channel::add_link(std::uint32_t peer) {
  if (linked_[peer]) return {};
  if (graph_ != nullptr && !graph_->has_link(rank_, peer)) {
    return fail("no cable joins ranks " + std::to_string(rank_) + " and " + std::to_string(peer));
  }
  ESPALIER_TRY_TO(auto link, fabric_->add_link(peer));
  linked_[peer] = true;
  connecting_.push_back(link);
  return {};
}

std::vector<std::uint32_t> Channel::backbone() const {
  return graph_ == nullptr ? backbone_peers(rank_, size_) : graph_->neighbors(rank_);
}

bool Channel::is_in_backbone(std::uint32_t peer) const {
  return graph_ == nullptr ? is_backbone_peer(peer, rank_, size_) : graph_->has_link(rank_, peer);
}

Result<void> Channel::add_backbone() {
  if (has_backbone_) return {};
  for (const std::uint32_t peer : backbone()) {
    ESPALIER_TRY(add_link(peer));
  }
  has_backbone_ = true;
  return {};
}

// The ranks that are not connected yet: "rank 3 at 10.0.0.7:4000 (eth0: no route to host)".
std::string Channel::unconnected_text() {
  constexpr std::size_t kMostDescribed = 3;  // each may take a third of a second
  std::string text;
  std::size_t described = 0;
  for (const std::uint32_t link : connecting_) {
    const auto connected = fabric_->connect_links({&link, 1});
    if (connected && *connected) continue;
    const std::uint32_t peer = fabric_->endpoint().peer(link);
    const std::string at = ofi::address_text(ofi::fabric_part(members_.addresses[peer]));
    text += (text.empty() ? "rank " : ", rank ") + std::to_string(peer);
    const bool has_ip = at.find(':') != std::string::npos && at.find('/') == std::string::npos;
    if (has_ip && ++described <= kMostDescribed) text += " at " + bootstrap::reach_text(at);
    const std::string way = fabric_->way_of_link(link);
    text += (way.empty() ? "" : " ") + way;
  }
  return text;
}

// Waits, so that join() names a rank that does not come.
Result<void> Channel::connect_backbone(const bootstrap::EndOfAccept& end) {
  ESPALIER_TRY(add_backbone());
  bootstrap::FirstWord word;
  bootstrap::Speaker speaker;
  while (true) {
    const auto connected = fabric_->connect_links(connecting_);
    if (!connected) {
      const std::string facts = unconnected_text();
      return fail(connected.error().message + (facts.empty() ? "" : ": " + facts));
    }
    if (*connected) break;
    if (const std::string reason = end ? end() : ""; !reason.empty()) return fail(reason);
    if (word.is_due()) {
      const std::string facts = unconnected_text();
      // The first address has random bytes of this job.
      const std::string& first = members_.addresses.front();
      const std::uint64_t job = digest_bytes(kDigestSeed, first.data(), first.size());
      if (!facts.empty() && (bootstrap::FirstWord::is_watched() ||
                             speaker.may_speak("links of " + std::to_string(job)))) {
        std::fprintf(stderr, "espalier: rank %u of %u waits for its links to %s\n", rank_, size_,
                     facts.c_str());
      }
    }
    std::uint64_t pause_ns = job_->progress_others(this) ? kBusyWaitNs : kConnectPauseNs;
    if (end) pause_ns = std::min(pause_ns, kAskPauseNs);
    fabric_->endpoint().wait(fabric_->endpoint().now() + pause_ns);
  }
  connecting_.clear();
  return {};
}

// Adds the links of a program, before the first one those of the backbone, and begins to connect
// them. Nothing waits: messages on a link that is not connected wait for it, and the machine's
// deadlines find a peer that never connects.
Result<void> Channel::add_links(const Program& program) {
  ESPALIER_TRY(add_backbone());
  for (std::uint32_t i = 0; i < links_count(program); ++i) {
    ESPALIER_TRY(add_link(peer_of(program, i)));
  }
  return {};
}

}  // namespace espalier::communicator
