#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef void (*Visitor)(const char* key, void* capture);
typedef int Comparator(const void* left, const void* right);
typedef struct Callbacks {
  size_t struct_size;
  void (*release)(void* data, size_t length);
  Comparator* compare;
  Visitor visit;
  int (*compose)(int (*inner)(int value), int);
} Callbacks;
void for_each(Visitor visitor, void* capture, void (*done)(void* capture));
int sort(Comparator* compare);
#ifdef __cplusplus
}
#endif
