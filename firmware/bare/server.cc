#include "firmware/bare/server.h"

#include <cstring>

#include "espalier/internal/base/assert.h"
#include "firmware/bare/board.h"
#include "firmware/bare/text.h"

namespace espalier::bare {
namespace {

using agent::Kind;

constexpr std::uint32_t kLink = 0;  // the agent's only link

agent::Slot slot_of(const SlotReport& report) {
  agent::Slot slot;
  slot.status = report.status;
  slot.looked_at = report.looked_at;
  slot.tried = report.tried;
  slot.confirmed = report.confirmed;
  slot.release = report.release;
  slot.sequence = report.sequence;
  return slot;
}

void copy_name(char* to, std::uint32_t size, const char* from) {
  for (std::uint32_t k = 0; k + 1 < size && from[k] != '\0'; ++k) to[k] = from[k];
}

agent::Hello hello_of(const Booted& booted, const Rooms& rooms) {
  agent::Hello hello;
  copy_name(hello.board, sizeof hello.board, board::name());
  hello.boot = booted.status;
  for (std::uint32_t slot = 0; slot < 2; ++slot) {
    hello.slots[slot] = slot_of(booted.report.slots[slot]);
    hello.slot_counters[slot] = booted.report.slots[slot].counter;
  }
  hello.stored_counter = booted.report.counter;
  hello.counter_status = booted.report.counter_status;
  hello.own_counter = board::security_counter() != nullptr;
  hello.window = kMaxWindow;
  hello.input_room = rooms.input_bytes;
  hello.output_room = rooms.output_bytes;
  hello.scratch_room = rooms.scratch_bytes;
  hello.events_room = rooms.events_count;
  const board::Memory memory = board::memory();
  hello.ram_used = memory.ram_used;
  hello.ram_given = memory.ram_given;
  hello.code_used = memory.code_used;
  if (booted.status != Status::kOk) return hello;
  const Image& image = booted.image;
  hello.trial = booted.report.trial;
  hello.last_resort = booted.report.last_resort;
  hello.signature_checked = image.signature_checked;
  hello.slot = booted.report.slot;
  hello.node = image.node;
  hello.nodes = program_nodes(booted.programs[0]);
  hello.topology_digest = image.topology_digest;
  hello.release = image.release;
  hello.counter = image.counter;
  memcpy(hello.digest, image.bytes + kImageDigestAt, sizeof hello.digest);
  hello.links = image.links;
  hello.programs = image.programs;
  hello.updates = ESPALIER_UPDATES;
#if ESPALIER_SPARES
  const bool has_channels = Recovery::kAllGenerations * image.links <= agent::kChannel;
  if (image.spares != 0 && has_channels) hello.further_generations = Recovery::kAllGenerations - 1;
#endif
  return hello;
}

// Writes the tables that follow Hello into `room`. Returns their size in bytes.
std::uint32_t write_tables(const Booted& booted, std::uint8_t* room) {
  std::uint8_t* end = room;
  for (std::uint32_t link = 0; link < booted.image.links; ++link) {
    const LinkRow row = booted.image.link(link);
    const agent::LinkEntry entry{row.peer, row.device, row.port};
    memcpy(end, &entry, sizeof entry);
    end += sizeof entry;
  }
  for (std::uint32_t k = 0; k < booted.image.programs; ++k) {
    const ProgramRow row = booted.image.program(k);
    agent::ProgramEntry entry;
    entry.schedule = booted.programs[k].schedule_digest;
    entry.collective = static_cast<std::uint32_t>(row.collective);
    entry.root = row.root;
    copy_name(entry.algorithm, sizeof entry.algorithm, row.algorithm);
    memcpy(end, &entry, sizeof entry);
    end += sizeof entry;
  }
  return static_cast<std::uint32_t>(end - room);
}

}  // namespace

void Server::begin() {
  agent::Packet packet;
  packet.hello = hello_of(booted_, rooms_);
  send(packet);
  // The output's memory is free until the first run.
  out_[0] = {rooms_.output, write_tables(booted_, rooms_.output), 0};
}

bool Server::step() {
  if (!take_completions()) return false;
  if (configured_) {
    const Status status = poll_machine();
    if (state_ == State::kRunning) continue_run(status);
#if ESPALIER_SPARES
    if (came_back_ == Status::kUnsupported) return false;  // no one replied
#endif
  }
#if ESPALIER_UPDATES
  if (in_update()) poll_update();
#endif
  if (!sending()) {
#if ESPALIER_SPARES
    if (came_back_ != Status::kBusy) {
      answer(Kind::kConfigure, came_back_);
      came_back_ = Status::kBusy;
    } else
#endif
        if (ended_run_) {
      report(status_);
    } else if (packet_received_) {
      if (ends_update()) return false;
      take_packet();
    } else if (receives_data() && in_.posted == in_.size && receives_ == 0) {
      take_data();
    }
  }
  post_sends();
  post_receives();
  return true;
}

std::uint64_t Server::wake() const {
#if ESPALIER_SPARES
  if (restarts_) return 0;
  if (recovering_) return recovery_->next_deadline();
#endif
  if (packet_received_ || ended_run_) return 0;
#if ESPALIER_UPDATES
  if (in_update()) return update_->session().next_deadline();
#endif
  return configured_ ? machine_.next_deadline() : UINT64_MAX;
}

bool Server::take_completions() {
  Completion completion;
  while (gateway_.poll(completion)) {
    ESPALIER_ASSERT(receives_ <= agent::kWindow);
    if (completion.status != Status::kOk) return false;
    switch (completion.kind) {
      case Completion::Kind::kSent:
        ESPALIER_ASSERT(sends_ > 0);
        --sends_;
        break;
      case Completion::Kind::kReceived:
        ESPALIER_ASSERT(receives_ > 0);
        --receives_;
        if (packet_posted_) {
          packet_posted_ = false;
          packet_received_ = true;
        }
        break;
      case Completion::Kind::kLinkDown: return false;
      default: break;
    }
  }
  return true;
}

void Server::post_sends() {
  SendPost post;
  if (packet_to_send_) {
    post.bytes = &out_packet_;
    post.size = sizeof out_packet_;
    post.tag = agent::kPacketTag;
    if (gateway_.post_send(kLink, post) != Status::kOk) return;
    packet_to_send_ = false;
    ++sends_;
  }
  for (Data& data : out_) {
    while (data.posted < data.size && sends_ < agent::kWindow) {
      ESPALIER_ASSERT(data.posted <= data.size);
      post.bytes = data.bytes + data.posted;
      post.size = data.next();
      post.tag = agent::kDataTag;
      if (gateway_.post_send(kLink, post) != Status::kOk) return;
      data.posted += data.next();
      ++sends_;
    }
    if (data.posted < data.size) return;
  }
}

void Server::post_receives() {
  ESPALIER_ASSERT(in_.posted <= in_.size && !(packet_posted_ && receives_data()));
  ReceivePost post;
  while (in_.posted < in_.size && receives_ < agent::kWindow) {
    post.bytes = in_.bytes + in_.posted;
    post.size = in_.next();
    post.tag = agent::kDataTag;
    if (gateway_.post_receive(kLink, post) != Status::kOk) return;
    in_.posted += in_.next();
    ++receives_;
  }
  // Post the receive of the next packet only after all data and packets before it are handled.
  if (receives_ > 0 || packet_received_ || receives_data() || sending()) return;
  ESPALIER_ASSERT(!packet_posted_);
  post.bytes = &in_packet_;
  post.size = sizeof in_packet_;
  post.tag = agent::kPacketTag;
  if (gateway_.post_receive(kLink, post) != Status::kOk) return;
  packet_posted_ = true;
  ++receives_;
}

void Server::answer(Kind to, Status status) {
  agent::Packet packet;
  packet.answer = agent::Answer{};
  packet.answer.to = to;
  packet.answer.number = run_.number;
  packet.answer.status = status;
  send(packet);
}

void Server::take_packet() {
  ESPALIER_ASSERT(packet_received_ && !sending());
  packet_received_ = false;
  const Kind kind = in_packet_.kind;
#if ESPALIER_SPARES
  packet_received_ = is_recovering() && kind != Kind::kAsk;
  if (packet_received_) return;
#endif
  const bool idle = state_ == State::kIdle && !in_update();
  Status status = Status::kBadArgument;
  switch (kind) {
    case Kind::kAsk: return report(state_ == State::kIdle ? status_ : Status::kBusy);
    case Kind::kQuit: return;
    case Kind::kConfigure:
      if (!configured_ && idle) status = configure(in_packet_.configure);
      if (status == Status::kBusy) return;  // it answers once it is taken in
      break;
    case Kind::kRun:
      if (idle) status = prepare(in_packet_.run_request);
      break;
    case Kind::kGo:
      if (state_ == State::kAwaitsGo && in_packet_.go.number == run_.number) return go();
      break;
    case Kind::kInstall:
      if (!idle) break;
      status = in_packet_.install.bytes > rooms_.input_bytes ? Status::kTooLarge : Status::kOk;
      if (status != Status::kOk) break;
      installing_ = true;
      expect(rooms_.input, in_packet_.install.bytes);
      break;
#if ESPALIER_UPDATES
    case Kind::kUpdate: status = begin_update(in_packet_.update); break;
    case Kind::kPiece:
      status = take_piece(in_packet_.piece);
      if (status == Status::kOk) return;
      break;
#endif
    default: break;
  }
  answer(kind, status);
}

// All bytes of an image, or of a piece, have arrived.
void Server::take_data() {
  ESPALIER_ASSERT(in_.posted == in_.size && receives_ == 0);
#if ESPALIER_UPDATES
  if (receives_piece_) {
    receives_piece_ = false;
    return update_->note_arrival();
  }
#endif
  installing_ = false;
  const Status status = install(slots_, in_.bytes, in_.size, booted_);
  Text() << "install: " << in_.size << " bytes: " << status_name(status) << " (status " << status
         << ")\n";
  answer(Kind::kInstall, status);
}

}  // namespace espalier::bare
