// A process as the board: PROGRAM IMAGE TTY...; the terminals are the UARTs.

#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "port.h"

static struct uart {
  int file;
  uint8_t bytes[256];  // received, and not taken
  ssize_t begin, end;
} uarts[PORT_UARTS];
static unsigned char image[65536];
static uint32_t image_bytes;

static void give_up(const char* what) {
  fprintf(stderr, "%s: expected PROGRAM IMAGE TTY...\n", what);
  exit(2);
}

void port_begin(int count, char** words) {
  if (count < 2 || count > 2 + PORT_UARTS) give_up("wrong arguments");
  FILE* const file = fopen(words[1], "rb");
  if (file == NULL) give_up(words[1]);
  image_bytes = (uint32_t)fread(image, 1, sizeof image, file);
  fclose(file);
  for (int i = 0; i < PORT_UARTS; ++i) uarts[i].file = -1;
  for (int i = 2; i < count; ++i) {
    struct termios mode;
    const int tty = open(words[i], O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (tty < 0 || tcgetattr(tty, &mode) != 0) give_up(words[i]);
    mode.c_iflag = mode.c_oflag = mode.c_lflag = 0;
    mode.c_cflag = CS8 | CREAD | CLOCAL;
    if (tcsetattr(tty, TCSANOW, &mode) != 0) give_up(words[i]);
    uarts[i - 2].file = tty;
  }
}

const char* port_board(void) { return "linux-x86_64"; }

const void* port_image(uint32_t* bytes) {
  *bytes = image_bytes;
  return image;
}

uint32_t port_session(void) {
  return (uint32_t)time(NULL) << 8 | 1u | ((uint32_t)getpid() & 127u) << 1;
}

uint64_t port_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void port_sleep(uint64_t until) {
  const uint64_t now = port_now();
  if (until <= now) return;
  struct pollfd files[PORT_UARTS];
  for (int i = 0; i < PORT_UARTS; ++i) {
    if (uarts[i].begin < uarts[i].end) return;
    files[i] = (struct pollfd){.fd = uarts[i].file, .events = POLLIN};
  }
  const uint64_t ms = (until - now + 999999) / 1000000;
  (void)poll(files, PORT_UARTS, ms < 1000 ? (int)ms : 1000);
}

void* port_uart(uint32_t number) { return &uarts[number]; }

int port_put(void* uart, uint8_t byte) {
  const struct uart* const from = uart;
  return write(from->file, &byte, 1) == 1 || (errno != EAGAIN && errno != EINTR);
}

int port_get(void* uart, uint8_t* byte) {
  struct uart* const from = uart;
  if (from->begin >= from->end) {
    from->begin = 0;
    from->end = read(from->file, from->bytes, sizeof from->bytes);
    if (from->end <= 0) return 0;
  }
  *byte = from->bytes[from->begin++];
  return 1;
}

void port_print(const char* text) {
  fputs(text, stdout);
  fflush(stdout);
}
