// Must be refused: code that runs before main.
extern "C" volatile int switch_register;
volatile int switch_register;
static int switched = switch_register;
extern "C" int over_budget() { return switched; }
