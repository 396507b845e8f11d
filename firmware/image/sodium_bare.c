/* The functions of libsodium's utils.c that the verifying part of Ed25519 needs. utils.c itself requires an operating
   system. For bare metal, beside libsodium's own sources. */

#include <stddef.h>

#include "sodium/utils.h"

void sodium_memzero(void* const bytes, const size_t size) {
  volatile unsigned char* at = (volatile unsigned char*)bytes;
  for (size_t k = 0; k < size; ++k) at[k] = 0;
}

/* Takes constant time, like the library's function. Returns 0 if equal, otherwise -1. */
int sodium_memcmp(const void* const left, const void* const right, size_t size) {
  const volatile unsigned char* a = (const volatile unsigned char*)left;
  const volatile unsigned char* b = (const volatile unsigned char*)right;
  unsigned char differ = 0;
  for (size_t k = 0; k < size; ++k) differ |= (unsigned char)(a[k] ^ b[k]);
  return (1 & ((differ - 1) >> 8)) - 1;
}

int sodium_is_zero(const unsigned char* bytes, const size_t size) {
  const volatile unsigned char* at = bytes;
  unsigned char any = 0;
  for (size_t k = 0; k < size; ++k) any |= at[k];
  return 1 & ((any - 1) >> 8);
}
