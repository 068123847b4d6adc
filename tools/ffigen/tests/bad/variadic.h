// expect: 2: error: 'print': a variadic function is not supported
extern "C" int print(const char* format, ...);
