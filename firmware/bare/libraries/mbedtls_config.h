/* What bare metal takes of Mbed TLS: SHA-256, small rather than fast. */
#define MBEDTLS_SHA256_C
#define MBEDTLS_SHA256_SMALLER
/* Its own goes through a pointer in initialised memory, which bare metal has not. */
#define MBEDTLS_PLATFORM_ZEROIZE_ALT
