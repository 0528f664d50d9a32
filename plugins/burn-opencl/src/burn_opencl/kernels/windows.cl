// Windows that slide along three spatial axes of (lead, spatial): padding is not in memory.

typedef struct {
    long n, start, type, index_type, with_padding, lowest, lengths[3], widths[3], stride[3],
        before[3], after[3], dilation[3], counts[3];
} Parameters;
#ifndef TYPE
#define TYPE ((int)parameters.type)
#endif
#define L parameters.lengths
#define K parameters.widths
#define N parameters.counts

// Where a window starts along each axis, from its number.
#define WINDOW(number)                                                               \
    const long c2 = (number) % N[2], above2 = (number) / N[2];                       \
    const long c1 = above2 % N[1], above1 = above2 / N[1];                           \
    const long c0 = above1 % N[0], lead = above1 / N[0];                             \
    const long s0 = c0 * parameters.stride[0] - parameters.before[0];                \
    const long s1 = c1 * parameters.stride[1] - parameters.before[1];                \
    const long s2 = c2 * parameters.stride[2] - parameters.before[2];

// Each place in a window that is no padding.
#define EACH_PLACE                                                                   \
    for (long k0 = 0; k0 < K[0]; ++k0)                                               \
        for (long k1 = 0; k1 < K[1]; ++k1)                                           \
            for (long k2 = 0; k2 < K[2]; ++k2) {                                     \
                const long p0 = s0 + k0 * parameters.dilation[0];                    \
                const long p1 = s1 + k1 * parameters.dilation[1];                    \
                const long p2 = s2 + k2 * parameters.dilation[2];                    \
                if (p0 < 0 || p1 < 0 || p2 < 0 || p0 >= L[0] || p1 >= L[1] || p2 >= L[2]) \
                    continue;                                                        \
                const long place = (p0 * L[1] + p1) * L[2] + p2;

#ifdef HAS_columns
// (lead, *spatial) as (lead, *kernel, *counts): an item for each row of windows.
KERNEL(GROUP_SIZE)
void columns(const Parameters parameters, GLOBAL const void* restrict x, GLOBAL void* restrict out) {
    const long item = ITEM;
    if (item >= parameters.n) return;
    const long c1 = item % N[1], a1 = item / N[1], c0 = a1 % N[0], a0 = a1 / N[0];
    const long k2 = a0 % K[2], b2 = a0 / K[2], k1 = b2 % K[1], b1 = b2 / K[1];
    const long k0 = b1 % K[0], lead = b1 / K[0];
    const long p0 = c0 * parameters.stride[0] - parameters.before[0] + k0 * parameters.dilation[0];
    const long p1 = c1 * parameters.stride[1] - parameters.before[1] + k1 * parameters.dilation[1];
    const long s2 = k2 * parameters.dilation[2] - parameters.before[2], step = parameters.stride[2];
    const long target = item * N[2];
    long first = 0, stop = 0;
    if (p0 >= 0 && p1 >= 0 && p0 < L[0] && p1 < L[1]) {
        // The windows whose place lies in the tensor.
        first = s2 < 0 ? (-s2 + step - 1) / step : 0;
        stop = s2 < L[2] ? (L[2] - s2 + step - 1) / step : 0;
        if (stop > N[2]) stop = N[2];
        if (first > stop) first = stop;
    }
    const long source = parameters.start + ((lead * L[0] + p0) * L[1] + p1) * L[2] + s2;
    for (long i = 0; i < first; ++i) WRITE(out, target + i, TYPE, (C)0);
    if (step == 1)
        for (long i = first; i < stop; ++i)
            WRITE(out, target + i, TYPE, READ(x, source + i, TYPE));
    else
        for (long i = first; i < stop; ++i)
            WRITE(out, target + i, TYPE, READ(x, source + i * step, TYPE));
    for (long i = stop; i < N[2]; ++i) WRITE(out, target + i, TYPE, (C)0);
}
#endif

#ifdef HAS_max_pool
// Place 0 of a window that is no padding: where the search begins.
inline long first_in(long start, long dilation) {
    if (start >= 0) return start;
    const long rest = start % dilation;
    return rest < 0 ? rest + dilation : rest;
}
KERNEL(64) void max_pool(
    const Parameters parameters, GLOBAL const void* x, GLOBAL void* out, GLOBAL void* indices) {
    const long item = ITEM;
    if (item >= parameters.n) return;
    WINDOW(item)
    const long base = parameters.start + lead * L[0] * L[1] * L[2];
    C best = OF_NUMBER((ulong)parameters.lowest);
    long found = (first_in(s0, parameters.dilation[0]) * L[1] +
                  first_in(s1, parameters.dilation[1])) * L[2] +
        first_in(s2, parameters.dilation[2]);
    EACH_PLACE
        const C value = READ(x, base + place, TYPE);
        if (!(value <= best) && best == best) {
            best = value;
            found = place;
        }
    }
    WRITE(out, item, TYPE, best);
    if (parameters.index_type != NUMBER)
        write_long(indices, item, (int)parameters.index_type, found);
}
#endif

