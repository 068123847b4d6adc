#include <stddef.h>
#include <stdint.h>
#define END_OF(TYPE, MEMBER) (offsetof(TYPE, MEMBER) + sizeof(((TYPE*)0)->MEMBER))
typedef struct Padded {
  size_t struct_size;
  uint8_t last;
} Padded;
#define PADDED_STRUCT_SIZE END_OF(Padded, last)
