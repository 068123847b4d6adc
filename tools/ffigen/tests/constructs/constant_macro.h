#include <stddef.h>
#define MAJOR 2
#define MINOR -21
#define MASK 0xFFu
#define BIG (1ull << 40)
#define SUM (MAJOR + 3)
#define NAME "name \"quoted\"\n"
#define GUARD_WITHOUT_VALUE
#define CALL(x) ((x) + 1)
#undef CALL
const size_t Namespace_constant = 7;
