// Must be refused: more code than the board's budget has.
extern "C" void over_budget() { asm volatile(".space 16384"); }
