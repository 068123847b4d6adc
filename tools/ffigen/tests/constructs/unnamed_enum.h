typedef struct Sized { int a; char b; } Sized;
enum { Sized_STRUCT_SIZE = sizeof(int) + sizeof(char), PLAIN_VALUE = 3 };
