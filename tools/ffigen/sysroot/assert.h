// <assert.h> is included, but no declaration depends on it.
#pragma once
#define assert(condition) ((void)0)
