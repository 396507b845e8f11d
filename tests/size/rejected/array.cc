// Must be rejected: gives an array back to the heap.
extern "C" void rejected(int* values) { delete[] values; }
