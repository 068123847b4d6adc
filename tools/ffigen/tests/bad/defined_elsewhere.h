// expect: 3: error: type 'Elsewhere' is declared by no header of this run
#include "../constructs_elsewhere.inc"
typedef Elsewhere* Pointer_to_elsewhere;
