#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef struct Thing Thing;
typedef struct Pair { int64_t first; double second; } Pair;

// Makes a thing.
//
// The caller owns the result; see [Thing], <b> and snake_case_ names:
//   thing = make_thing("a", 1);
//   free_thing(thing);
Thing* make_thing(const char* name, size_t length);
void free_thing(Thing*);
bool thing_ok(const Thing* thing, bool* out_flag);
extern int no_parameters(void);
extern int empty_parentheses();
Pair swap_pair(Pair pair);
void fill(int values[4], const int more[], const char* const* names, void** out);
Thing* make_thing(const char* name, size_t length);
#ifdef __cplusplus
}
#endif
