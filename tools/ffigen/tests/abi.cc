// The functions that constructs/*.h declare, for abi_test.rs to call.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "callback.h"
#include "cxx.h"
#include "enumeration.h"
#include "function.h"
#include "keywords.h"
#include "nested_union.h"
#include "plain_struct.h"
#include "union.h"

struct Thing {
  size_t length;
  char first;
};

extern "C" {

Thing* make_thing(const char* name, size_t length) { return new Thing{length, name[0]}; }

void free_thing(Thing* thing) { delete thing; }

bool thing_ok(const Thing* thing, bool* out_flag) {
  *out_flag = thing->first == 'a';
  return thing->length == 3;
}

int no_parameters(void) { return 7; }

int empty_parentheses() { return 8; }

Pair swap_pair(Pair pair) {
  return Pair{static_cast<int64_t>(pair.second), static_cast<double>(pair.first)};
}

void fill(int values[4], const int more[], const char* const* names, void** out) {
  for (int i = 0; i < 4; i++) values[i] = more[i] + static_cast<int>(strlen(names[0]));
  *out = values;
}

void for_each(Visitor visitor, void* capture, void (*done)(void* capture)) {
  visitor("one", capture);
  visitor("two", capture);
  if (done != nullptr) done(capture);
}

int sort(Comparator* compare) {
  int one = 1, two = 2;
  return compare == nullptr ? -100 : compare(&one, &two);
}

int match(int in, int crate) { return in * 10 + crate; }

void by_reference(const With_default& value, With_default& out) { out.version = value.version + 1; }

}  // extern "C"

namespace outer {
void* mangled(int value, const char* text) { return const_cast<char*>(text + value); }
}  // namespace outer

Color const* unused_color_pointer(Unsigned_enum value) {
  // A value that the enum does not name.
  static Color unknown;
  unknown = static_cast<Color>(static_cast<int>(value) + 100);
  return &unknown;
}

// What the layouts are for: C++ writes every member, Rust reads it, and the other way round.
extern "C" void write_scalars(Scalars* out) {
  memset(out, 0, sizeof *out);
  out->flag = true;
  out->letter = 'x';
  out->us = 65535;
  out->ll = -5;
  out->d = 2.5;
  out->size = 99;
  out->u64_field = 1ull << 63;
  out->address = 4096;
}

extern "C" double read_unions(const Tagged* tagged, const Holder* holder) {
  const int64_t number = tagged->tag == 1 ? tagged->u.number : tagged->u.text.length;
  return static_cast<double>(number) + (holder->tag == 2 ? holder->number.real : 0.0);
}
