#ifndef PORT_H
#define PORT_H
// What the examples need of a board: hosted.c for a process, mps2.c for Arm's MPS2 in qemu.

#include <stdint.h>

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define CORTEX_M 1
enum { NODE_BYTES = 8192, STACK_BYTES = 2048 };  // of a node, and of each task
#else
enum { NODE_BYTES = 262144, STACK_BYTES = 65536 };
#endif

// Initialises the devices. Called first; hosted.c takes the words of the command line.
void port_begin(int count, char** words);
// Returns the name of the board in images.
const char* port_board(void);
// Returns the node's image, and sets how many bytes may be read there.
const void* port_image(uint32_t* bytes);
// Returns a number that is not 0 and differs from that of the last start.
uint32_t port_session(void);
// Returns nanoseconds of a monotonic clock.
uint64_t port_now(void);
// Returns when a UART has received or at the time `until`; may return early.
void port_sleep(uint64_t until);

enum { PORT_UARTS = 3 };  // UART l is link l of the image
// Returns the device of a UART, for the next two.
void* port_uart(uint32_t number);
// Sends a byte. 0: no room now.
int port_put(void* uart, uint8_t byte);
// Takes a received byte. 0: there is none.
int port_get(void* uart, uint8_t* byte);

// Writes to the console.
void port_print(const char* text);

#endif
