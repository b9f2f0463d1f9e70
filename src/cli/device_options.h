/* device_options.h: where and how numbers are computed, of all verbs that run a model. */
#ifndef FTH_CLI_DEVICE_OPTIONS_H
#define FTH_CLI_DEVICE_OPTIONS_H

#include "base/options.h"

#define DEVICE_OPTIONS_FROM(X, standard)                                                           \
    X(CHOICE, device, standard, FTH_OF_MACHINE(FTH_CHOICES("auto|cpu|cuda|ref")),                  \
      "where to compute; auto takes a GPU when there is one")                                      \
    X(CHOICE, precision, "fp32", FTH_KEPT(FTH_CHOICES("fp32|bf16")), "of weights and activations") \
    X(I64, threads, "", FTH_OF_MACHINE(FTH_RANGE(1, 1024)),                                        \
      "CPU threads; default: one for each core")
#define DEVICE_OPTIONS(X)     DEVICE_OPTIONS_FROM(X, "auto")
#define CPU_DEVICE_OPTIONS(X) DEVICE_OPTIONS_FROM(X, "cpu")
FTH_OPTIONS(fth_device_options, "device", DEVICE_OPTIONS)
/* Of verbs whose numbers are compared with those of other programs. */
FTH_OPTION_GROUP(fth_cpu_device_options_group, fth_device_options, "device", CPU_DEVICE_OPTIONS)

/* Of verbs that only run models. */
#define QUANTIZE_OPTIONS(X)                                                                        \
    X(CHOICE, quantize, "none", FTH_CHOICES("none|int8"),                                          \
      "int8: weights of linear maps in 8 bits, a quarter of the memory to read; device cpu only")

#define FTH_QUANTIZE_RULE "--quantize int8 needs weights that are finite"

#endif
