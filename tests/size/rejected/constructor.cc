// Must be rejected: code that runs before main.
extern "C" volatile int start_register;
volatile int start_register;
static int started = start_register;
extern "C" int rejected() { return started; }
