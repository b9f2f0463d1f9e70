/* b2t_init.h: the initial scale of the two methods with a bottom-to-top connection
 * (doc/mathematics.md#b2t). */
#ifndef FTH_METHOD_B2T_INIT_H
#define FTH_METHOD_B2T_INIT_H

#include "method/method.h"

#define FTH_B2T_INIT_OPTION                                                                        \
    {                                                                                              \
        "init_scale", "number|auto", "1 up to 18 layers, else auto", 0, 1e6,                       \
            "multiplies the weights of the layers; auto is layers^(-1/2)"                          \
    }

fth_init fth_b2t_init(const fth_method_state *s, const fth_param *p, fth_init base);

#endif
