// Windows that slide along three spatial axes of (outer, *lengths), with virtual padding: there are
// (outer, *counts) of them. Windows, and elements of an image, are fewer than 2^31 in a launch.

typedef struct {
    int64 n, per_item, x_offset, out_offset, type, target, lowest, has_bias, channels, images;
    int64 lengths[3], widths[3], strides[3], before[3], dilations[3], counts[3];
    int64 count_dividers[3], width_dividers[3], taps_divider, fours_divider, fours;
} Parameters;
#ifndef TYPE
#define TYPE ((int)parameters.type)
#define TARGET ((int)parameters.target)
#endif
#ifndef AXES
#define AXES 3
#endif
#ifndef K0
#define K0 (AXES > 2 ? (int)parameters.widths[0] : 1)
#define K1 (AXES > 1 ? (int)parameters.widths[1] : 1)
#define K2 (int)parameters.widths[2]
#define D0 (AXES > 2 ? (int)parameters.dilations[0] : 1)
#define D1 (AXES > 1 ? (int)parameters.dilations[1] : 1)
#define D2 (int)parameters.dilations[2]
#endif
#define L0 (AXES > 2 ? (int)parameters.lengths[0] : 1)
#define L1 (AXES > 1 ? (int)parameters.lengths[1] : 1)
#define L2 (int)parameters.lengths[2]
#define N0 (AXES > 2 ? (int)parameters.counts[0] : 1)
#define N1 (AXES > 1 ? (int)parameters.counts[1] : 1)
#define N2 (int)parameters.counts[2]
#define S0 (AXES > 2 ? (int)parameters.strides[0] : 1)
#define S1 (AXES > 1 ? (int)parameters.strides[1] : 1)
#define S2 (int)parameters.strides[2]
#define B0 (AXES > 2 ? (int)parameters.before[0] : 0)
#define B1 (AXES > 1 ? (int)parameters.before[1] : 0)
#define B2 (int)parameters.before[2]
#define WIDTH_QUOTIENT(d, x) quotient_by(x, (uint64)parameters.width_dividers[d])
// Along an axis that there is not, an index is 0.
#define COUNT_QUOTIENT(d, x) \
    (AXES > 2 - (d) ? quotient_by(x, (uint64)parameters.count_dividers[d]) : (x))

// An item of a CPU computes many consecutive results, which saves divisions; another one computes one.
#if IS_CPU
#define PER_ITEM parameters.per_item
#else
#define PER_ITEM 1
#endif

