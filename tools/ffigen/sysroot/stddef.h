// The part of the C standard library's <stddef.h> that TensorFlow's C headers use. The libclang
// wheel ships no standard headers; these make the parse independent of the machine's own.
#pragma once
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
#define NULL 0
#define offsetof(type, member) __builtin_offsetof(type, member)
