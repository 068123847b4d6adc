// A type that is declared and never defined.
typedef struct Opaque Opaque;
typedef struct Handle_st* Handle;
