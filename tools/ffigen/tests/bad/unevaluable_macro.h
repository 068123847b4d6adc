// expect: 3: error: macro BROKEN can't be evaluated: use of undeclared identifier 'undeclared'
typedef int unused_type;
#define BROKEN (undeclared + 1)
