// The throughput of TCP itself on the laboratory's links: every host sends to its right neighbour while it receives
// from its left one, all at once. One process per host:
//   ring RANK HOSTS BYTES REPETITIONS
// prints, for each repetition, the seconds that BYTES took from this host's start to its last byte sent and received.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kPort = 7070, kChunk = 262144 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char* what) {
  fprintf(stderr, "ring: %s: %s\n", what, strerror(errno));
  exit(1);
}

static struct sockaddr_in address(int rank) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(kPort)};
  char text[32];
  snprintf(text, sizeof text, "10.79.0.%d", rank + 1);
  inet_pton(AF_INET, text, &at.sin_addr);
  return at;
}

// Sends `out` bytes right while receiving `in` bytes from the left.
static void exchange(int right, int left, long out, long in, char* chunk) {
  while (out > 0 || in > 0) {
    struct pollfd on[2] = {{right, (short)(out > 0 ? POLLOUT : 0), 0}, {left, (short)(in > 0 ? POLLIN : 0), 0}};
    if (poll(on, 2, -1) < 0) fail("poll");
    if (out > 0 && (on[0].revents & POLLOUT) != 0) {
      ssize_t n = send(right, chunk, (size_t)(out < kChunk ? out : kChunk), MSG_DONTWAIT);
      if (n < 0 && errno != EAGAIN) fail("send");
      if (n > 0) out -= n;
    }
    if (in > 0 && (on[1].revents & (POLLIN | POLLHUP)) != 0) {
      ssize_t n = recv(left, chunk, (size_t)(in < kChunk ? in : kChunk), MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN)) fail("recv");
      if (n > 0) in -= n;
    }
  }
}

// A token goes round twice: no process leaves before all have entered.
static void barrier(int rank, int right, int left, char* chunk) {
  for (int turn = 0; turn < 2; ++turn) {
    if (rank != 0) exchange(right, left, 0, 1, chunk);
    exchange(right, left, 1, 0, chunk);
    if (rank == 0) exchange(right, left, 0, 1, chunk);
  }
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "ring: say RANK HOSTS BYTES REPETITIONS\n");
    return 2;
  }
  int rank = atoi(argv[1]), hosts = atoi(argv[2]), repetitions = atoi(argv[4]), on = 1;
  long bytes = atol(argv[3]);
  char* chunk = calloc(1, kChunk);
  struct sockaddr_in own = address(rank), next = address((rank + 1) % hosts);
  int door = socket(AF_INET, SOCK_STREAM, 0), right = -1;
  setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(door, (struct sockaddr*)&own, sizeof own) != 0 || listen(door, 1) != 0) fail("listen");
  for (double start = now(); right < 0;) {
    right = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(right, (struct sockaddr*)&next, sizeof next) == 0) break;
    if (now() - start > 10) fail("connect");
    close(right);
    right = -1;
    usleep(10000);
  }
  int left = accept(door, NULL, NULL);
  if (left < 0) fail("accept");
  setsockopt(right, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  exchange(right, left, bytes, bytes, chunk);  // opens TCP's windows
  for (int i = 0; i < repetitions; ++i) {
    barrier(rank, right, left, chunk);
    double start = now();
    exchange(right, left, bytes, bytes, chunk);
    printf("%.9f\n", now() - start);
  }
  barrier(rank, right, left, chunk);
  return 0;
}
