// No pure virtual function is ever called, but tables of abstract classes may refer to this one.
// C++ run-times have it; programs in C have none. A firmware's own definition is taken first.

extern "C" [[noreturn, gnu::weak]] void __cxa_pure_virtual() { __builtin_trap(); }
