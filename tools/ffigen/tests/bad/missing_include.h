// expect: 2: error: 'no/such/header.h' file not found
#include "no/such/header.h"
