// Images (images, channels, height, width) at places that a grid (images, count, 2) names.

typedef struct {
    long images, channels, height, width, count, x_start, grid_start, type, mode, zeros, reflects,
        aligned;
} Parameters;

#define NEAREST 0
#define BICUBIC 2

// Along one axis: which elements, from the one before the place on, and how much each counts.
typedef struct {
    long places[4];
    C weights[4];
} Neighbours;

inline C reflected(C position, C low, C high) {
    const C period = (C)2 * (high - low), rest = floor_rest(position - low, period);
    return (rest > high - low ? period - rest : rest) + low;
}
inline C near(C distance) {
    return (distance * (C)1.25f - (C)2.25f) * (distance * distance) + (C)1;
}
inline C far(C distance) {
    return ((distance - (C)5) * (distance * (C)-0.75f) - (C)6) * distance + (C)3;
}

// Elements beyond the image have the place -1.
inline Neighbours neighbours(C coordinate, long length, const Parameters parameters) {
    const int mode = (int)parameters.mode;
    const C last = (C)(length - 1);
    C position, low = 0, high = last;
    if (parameters.aligned) {
        position = (coordinate + (C)1) * (last / (C)2);
    } else {
        position = (coordinate + (C)1) * ((C)length / (C)2) - (C)0.5f;
        low = (C)-0.5f;
        high = last + (C)0.5f;
    }
    const int reflects = parameters.reflects && low < high;
    if (mode == BICUBIC) {
        if (reflects)
            position = floor_rest(position - low, (C)2 * (high - low)) + low;
        else
            position = smaller(larger(position, (C)-4), last + (C)4);
    } else {
        if (reflects) position = reflected(position, low, high);
        if (parameters.zeros)
            position = smaller(larger(position, (C)-4), last + (C)4);
        else
            position = smaller(larger(position, (C)0), last);
    }
    const C first = mode == NEAREST ? rint(position) : floor(position);
    const C t = position - first, rest = (C)1 - t;
    Neighbours found;
    if (mode == NEAREST) {
        found.weights[0] = position * (C)0 + (C)1;  // NaN where there is no place
    } else if (mode == BICUBIC) {
        found.weights[0] = far(t + (C)1);
        found.weights[1] = near(t);
        found.weights[2] = near(rest);
        found.weights[3] = far(rest + (C)1);
    } else {
        found.weights[0] = rest;
        found.weights[1] = t;
    }
    const int before = mode == BICUBIC ? 1 : 0, all = mode == BICUBIC ? 4 : mode + 1;
    const int may_be_outside = parameters.zeros || (mode != NEAREST && mode != BICUBIC);
    for (int k = 0; k < all; ++k) {
        C place = first + (C)(k - before);
        if (mode == BICUBIC && reflects) place = reflected(place, low, high);
        const int outside = may_be_outside && (place < (C)0 || place > last);
        place = smaller(larger(place, (C)0), last);
        found.places[k] = outside ? -1 : place != place ? 0 : (long)place;
    }
    return found;
}

KERNEL(64)
void sample_grid(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const void* grid, GLOBAL void* out) {
    const long item = ITEM, count = parameters.count, image = item / count;
    if (image >= parameters.images) return;
    const int type = (int)parameters.type, mode = (int)parameters.mode;
    const int all = mode == BICUBIC ? 4 : mode + 1;
    const long width = parameters.width, plane = parameters.height * width;
    const long start = parameters.grid_start + 2 * item;
    const Neighbours across = neighbours(READ(grid, start, type), width, parameters);
    const Neighbours down = neighbours(READ(grid, start + 1, type), parameters.height, parameters);
    for (long channel = 0; channel < parameters.channels; ++channel) {
        const long lead = image * parameters.channels + channel;
        const long base = parameters.x_start + lead * plane;
        C total = 0;
        for (int row = 0; row < all; ++row) {
            C line = 0;
            // A row beyond the image has no part, whatever lies in it.
            if (down.places[row] < 0) continue;
            for (int column = 0; column < all; ++column)
                if (across.places[column] >= 0)
                    line += READ(x, base + down.places[row] * width + across.places[column], type) *
                        across.weights[column];
            total += line * down.weights[row];
        }
        WRITE(out, lead * count + item - image * count, type, total);
    }
}
