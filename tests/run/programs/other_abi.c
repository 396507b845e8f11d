/* A library of the standard's ABI of MPI, as doctor_test.py puts it in front: only what names it. */
#include <stdlib.h>
#include <string.h>

int MPI_Get_library_version(char* version, int* length) {
  const char* const text = getenv("OTHER_ABI_VERSION");
  if (text == NULL) abort();
  strcpy(version, text);
  *length = (int)strlen(text);
  return 0;
}
