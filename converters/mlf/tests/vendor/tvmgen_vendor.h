#ifndef TVMGEN_VENDOR_H_
#define TVMGEN_VENDOR_H_
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The generated model library expects the following inputs/outputs:
 * Inputs:
 *    Tensor[(1, 4), float32]
 * Outputs:
 *    Tensor[(1, 4), float32]
 */

/*!
 * \brief inputs of "vendor"
 */
struct tvmgen_vendor_inputs {
  void* x;
};

/*!
 * \brief outputs of "vendor"
 */
struct tvmgen_vendor_outputs {
  void* y;
};

int32_t tvmgen_vendor_run(
  struct tvmgen_vendor_inputs* inputs,
  struct tvmgen_vendor_outputs* outputs
);

#ifdef __cplusplus
}
#endif

#endif // TVMGEN_VENDOR_H_
