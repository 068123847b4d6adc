// expect: 3: error: A.x is a bit-field: not supported
// expect: 4: error: 'f': a variadic function is not supported
typedef struct A { int x : 3; } A;
extern "C" void f(int, ...);
