// Must be rejected: calls a function that is not named as a possible target.
extern "C" {
int rejected_target(int n) { return n + 1; }
int (*volatile rejected_pointer)(int);
int rejected(int n) {
  rejected_pointer = rejected_target;
  return rejected_pointer(n) + 1;
}
}
