// Must be refused: initialised memory would have to be copied from flash at boot.
extern "C" {
int calls = 7;
int over_budget() { return ++calls; }
}
