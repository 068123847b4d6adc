#include <stddef.h>
namespace outer {
const char* const kName = "outer name";
void* mangled(int value, const char* text);
}  // namespace outer
extern "C" {
typedef struct With_default {
  int version = 4;
  void (*optional)(void) = nullptr;
} With_default;
void by_reference(const With_default& value, With_default& out);
}
