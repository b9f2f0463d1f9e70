/* eigen.h: the largest eigenvalue of a small symmetric matrix, by Jacobi's rotations. */
#ifndef FTH_PROBE_EIGEN_H
#define FTH_PROBE_EIGEN_H

#include <stdint.h>

#include "base/error.h"

/* matrix [n, n]; vector [n] gets the eigenvector, of length 1. */
fth_err fth_first_eigenvector(const double *matrix, int32_t n, double *vector, double *value);

#endif
