/* Bare metal uses only SHA-256 of Mbed TLS, in its small rather than fast variant. */
#define MBEDTLS_SHA256_C
#define MBEDTLS_SHA256_SMALLER
/* Mbed TLS's own function needs a pointer in initialised memory, which bare metal does not have. */
#define MBEDTLS_PLATFORM_ZEROIZE_ALT
