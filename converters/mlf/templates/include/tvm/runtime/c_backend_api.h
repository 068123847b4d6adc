/* Functions that C written by TVM calls; the crate defines them, renamed for each model. */
#ifndef MLF2RUST_C_BACKEND_API_H_
#define MLF2RUST_C_BACKEND_API_H_

#include "c_runtime_api.h"

void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes,
                               int dtype_code_hint, int dtype_bits_hint);
int TVMBackendFreeWorkspace(int device_type, int device_id, void* ptr);

#endif
