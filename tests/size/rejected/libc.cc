// Must be rejected: needs more of the C library than the four memory functions.
extern "C" int printf(const char* format, ...);
extern "C" int rejected() { return printf("%d", 1); }
