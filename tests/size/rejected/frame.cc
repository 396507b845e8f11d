// Must be rejected: a stack frame whose size is known at run time only.
extern "C" {
void fill(char* bytes);
void fill(char* bytes) { *const_cast<volatile char*>(bytes) = 1; }
int rejected(int n) {
  auto* bytes = static_cast<char*>(__builtin_alloca(static_cast<unsigned>(n)));
  fill(bytes);
  return bytes[0];
}
}
