#!/bin/sh
# libfabric 1.17 (Debian 12), provider net (tcp from 1.18 on), FI_EP_RDM: an endpoint keeps memory of each peer that has come and gone, if
# it accepted the connection: the fi_info, for ever, and the peer's address until the address vector is closed, in spite of fi_av_remove().
# The end that opens the connection keeps neither. 1.18 frees the fi_info. A minute on a busy machine.
# Needs gcc and libfabric-dev; leaves nothing behind. Exit status 1 if libfabric behaves in another way.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >program.c <<'END'
#include <malloc.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fid_domain* domain;
static struct fid_ep* endpoint;
static struct fid_cq* queue;
static struct fid_av* addresses;
static char word[8];

static void check(int code, const char* what) {
  if (code >= 0) return;
  fprintf(stderr, "%s: %s\n", what, fi_strerror(-code));
  _exit(2);
}

static void open_all(char* name, size_t* size) {
  struct fi_info *hints = fi_allocinfo(), *info = NULL;
  struct fid_fabric* fabric;
  struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_DATA, .size = 256};
  struct fi_av_attr av = {.type = FI_AV_TABLE};
  hints->fabric_attr->prov_name = strdup("net");
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = FI_MSG;
  check(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info), "fi_getinfo");
  check(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
  check(fi_domain(fabric, info, &domain, NULL), "fi_domain");
  check(fi_cq_open(domain, &cq, &queue, NULL), "fi_cq_open");
  check(fi_av_open(domain, &av, &addresses, NULL), "fi_av_open");
  check(fi_endpoint(domain, info, &endpoint, NULL), "fi_endpoint");
  check(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
  check(fi_ep_bind(endpoint, &addresses->fid, 0), "fi_ep_bind");
  check(fi_enable(endpoint), "fi_enable");
  check(fi_getname(&endpoint->fid, name, size), "fi_getname");
}

static void await_completions(int count) {
  struct fi_cq_data_entry entry;
  while (count > 0) {
    const ssize_t found = fi_cq_read(queue, &entry, 1);
    if (found == 1) --count;
    if (found < 0 && found != -FI_EAGAIN) check((int)found, "fi_cq_read");
  }
}

static void send_word(fi_addr_t to) {
  ssize_t code;
  while ((code = fi_send(endpoint, word, sizeof word, NULL, to, NULL)) == -FI_EAGAIN) (void)fi_cq_read(queue, NULL, 0);
  check((int)code, "fi_send");
}

static void close_all(void) {
  check(fi_close(&endpoint->fid), "fi_close");
  check(fi_close(&addresses->fid), "fi_close");
  check(fi_close(&queue->fid), "fi_close");
  check(fi_close(&domain->fid), "fi_close");
}

enum { kAll = 150, kFirst = 50 };

/* Endpoints that come and go. Each exchanges a word with the long-lived one, whose name it reads. `opens`: it sends first. */
static void newcomers(int in, int out) {
  for (int i = 0; i < 2 * kAll; ++i) {
    const int opens = i >= kAll;
    char own[64] = {0}, other[64];
    size_t size = sizeof own;
    fi_addr_t peer;
    open_all(own, &size);
    check((int)write(out, own, sizeof own), "write");
    check((int)read(in, other, sizeof other), "read");
    check(fi_av_insert(addresses, other, 1, &peer, 0, NULL), "fi_av_insert");
    check((int)fi_recv(endpoint, word, sizeof word, NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
    if (opens) send_word(peer);
    await_completions(1 + opens);
    if (!opens) send_word(peer);
    if (!opens) await_completions(1);
    check((int)write(out, "d", 1), "write");
    check((int)read(in, other, 1), "read"); /* the word has arrived */
    close_all();
    check((int)write(out, "e", 1), "write");
  }
  _exit(0);
}

int main(void) {
  char name[64] = {0}, other[64], done;
  size_t size = sizeof name;
  int to[2], from[2];
  check(pipe(to), "pipe");
  check(pipe(from), "pipe");
  if (fork() == 0) newcomers(to[0], from[1]);
  open_all(name, &size);
  long before = 0;
  for (int i = 0; i < 2 * kAll; ++i) {
    const int opens = i < kAll; /* the long-lived one does */
    fi_addr_t peer;
    if (i % kAll == kFirst) before = (long)mallinfo2().uordblks;
    check((int)read(from[0], other, sizeof other), "read");
    check(fi_av_insert(addresses, other, 1, &peer, 0, NULL), "fi_av_insert");
    check((int)fi_recv(endpoint, word, sizeof word, NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
    check((int)write(to[1], name, sizeof name), "write");
    if (opens) send_word(peer);
    await_completions(1 + opens);
    if (!opens) send_word(peer);
    if (!opens) await_completions(1);
    check((int)read(from[0], &done, 1), "read");
    check((int)write(to[1], "e", 1), "write");
    check((int)read(from[0], &done, 1), "read");
    for (int n = 0; n < 1000; ++n) (void)fi_cq_read(queue, NULL, 0);
    check(fi_av_remove(addresses, &peer, 1, 0), "fi_av_remove");
    if (i % kAll == kAll - 1) printf("%s: %ld\n", opens ? "opened" : "accepted", ((long)mallinfo2().uordblks - before) / (kAll - kFirst));
  }
  (void)wait(NULL);
  return 0;
}
END
gcc program.c -o program -lfabric
./program >seen
echo "libfabric $(pkg-config --modversion libfabric); bytes that the long-lived end keeps per peer that came and went:"
cat seen
awk -F': ' '{kept[$1] = $2} END {exit !(kept["opened"] < 100 && kept["accepted"] > 500)}' seen && echo 'as described'
