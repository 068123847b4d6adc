// Nothing of <string.h> but size_t is used outside of inline functions, which are not parsed.
#pragma once
#include <stddef.h>
