/* The function registry of TVM's system library; nothing in the crate reads it. */
#ifndef MLF2RUST_CRT_MODULE_H_
#define MLF2RUST_CRT_MODULE_H_

#include "../c_backend_api.h"

typedef int (*TVMBackendPackedCFunc)(TVMValue* args, int* type_codes, int num_args,
                                     TVMValue* out_value, int* out_type_code, void* resource);
typedef struct TVMFuncRegistry {
  const char* names;
  const TVMBackendPackedCFunc* funcs;
} TVMFuncRegistry;
typedef struct TVMModule {
  const TVMFuncRegistry* registry;
} TVMModule;

#endif
