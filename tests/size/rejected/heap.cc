// Must be rejected: takes memory from the heap.
extern "C" int* rejected() { return new int(1); }
