#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Every scalar in one struct, so that padding shows.
typedef struct Scalars {
  bool flag;
  char letter;
  signed char small;
  unsigned char byte;
  short s;
  unsigned short us;
  int i;
  unsigned int ui;
  long l;
  unsigned long ul;
  long long ll;
  unsigned long long ull;
  float f;
  double d;
  size_t size;
  int8_t i8_field;
  uint16_t u16_field;
  int32_t i32_field;
  uint64_t u64_field;
  uintptr_t address;
} Scalars;

typedef struct Empty_tail {
  int64_t first;
  uint8_t last;  // padded after this
} Empty_tail;

typedef struct {
  Scalars inner;
  const Scalars* borrowed;
  Scalars** owned;
} Nameless_tag;
