static inline int twice(int x) { return 2 * x; }
inline int thrice(int x) { return 3 * x; }
static int hidden(int x);
