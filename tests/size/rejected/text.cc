// Must be rejected: more code than the board's budget has.
extern "C" void rejected() { asm volatile(".space 16384"); }
