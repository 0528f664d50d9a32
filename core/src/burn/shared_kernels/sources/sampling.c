// Samples images (images, channels, height, width) at coordinates in a grid (images, count, 2). An item
// finds the neighbours of a point once, for every `parts`-th channel.

typedef struct {
    int64 n, channels, height, width, count, parts, x_offset, grid_offset, type, mode, zeros, reflects,
        align_corners;
} Parameters;
#ifndef TYPE
#define TYPE ((int)parameters.type)
#define MODE ((int)parameters.mode)
#define ZEROS parameters.zeros
#define REFLECTS parameters.reflects
#define ALIGN_CORNERS parameters.align_corners
#endif

#define NEAREST 0
#define BICUBIC 2
#define TAPS (MODE == BICUBIC ? 4 : MODE + 1)

FUNCTION C floor_mod(C x, C y) {
    const C remainder = fmod(x, y);
    if (remainder == (C)0) return copysign((C)0, y);
    return (remainder < (C)0) != (y < (C)0) ? remainder + y : remainder;
}
FUNCTION C reflected(C position, C low, C high) {
    const C period = (C)2 * (high - low), offset = floor_mod(position - low, period);
    return (offset > high - low ? period - offset : offset) + low;
}
FUNCTION C clipped(C x, C low, C high) { return x < low ? low : x > high ? high : x; }
// Weights of bicubic interpolation with a = -0.75, at distances up to 1 and from 1 to 2 (Keys, 1981).
FUNCTION C inner_cubic_weight(C distance) {
    return (distance * (C)1.25 - (C)2.25) * (distance * distance) + (C)1;
}
FUNCTION C outer_cubic_weight(C distance) {
    return ((distance - (C)5) * (distance * (C)-0.75) - (C)6) * distance + (C)3;
}

// Neighbouring elements of a position along an axis, and their weights. Elements beyond the image have
// the index -1.
FUNCTION void neighbours(
    C coordinate, int length, const Parameters parameters, int* indices, C* weights) {
    const C last = (C)(length - 1);
    C position, low = (C)0, high = last;
    if (ALIGN_CORNERS) {
        position = (coordinate + (C)1) * (last * (C)0.5);
    } else {
        position = (coordinate + (C)1) * ((C)length * (C)0.5) - (C)0.5;
        low = (C)-0.5;
        high = last + (C)0.5;
    }
    const int reflects = REFLECTS && low < high;
    if (MODE == BICUBIC) {
        if (reflects)
            position = floor_mod(position - low, (C)2 * (high - low)) + low;
        else
            position = clipped(position, (C)-4, last + (C)4);
    } else {
        if (reflects) position = reflected(position, low, high);
        position = ZEROS ? clipped(position, (C)-4, last + (C)4) : clipped(position, (C)0, last);
    }
    const C first = MODE == NEAREST ? rint(position) : floor(position);
    const C t = position - first, rest = (C)1 - t;
    if (MODE == NEAREST) {
        weights[0] = position * (C)0 + (C)1;  // NaN for a coordinate that is NaN
    } else if (MODE == BICUBIC) {
        weights[0] = outer_cubic_weight(t + (C)1);
        weights[1] = inner_cubic_weight(t);
        weights[2] = inner_cubic_weight(rest);
        weights[3] = outer_cubic_weight(rest + (C)1);
    } else {
        weights[0] = rest;
        weights[1] = t;
    }
    const int before = MODE == BICUBIC ? 1 : 0;
    const int may_be_outside = ZEROS || (MODE != NEAREST && MODE != BICUBIC);
    UNROLL for (int k = 0; k < TAPS; ++k) {
        C index = first + (C)(k - before);
        if (MODE == BICUBIC && reflects) index = reflected(index, low, high);
        const int outside = may_be_outside && (index < (C)0 || index > last);
        // A NaN coordinate gets an index that exists: its weight is NaN.
        indices[k] = outside ? -1 : index != index ? 0 : (int)clipped(index, (C)0, last);
    }
}

KERNEL(GROUP_ITEMS) void sample_grid(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL const void* restrict grid,
    GLOBAL void* restrict out) {
    const int64 item = ITEM, count = parameters.count;
    if (item >= parameters.n) return;
    const int64 above = item / count, point = item - above * count, image = above / parameters.parts;
    const int64 width = parameters.width, plane = parameters.height * width;
    const int64 position = parameters.grid_offset + 2 * (image * count + point);
    int columns[4], rows[4];
    C column_weights[4], row_weights[4];
    neighbours(READ(grid, position, TYPE), (int)width, parameters, columns, column_weights);
    neighbours(READ(grid, position + 1, TYPE), (int)parameters.height, parameters, rows, row_weights);
    for (int64 channel = above - image * parameters.parts; channel < parameters.channels;
         channel += parameters.parts) {
        const int64 lead = image * parameters.channels + channel;
        const int64 base = parameters.x_offset + lead * plane;
        C total = (C)0;
        UNROLL for (int r = 0; r < TAPS; ++r) {
            C line = (C)0;
            // A row beyond the image does not contribute, whatever its elements are.
            if (rows[r] < 0) continue;
            UNROLL for (int c = 0; c < TAPS; ++c)
                if (columns[c] >= 0)
                    line = MULTIPLY_ADD(
                        READ(x, base + rows[r] * width + columns[c], TYPE), column_weights[c], line);
            total = MULTIPLY_ADD(line, row_weights[r], total);
        }
        WRITE(out, lead * count + point, TYPE, total);
    }
}
