//! The functions around gradients: tapes, options, errors.
