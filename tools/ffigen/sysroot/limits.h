// <limits.h> is used inside of inline functions only, which are not parsed.
#pragma once
