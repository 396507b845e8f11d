// Arm's MPS2 with a Cortex-M3, M4 or M7, as qemu-system-arm emulates it. UART0 is the console, UART1
// to UART3 are the links. The image is in the code memory, where a probe or qemu's loader puts it.

#include <stddef.h>

#include "port.h"

// The linker script's.
extern uint32_t bss_begin[], bss_end[], stack_top[];

static volatile uint32_t* at(uint32_t address) { return (volatile uint32_t*)(uintptr_t)address; }

enum { IMAGE = 0x300000, IMAGE_BYTES = 0x10000 };
// UARTs of the Cortex-M System Design Kit: registers, by their offset.
enum { DATA = 0x00, STATE = 0x04, CONTROL = 0x08, INTERRUPTS = 0x0c, DIVIDER = 0x10 };
static const uint32_t uarts[] = {0x40004000, 0x40005000, 0x40006000, 0x40007000};
// The interrupts of their receivers. They are never taken, but a pending one ends a sleep.
#define RECEIVED (1u << 2 | 1u << 4 | 1u << 18)
static const uint32_t enable = 0xe000e100, pending = 0xe000e280;
// The first timer counts 32 bits down, at 25 MHz.
enum {
  TIMER_LOAD = 0x40002000,
  TIMER_VALUE = 0x40002004,
  TIMER_CONTROL = 0x40002008,
  TICK_NS = 40
};

// A call of the emulator's host (Arm: Semihosting for AArch32 and AArch64).
static uint32_t host(uint32_t operation, const void* arguments) {
  register uint32_t r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = arguments;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

int main(int count, char** words);

void reset(void);
void reset(void) {
  __asm__ volatile("cpsid i");
#ifdef __ARM_FP
  *at(0xe000ed88) |= 0xfu << 20;  // the floating-point unit
  __asm__ volatile("dsb\n isb" ::: "memory");
#endif
  for (uint32_t* word = bss_begin; word < bss_end; ++word) *word = 0;
  const uint32_t result[] = {0x20026, (uint32_t)main(0, NULL)};
  (void)host(0x20, result);  // ends the emulator with this status
  for (;;) {
  }
}

// What the processor starts with. All faults are a start.
__attribute__((section(".vectors"), used)) static const struct {
  uint32_t* stack;
  void (*handlers[15])(void);
} vectors = {stack_top, {reset, reset, reset, reset, reset, reset}};

void port_begin(int count, char** words) {
  (void)count, (void)words;
  *at(TIMER_LOAD) = 0xffffffff;
  *at(TIMER_CONTROL) = 1u << 7 | 1u << 1;
  for (size_t i = 0; i < sizeof uarts / sizeof uarts[0]; ++i) {
    *at(uarts[i] + DIVIDER) = 16;
    *at(uarts[i] + CONTROL) = 1u | 2u | 8u;  // send, receive, an interrupt for each byte
  }
  *at(enable) = RECEIVED;
}

const char* port_board(void) { return BOARD; }

const void* port_image(uint32_t* bytes) {
  *bytes = IMAGE_BYTES;
  return (const void*)(uintptr_t)IMAGE;
}

// A real board counts its starts in flash. The host's clock differs between two starts here.
uint32_t port_session(void) { return host(0x11, NULL) << 1 | 1u; }

uint64_t port_now(void) {
  static uint32_t last, wraps;
  const uint32_t ticks = ~*at(TIMER_VALUE);
  if (ticks < last) ++wraps;
  last = ticks;
  return ((uint64_t)wraps << 32 | ticks) * TICK_NS;
}

void port_sleep(uint64_t until) {
  const uint64_t now = port_now();
  if (until < now + TICK_NS) return;  // a SysTick of 0 would never end the sleep
  const uint64_t ns = until - now, longest = UINT64_C(0xffffff) * TICK_NS;
  *at(0xe000e014) = ns < longest ? (uint32_t)ns / TICK_NS : 0xffffff;  // SysTick: at most 0.67 s
  *at(0xe000e018) = 0;
  *at(0xe000e010) = 7;
  __asm__ volatile("dsb\n wfi" ::: "memory");
  *at(0xe000e010) = 0;
  *at(0xe000ed04) = 1u << 25;
  *at(pending) = RECEIVED;
}

void* port_uart(uint32_t number) { return (void*)(uintptr_t)uarts[1 + number]; }

int port_put(void* uart, uint8_t byte) {
  const uint32_t base = (uint32_t)(uintptr_t)uart;
  if ((*at(base + STATE) & 1) != 0) return 0;
  *at(base + DATA) = byte;
  return 1;
}

int port_get(void* uart, uint8_t* byte) {
  const uint32_t base = (uint32_t)(uintptr_t)uart;
  if ((*at(base + STATE) & 2) == 0) {
    *at(base + INTERRUPTS) = 2;
    return 0;
  }
  *byte = (uint8_t)*at(base + DATA);
  return 1;
}

void port_print(const char* text) {
  for (; *text != '\0'; ++text) {
    while ((*at(uarts[0] + STATE) & 1) != 0) {
    }
    *at(uarts[0] + DATA) = (uint8_t)*text;
  }
}
