// After a failure: the node's part of going on with its spares (docs/spares.md).

#include <cstdio>

#include "firmware/node/node_server.h"

namespace espalier::node {

// Polls the machine or, after a failure, the recovery. kBusy as well if the run goes on later.
Status NodeServer::poll_machine() {
  if (recovering_) {
    const Status status = recovery_->poll();
    recovering_ = status == Status::kBusy;
    if (comes_back_ && !recovering_) {
      end_asking(status);
      return Status::kBusy;
    }
    return status == Status::kOk ? resume() : status;
  }
  if (comes_back_) return Status::kBusy;  // its machine has no links yet
  if (recovery_ && recovery_->expelled()) return recovery_->cause().status;
  const Status status = machine_.poll();
  if (is_failure(status)) return recover(status);
  if (!restarts_) return status;
  restarts_ = false;
  const Status started = start_one();
  if (started != Status::kOk) return started;
  if (!repeats_) record_->reach(report_.completed, true);
  return Status::kBusy;
}

Status NodeServer::recover(Status status) {
  if (!recovery_) return status;
  restarts_ = false;
  const bool is_running = state_ == State::kRunning;
  const Status begun = recovery_->begin(numbers_.progress(is_running, report_.completed));
  recovering_ = begun == Status::kBusy;
  return begun;
}

// Prints without what the node goes on, if that has changed.
void NodeServer::print_loss() {
  const Loss& loss = recovery_->loss();
  if (loss == printed_) return;
  std::string what = "goes on with node " + std::to_string(printed_.a) + " again";
  if (loss.kind == Loss::Kind::kNode) what = "goes on without node " + std::to_string(loss.a);
  if (loss.kind == Loss::Kind::kLink) {
    what = "goes on without link " + std::to_string(loss.a) + " - " + std::to_string(loss.b);
  }
  printed_ = loss;
  std::fprintf(stderr, "espalier-node: node %u %s\n", endpoint_.node(), what.c_str());
}

// Before the first collective of each run all survivors look whether the lost node asks to be taken
// in again. kOk: there is none, or this node has no spares.
Status NodeServer::look() {
  if (!recovery_) return Status::kOk;
  const Status status = recovery_->look(numbers_.next());
  recovering_ = status == Status::kBusy;
  return status;
}

// A node comes back that was lost. Another one: the launcher gives new links, on which it may ask.
// This one: it asks.
void NodeServer::take_return(const control::Return& request) {
  if (comes_back_ && request.node == endpoint_.node()) {
    const Status begun = recovery_->come_back();
    recovering_ = begun == Status::kBusy;
    if (!recovering_) end_asking(begun);
    return;
  }
  if (recovery_->loss() != Loss::node(request.node) || recovering_ || !open_links_anew_) {
    return fail("node " + std::to_string(request.node) +
                " comes back, without which this node did not go on in a process of its own");
  }
  const auto opened = open_links_anew_(recovery_->generation(), request.node);
  if (!opened) return fail(opened.error().message);
  if (!ready()) end(1);
}

// status: how coming back ended.
void NodeServer::end_asking(Status status) {
  comes_back_ = false;
  if (status == Status::kOk) {
    numbers_.come_back(recovery_->point().next);
    status = resume();
  }
  if (status == Status::kOk) {
    if (!ready()) end(1);
  } else if (status == Status::kTooLarge) {
    fail("the others have no links left to take this node in again");
  } else {
    fail(std::string("no other node took this node in: ") + status_name(status));
  }
}

// All survivors have agreed where to go on. Returns kBusy if this node's run goes on.
Status NodeServer::resume() {
  spares_->load_programs();
  print_loss();
  const bool is_running = state_ == State::kRunning;
  const auto then = numbers_.resume(recovery_->point().next, is_running, state_ == State::kIdle,
                                    request_.repetitions, report_.completed);
  if (then == RunNumbers::Then::kIsLost) return Status::kDeadLink;
  if (then == RunNumbers::Then::kWaits && state_ == State::kIdle) return Status::kOk;
  const Status fits = find_memory();
  if (fits != Status::kOk || then == RunNumbers::Then::kWaits) return fits;
  if (!is_running) {
    // It was reported, and the launcher may be reading its output.
    if (!repeated_output_.map(output_bytes_, -1, 0, true)) return Status::kTooLarge;
    buffers_.output = repeated_output_.bytes();
    repeats_ = true;
    state_ = State::kRunning;
  }
  restarts_ = true;
  return Status::kBusy;
}

// Returns the time of the next poll if nothing arrives.
std::uint64_t NodeServer::next_poll() const {
  if (restarts_) return 0;
  return recovering_ ? recovery_->next_deadline() : machine_.next_deadline();
}

}  // namespace espalier::node
