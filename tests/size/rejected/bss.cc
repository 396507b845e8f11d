// Must be rejected: more memory than the board's budget has.
extern "C" {
volatile char more_than_is_planned[16384];
char rejected() { return more_than_is_planned[0]; }
}
