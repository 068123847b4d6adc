#include <stdint.h>
typedef union Number {
  int64_t whole;
  double real;
  uint8_t bytes[12];
} Number;
typedef struct Holder {
  int tag;
  Number number;
} Holder;