// How many elements a mean is of, along one axis.
inline long counted(long start, long width, long length, long after, long with_padding) {
    const long stop = start + width, end = with_padding ? length + after : length;
    return (stop < end ? stop : end) - (with_padding || start > 0 ? start : 0);
}
#define DIVISOR(s0, s1, s2)                                                          \
    (counted(s0, K[0], L[0], parameters.after[0], parameters.with_padding) *         \
     counted(s1, K[1], L[1], parameters.after[1], parameters.with_padding) *         \
     counted(s2, K[2], L[2], parameters.after[2], parameters.with_padding))

#ifdef HAS_avg_pool
KERNEL(64) void avg_pool(const Parameters parameters, GLOBAL const void* x, GLOBAL void* out) {
    const long item = ITEM;
    if (item >= parameters.n) return;
    WINDOW(item)
    const long base = parameters.start + lead * L[0] * L[1] * L[2];
    C sum = (C)0;
    EACH_PLACE
        sum += READ(x, base + place, TYPE);
    }
    WRITE(out, item, TYPE, sum / (C)DIVISOR(s0, s1, s2));
}
#endif

#ifdef HAS_avg_pool_grad
// The windows that hold a place: from the first to the last, along one axis.
#define FIRST(d, place)                                                              \
    (place + parameters.before[d] < K[d] ? 0                                         \
         : (place + parameters.before[d] - K[d]) / parameters.stride[d] + 1)
#define LAST(d, place)                                                               \
    ((place + parameters.before[d]) / parameters.stride[d] < N[d] - 1                \
         ? (place + parameters.before[d]) / parameters.stride[d] : N[d] - 1)
#define START(d, c) ((c) * parameters.stride[d] - parameters.before[d])

KERNEL(64)
void avg_pool_grad(const Parameters parameters, GLOBAL const void* g, GLOBAL void* out) {
    const long item = ITEM;
    if (item >= parameters.n) return;
    const long p2 = item % L[2], above2 = item / L[2], p1 = above2 % L[1], above1 = above2 / L[1];
    const long p0 = above1 % L[0], lead = above1 / L[0];
    const long base = parameters.start + lead * N[0] * N[1] * N[2];
    C sum = (C)0;
    for (long c0 = FIRST(0, p0); c0 <= LAST(0, p0); ++c0)
        for (long c1 = FIRST(1, p1); c1 <= LAST(1, p1); ++c1)
            for (long c2 = FIRST(2, p2); c2 <= LAST(2, p2); ++c2)
                sum += READ(g, base + (c0 * N[1] + c1) * N[2] + c2, TYPE) /
                    (C)DIVISOR(START(0, c0), START(1, c1), START(2, c2));
    WRITE(out, item, TYPE, sum);
}
#endif
