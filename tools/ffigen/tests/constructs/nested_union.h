#include <stdint.h>
typedef struct Tagged {
  int tag;
  union {
    struct {
      char* data;
      int length;
    } text;
    int64_t number;
  } u;
} Tagged;
