typedef struct Arrays {
  char name[24];
  int grid[2][3];
  const char* words[4];
} Arrays;
