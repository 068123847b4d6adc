// expect: 2: error: macro HALF can't be evaluated
#define HALF 0.5
