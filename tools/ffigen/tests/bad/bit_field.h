// expect: 2: error: Bits.flag is a bit-field: not supported
typedef struct Bits { int flag : 1; } Bits;
