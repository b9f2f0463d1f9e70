/* front.c: finds the front that a config asks for in fronts.def. */
#include "front/front.h"

const fth_front *fth_front_of(const fth_config *c) {
    static const fth_front *const all[] = {
#define FRONT(id, name) [id] = &fth_front_##name,
#include "front/fronts.def"
#undef FRONT
    };
    return all[c->front];
}

int32_t fth_front_width(const fth_config *c) {
    const fth_front *front = fth_front_of(c);
    return c->arch != FTH_DEC && front->width ? front->width(c) : 0;
}
