// Samples images (images, channels, height, width) at coordinates in a grid (images, count, 2).

typedef struct {
    long images, channels, height, width, count, x_offset, grid_offset, type, mode, zeros, reflects,
        align_corners;
} Parameters;

#define NEAREST 0
#define BICUBIC 2

// Neighbouring elements of a position along an axis, and their weights.
typedef struct {
    long indices[4];
    C weights[4];
} Neighbours;

inline C floor_mod(C x, C y) {
    const C remainder = fmod(x, y);
    if (remainder == (C)0) return copysign((C)0, y);
    return (remainder < (C)0) != (y < (C)0) ? remainder + y : remainder;
}
inline C reflected(C position, C low, C high) {
    const C period = (C)2 * (high - low), offset = floor_mod(position - low, period);
    return (offset > high - low ? period - offset : offset) + low;
}
inline C inner_cubic_weight(C distance) {
    return (distance * (C)1.25f - (C)2.25f) * (distance * distance) + (C)1;
}
inline C outer_cubic_weight(C distance) {
    return ((distance - (C)5) * (distance * (C)-0.75f) - (C)6) * distance + (C)3;
}

// Elements beyond the image have the index -1.
inline Neighbours neighbours(C coordinate, long length, const Parameters parameters) {
    const int mode = (int)parameters.mode;
    const C last = (C)(length - 1);
    C position, low = 0, high = last;
    if (parameters.align_corners) {
        position = (coordinate + (C)1) * (last / (C)2);
    } else {
        position = (coordinate + (C)1) * ((C)length / (C)2) - (C)0.5f;
        low = (C)-0.5f;
        high = last + (C)0.5f;
    }
    const int reflects = parameters.reflects && low < high;
    if (mode == BICUBIC) {
        if (reflects)
            position = floor_mod(position - low, (C)2 * (high - low)) + low;
        else
            position = minimum(maximum(position, (C)-4), last + (C)4);
    } else {
        if (reflects) position = reflected(position, low, high);
        if (parameters.zeros)
            position = minimum(maximum(position, (C)-4), last + (C)4);
        else
            position = minimum(maximum(position, (C)0), last);
    }
    const C first = mode == NEAREST ? rint(position) : floor(position);
    const C t = position - first, rest = (C)1 - t;
    Neighbours result;
    if (mode == NEAREST) {
        result.weights[0] = position * (C)0 + (C)1;  // NaN for a coordinate that is NaN
    } else if (mode == BICUBIC) {
        result.weights[0] = outer_cubic_weight(t + (C)1);
        result.weights[1] = inner_cubic_weight(t);
        result.weights[2] = inner_cubic_weight(rest);
        result.weights[3] = outer_cubic_weight(rest + (C)1);
    } else {
        result.weights[0] = rest;
        result.weights[1] = t;
    }
    const int before = mode == BICUBIC ? 1 : 0, all = mode == BICUBIC ? 4 : mode + 1;
    const int may_be_outside = parameters.zeros || (mode != NEAREST && mode != BICUBIC);
    for (int k = 0; k < all; ++k) {
        C index = first + (C)(k - before);
        if (mode == BICUBIC && reflects) index = reflected(index, low, high);
        const int outside = may_be_outside && (index < (C)0 || index > last);
        index = minimum(maximum(index, (C)0), last);
        result.indices[k] = outside ? -1 : index != index ? 0 : (long)index;
    }
    return result;
}

KERNEL(64)
void sample_grid(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const void* grid, GLOBAL void* out) {
    const long item = ITEM, count = parameters.count, image = item / count;
    if (image >= parameters.images) return;
    const int type = (int)parameters.type, mode = (int)parameters.mode;
    const int all = mode == BICUBIC ? 4 : mode + 1;
    const long width = parameters.width, plane = parameters.height * width;
    const long position = parameters.grid_offset + 2 * item;
    const Neighbours across = neighbours(READ(grid, position, type), width, parameters);
    const Neighbours down = neighbours(READ(grid, position + 1, type), parameters.height, parameters);
    for (long channel = 0; channel < parameters.channels; ++channel) {
        const long lead = image * parameters.channels + channel;
        const long base = parameters.x_offset + lead * plane;
        C total = 0;
        for (int row = 0; row < all; ++row) {
            C line = 0;
            // A row beyond the image does not contribute, whatever its elements are.
            if (down.indices[row] < 0) continue;
            for (int column = 0; column < all; ++column)
                if (across.indices[column] >= 0)
                    line += READ(x, base + down.indices[row] * width + across.indices[column], type) *
                        across.weights[column];
            total += line * down.weights[row];
        }
        WRITE(out, lead * count + item - image * count, type, total);
    }
}
