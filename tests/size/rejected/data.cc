// Must be rejected: initialised memory has to be copied from flash at boot.
extern "C" {
int calls = 7;
int rejected() { return ++calls; }
}
