// An enum with gaps, a negative value and two names for one value.
typedef enum Color {
  COLOR_NONE = -1,
  COLOR_RED,        // counts on from the one before
  COLOR_BLUE = 10,
  COLOR_LAST = COLOR_BLUE,
} Color;
typedef enum { UNSIGNED_A, UNSIGNED_B = 0x80000000 } Unsigned_enum;
Color const* unused_color_pointer(Unsigned_enum value);
