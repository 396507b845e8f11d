// Must be rejected: nothing bounds its stack.
extern "C" int rejected(int n) { return n < 2 ? n : rejected(n - 1) * n + rejected(n - 2); }
