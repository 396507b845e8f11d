// Must be refused: takes memory from the heap.
extern "C" int* over_budget() { return new int(1); }