#ifdef HAS_max_pool
// Along an axis: the range of positions in a window that are not padding.
#define WITHIN(d, s, first, stop)                                                  \
    int first = 0, stop = K##d;                                                    \
    if (s < 0) first = D##d == 1 ? -s : (D##d - 1 - s) / D##d;                     \
    if (s + (K##d - 1) * D##d >= L##d)                                             \
        stop = D##d == 1 ? L##d - s : (L##d - s + D##d - 1) / D##d;

// The maximum of each window, and its index in the image: that of the first of equal elements, and of
// the first NaN.
KERNEL(WINDOW_ITEMS) void max_pool(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL void* restrict out,
    GLOBAL void* restrict indices) {
    const int64 start = ITEM * PER_ITEM;
    if (start >= parameters.n) return;
    const int64 end = start + PER_ITEM < parameters.n ? start + PER_ITEM : parameters.n;
    const uint above_2 = COUNT_QUOTIENT(2, (uint)start), above_1 = COUNT_QUOTIENT(1, above_2);
    const uint above_0 = COUNT_QUOTIENT(0, above_1);
    int c2 = (int)((uint)start - above_2 * (uint)N2), c1 = (int)(above_2 - above_1 * (uint)N1);
    int c0 = (int)(above_1 - above_0 * (uint)N0);
    int64 base = parameters.x_offset + (int64)above_0 * L0 * L1 * L2;
    for (int64 item = start; item < end; ++item, ++c2) {
#if IS_CPU
        if (c2 == N2) c2 = 0, ++c1;
        if (c1 == N1) c1 = 0, ++c0;
        if (c0 == N0) c0 = 0, base += (int64)L0 * L1 * L2;
#endif
        const int s0 = c0 * S0 - B0, s1 = c1 * S1 - B1, s2 = c2 * S2 - B2;
        WITHIN(0, s0, first0, stop0)
        WITHIN(1, s1, first1, stop1)
        WITHIN(2, s2, first2, stop2)
        C best = SCALAR((uint64)parameters.lowest);
        int found = ((s0 + first0 * D0) * L1 + s1 + first1 * D1) * L2 + s2 + first2 * D2;
        for (int k0 = first0; k0 < stop0; ++k0)
            for (int k1 = first1; k1 < stop1; ++k1) {
                const int line = ((s0 + k0 * D0) * L1 + s1 + k1 * D1) * L2 + s2;
                for (int k2 = first2; k2 < stop2; ++k2) {
                    const int element = line + k2 * D2;
                    const C value = READ(x, base + element, TYPE);
                    const int is_better = !(value <= best) & (best == best);
                    best = is_better ? value : best;
                    found = is_better ? element : found;
                }
            }
        WRITE(out, parameters.out_offset + item, TYPE, best);
        if (TARGET != SCALAR_TYPE) write_long(indices, parameters.out_offset + item, TARGET, found);
    }
}
#endif

#ifdef HAS_columns
// The elements of each window as a column of a matrix for each image (im2col): (outer, *lengths) to
// (outer, *widths, *counts). Elements are moved as words of their size.
#if IS_CPU
// An item writes `per_item` rows of windows.
KERNEL(WINDOW_ITEMS) void columns(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL void* restrict out) {
    const int64 number = ITEM * PER_ITEM;
    if (number >= parameters.n) return;
    const int64 end = number + PER_ITEM < parameters.n ? number + PER_ITEM : parameters.n;
    const int step = S2;
    int64 rest = number / N1, above = rest / N0;
    int c1 = (int)(number - rest * N1), c0 = (int)(rest - above * N0);
    for (int64 item = number; item < end;) {
        const int64 b2 = above / K2, b1 = b2 / K1, outer = b1 / K0;
        const int k2 = (int)(above - b2 * K2), k1 = (int)(b2 - b1 * K1), k0 = (int)(b1 - outer * K0);
        const int s2 = k2 * D2 - B2;
        // The windows of the row in which this element is not padding.
        int first = s2 < 0 ? (-s2 + step - 1) / step : 0;
        int stop = s2 < L2 ? (L2 - s2 + step - 1) / step : 0;
        if (stop > N2) stop = N2;
        if (first > stop) first = stop;
        for (; c0 < N0 && item < end; ++c0, c1 = 0) {
            const int p0 = c0 * S0 - B0 + k0 * D0;
            for (; c1 < N1 && item < end; ++c1, ++item) {
                const int p1 = c1 * S1 - B1 + k1 * D1;
                const int beyond = p0 < 0 || p1 < 0 || p0 >= L0 || p1 >= L1;
                const int begin = beyond ? 0 : first, behind = beyond ? 0 : stop;
                const int64 target = item * N2;
                const int64 source = parameters.x_offset + ((outer * L0 + p0) * L1 + p1) * L2 + s2;
                for (int i = 0; i < begin; ++i) WRITE(out, target + i, TYPE, (C)0);
                if (step == 1)
                    for (int i = begin; i < behind; ++i)
                        WRITE(out, target + i, TYPE, READ(x, source + i, TYPE));
                else
                    for (int i = begin; i < behind; ++i)
                        WRITE(out, target + i, TYPE, READ(x, source + i * step, TYPE));
                for (int i = behind; i < N2; ++i) WRITE(out, target + i, TYPE, (C)0);
            }
        }
        c0 = 0;
        ++above;
    }
}
#else
// An item writes four neighbours of a row of the matrix. If `images` is not 0, there is one matrix for all
// images: (channels, *widths, images, *counts).
KERNEL(WINDOW_ITEMS) void columns(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL void* restrict out) {
    const uint item = (uint)ITEM;
    if (item >= (uint)parameters.n) return;
    const uint row = quotient_by(item, (uint64)parameters.fours_divider);
    const uint first = (item - row * (uint)parameters.fours) * 4;
    const uint channel = quotient_by(row, (uint64)parameters.taps_divider);
    const uint tap = row - channel * (uint)(K0 * K1 * K2);
    const uint tap_1 = WIDTH_QUOTIENT(2, tap), tap_0 = WIDTH_QUOTIENT(1, tap_1);
    const uint above_2 = COUNT_QUOTIENT(2, first), above_1 = COUNT_QUOTIENT(1, above_2);
    int c2 = (int)(first - above_2 * (uint)N2), c1 = (int)(above_2 - above_1 * (uint)N1);
    int c0 = (int)above_1;
    const int shift_2 = (int)(tap - tap_1 * (uint)K2) * D2 - B2;
    const int shift_1 = (int)(tap_1 - tap_0 * (uint)K1) * D1 - B1, shift_0 = (int)tap_0 * D0 - B0;
    const int64 image = parameters.x_offset + (int64)channel * L0 * L1 * L2;
    C values[4];
    UNROLL for (int j = 0; j < 4; ++j) {
        const int p0 = c0 * S0 + shift_0, p1 = c1 * S1 + shift_1, p2 = c2 * S2 + shift_2;
        const int inside = p0 >= 0 && p1 >= 0 && p2 >= 0 && p0 < L0 && p1 < L1 && p2 < L2;
        values[j] = inside ? READ(x, image + (p0 * L1 + p1) * L2 + p2, TYPE) : (C)0;
        if (++c2 == N2) {
            c2 = 0;
            if (++c1 == N1) c1 = 0, ++c0;
        }
    }
    const uint positions = (uint)(N0 * N1 * N2);
    int64 line = row;
    if (parameters.images) {
        const uint number = channel / (uint)parameters.channels;
        line = (int64)(row - number * (uint)parameters.channels * (uint)(K0 * K1 * K2));
        line = line * parameters.images + number;
    }
    const int64 target = parameters.out_offset + line * positions + first;
    if (positions % 4 == 0) {
        WRITE_FOUR(out, target, TYPE, values);
    } else {
        UNROLL for (int j = 0; j < 4; ++j)
            if (first + j < positions) WRITE(out, target + j, TYPE, values[j]);
    }
}
#endif
#endif

#ifdef HAS_fold
// The transpose of `columns` (col2im): each element is the sum over the windows that contain it, and the
// bias of its channel.
#define EACH_WINDOW(d, p)                                          \
    for (int k##d = 0; k##d < K##d; ++k##d) {                      \
        const int reach##d = p + B##d - k##d * D##d;               \
        const int c##d = S##d == 1 ? reach##d : reach##d / S##d;   \
        if (reach##d < 0 || c##d * S##d != reach##d || c##d >= N##d) continue;

KERNEL(GROUP_ITEMS) void fold(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL const void* restrict bias,
    GLOBAL void* restrict out) {
    const uint item = (uint)ITEM;
    if (item >= (uint)parameters.n) return;
    const uint above_2 = item / (uint)L2, above_1 = above_2 / (uint)L1, outer = above_1 / (uint)L0;
    const int p2 = (int)(item - above_2 * (uint)L2), p1 = (int)(above_2 - above_1 * (uint)L1);
    const int p0 = (int)(above_1 - outer * (uint)L0);
    C sum = (C)0;
    if (parameters.has_bias) sum = READ(bias, outer % (uint)parameters.channels, TARGET);
    const int64 base = parameters.x_offset + (int64)outer * (K0 * K1 * K2) * (N0 * N1 * N2);
    EACH_WINDOW(0, p0)
        EACH_WINDOW(1, p1)
            EACH_WINDOW(2, p2)
                const int64 row = (k0 * K1 + k1) * K2 + k2;
                sum += READ(x, base + ((row * N0 + c0) * N1 + c1) * N2 + c2, TYPE);
            }
        }
    }
    WRITE(out, parameters.out_offset + item, TARGET, sum);
}
#endif
