#include <stdint.h>
typedef struct Unnamed {
  int32_t kind;
  union {
    int64_t number;
    const char* text;
  };
  uint8_t last;
} Unnamed;
