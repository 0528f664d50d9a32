// Windows that slide along three spatial axes of (outer, *spatial), with virtual padding.

typedef struct {
    long n, per_item, offset, type, index_type, with_padding, lowest, lengths[3], widths[3], stride[3],
        before[3], after[3], dilation[3], counts[3];
} Parameters;
#ifndef TYPE
#define TYPE ((int)parameters.type)
#endif
#define L parameters.lengths
#define K parameters.widths
#ifndef K0
#define K0 parameters.widths[0]
#define K1 parameters.widths[1]
#define K2 parameters.widths[2]
#define D0 parameters.dilation[0]
#define D1 parameters.dilation[1]
#define D2 parameters.dilation[2]
#endif
#define N parameters.counts

// An item computes `per_item` consecutive windows: many on a CPU, which saves divisions.
#define EACH_WINDOW                                                                      \
    const long number = ITEM * parameters.per_item;                                      \
    if (number >= parameters.n) return;                                                  \
    const long left = parameters.n - number;                                             \
    const long end = number + (left < parameters.per_item ? left : parameters.per_item); \
    long c2 = number % N[2], above2 = number / N[2], c1 = above2 % N[1];                 \
    long above1 = above2 / N[1], c0 = above1 % N[0], outer = above1 / N[0];              \
    for (long item = number; item < end; ++item, ++c2) {                                 \
        if (c2 == N[2]) {                                                                \
            c2 = 0;                                                                      \
            ++c1;                                                                        \
        }                                                                                \
        if (c1 == N[1]) {                                                                \
            c1 = 0;                                                                      \
            ++c0;                                                                        \
        }                                                                                \
        if (c0 == N[0]) {                                                                \
            c0 = 0;                                                                      \
            ++outer;                                                                     \
        }                                                                                \
        const long s0 = c0 * parameters.stride[0] - parameters.before[0];                \
        const long s1 = c1 * parameters.stride[1] - parameters.before[1];                \
        const long s2 = c2 * parameters.stride[2] - parameters.before[2];

// Along an axis: the range of positions in a window that are not padding.
#define WITHIN(d, s, first, stop)             \
    long first = 0, stop = K##d;              \
    if (s < 0) first = (D##d - 1 - s) / D##d; \
    if (s + (K##d - 1) * D##d >= L[d]) stop = (L[d] - s + D##d - 1) / D##d;

// Each element of a window that is not padding.
#define EACH_ELEMENT                                                              \
    for (long k0 = first0; k0 < stop0; ++k0)                                      \
        for (long k1 = first1; k1 < stop1; ++k1) {                                \
            const long line = ((s0 + k0 * D0) * L[1] + s1 + k1 * D1) * L[2] + s2; \
            for (long k2 = first2; k2 < stop2; ++k2) {                            \
                const long element = line + k2 * D2;
#define END_ELEMENT }}

#ifdef HAS_columns
// (outer, *spatial) to (outer, *kernel, *counts), known as im2col.
#if IS_CPU
// An item writes `per_item` rows of windows.
KERNEL(GROUP_SIZE)
void columns(const Parameters parameters, GLOBAL const void* restrict x, GLOBAL void* restrict out) {
    const long number = ITEM * parameters.per_item;
    if (number >= parameters.n) return;
    const long left = parameters.n - number;
    const long end = number + (left < parameters.per_item ? left : parameters.per_item);
    const long step = parameters.stride[2];
    long c1 = number % N[1], a1 = number / N[1], c0 = a1 % N[0], above = a1 / N[0];
    for (long item = number; item < end;) {
        const long k2 = above % K2, b2 = above / K2, k1 = b2 % K1, b1 = b2 / K1;
        const long k0 = b1 % K0, outer = b1 / K0;
        const long s2 = k2 * parameters.dilation[2] - parameters.before[2];
        // The windows of the row in which this element is not padding.
        long first = s2 < 0 ? (-s2 + step - 1) / step : 0;
        long stop = s2 < L[2] ? (L[2] - s2 + step - 1) / step : 0;
        if (stop > N[2]) stop = N[2];
        if (first > stop) first = stop;
        for (; c0 < N[0] && item < end; ++c0, c1 = 0) {
            const long p0 =
                c0 * parameters.stride[0] - parameters.before[0] + k0 * parameters.dilation[0];
            for (; c1 < N[1] && item < end; ++c1, ++item) {
                const long p1 =
                    c1 * parameters.stride[1] - parameters.before[1] + k1 * parameters.dilation[1];
                const int beyond = p0 < 0 || p1 < 0 || p0 >= L[0] || p1 >= L[1];
                const long begin = beyond ? 0 : first, behind = beyond ? 0 : stop;
                const long target = item * N[2];
                const long source = parameters.offset + ((outer * L[0] + p0) * L[1] + p1) * L[2] + s2;
                for (long i = 0; i < begin; ++i) WRITE(out, target + i, TYPE, (C)0);
                if (step == 1)
                    for (long i = begin; i < behind; ++i)
                        WRITE(out, target + i, TYPE, READ(x, source + i, TYPE));
                else
                    for (long i = begin; i < behind; ++i)
                        WRITE(out, target + i, TYPE, READ(x, source + i * step, TYPE));
                for (long i = behind; i < N[2]; ++i) WRITE(out, target + i, TYPE, (C)0);
            }
        }
        c0 = 0;
        ++above;
    }
}
#else
// An item writes an element, so neighbouring items write neighbouring elements.
#define WRITE_ELEMENT(T, rest)                                                                      \
    T at = rest;                                                                                    \
    T above = at / (T)N[2];                                                                         \
    const long c2 = at - above * (T)N[2];                                                           \
    at = above, above = at / (T)N[1];                                                               \
    const long c1 = at - above * (T)N[1];                                                           \
    at = above, above = at / (T)N[0];                                                               \
    const long c0 = at - above * (T)N[0];                                                           \
    at = above, above = at / (T)K2;                                                                 \
    const long k2 = at - above * (T)K2;                                                             \
    at = above, above = at / (T)K1;                                                                 \
    const long k1 = at - above * (T)K1;                                                             \
    at = above, above = at / (T)K0;                                                                 \
    const long k0 = at - above * (T)K0, outer = above;                                              \
    const long p0 = c0 * parameters.stride[0] - parameters.before[0] + k0 * parameters.dilation[0]; \
    const long p1 = c1 * parameters.stride[1] - parameters.before[1] + k1 * parameters.dilation[1]; \
    const long p2 = c2 * parameters.stride[2] - parameters.before[2] + k2 * parameters.dilation[2]; \
    const int beyond = p0 < 0 || p1 < 0 || p2 < 0 || p0 >= L[0] || p1 >= L[1] || p2 >= L[2];        \
    const long source = parameters.offset + ((outer * L[0] + p0) * L[1] + p1) * L[2] + p2;          \
    WRITE(out, item, TYPE, beyond ? (C)0 : READ(x, source, TYPE));

KERNEL(GROUP_SIZE)
void columns(const Parameters parameters, GLOBAL const void* restrict x, GLOBAL void* restrict out) {
    const long item = ITEM;
    if (item >= parameters.n) return;
    if (parameters.n >> 31) {
        WRITE_ELEMENT(ulong, item)
    } else {
        WRITE_ELEMENT(uint, item)
    }
}
#endif
#endif

#ifdef HAS_max_pool
KERNEL(GROUP_SIZE) void max_pool(
    const Parameters parameters, GLOBAL const void* x, GLOBAL void* out, GLOBAL void* indices) {
    EACH_WINDOW
    const long base = parameters.offset + outer * L[0] * L[1] * L[2];
    C best = SCALAR((ulong)parameters.lowest);
    WITHIN(0, s0, first0, stop0)
    WITHIN(1, s1, first1, stop1)
    WITHIN(2, s2, first2, stop2)
    long found = ((s0 + first0 * D0) * L[1] + s1 + first1 * D1) * L[2] + s2 + first2 * D2;
    EACH_ELEMENT
        const C value = READ(x, base + element, TYPE);
        const int is_better = !(value <= best) & (best == best);
        best = is_better ? value : best;
        found = is_better ? element : found;
    END_ELEMENT
    WRITE(out, item, TYPE, best);
    if (parameters.index_type != SCALAR_TYPE)
        write_long(indices, item, (int)parameters.index_type, found);
    }
}
#endif

#ifdef HAS_max_pool_grad
// An item computes an image of (outer, elements): the terms of an element are added in order.
KERNEL(64)
void max_pool_grad(
    const Parameters parameters, GLOBAL const void* g, GLOBAL const void* indices,
    GLOBAL void* out, GLOBAL long* error) {
    const long item = ITEM, windows = N[2], elements = L[2];
    if (item >= parameters.n) return;
    for (long i = 0; i < elements; ++i) WRITE(out, item * elements + i, TYPE, (C)0);
    for (long i = item * windows; i < (item + 1) * windows; ++i) {
        const ulong bits = read_ulong(indices, parameters.with_padding + i, (int)parameters.index_type);
        const long index =
            checked_index(bits, (int)parameters.index_type, elements, error, parameters.lowest);
        if (index < 0) continue;
        const long element = item * elements + index;
        WRITE(out, element, TYPE, READ(out, element, TYPE) + READ(g, parameters.offset + i, TYPE));
    }
}
#endif

// Number of elements along an axis that an average divides by.
inline long divisor_along(long start, long width, long length, long after, long with_padding) {
    const long stop = start + width, end = with_padding ? length + after : length;
    return (stop < end ? stop : end) - (with_padding || start > 0 ? start : 0);
}
#define DIVISOR(s0, s1, s2)                                                      \
    (divisor_along(s0, K0, L[0], parameters.after[0], parameters.with_padding) * \
     divisor_along(s1, K1, L[1], parameters.after[1], parameters.with_padding) * \
     divisor_along(s2, K2, L[2], parameters.after[2], parameters.with_padding))

#ifdef HAS_avg_pool
KERNEL(GROUP_SIZE) void avg_pool(const Parameters parameters, GLOBAL const void* x, GLOBAL void* out) {
    EACH_WINDOW
    const long base = parameters.offset + outer * L[0] * L[1] * L[2];
    C sum = (C)0;
    WITHIN(0, s0, first0, stop0)
    WITHIN(1, s1, first1, stop1)
    WITHIN(2, s2, first2, stop2)
    EACH_ELEMENT
        sum += READ(x, base + element, TYPE);
    END_ELEMENT
    WRITE(out, item, TYPE, sum / (C)DIVISOR(s0, s1, s2));
    }
}
#endif

#ifdef HAS_avg_pool_grad
// The first and the last window along an axis that contain an element.
#define FIRST(d, position)                      \
    (position + parameters.before[d] < K[d] ? 0 \
         : (position + parameters.before[d] - K[d]) / parameters.stride[d] + 1)
#define LAST(d, position)                                                \
    ((position + parameters.before[d]) / parameters.stride[d] < N[d] - 1 \
         ? (position + parameters.before[d]) / parameters.stride[d] : N[d] - 1)
#define START(d, c) ((c) * parameters.stride[d] - parameters.before[d])

KERNEL(64)
void avg_pool_grad(const Parameters parameters, GLOBAL const void* g, GLOBAL void* out) {
    const long item = ITEM;
    if (item >= parameters.n) return;
    const long p2 = item % L[2], above2 = item / L[2], p1 = above2 % L[1], above1 = above2 / L[1];
    const long p0 = above1 % L[0], outer = above1 / L[0];
    const long base = parameters.offset + outer * N[0] * N[1] * N[2];
    C sum = (C)0;
    for (long c0 = FIRST(0, p0); c0 <= LAST(0, p0); ++c0)
        for (long c1 = FIRST(1, p1); c1 <= LAST(1, p1); ++c1)
            for (long c2 = FIRST(2, p2); c2 <= LAST(2, p2); ++c2)
                sum += READ(g, base + (c0 * N[1] + c1) * N[2] + c2, TYPE) /
                    (C)DIVISOR(START(0, c0), START(1, c1), START(2, c2));
    WRITE(out, item, TYPE, sum);
}
#endif

#ifdef HAS_fold
// The transpose of `columns`: each element is the sum over the windows that contain it.
KERNEL(64) void fold(const Parameters parameters, GLOBAL const void* x, GLOBAL void* out) {
    const long item = ITEM;
    if (item >= parameters.n) return;
    const long p2 = item % L[2], above2 = item / L[2], p1 = above2 % L[1], above1 = above2 / L[1];
    const long p0 = above1 % L[0], outer = above1 / L[0];
    C sum = (C)0;
    for (long k0 = 0; k0 < K0; ++k0) {
        const long s0 = p0 + parameters.before[0] - k0 * parameters.dilation[0];
        const long c0 = s0 / parameters.stride[0];
        if (s0 < 0 || s0 != c0 * parameters.stride[0] || c0 >= N[0]) continue;
        for (long k1 = 0; k1 < K1; ++k1) {
            const long s1 = p1 + parameters.before[1] - k1 * parameters.dilation[1];
            const long c1 = s1 / parameters.stride[1];
            if (s1 < 0 || s1 != c1 * parameters.stride[1] || c1 >= N[1]) continue;
            for (long k2 = 0; k2 < K2; ++k2) {
                const long s2 = p2 + parameters.before[2] - k2 * parameters.dilation[2];
                const long c2 = s2 / parameters.stride[2];
                if (s2 < 0 || s2 != c2 * parameters.stride[2] || c2 >= N[2]) continue;
                const long row = ((outer * K0 + k0) * K1 + k1) * K2 + k2;
                const long index = ((row * N[0] + c0) * N[1] + c1) * N[2] + c2;
                sum += READ(x, parameters.offset + index, TYPE);
            }
        }
    }
    WRITE(out, item, TYPE, sum);
}
#endif
