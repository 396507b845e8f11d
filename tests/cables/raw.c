// The rate of TCP itself on the cables of a host, all at once and in both directions. One process per host:
//   raw ROUNDS BYTES END...
// An END is INTERFACE, which accepts one connection, or ADDRESS%INTERFACE, which connects to the other end. In each round every END
// sends and receives BYTES, after a pause, in which the shapers' buckets fill as they do before a collective. Prints for each round
// and END the bytes per second that it received, from the first byte to the last.
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kPort = 7071, kChunk = 262144, kMaxEnds = 64, kPatienceS = 60, kPauseUs = 20000 };

struct End {
  const char* name;
  int socket;
  long to_send, to_receive;
  double first, last;  // seconds
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char* what, const char* name) {
  fprintf(stderr, "raw: %s %s: %s\n", what, name, strerror(errno));
  exit(1);
}

static int listen_on(const char* interface) {
  const int door = socket(AF_INET6, SOCK_STREAM, 0), on = 1;
  struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(kPort)};
  setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (setsockopt(door, SOL_SOCKET, SO_BINDTODEVICE, interface, (socklen_t)strlen(interface)) != 0)
    fail("interface", interface);
  if (bind(door, (struct sockaddr*)&any, sizeof any) != 0 || listen(door, 1) != 0)
    fail("listen on", interface);
  return door;
}

static int connect_to(const char* address) {
  char port[8];
  snprintf(port, sizeof port, "%d", kPort);
  const struct addrinfo hints = {
      .ai_family = AF_INET6, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
  struct addrinfo* found = NULL;
  if (getaddrinfo(address, port, &hints, &found) != 0) fail("address", address);
  for (const double start = now();;) {
    const int link = socket(AF_INET6, SOCK_STREAM, 0);
    if (connect(link, found->ai_addr, found->ai_addrlen) == 0) return freeaddrinfo(found), link;
    close(link);
    if (now() - start > kPatienceS) fail("connect to", address);
    usleep(10000);
  }
}

static void move(struct End* end, short events, char* chunk) {
  if (end->to_send > 0 && (events & POLLOUT) != 0) {
    const ssize_t n =
        send(end->socket, chunk, (size_t)(end->to_send < kChunk ? end->to_send : kChunk),
             MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) fail("send", end->name);
    if (n > 0) end->to_send -= n;
  }
  if (end->to_receive > 0 && (events & (POLLIN | POLLHUP)) != 0) {
    const ssize_t n =
        recv(end->socket, chunk, (size_t)(end->to_receive < kChunk ? end->to_receive : kChunk),
             MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN)) fail("receive", end->name);
    if (n > 0) {
      end->last = now();
      if (end->first == 0) end->first = end->last;
      end->to_receive -= n;
    }
  }
}

static void exchange(struct End* ends, int count, char* chunk) {
  for (;;) {
    struct pollfd on[kMaxEnds];
    int waiting = 0;
    for (int i = 0; i < count; ++i) {
      on[i].fd = ends[i].socket;
      on[i].events =
          (short)((ends[i].to_send > 0 ? POLLOUT : 0) | (ends[i].to_receive > 0 ? POLLIN : 0));
      if (on[i].events == 0) on[i].fd = -1;
      waiting += on[i].events != 0;
    }
    if (waiting == 0) return;
    if (poll(on, (nfds_t)count, -1) < 0) fail("poll", "");
    for (int i = 0; i < count; ++i) {
      if (on[i].fd >= 0) move(&ends[i], on[i].revents, chunk);
    }
  }
}

static void connect_all(struct End* ends, int count) {
  for (int i = 0; i < count; ++i) {
    if (strchr(ends[i].name, '%') == NULL) ends[i].socket = listen_on(ends[i].name);
  }
  for (int i = 0; i < count; ++i) {
    const int door = ends[i].socket;
    const int is_caller = strchr(ends[i].name, '%') != NULL;
    ends[i].socket = is_caller ? connect_to(ends[i].name) : accept(door, NULL, NULL);
    if (ends[i].socket < 0) fail("accept on", ends[i].name);
    if (!is_caller) close(door);
  }
}

// Every end sends and receives so many bytes.
static void round_of(struct End* ends, int count, long bytes, char* chunk) {
  for (int i = 0; i < count; ++i) {
    ends[i].to_send = ends[i].to_receive = bytes;
    ends[i].first = 0;
  }
  exchange(ends, count, chunk);
}

int main(int argc, char** argv) {
  const int rounds = argc > 2 ? atoi(argv[1]) : 0, count = argc - 3;
  const long bytes = argc > 2 ? atol(argv[2]) : 0;
  if (rounds < 1 || bytes < 1 || count < 1 || count > kMaxEnds) {
    fprintf(stderr, "raw: expected ROUNDS BYTES, and 1 to %d ends\n", kMaxEnds);
    return 2;
  }
  struct End ends[kMaxEnds];
  char* chunk = calloc(1, kChunk);
  memset(ends, 0, sizeof ends);
  for (int i = 0; i < count; ++i) ends[i].name = argv[i + 3];
  connect_all(ends, count);
  round_of(ends, count, bytes, chunk);  // opens TCP's windows
  for (int k = 0; k < rounds; ++k) {
    round_of(ends, count, 1, chunk);
    usleep(kPauseUs);
    round_of(ends, count, bytes, chunk);
    for (int i = 0; i < count; ++i)
      printf("%s %.0f\n", ends[i].name, (double)bytes / (ends[i].last - ends[i].first));
  }
  free(chunk);
  return 0;
}
